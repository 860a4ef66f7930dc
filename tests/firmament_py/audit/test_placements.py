"""The independent check refuses every invalid placement, and no valid one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.audit.placements import Checker
from firmament_py.engine.scheduler import DROPPED_STEP_US, Scheduler
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.constraints import NodeDemand, Taint, Term, Toleration
from firmament_py.model.events import NodeRemoved
from policies.load_spreading import LoadSpreading
from tests.builders import (
    NOW_US,
    Cluster,
    any_of,
    ended,
    make_class,
    make_cluster,
    make_node,
    make_tasks,
    needs,
    selecting,
)
from tests.firmament_py.engine.random_rounds import clusters, world_of

GPU = Taint("gpu", "", "NoSchedule")
FAST = {"disk": "fast"}


def cluster_to_check() -> Cluster:
    """Nodes: a (4 cpu), fast (4 cpu, labelled), gpu (4 cpu, tainted), full (all taken), absent (a task, no node).

    Tasks 1-6 want 1 cpu and no more, 11-12 the fast label, 13 a node named a, 14 tolerates the taint, 21 is bound,
    22 has ended.
    """
    return make_cluster(
        *(make_node("a", cpu=4), make_node("fast", cpu=4, labels=FAST), make_node("gpu", cpu=4, taints=[GPU])),
        *(make_node("full", cpu=1), make_class(1, cpu=1), make_class(5, cpu=5)),
        make_class(2, cpu=1, demand=selecting(needs("disk", "In", "fast"))),
        make_class(3, cpu=1, demand=any_of(Term((), (needs("metadata.name", "In", "a"),)))),
        make_class(4, cpu=1, demand=NodeDemand(tolerations=(Toleration("gpu", "Exists"),))),
        *(make_tasks(range(1, 7), 1), make_tasks([11, 12], 2), make_tasks([13], 3), make_tasks([14], 4)),
        *(make_tasks([15], 5), make_tasks([20], 1, on="full"), make_tasks([21], 1, on="absent")),
        *(make_tasks([22], 1), ended(22)),
    )


def check(cluster: Cluster, *placements: tuple[int, str], checker: Checker | None = None):
    rows = np.array([cluster.state.task_row(uid) for uid, _ in placements], np.int64)
    nodes = np.array([cluster.state.nodes.row[f"id-{name}"] for _, name in placements], np.int64)
    result = (checker or Checker(cluster.state)).check(rows, nodes, np.zeros(len(rows), np.int64))
    return result.sound.tolist(), result.complaints


@pytest.mark.parametrize(
    "placements",
    [
        pytest.param([], id="none"),
        pytest.param([(1, "a"), (2, "a"), (3, "a"), (4, "a")], id="exactly-full"),
        pytest.param([(1, "a"), (2, "fast"), (11, "fast"), (13, "a"), (14, "gpu"), (12, "fast")], id="all-kinds"),
        pytest.param([(14, "a")], id="a-toleration-does-not-bind"),
    ],
)
def test_valid_placements_pass(placements):
    assert check(cluster_to_check(), *placements) == ([True] * len(placements), [])


@pytest.mark.parametrize(
    ("placements", "sound", "complaint"),
    [
        pytest.param([(11, "a"), (1, "a")], [False, True], "1 placements: selector, affinity", id="selector"),
        pytest.param([(13, "fast"), (1, "a")], [False, True], "1 placements: selector, affinity", id="affinity"),
        pytest.param([(1, "gpu"), (2, "a")], [False, True], "1 placements: selector, affinity or a taint", id="taint"),
        pytest.param(
            [(1, "a"), (1, "fast"), (2, "a")], [False, False, True], "2 placements: the task is placed", id="twice"
        ),
        pytest.param(
            [(1, "a"), (1, "a"), (2, "a")], [False, False, True], "placed more than once", id="twice-same-node"
        ),
        pytest.param([(1, "full"), (2, "a")], [False, True], "1 placements: the node would be over", id="full"),
        pytest.param([(15, "a"), (1, "fast")], [False, True], "1 placements: the node would be over", id="too-large"),
        # 5 of 1 cpu on 4 cpu: which one is too many is not for the check to say, so all go
        pytest.param(
            [(u, "a") for u in range(1, 6)] + [(6, "fast")],
            [False] * 5 + [True],
            "5 placements: the node",
            id="too-many",
        ),
        pytest.param([(1, "absent"), (2, "a")], [False, True], "1 placements: the node is absent", id="absent"),
        pytest.param([(21, "a"), (1, "a")], [False, True], "1 placements: the task is not waiting", id="bound"),
        pytest.param([(22, "a"), (1, "a")], [False, True], "1 placements: the task is not waiting", id="ended"),
    ],
)
def test_only_invalid_placements_are_refused(placements, sound, complaint):
    found, complaints = check(cluster_to_check(), *placements)
    assert found == sound
    assert len(complaints) == 1
    assert complaint in complaints[0]


def test_a_refused_placement_uses_no_capacity():
    # 4 right ones and one that is not welcome: the four fill the node
    placements = [(11, "a"), *((uid, "a") for uid in range(1, 5))]
    assert check(cluster_to_check(), *placements)[0] == [False, True, True, True, True]


def test_each_fault_has_a_complaint():
    _, complaints = check(cluster_to_check(), (22, "a"), (1, "absent"), (2, "gpu"), (15, "a"))
    assert len(complaints) == 4


def test_an_over_committed_node_takes_tasks_that_request_other_resources():
    cluster = make_cluster(
        *(make_class(1, cpu=4), make_class(2), make_class(3, cpu=1), make_tasks([1], 1, on="a"), make_node("a", cpu=2)),
        *(make_tasks([2], 2), make_tasks([3], 3)),
    )
    assert check(cluster, (2, "a")) == ([True], [])
    assert check(cluster, (3, "a"))[0] == [False]


@pytest.mark.parametrize(
    ("change", "sound"),
    [
        pytest.param(make_node("fast", cpu=4), False, id="label-gone"),
        pytest.param(make_node("fast", cpu=4, labels=FAST, taints=[GPU]), False, id="taint-came"),
        pytest.param(make_node("fast", cpu=4, labels={**FAST, "x": "y"}), True, id="other-label"),
        pytest.param(make_node("fast", cpu=0, labels=FAST), False, id="shrunk"),
        pytest.param(NodeRemoved("id-fast"), False, id="removed"),
    ],
)
def test_cached_results_are_invalidated(change, sound):
    cluster = cluster_to_check()
    cluster.tell(make_tasks([99], 1, on="fast"))  # the node keeps its row when it is removed
    checker = Checker(cluster.state)
    assert check(cluster, (11, "fast"), checker=checker)[0] == [True]
    cluster.tell(change)
    assert check(cluster, (11, "fast"), checker=checker)[0] == [sound]


def test_usage_of_nodes_is_summed_from_tasks():
    cluster = cluster_to_check()
    cluster.state.nodes.used[:] = 0
    assert check(cluster, (1, "full"))[0] == [False]


@pytest.mark.slow
@given(events=clusters(), data=st.data())
def test_rounds_pass_and_changed_placements_are_checked_as_by_the_oracle(events, data):
    cluster, world = make_cluster(*events), world_of(events)
    decided = _decide(cluster)
    if not decided:
        return
    assert check(cluster, *decided.items()) == ([True] * len(decided), [])
    uid = data.draw(st.sampled_from(sorted(decided)))
    moved = {**decided, uid: data.draw(st.sampled_from(sorted(node.name for node in world.nodes.values())))}
    for task, name in moved.items():
        world.tasks[task].node = f"id-{name}"
    over = world.overcommitted()
    for task in moved:
        world.tasks[task].node = None
    found, _ = check(cluster, *moved.items())
    for (task, name), sound in zip(moved.items(), found, strict=True):
        if not world.welcome(world.tasks[task].cls, f"id-{name}"):
            assert not sound
        elif f"id-{name}" not in over:
            assert sound
        elif name == moved[uid] and world.welcome(world.tasks[uid].cls, f"id-{name}"):
            wants = world.classes[world.tasks[uid].cls]
            excess = over[f"id-{name}"]
            assert not sound or not any(excess[r] for r in [*wants.requests, "pods"] if wants.requests.get(r, 1))


def _decide(cluster: Cluster) -> dict[int, str]:
    """The placements of a round, without carrying them out."""
    decided: dict[int, str] = {}
    scheduler = Scheduler(cluster.state, LoadSpreading(), OrToolsSolver())
    with pytest.MonkeyPatch.context() as patch:

        def note(rows, nodes, by):
            for row, node in zip(rows.tolist(), nodes.tolist(), strict=True):
                decided[int(cluster.state.tasks.uid[row])] = cluster.state.nodes.observed[node].name

        patch.setattr(cluster.state, "place", note)
        scheduler.run(NOW_US)
    return decided


def test_a_round_drops_and_logs_invalid_placements_and_places_the_others(monkeypatch, caplog):
    """A broken placer: all tasks to node `full`, except one task to node a."""
    cluster = cluster_to_check()
    rows = np.array([cluster.state.task_row(u) for u in (1, 2, 3)])
    nodes = np.array([cluster.state.node_row("id-full")] * 2 + [cluster.state.node_row("id-a")])
    monkeypatch.setattr(
        "firmament_py.placement.ledger.Ledger.outcome",
        lambda self: (rows, nodes, np.zeros(3, np.uint8), np.zeros(3, np.int64)),
    )
    result = cluster.scheduler.run(NOW_US)
    cluster.state.validate()
    assert cluster.names(result) == {3: "a"}
    assert (result.stats.dropped, result.stats.placed) == (2, 1)
    assert "dropped 2 placements that failed the independent check" in caplog.text
    assert {1, 2} <= cluster.waiting()
    monkeypatch.undo()
    later_us = NOW_US + DROPPED_STEP_US
    assert not cluster.scheduler.due(later_us - 1)
    assert cluster.scheduler.due(later_us)
    assert {1, 2} <= cluster.round(later_us).keys()


def test_waiting_tasks_use_no_capacity():
    """As many nodes as the table has rows: the last is as good as any."""
    rows = make_cluster(make_node("n0")).state.nodes.capacity
    cluster = make_cluster(
        *(make_node(f"n{i}", cpu=1) for i in range(rows)), make_class(1, cpu=1), make_tasks(range(1, 2 * rows + 1), 1)
    )
    assert cluster.state.nodes.capacity == rows
    assert len(cluster.round()) == rows  # asserts that the check dropped nothing
