"""Interference: the table, the arithmetic, and which kinds are kept apart."""

import math
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import colocation
from policies.interference import Interference
from policies.load_spreading import LoadSpreading
from policies.whare_map import WhareMap
from tests.builders import NOW_US, SECOND_US, make_class, make_cluster, make_node, make_tasks, removed
from tests.firmament_py.engine.random_rounds import assert_solved_to_optimum
from tests.policies.views import make_view, node_usage

TRAIT = colocation.TRAIT
KINDS = colocation.KINDS


def of_kind(number, kind, **fields):
    return make_class(number, traits={TRAIT: kind} if kind else {}, **fields)


def penalty(one, other):
    return float(colocation.penalties("")[KINDS.index(one), KINDS.index(other)])


# -- arithmetic -------------------------------------------------------------------------------------------------------


def costs(kind, *, beside=None, free_cpu=8, cpus=(8,), options=None, offsets=(0, 1, 2)):
    view = make_view(
        resources=("cpu",),
        requests=[[0]],
        allocatable=[[cpu] for cpu in cpus],
        free=[[free_cpu]] * len(cpus),
        traits=[{TRAIT: kind} if kind else {}],
        counts={TRAIT: {of: [count] * len(cpus) for of, count in (beside or {}).items()}},
        running=[sum((beside or {}).values())] * len(cpus),
        offsets=offsets,
    )
    return Interference(**(options or {})).costs(view)


@pytest.mark.parametrize(
    ("kind", "beside", "cost"),
    [
        pytest.param("devil", {}, 0, id="alone"),
        pytest.param("devil", {"rabbit": 1}, 2000, id="devil-beside-rabbit"),
        pytest.param("rabbit", {"devil": 1}, 2000, id="rabbit-beside-devil"),
        pytest.param("turtle", {"rabbit": 1}, 60, id="turtle-beside-rabbit"),
        pytest.param("sheep", {"sheep": 2, "turtle": 1}, 2 * 100 + 60, id="sheep-beside-several"),
    ],
)
def test_neighbours_add_up(kind, beside, cost):
    assert costs(kind, beside=beside).place.tolist() == [[cost]]


def test_load_and_small_machines_increase_penalties():
    half = costs("devil", beside={"devil": 1}, free_cpu=4)
    assert half.place.tolist() == [[round(400 * math.exp(0.5))]]
    # the mean of 4 and 12 is 8: the small one counts double, the large one two thirds
    assert costs("devil", beside={"devil": 1}, free_cpu=12, cpus=(4, 12)).place.tolist() == [[800, 267]]


def test_the_load_of_a_node_is_the_larger_of_requested_and_measured():
    view = make_view(
        resources=("cpu",), requests=[[0]], allocatable=[[8]] * 4, free=[[4]] * 4, traits=[{TRAIT: "devil"}],
        counts={TRAIT: {"devil": [1] * 4}}, running=[1] * 4, usage=node_usage(cpu=[8.0, 20.0, 1.0, math.nan]),
    )  # fmt: skip
    shares = (1.0, 1.0, 0.5, 0.5)
    assert Interference().costs(view).place.tolist() == [[round(400 * math.exp(share)) for share in shares]]


def test_slot_costs_rise_with_the_penalty_of_a_kind_beside_itself():
    assert costs("devil").slot.tolist() == [[0, 400, 800]]
    assert costs("turtle").slot.tolist() == [[0, 100, 200]]


def test_slot_costs_include_the_cost_vector():
    # half of the cpu and a quarter of the memory are requested, the task wants a quarter and an eighth of them
    view = make_view(
        resources=("cpu", "memory", "gpu"),
        requests=[[2, 1, 1]],
        allocatable=[[8, 8, 8]],
        free=[[4, 6, 2]],
        traits=[{TRAIT: "turtle"}],
    )
    w = math.exp(0.5)
    expected = [1000 * (0.5 + 0.25) + 0, 1000 * (0.75 + 0.375) + 100 * w, 1000 * (1.0 + 0.5) + 200 * w]
    assert Interference().costs(view).slot.tolist() == [[round(cost) for cost in expected]]


