"""Random clusters for test_wakeups.py: what happens in them, the engine's rounds as the bridge would run them, and an
engine that considers everything anew."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from firmament_py.engine.round_result import RoundResult
from firmament_py.engine.wakeups import RESERVED_STEP_US
from firmament_py.model.constraints import PeerDemand, PeerSelector, PeerTerm, Spread, Taint
from firmament_py.model.events import (
    BudgetRemoved,
    Event,
    NamespaceObserved,
    NodeRemoved,
    PlacementRejected,
    QueuesObserved,
)
from firmament_py.model.options import Migrating, Preempting
from firmament_py.model.queues import QueueTree
from policies.quincy import Quincy
from tests.builders import (
    NOW_US,
    SECOND_US,
    Cluster,
    ended,
    make_budget,
    make_class,
    make_cluster,
    make_gang,
    make_inputs,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    removed,
    selecting,
    tasks_like,
)
from tests.firmament_py.queues.trees import queue_id

A, B = tasks_like(needs("app", "In", "a")), tasks_like(needs("app", "In", "b"))
RED = PeerSelector(frozenset(), (needs("team", "In", "red"),), (needs("app", "In", "b"),))
LABEL_SETS: dict[int, tuple[tuple[str, ...], dict[str, str]]] = {
    1: ((), {"app": "a"}),
    2: ((), {"app": "b"}),
    3: (("other",), {"app": "b"}),
}
CLASSES = (
    make_class(1, cpu=1),
    make_class(2, cpu=2),
    make_class(3, cpu=4),
    make_class(4, cpu=1, priority=5),
    make_class(5, cpu=3, priority=5),
    make_class(6, cpu=2, priority=9, never_preempts=True),
    make_class(7, cpu=1, demand=selecting(needs("disk"))),
    make_class(8, cpu=1, tokens=("port",)),
    make_class(9, cpu=1, peers=PeerDemand(anti_affinity=(PeerTerm(A, "zone"),))),
    make_class(10, cpu=1, peers=PeerDemand(affinity=(PeerTerm(B, "zone"),))),
    make_class(11, cpu=1, peers=PeerDemand(spread=(Spread(A, "zone"),))),
    make_class(12, cpu=2, expected_us=60 * SECOND_US),
    make_class(13, cpu=1, gpu=1),
    make_class(14, cpu=1, peers=PeerDemand(anti_affinity=(PeerTerm(B, "host"),)), priority=5),
    make_class(15, cpu=1, peers=PeerDemand(anti_affinity=(PeerTerm(RED, "zone"),))),
    make_class(16, cpu=1, peers=PeerDemand(affinity=(PeerTerm(RED, "zone"),))),
)
ALL = tuple(each.id for each in CLASSES)
PLAIN = (1, 2, 3, 4, 5, 6, 12)
NAMES = ("n0", "n1", "n2", "n3")
AT_MOST = 60
"""Rounds that follow one event at once."""


Quotas = dict[str, dict[str, Any]]
"""By name of a queue: `nominal`, and `stopped`."""


@dataclass
class Node:
    cpu: int
    labels: dict[str, str]
    gpu: int = 0
    tainted: bool = False


@dataclass
class Task:
    """on: its node; bound: the bridge has confirmed it; victim: a round has decided that it leaves; fields: others of
    its row that change."""

    cls: int
    created_us: int
    gang: int = 0
    on: str = ""
    bound: bool = False
    victim: bool = False
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """queues: the tree of queues, from quotas; None: there are none. first_counts: which flavor a task gets depends on
    which ones come first, and so on those that were passed over."""

    queues: Callable[[Quotas], QueueTree] | None = None
    preempting: Preempting = Preempting.OFF
    migrating: Migrating = Migrating.NEVER
    delays: bool = False
    first_counts: bool = False


class World:
    def __init__(self, kind: Kind, seed: int) -> None:
        self.kind, self.rng = kind, Random(seed)
        self.now_us = NOW_US
        self.nodes: dict[str, Node] = {}
        self.tasks: dict[int, Task] = {}
        self.gangs: dict[int, dict[str, Any]] = {}
        self.quotas: Quotas = {}
        self.budgets: dict[int, int] = {}
        self.uids = 0
        self.most_waiting = self.rng.choice([2, 3, 5, 12])
        """About so many tasks wait at most: where many do, one may wake the others by chance."""
        self.cluster = self.new_cluster(
            *CLASSES,
            *(make_label_set(number, *where, **labels) for number, (where, labels) in LABEL_SETS.items()),
            make_inputs(1, (2_000, "n0")),
        )
        for _ in range(3):
            self.add_node()
        if kind.queues is not None:
            self.quotas = {name: {"nominal": 4} for name in "ab"}
            self.tell_queues()

    def settings(self) -> dict[str, Any]:
        """Of the scheduler."""
        return {
            "preempting": self.kind.preempting,
            "migrating": self.kind.migrating,
            "migrate_after_us": 0,
            "policy": Quincy(wait_mib=100.0, spread_mib=0) if self.kind.delays else None,
            "reserve_after_us": 60 * SECOND_US,
        }

    def new_cluster(self, *events: Event) -> Cluster:
        """After these events."""
        return make_cluster(*events, **self.settings())

    # -- what happens -----------------------------------------------------------------------------------------

    def step(self) -> str:
        """One event that is possible now; its name."""
        events: dict[Callable[[], bool], int] = {
            self.add_task: 12,
            self.add_gang: 3,
            self.add_member: 2,
            self.delete_waiting: 4,
            self.end_running: 6,
            self.confirm: 5,
            self.change_gang: 1,
            self.add_node: 1,
            self.remove_node: 1,
            self.change_node: 5,
            self.relabel: 2,
            self.change_namespace: 1,
            self.change_task: 2,
            self.reject: 1,
            self.pass_time: 2,
        }
        if self.kind.queues is not None:
            events |= {self.change_queues: 2, self.move_task: 1}
        if self.kind.preempting is not Preempting.OFF or self.kind.migrating is not Migrating.NEVER:
            events |= {self.change_budget: 2, self.victims_leave: 3, self.victim_stays: 1}
        while True:
            [event] = self.rng.choices(list(events), list(events.values()))
            if event():
                return event.__name__

    def tell(self, *events: Event) -> None:
        for outcome in self.cluster.tell(*events):
            assert not outcome.refused, outcome

    def tell_task(self, uid: int) -> None:
        task = self.tasks[uid]
        on = task.on if task.bound else None
        started_us = self.now_us if task.bound else 0
        self.tell(
            make_tasks(
                [uid], task.cls, on=on, gang=task.gang, created_us=task.created_us, started_us=started_us, **task.fields
            )
        )

    def pick(self, *, running: bool, **having: Any) -> int:
        """A task, 0: there is none."""
        found = [
            uid
            for uid, task in self.tasks.items()
            if bool(task.on) is running and all(getattr(task, name) == value for name, value in having.items())
        ]
        return self.rng.choice(found) if found else 0

    def new_task(self, gang: int = 0, cls: int = 0) -> int:
        self.uids += 1
        fields: dict[str, Any] = {"label_set": self.rng.choice([0, *LABEL_SETS])}
        fields["inputs"] = 1 if self.kind.delays and self.rng.random() < 0.5 else 0
        fields["movable"] = self.kind.migrating is not Migrating.NEVER and self.rng.random() < 0.6
        if self.kind.queues is not None:
            fields["queue"] = queue_id(self.rng.choice("ab")) if not gang else queue_id("a")
        old_us = self.rng.choice([0, 0, 0, 100 * SECOND_US])
        self.tasks[self.uids] = Task(cls or self.rng.choice(ALL), self.now_us - old_us, gang, fields=fields)
        return self.uids

    def enough_wait(self) -> bool:
        return sum(not task.on for task in self.tasks.values()) >= self.most_waiting

    def add_task(self) -> bool:
        if self.enough_wait():
            return False
        cls = self.rng.choice(ALL)
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            self.tell_task(self.new_task(cls=cls))
        return True

    def add_gang(self) -> bool:
        if self.enough_wait():
            return False
        gang, size = len(self.gangs) + 1, self.rng.randint(2, 4)
        minimum = self.rng.choice([size, self.rng.randint(1, size)])
        self.gangs[gang] = {"minimum": minimum, "created_us": self.now_us - self.rng.choice([0, 100 * SECOND_US])}
        if self.rng.random() < 0.3:
            self.gangs[gang]["maximum"] = size + self.rng.randint(0, 1)
        self.tell(make_gang(gang, **self.gangs[gang]))
        for _ in range(size + self.rng.randint(-1, 1)):
            self.tell_task(self.new_task(gang, self.rng.choice(PLAIN)))
        return True

    def add_member(self) -> bool:
        if not self.gangs or self.enough_wait():
            return False
        self.tell_task(self.new_task(self.rng.choice(list(self.gangs)), self.rng.choice(PLAIN)))
        return True

    def change_gang(self) -> bool:
        if not self.gangs:
            return False
        gang = self.rng.choice(list(self.gangs))
        minimum = self.rng.randint(1, 4)
        maximum = self.rng.choice([0, minimum, minimum + 1])
        self.gangs[gang] |= {"minimum": minimum, "maximum": maximum}
        self.tell(make_gang(gang, **self.gangs[gang]))
        return True

    def forget(self, uid: int, *, end: bool = False) -> None:
        del self.tasks[uid]
        self.tell(*([ended(uid, failed=self.rng.random() < 0.5)] if end else []), removed(uid))

    def delete_waiting(self) -> bool:
        uid = self.pick(running=False)
        if not uid:
            return False
        self.forget(uid)
        return True

    def end_running(self) -> bool:
        uid = self.pick(running=True)
        if not uid:
            return False
        self.forget(uid, end=self.rng.random() < 0.5)
        return True

    def confirm(self) -> bool:
        """The bridge has bound what was placed."""
        some = [uid for uid, task in self.tasks.items() if task.on and not task.bound]
        if not some:
            return False
        for uid in some:
            self.tasks[uid].bound = True
            self.tell_task(uid)
        return True

    def reject(self) -> bool:
        uid = self.pick(running=True, bound=False)
        if not uid:
            return False
        later_us = self.rng.choice([0, 10 * SECOND_US])
        self.tell(PlacementRejected(uid, f"id-{self.tasks[uid].on}", self.now_us + later_us))
        self.tasks[uid].on = ""
        return True

    def add_node(self) -> bool:
        name = next((name for name in NAMES if name not in self.nodes), "")
        if not name:
            return False
        labels = {"host": name, "zone": self.rng.choice("xy")}
        self.nodes[name] = Node(self.rng.randint(2, 5), labels, self.rng.choice([0, 0, 1]))
        self.tell_node(name)
        return True

    def tell_node(self, name: str) -> None:
        node = self.nodes[name]
        taints = (Taint("t", "", "NoSchedule"),) if node.tainted else ()
        amounts = {"gpu": node.gpu} if node.gpu else {}
        self.tell(make_node(name, cpu=node.cpu, labels=node.labels, taints=taints, **amounts))

    def remove_node(self) -> bool:
        if len(self.nodes) < 2:
            return False
        name = self.rng.choice(list(self.nodes))
        del self.nodes[name]
        self.tell(NodeRemoved(f"id-{name}"))
        for uid in [uid for uid, task in self.tasks.items() if task.on == name]:
            self.forget(uid)
        return True

    def change_node(self) -> bool:
        name = self.rng.choice(list(self.nodes))
        node = self.nodes[name]
        match self.rng.choice(["cpu", "gpu", "zone", "disk", "taint", "taint"]):
            case "cpu":
                node.cpu = self.rng.randint(1, 5)
            case "gpu":
                node.gpu = 1 - node.gpu
            case "zone":
                node.labels = {**node.labels, "zone": self.rng.choice("xyz")}
            case "disk":
                node.labels = {**node.labels, "disk": ""} if "disk" not in node.labels else {"host": name, "zone": "x"}
            case "taint":
                node.tainted = not node.tainted
        self.tell_node(name)
        return True

    def relabel(self) -> bool:
        uid = self.pick(running=self.rng.random() < 0.7)
        if not uid or (self.tasks[uid].on and not self.tasks[uid].bound):
            return False
        self.tasks[uid].fields["label_set"] = self.rng.choice([0, *LABEL_SETS])
        self.tell_task(uid)
        return True

    def change_namespace(self) -> bool:
        self.tell(NamespaceObserved("other", {"team": self.rng.choice(["red", "blue"])}))
        return True

    def change_task(self) -> bool:
        """A volume, a claim or an annotation changes what a task asks for, or whether it may leave."""
        running = self.rng.random() < 0.5
        uid = self.pick(running=running, bound=running)
        if not uid:
            return False
        task = self.tasks[uid]
        if running:
            name = self.rng.choice(["unevictable", "leaving", "movable"])
            task.fields[name] = not task.fields.get(name, False)
            task.victim = False
        else:
            task.cls = self.rng.choice(PLAIN if task.gang else ALL)
        self.tell_task(uid)
        return True

    def victims_leave(self) -> bool:
        some = [uid for uid, task in self.tasks.items() if task.victim or (task.on and task.fields.get("leaving"))]
        if not some:
            return False
        for uid in some[: self.rng.randint(1, len(some))]:
            self.forget(uid)
        return True

    def victim_stays(self) -> bool:
        uid = self.pick(running=True, victim=True)
        if not uid:
            return False
        self.tasks[uid].victim = False
        self.tell_task(uid)
        return True

    def change_budget(self) -> bool:
        number = self.rng.choice([1, 2])
        if number in self.budgets and self.rng.random() < 0.2:
            del self.budgets[number]
            self.tell(BudgetRemoved(number))
            return True
        self.budgets[number] = self.rng.randint(0, 3)
        self.tell(make_budget(number, [A, B][number - 1], self.budgets[number]))
        return True

    def change_queues(self) -> bool:
        name = self.rng.choice("ab")
        match self.rng.choice(["nominal", "nominal", "stop", "gone"]):
            case "nominal":
                self.quotas[name] = {**self.quotas.get(name, {}), "nominal": self.rng.randint(0, 8)}
            case "stop":
                one = self.quotas.get(name, {"nominal": 4})
                self.quotas[name] = {**one, "stopped": not one.get("stopped")}
            case "gone":
                if self.quotas.pop(name, None) is None:
                    self.quotas[name] = {"nominal": 4}
        self.tell_queues()
        return True

    def tell_queues(self) -> None:
        assert self.kind.queues is not None
        self.tell(QueuesObserved(self.kind.queues(self.quotas)))

    def move_task(self) -> bool:
        uid = self.pick(running=False, gang=0)
        if not uid:
            return False
        self.tasks[uid].fields["queue"] = queue_id(self.rng.choice("abc"))
        self.tell_task(uid)
        return True

    def pass_time(self) -> bool:
        """And the next round that is due soon: some things are looked at every few seconds."""
        self.run_until(self.now_us + self.rng.choice([1, 5, 30, 100]) * SECOND_US)
        wake_us = self.wake_us()
        if 0 < wake_us <= self.now_us + RESERVED_STEP_US:
            self.run_until(wake_us)
        return True

    # -- rounds -----------------------------------------------------------------------------------------------

    def due(self) -> bool:
        return self.cluster.scheduler.due(self.now_us)

    def wake_us(self) -> int:
        return self.cluster.scheduler.wake_us(self.now_us)

    def run(self) -> RoundResult:
        return self.cluster.run(self.now_us)

    def run_until(self, until_us: int) -> None:
        """The rounds that the engine asks for until then."""
        for _ in range(AT_MOST):
            wake_us = self.wake_us()
            if not wake_us or wake_us > until_us:
                break
            self.now_us = max(self.now_us, wake_us)
            self.rounds()
        self.now_us = until_us
        self.rounds()

    def rounds(self) -> int:
        """Rounds as long as they are due at once; how many."""
        for number in range(AT_MOST):
            if not self.due():
                assert self.wake_us() != self.now_us
                return number
            self.round()
        raise AssertionError("rounds are due for good although nothing changes")

    def woken(self) -> set[int]:
        """The tasks that await what has happened since the last round."""
        rows = self.cluster.scheduler.wakeups.woken(self.now_us)
        return set(self.cluster.state.tasks.uid[rows].tolist())

    def round(self) -> set[int]:
        """The tasks that were placed or nominated, with the members of their gangs."""
        result, uid = self.run(), self.cluster.state.tasks.uid
        served = {*self.cluster.names(result), *uid[result.preemption.nominated[0]].tolist()}
        for each, node in self.cluster.names(result).items():
            self.tasks[each].on, self.tasks[each].bound = node, False
        for each in (*self.cluster.preempted(result), *self.cluster.migrating(result)):
            self.tasks[each].victim = True
        gangs = {self.tasks[each].gang for each in served} - {0}
        return served | {each for each, task in self.tasks.items() if task.gang in gangs}

    def missed(self) -> str:
        """What an engine that knows nothing of earlier rounds would do now; empty: nothing."""
        scheduler, state = self.cluster.scheduler, self.cluster.state.copy()
        fresh = scheduler.beside(state, scheduler.policy, scheduler.usage)
        if not self.kind.first_counts:
            state.tasks.begin_anew(np.arange(state.tasks.capacity))
        uid = state.tasks.uid
        for _ in range(2):  # in the second one, others may use the quota of tasks that no node takes
            result = fresh.run(self.now_us)
            rows = {
                "places": result.tasks,
                "evicts": result.preemption.victims,
                "nominates": result.preemption.nominated[0],
                "moves": result.migration.tasks,
            }
            if found := [f"{name} {uid[some].tolist()}" for name, some in rows.items() if len(some)]:
                return ", ".join(found)
        return ""
