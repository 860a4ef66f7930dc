"""Neighbour counts of a view, against the resources that the same tasks hold."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.events import NodeRemoved
from firmament_py.policy import Costs, View, waiting_cost
from firmament_py.usage.usage import Usage
from policies.load_spreading import LoadSpreading
from tests.builders import NOW_US, make_class, make_cluster, make_gang, make_node, make_tasks, removed

KINDS = ("devil", "rabbit", "sheep")


class Counting(LoadSpreading):
    """Checks each view: a task of kind k holds one piece of resource k, so the two must agree."""

    def __init__(self, exact=True):
        self.views = 0
        self.exact = exact

    def costs(self, view: View) -> Costs:
        self.views += 1
        values, counts = view.census("kind")
        in_use = view.allocatable - view.free
        for kind in KINDS:
            column = view.resources.index(kind) if kind in view.resources else -1
            expected = in_use[:, column] if column >= 0 else np.zeros(len(in_use), np.int64)
            reported = counts[:, values.index(kind)] if kind in values else np.zeros(len(in_use), np.int64)
            assert (reported == expected).all() if self.exact else (reported <= expected).all()
        assert values == tuple(sorted(values))
        assert counts.sum(axis=1).max(initial=0) <= view.running.max(initial=0)
        return super().costs(view)


def kinds():
    """Classes 1 .. 6, two of each kind, and class 7 without any."""
    twice = [
        replace(make_class(i + 1, cpu=1 + i, traits={"kind": k, "x": str(i)}), requests={"cpu": 1 + i, k: 1})
        for i, k in enumerate(KINDS * 2)
    ]
    return [*twice, make_class(7, cpu=1)]


NODES = [make_node(f"n{i}", cpu=6 + 3 * i, pods=9, devil=9, rabbit=9, sheep=9) for i in range(4)]


@pytest.mark.slow
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["submit", "submit", "end", "leave", "back"]), st.integers(1, 7), st.integers(0, 9)),
        max_size=12,
    )
)
def test_neighbour_counts_follow_every_change(steps):
    policy = Counting()
    cluster = make_cluster(*NODES, *kinds(), policy=policy)
    placed: dict[int, str] = {}
    uid = 0
    for what, cls, which in steps:
        if what == "submit":
            cluster.tell(make_tasks(range(uid + 1, uid + 2 + which), cls))
            uid += 1 + which
        elif what == "end" and placed:
            gone = sorted(placed)[which % len(placed)]
            cluster.tell(removed(gone))
            del placed[gone]
        elif what == "leave":
            cluster.tell(NodeRemoved(NODES[which % len(NODES)].id))
        elif what == "back":
            cluster.tell(NODES[which % len(NODES)])
        placed |= cluster.round()


@pytest.mark.slow
@given(
    sizes=st.lists(st.tuples(st.integers(1, 7), st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=4),
    alone=st.lists(st.integers(1, 7), max_size=8),
)
def test_released_placements_of_gangs_are_not_counted(sizes, alone):
    """Capacity reserved for a gang counts as used, but there are no tasks."""
    policy = Counting(exact=False)
    cluster = make_cluster(*NODES[:2], *kinds(), policy=policy)
    uid = 1
    for number, (cls, minimum, members) in enumerate(sizes, start=1):
        cluster.tell(make_gang(number, minimum), make_tasks(range(uid, uid + members), cls, gang=number))
        uid += members
    cluster.tell(*(make_tasks([uid + i], cls) for i, cls in enumerate(alone)))
    cluster.round()
    policy.exact = True
    cluster.tell(make_node("n9", cpu=1, devil=1), make_tasks([9999], 7))
    waiting_before = cluster.waiting()
    assert 9999 in waiting_before
    cluster.state.apply(removed(*(waiting_before - {9999})))
    cluster.round()  # with no gang left that has capacity reserved, counts agree again
    assert policy.views > 0


def test_a_class_without_the_trait_is_in_none():
    class Reading(LoadSpreading):
        seen: tuple[Any, ...] = ()

        def costs(self, view):
            self.seen = self.seen or (view.trait("kind"), *view.census("kind"), view.running)
            return super().costs(view)

    policy = Reading()
    cluster = make_cluster(
        *(make_node("a"), make_class(1, traits={"kind": "x"}), make_class(2), make_class(3, traits={"kind": ""})),
        *(make_tasks([1, 2], 1, on="a"), make_tasks([3], 2, on="a"), make_tasks([4], 2), make_tasks([5], 3)),
        policy=policy,
    )
    cluster.round()
    of_classes, values, counts, running = policy.seen
    assert of_classes == ("", "")
    assert (values, counts.tolist(), running.tolist()) == (("x",), [[2]], [3])


def test_domains_are_named_and_ascending():
    class Reading(LoadSpreading):
        def costs(self, view):
            self.seen = view.domains("zone")
            return super().costs(view)

    policy = Reading()
    cluster = make_cluster(
        *(make_node("a", labels={"zone": "west"}), make_node("b"), make_node("c", labels={"zone": "east"})),
        *(make_node("d", labels={"zone": "west"}), make_class(1), make_tasks([1], 1)),
        policy=policy,
    )
    cluster.round()
    assert (policy.seen[0], policy.seen[1].tolist()) == (("east", "west"), [1, -1, 0, 1])
    cluster.tell(make_node("c", labels={"zone": "north"}), make_tasks([2], 1))
    cluster.round()
    assert (policy.seen[0], policy.seen[1].tolist()) == (("north", "west"), [1, -1, 0, 1])


def test_measured_cpu_by_trait_and_domain():
    """Means over tasks that were measured; those without the trait, or on nodes without the label, are in none."""

    class Reading(LoadSpreading):
        seen: Any = None

        def costs(self, view):
            self.seen = self.seen or (view.census("kind")[0], view.domains("type")[0], *view.cpu_of("kind", "type"))
            return super().costs(view)

    usage, policy = Usage(), Reading()
    cluster = make_cluster(
        *(make_node("a", labels={"type": "t1"}), make_node("b", labels={"type": "t2"}), make_node("c")),
        *(make_class(1, traits={"kind": "x"}), make_class(2, traits={"kind": "y"}), make_class(3)),
        *(make_tasks([1, 2, 3], 1, on="a"), make_tasks([4], 1, on="b"), make_tasks([5], 2, on="b")),
        *(make_tasks([6], 3, on="a"), make_tasks([7], 1, on="c"), make_tasks([8], 3)),
    )
    cpu = {1: 100.0, 2: 300.0, 4: 50.0, 6: 1e4, 7: 1e4}
    rows = cluster.state.task_rows(np.array(list(cpu), np.uint64))
    values = np.full((len(cpu), 4), np.nan)
    values[:, 0] = list(cpu.values())
    noted = usage.note_tasks(cluster.state, rows, np.full(len(cpu), NOW_US), values, NOW_US)
    assert noted.taken == len(cpu)
    Scheduler(cluster.state, policy, OrToolsSolver(), usage=usage).run(NOW_US)
    kinds, types, mean, tasks = policy.seen
    assert (kinds, types) == (("x", "y"), ("t1", "t2"))
    assert tasks.tolist() == [[2, 1], [0, 0]]
    assert mean[0].tolist() == pytest.approx([200.0, 50.0])
    assert np.isnan(mean[1]).all()


def test_a_view_without_surroundings_has_no_neighbours():
    view = View(
        resources=("pods",),
        requests=np.ones((2, 1), np.int64),
        priority=np.zeros(2, np.int64),
        waiting=np.ones(2, np.int64),
        allocatable=np.ones((3, 1), np.int64),
        free=np.ones((3, 1), np.int64),
        running=np.zeros(3, np.int64),
        slot_offsets=np.zeros(1, np.int64),
        task_class=np.arange(2),
        task_age_us=np.zeros(2, np.int64),
    )
    assert view.trait("kind") == ("", "")
    assert view.census("kind")[1].shape == (3, 0)
    assert view.domains("zone")[1].tolist() == [-1, -1, -1]
    assert view.cpu_of("kind", "zone")[0].shape == (0, 0)
    assert waiting_cost(view).shape == (2,)
