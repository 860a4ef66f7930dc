"""The cluster state against a model of dicts: any events, in any order, valid or not."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from firmament_py.model.events import ClassDefined, NodeObserved, NodeRemoved, PlacementRejected, TasksObserved
from firmament_py.model.lifecycle import NodeState, TaskState
from firmament_py.model.placed_by import PlacedBy
from firmament_py.state.cluster import ClusterState
from tests.builders import ended, removed
from tests.firmament_py import oracle
from tests.firmament_py.oracle import PlainTask, World
from tests.firmament_py.strategies import demands, labels, taints

UIDS = st.one_of(st.integers(1, 9), st.sampled_from([2**63, 2**64 - 1]))
CLASSES = st.integers(1, 5)
NODES = st.sampled_from(["id-a", "id-b", "id-c", "id-d"])
RESOURCES = st.sampled_from(["cpu", "memory", "pods", "vendor.example/gpu"])
AMOUNTS = st.one_of(st.integers(0, 9), st.sampled_from([-1, 2**50 - 1, 2**50, 2**63 - 1, -(2**63)]))
TIMES = st.sampled_from([0, 1, 10**15, -(2**63), 2**63 - 1])
WHERE = st.one_of(st.none(), NODES)
ROWS = st.lists(st.tuples(UIDS, CLASSES, WHERE, TIMES), min_size=1, max_size=6)


def batch(rows) -> TasksObserved:
    nodes = sorted({node for _, _, node, _ in rows if node})
    return TasksObserved(
        uid=np.array([r[0] for r in rows], np.uint64),
        class_id=np.array([r[1] for r in rows], np.uint64),
        job_id=np.array([r[0] for r in rows], np.uint64),
        created_us=np.array([r[3] for r in rows], np.int64),
        node=np.array([nodes.index(r[2]) + 1 if r[2] else 0 for r in rows], np.int64),
        names=[f"task-{r[0]}" for r in rows],
        nodes=tuple(nodes),
    )


class StateAgreesWithDicts(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.state = ClusterState()
        self.world = World()
        self.ends: Counter[str] = Counter()

    @rule(number=st.integers(0, 5), requests=st.dictionaries(RESOURCES, AMOUNTS, max_size=3), demand=demands)
    def define(self, number, requests, demand):
        new = ClassDefined(number, requests, demand)
        outcome = self.state.apply(new)
        known = self.world.classes.get(number)
        sensible = number != 0 and all(amount >= 0 for amount in requests.values())
        agrees = known is None or (known.requests, known.demand) == (requests, demand)
        assert len(outcome.refused) == (0 if sensible and agrees else 1)
        if sensible and known is None:
            self.world.classes[number] = new

    @rule(
        node_id=st.one_of(NODES, NODES, NODES, st.just("")),
        amounts=st.dictionaries(RESOURCES, AMOUNTS, max_size=4),
        labels=labels,
        taints=taints,
    )
    def observe_node(self, node_id, amounts, labels, taints):
        node = NodeObserved(node_id, f"name of {node_id}", amounts, labels, taints)
        outcome = self.state.apply(node)
        sensible = bool(node_id) and all(amount >= 0 for amount in amounts.values())
        assert len(outcome.refused) == (0 if sensible else 1)
        if sensible:
            self.world.nodes[node_id] = node

    @rule(node_id=NODES)
    def remove_node(self, node_id):
        outcome = self.state.apply(NodeRemoved(node_id))
        assert outcome.unknown == ([] if node_id in self.world.nodes else [node_id])
        self.world.nodes.pop(node_id, None)

    @rule(rows=ROWS)
    def observe_tasks(self, rows):
        world = self.world
        outcome = self.state.apply(batch(rows))
        last = {row[0]: row for row in rows}
        refused, unknown = 0, set()
        for uid, cls, node, created in last.values():
            task = world.tasks.get(uid)
            if cls not in world.classes:
                unknown.add(cls)
            elif task is None:
                world.tasks[uid] = PlainTask(cls, node, "bound" if node else "waiting", created)
            elif task.state == "ended" or (task.state == "bound" and node is None):
                refused += 1
            elif node is not None:
                task.cls, task.node, task.state, task.created_us = cls, node, "bound", created
            else:  # waiting stays waiting, assumed stays assumed where it is
                task.cls, task.created_us = cls, created
        assert (len(outcome.refused), outcome.unknown_classes) == (refused, unknown)

    @rule(uids=st.lists(UIDS, max_size=4), failed=st.booleans())
    def end(self, uids, failed):
        self._note_ends(uids, "failed" if failed else "succeeded")
        outcome = self.state.apply(ended(*uids, failed=failed))
        assert sorted(outcome.unknown) == sorted({u for u in uids if u not in self.world.tasks})
        for uid in uids:
            if uid in self.world.tasks:
                self.world.tasks[uid].state, self.world.tasks[uid].node = "ended", None

    @rule(uids=st.lists(UIDS, max_size=4))
    def remove(self, uids):
        self._note_ends(uids, "removed")
        outcome = self.state.apply(removed(*uids))
        assert sorted(outcome.unknown) == sorted({u for u in uids if u not in self.world.tasks})
        for uid in uids:
            self.world.tasks.pop(uid, None)

    def _note_ends(self, uids, how):
        """A task counts once, with its first end."""
        self.ends[how] += sum(uid in self.world.tasks and self.world.tasks[uid].state != "ended" for uid in set(uids))

    @invariant()
    def ends_agree(self):
        assert self.state.outcomes.counts == {how: self.ends[how] for how in ("succeeded", "failed", "removed")}

    @rule(data=st.data(), maximum=st.integers(1, 4))
    def place(self, data, maximum):
        """As a round does: waiting tasks on present nodes."""
        waiting = sorted(uid for uid, task in self.world.tasks.items() if task.state == "waiting")[:maximum]
        if not waiting or not self.world.nodes:
            return
        at = [data.draw(st.sampled_from(sorted(self.world.nodes))) for _ in waiting]
        rows = np.array([self.state.task_row(uid) for uid in waiting], np.int64)
        nodes = np.array([self.state.node_row(i) for i in at], np.int64)
        self.state.place(rows, nodes, np.full(len(rows), PlacedBy.FLOW))
        for uid, node in zip(waiting, at, strict=True):
            self.world.tasks[uid].state, self.world.tasks[uid].node = "assumed", node

    @rule(data=st.data(), uid=UIDS, node_id=NODES, not_before=TIMES)
    def reject(self, data, uid, node_id, not_before):
        assumed = sorted(u for u, task in self.world.tasks.items() if task.state == "assumed")
        if assumed and data.draw(st.booleans()):
            uid = assumed[0]
            node_id = self.world.tasks[uid].node
        task = self.world.tasks.get(uid)
        outcome = self.state.apply(PlacementRejected(uid, node_id, not_before))
        if task is not None and task.state == "waiting":  # the preemption of others for it failed
            assert outcome.unknown == ([uid] if task.not_before_us == not_before else [])
            task.not_before_us = not_before
        elif task is None or task.state != "assumed" or task.node != node_id:
            assert outcome.unknown == [uid]
        else:
            task.state, task.node, task.not_before_us = "waiting", None, not_before
            assert outcome.unknown == []

    @rule()
    def resync(self):
        """A new state from what the bridge knows, tasks before their nodes: assumed ones count as bound."""
        self.state = ClusterState()
        self.ends.clear()
        world = self.world
        world.tasks = {uid: task for uid, task in world.tasks.items() if task.state != "ended"}
        for cls in world.classes.values():
            self.state.apply(cls)
        rows = [(uid, task.cls, task.node, task.created_us) for uid, task in world.tasks.items()]
        if rows:
            outcome = self.state.apply(batch(rows))
            assert not outcome.refused
            assert not outcome.unknown_classes
        for node in world.nodes.values():
            self.state.apply(node)
        for task in world.tasks.values():
            task.state, task.not_before_us = "bound" if task.node else "waiting", 0

    @invariant()
    def columns_are_right(self):
        self.state.validate()

    @invariant()
    def tasks_agree(self):
        state, tasks = self.state, self.state.tasks
        assert len(tasks) == len(self.world.tasks)
        for uid, task in self.world.tasks.items():
            row = state.task_row(uid)
            assert TaskState(int(tasks.state[row])).name.lower() == task.state
            assert state.nodes.id.get(int(tasks.node[row])) == task.node
            assert int(state.classes.id[tasks.cls[row]]) == task.cls
            assert int(tasks.created_us[row]) == task.created_us
            assert int(tasks.not_before_us[row]) == task.not_before_us
            assert tasks.name[row] == f"task-{uid}"

    @invariant()
    def nodes_agree(self):
        state, world = self.state, self.world
        present = {i for i, row in state.nodes.row.items() if state.nodes.state[row] == NodeState.PRESENT}
        assert present == set(world.nodes)
        assert set(state.nodes.row) == present | {task.node for task in world.tasks.values() if task.node}
        for node_id, row in state.nodes.row.items():
            used = dict(zip(state.resources.names, state.nodes.used[row].tolist(), strict=True))
            assert {r: k for r, k in used.items() if k} == {
                r: k for r, k in (+world.used(node_id)).items() if r in state.resources
            }
            offered = dict(zip(state.resources.names, state.nodes.allocatable[row].tolist(), strict=True))
            expected = +oracle.offers(world.nodes[node_id]) if node_id in world.nodes else {}
            assert {r: k for r, k in offered.items() if k} == expected


TestStateAgreesWithDicts = pytest.mark.slow(StateAgreesWithDicts.TestCase)
