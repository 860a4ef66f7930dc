"""The expected start of a waiting gang, against brute force over times and nodes; the bound, by its definition."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from firmament_py.admission.earliest_start import Need, enough_there, first_ends
from firmament_py.model.options import RESERVE_AFTER_US
from firmament_py.model.resources import UNLIMITED_LINK
from firmament_py.network import cheapest_slots
from firmament_py.snapshot.expected_releases import Releases
from tests.builders import NOW_US, SECOND_US, Cluster, make_class, make_cluster, make_gang, make_node, make_tasks
from tests.effort import examples
from tests.firmament_py.gang_oracle import CLASSES, GangWorld, Member

LENGTHS = [0, 10, 20, 30, 40, 50]
"""Seconds that tasks say they run; 0: they do not say."""

BASE = [1, 2, 3, 4]


def with_length(cls: int, k: int) -> int:
    return 100 * (k + 1) + cls


KNOWN = [
    replace(CLASSES[cls], id=with_length(cls, k), expected_us=length * SECOND_US)
    for cls in BASE
    for k, length in enumerate(LENGTHS)
]


# -- the earliest time at which it fits if running tasks end as expected and no others arrive -----------------------


@dataclass
class Trial:
    world: GangWorld
    ends: dict[int, int | None]  # seconds from now on by uid, None: it does not say
    lasting: set[int]
    cluster: Cluster

    def after(self, gone: set[int]) -> GangWorld:
        world = self.world.copy()
        for uid in gone:
            del world.tasks[uid]
        return world

    def starts(self) -> list[int | None]:
        """Earliest second in which the gang fits, -1: after the end of tasks without an expected one, None: never."""
        for second in sorted({end for end in self.ends.values() if end is not None}):
            gone = {uid for uid, end in self.ends.items() if end is not None and end <= second}
            if self.after(gone).could_be_placed(1, NOW_US) is not None:
                return [second]
        fits = self.after(set(self.ends) - self.lasting).could_be_placed(1, NOW_US) is not None
        return [-1] if fits else [None]


@st.composite
def trials(draw) -> Trial:
    nodes = [
        make_node(f"n{i}", cpu=draw(st.integers(2, 6)), gpu=draw(st.integers(1, 3)), labels={"rack": rack})
        for i, rack in enumerate(draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=3)))
    ]
    cluster = make_cluster(*nodes, *(CLASSES[cls] for cls in BASE), *KNOWN)
    world = GangWorld({node.name: node for node in nodes})
    ends: dict[int, int | None] = {}
    lasting = set()
    for uid in range(1, draw(st.integers(3, 12)) + 1):
        cls, node = draw(st.sampled_from(BASE)), draw(st.sampled_from(nodes)).name
        if not world.takes(cls, node):
            continue
        k, ago, kind = draw(st.sampled_from([1, 2, 3, 4, 5, 0])), draw(st.integers(0, 3)) * 5, draw(st.integers(0, 9))
        began_us = NOW_US - ago * SECOND_US if draw(st.booleans()) else 0
        cluster.tell(
            make_tasks(
                *([uid], with_length(cls, k)),
                on=node,
                started_us=began_us,
                leaving=kind == 0,
                lasting=kind == 1,
            )
        )
        world.tasks[uid] = Member(cls, node=node)
        length = max(LENGTHS[k] - (ago if began_us else 0), 0)
        ends[uid] = 0 if kind == 0 else length if k else None
        if kind == 1 and not k:
            lasting.add(uid)
    minimum = draw(st.integers(1, 5))
    some = draw(st.lists(st.sampled_from(BASE), min_size=1, max_size=3))
    roles = draw(st.sampled_from([{}, {}, {"a": 1, "b": minimum - 1}]))
    topology = draw(st.sampled_from([{}, {}, {"topology": "rack", "required": True}]))
    gang = make_gang(1, minimum, created_us=NOW_US - RESERVE_AFTER_US, roles=roles, **topology)
    cluster.tell(gang)
    world.gangs[1] = gang
    for i in range(minimum + draw(st.sampled_from([0, 0, 1]))):
        uid, cls, role = 100 + i, draw(st.sampled_from(some)), draw(st.integers(0, 1)) if roles else 0
        cluster.tell(make_tasks([uid], cls, gang=1, role=role))
        world.tasks[uid] = Member(cls, 1, role)
    return Trial(world, ends, lasting, cluster)


@pytest.mark.slow
@given(trial=trials())
def test_the_planned_start_is_the_earliest_one(trial):
    world, scheduler = trial.world, trial.cluster.scheduler
    possible = world.complete(1, NOW_US)
    fits_now = world.could_be_placed(1, NOW_US) is not None
    placed = trial.cluster.round()
    world.carry_out(placed, NOW_US)
    found = [(start - NOW_US) // SECOND_US if start else -1 for start in scheduler.gang_starts_us.values()]
    event(f"now: {fits_now}, planned: {found}")
    if not possible or fits_now:
        assert found == []
        assert bool(placed) is fits_now
        return
    (expected,) = trial.starts()
    classes = {world.tasks[uid].cls for uid in world.waiting(1, NOW_US)}
    if expected is None:  # of several classes it may hope that each has the nodes for itself
        assert found in ([[]] if len(classes) == 1 else [[], [-1]])
    else:
        assert found == [expected]


def test_a_plan_needs_one_network_for_any_number_of_ends(monkeypatch):
    monkeypatch.setattr(cheapest_slots, "FEW", 0)  # it takes one
    lengths = [make_class(1000 + k, gpu=1, expected_us=k * SECOND_US) for k in range(1, 101)]
    in_use = [make_tasks([k], 1000 + k, on=f"n{k % 10}", started_us=NOW_US) for k in range(1, 101)]
    nodes = [make_node(f"n{i}", gpu=10) for i in range(10)]
    gang = make_gang(1, 37, created_us=NOW_US - RESERVE_AFTER_US)
    cluster = make_cluster(*nodes, *lengths, *in_use, CLASSES[4], gang, make_tasks(range(201, 238), 4, gang=1))
    stats = cluster.run().stats
    assert (stats.solves, stats.trials) == (0, 1)
    assert list(cluster.scheduler.gang_starts_us.values()) == [NOW_US + 37 * SECOND_US]


@pytest.mark.parametrize("second", [10, 11, 12, 13, 17, 25, 39, 60])
def test_later_ends_are_tried_if_the_bound_is_too_early(second):
    """Tasks of 3, 3 and 2 GPUs: after 10 s two nodes of 4 are free, which by their sums would do; but what is over
    beside 3 takes no 2. That needs the third node. In each other second a GPU that is of no use becomes free."""
    times = [10, 10, second, *range(1, 45)]
    sizes = [4, 4, 2, *[1] * 44]
    lengths = [
        make_class(1000 + i, gpu=size, expected_us=time * SECOND_US)
        for i, (time, size) in enumerate(zip(times, sizes, strict=True))
    ]
    cluster = make_cluster(
        *(make_node(f"n{i}", gpu=size) for i, size in enumerate(sizes)),
        *lengths,
        *(make_tasks([1 + i], 1000 + i, on=f"n{i}") for i in range(len(sizes))),
        *(make_class(7, gpu=3), make_class(8, gpu=2), make_gang(1, 3, created_us=NOW_US - RESERVE_AFTER_US)),
        make_tasks([101, 102, 103], [7, 7, 8], gang=1),
    )
    assert cluster.round() == {}
    assert list(cluster.scheduler.gang_starts_us.values()) == [NOW_US + second * SECOND_US]


@pytest.mark.parametrize(("third", "remaining"), [(2, [0]), (1, [])], ids=["until-it-goes", "for-good"])
def test_there_is_no_plan_if_classes_compete_for_released_resources(third, remaining):
    """The task on the third node has no expected end: what must be released is reserved. If that node were too
    small as well, the gang could never be placed, and nothing is reserved."""
    lengths = make_class(1000, gpu=4, expected_us=10 * SECOND_US)
    cluster = make_cluster(
        *(make_node("n0", gpu=4), make_node("n1", gpu=4), make_node("n2", gpu=third), lengths, make_class(1, gpu=1)),
        *(make_tasks([1], 1000, on="n0"), make_tasks([2], 1000, on="n1"), make_tasks(range(3, 3 + third), 1, on="n2")),
        *(make_class(7, gpu=3), make_class(8, gpu=2), make_gang(1, 3, created_us=NOW_US - RESERVE_AFTER_US)),
        make_tasks([101, 102, 103], [7, 7, 8], gang=1),
    )
    assert cluster.round() == {}
    assert list(cluster.scheduler.gang_starts_us.values()) == remaining


# -- the bound ---------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    need: Need
    free: np.ndarray
    choice: np.ndarray
    choices: int
    releases: Releases

    def met(self, choice: int, when_us: int) -> bool:
        """Whether it could fit by its definition, in plain numbers."""
        need, free = self.need, (self.free + self.releases.until(when_us)).tolist()
        classes = range(len(need.waiting))
        requests = need.requests.tolist()
        capacities = [0] * len(requests)
        there = [0] * len(free[0])
        for n in np.flatnonzero(self.choice == choice).tolist():
            slots = [
                min((max(free[n][r], 0) // amount for r, amount in enumerate(requests[c]) if amount), default=10**6)
                if need.suitable[c, n]
                else 0
                for c in classes
            ]
            capacities = [a + b for a, b in zip(capacities, slots, strict=True)]
            if any(slots):
                for r, amount in enumerate(free[n]):
                    unit = int(np.gcd.reduce([requests[c][r] for c in classes])) or 1
                    there[r] += max(amount, 0) // unit * unit
        waiting = need.waiting.tolist()
        if sum(min(a, b) for a, b in zip(capacities, waiting, strict=True)) < need.lacking:
            return False
        least = [
            sum(sorted(requests[c][r] for c in classes for _ in range(waiting[c]))[: need.lacking])
            for r in range(len(there))
        ]
        return len(requests) == 1 or all(a >= b for a, b in zip(there, least, strict=True))


@st.composite
def cases(draw) -> Case:
    count = draw(st.integers(1, 5))
    cluster = make_cluster(*(make_node(f"n{i}", cpu=100, gpu=100) for i in range(count)), *KNOWN)
    for uid in range(1, draw(st.integers(0, 12)) + 1):
        cls, k = draw(st.sampled_from(BASE)), draw(st.integers(0, len(LENGTHS) - 1))
        on = f"n{draw(st.integers(0, count - 1))}"
        cluster.tell(
            make_tasks([uid], with_length(cls, k), on=on, started_us=NOW_US, leaving=draw(st.integers(0, 9)) == 0)
        )
    state = cluster.state
    nodes = state.present_nodes()
    # multiples, so that a remainder is of no use to any class
    amounts = [st.sampled_from(draw(st.sampled_from([(0, 1, 2, 3), (0, 2, 4)]))) for _ in state.resources.names]
    kinds = draw(st.lists(st.tuples(*amounts), min_size=1, max_size=3))
    waiting = np.array([draw(st.integers(1, 3)) for _ in kinds])
    flags = st.lists(st.sampled_from([True, True, False]), min_size=count, max_size=count)
    need = Need(
        np.array(kinds), np.array([draw(flags) for _ in kinds]), waiting, draw(st.integers(1, int(waiting.sum())))
    )
    free = np.array([[draw(st.integers(-1, 4)) for _ in state.resources.names] for _ in range(count)])
    choices = draw(st.integers(1, 3))
    choice = np.array([draw(st.integers(-1, choices - 1)) for _ in range(count)])
    return Case(need, free, choice, choices, Releases(state, nodes, NOW_US))


@pytest.mark.slow
@examples(75)
@given(case=cases())
def test_the_bound_matches_its_definition(case):
    ends = case.releases.ends.tolist()
    expected = [
        next((i for i, end in enumerate(ends) if case.met(choice, end)), len(ends)) for choice in range(case.choices)
    ]
    event(f"choices that are met: {sum(at < len(ends) for at in expected)}")
    found = first_ends(case.need, case.free, case.choice, case.choices, case.releases)
    assert found.tolist() == expected


def test_links_without_a_limit_add_up_on_any_number_of_nodes():
    """2^13 of them exceed an int64: there would be too little of the link for tasks that ask for none."""
    nodes = 2**13 + 1
    need = Need(np.array([[1, 0], [2, 0]]), np.ones((2, nodes), np.bool_), np.array([1, 1]), 2)
    free = np.full((nodes, 2), [4, UNLIMITED_LINK])
    assert enough_there(need, free, np.zeros(nodes, np.int64), 1).all()