def test_tasks_without_a_kind_are_of_the_default_kind():
    assert costs("", beside={"devil": 1}).place.tolist() == [[400]]  # a sheep
    assert costs("", beside={"devil": 1}, options={"default": "turtle"}).place.tolist() == [[60]]
    view = make_view(
        resources=("cpu",), requests=[[0]], allocatable=[[8]], running=[3], traits=[{TRAIT: "rabbit"}],
        counts={TRAIT: {"devil": [1], "wolf": [1]}},
    )  # fmt: skip
    assert Interference().costs(view).place.tolist() == [[2000 + 2 * 150]]


def test_the_table_can_be_changed():
    changed = costs("devil", beside={"rabbit": 1}, options={"penalties": "rabbit-devil=5, devil-rabbit=0"})
    assert changed.place.tolist() == [[5]]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param({"penalties": "wolf-devil=1"}, "penalties is 'wolf'; give one of sheep", id="no-kind"),
        pytest.param({"penalties": "rabbit=1"}, "penalties has 'rabbit=1'; give KIND-KIND=NUMBER", id="no-pair"),
        pytest.param({"penalties": "rabbit-devil=x"}, "give KIND-KIND=NUMBER", id="no-number"),
        pytest.param({"penalties": "rabbit-devil=-1"}, "give KIND-KIND=NUMBER", id="negative"),
        pytest.param({"penalties": "rabbit-devil=10001"}, "give at most 10000", id="too-much"),
        pytest.param({"default": "wolf"}, "default is 'wolf'; give one of sheep", id="no-default"),
    ],
)
@pytest.mark.parametrize("policy", [Interference, WhareMap], ids=lambda p: p.name)
def test_invalid_options(policy, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        policy(**options)


# -- placement --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "goes_to"),
    [pytest.param(Interference(), "turtles", id="interference"), pytest.param(LoadSpreading(), "rabbit", id="others")],
)
def test_a_devil_stays_away_from_rabbits(policy, goes_to):
    """Beside four turtles rather than one rabbit."""
    cluster = make_cluster(
        *(make_node("rabbit", cpu=16), make_node("turtles", cpu=16)),
        *(of_kind(i, kind, cpu=1) for i, kind in enumerate(KINDS, start=1)),
        *(make_tasks([1], 2, on="rabbit"), make_tasks([2, 3, 4, 5], 4, on="turtles"), make_tasks([6], 3)),
        policy=policy,
    )
    assert cluster.round() == {6: goes_to}


def test_several_devils_of_one_round_are_kept_apart():
    """Of two classes, so that only the costs show that both are devils."""
    nodes = [make_node(f"n{i}", cpu=16 + i) for i in range(4)]
    cluster = make_cluster(
        *(*nodes, of_kind(1, "devil", cpu=1), of_kind(2, "devil", cpu=2), of_kind(3, "turtle", cpu=1)),
        *(make_tasks([1, 2], 1), make_tasks([3, 4], 2), make_tasks(range(5, 25), 3)),
        policy=Interference(),
    )
    placed = cluster.round()
    assert len({placed[uid] for uid in (1, 2, 3, 4)}) == 4


def test_rabbits_avoid_devils_of_the_same_round():
    nodes = [make_node(f"n{i}", cpu=16) for i in range(5)]
    cluster = make_cluster(
        *(*nodes, of_kind(1, "rabbit", cpu=1), of_kind(2, "devil", cpu=1), of_kind(3, "sheep", cpu=1)),
        *(make_tasks([1, 2], 1), make_tasks([3, 4, 5], 2), make_tasks([6, 7], 3)),
        policy=Interference(),
    )
    placed = cluster.round()
    assert {placed[1], placed[2]}.isdisjoint({placed[3], placed[4], placed[5]})
    assert {placed[6], placed[7]}.isdisjoint({placed[3], placed[4], placed[5]})


def test_priority_goes_before_every_stage():
    """One slot: the sheep of higher priority gets it, although the stage of devils comes first."""
    cluster = make_cluster(
        *(make_node("n", cpu=1), of_kind(1, "sheep", cpu=1, priority=5), of_kind(2, "devil", cpu=1)),
        *(make_tasks([1], 1), make_tasks([2], 2)),
        policy=Interference(),
    )
    assert cluster.round() == {1: "n"}


@pytest.mark.slow
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=8),
    there=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 3)), max_size=6),
    cpus=st.lists(st.integers(1, 6), min_size=4, max_size=4),
    priorities=st.lists(st.integers(0, 1), min_size=4, max_size=4),
)
def test_every_stage_is_optimal_and_leaves_no_task_that_fits(kinds, there, cpus, priorities):
    seen = []
    cluster = make_cluster(
        *(make_node(f"n{i}", cpu=cpu) for i, cpu in enumerate(cpus)),
        *(of_kind(i, kind, cpu=1, priority=priorities[i - 1]) for i, kind in enumerate(KINDS, start=1)),
        policy=Interference(),
        observer=lambda *pair: seen.append(pair),
    )
    for uid, (kind, node) in enumerate(there, start=100):
        cluster.tell(make_tasks([uid], KINDS.index(kind) + 1, on=f"n{node}"))
    cluster.tell(*(make_tasks([uid], KINDS.index(kind) + 1) for uid, kind in enumerate(kinds, start=1)))
    free = Counter({f"n{i}": cpu for i, cpu in enumerate(cpus)})
    free.subtract(f"n{node}" for _, node in there)
    capacities = sum(max(left, 0) for left in free.values())
    placed = cluster.round()
    assert len(placed) == min(capacities, len(kinds))
    waiting = [priorities[KINDS.index(kinds[uid - 1])] for uid in cluster.waiting()]
    ran = [priorities[KINDS.index(kinds[uid - 1])] for uid in placed]
    assert max(waiting, default=0) <= min(ran, default=1)
    assert_solved_to_optimum(seen)


def suffering(where):
    """The total penalty of all tasks; where: (node, kind) of each."""
    return sum(
        penalty(a, b) + penalty(b, a) for (n, a), (m, b) in combinations(where, 2) if n == m
    )  # fmt: skip


@pytest.mark.slow
def test_the_total_penalty_is_lower_than_with_other_policies():
    """A mixed batch on 40 nodes, a third of them with running tasks: the penalty with load-spreading is 1.4 times."""

    def outcome(policy):
        there = [(f"n{i}", KINDS[(i // 3) % 4]) for i in range(0, 40, 3)]
        cluster = make_cluster(
            *(make_node(f"n{i}", cpu=32) for i in range(40)),
            *(of_kind(i, kind, cpu=1) for i, kind in enumerate(KINDS, start=1)),
            *(make_tasks([i], KINDS.index(kind) + 1, on=node) for i, (node, kind) in enumerate(there, start=1000)),
            *(make_tasks(range(100 * i, 100 * i + count), i) for i, count in ((1, 40), (2, 20), (3, 20), (4, 40))),
            policy=policy,
        )
        return suffering(there + [(node, KINDS[uid // 100 - 1]) for uid, node in cluster.round().items()])

    assert 1.4 * outcome(Interference()) < outcome(LoadSpreading())


def test_no_stream_of_one_kind_starves_another():
    """One slot, which is released every minute, when a new devil arrives; the turtle has waited since the first."""
    kinds = {1: "devil", 2: "turtle"}
    cluster = make_cluster(
        make_node("a", cpu=1),
        *(make_class(c, cpu=1, traits={TRAIT: kind}) for c, kind in kinds.items()),
        policy=Interference(),
        reserve_after_us=None,
    )
    cluster.tell(make_tasks([1], 2))
    for minute in range(1, 20):
        now_us = NOW_US + minute * 60 * SECOND_US
        cluster.tell(make_tasks([10 + minute], 1, created_us=now_us))
        [uid] = cluster.round(now_us)
        if uid == 1:
            break
        cluster.tell(removed(uid))
    assert minute == 9  # 2**9 seconds have gone by
