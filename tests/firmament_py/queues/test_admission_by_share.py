"""Admission by shares: KAI's deserved quota, Volcano's proportion and hierarchical dominant shares."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from firmament_py.model.queues import Division, ReclaimRules, Sharing
from firmament_py.queues.admission import TIERS, Reason
from tests.effort import examples
from tests.firmament_py.queues.admitting import admitted, job, sequence
from tests.firmament_py.queues.trees import queue, quota, tree


@pytest.mark.parametrize(
    ("request_", "preemptible", "reason"),
    [
        (4, True, Reason.LACKING),
        (9, True, Reason.TOO_LARGE),
        (2, False, Reason.LACKING),
        (4, False, Reason.TOO_LARGE),
    ],
)
def test_where_shares_are_divided_limits_say_what_is_too_large(request_, preemptible, reason):
    """The queue is entitled to 3 and may use 8, of which 7 are used; what cannot be preempted has to fit into the 3."""
    described = tree(
        queue("top", "", quota(0, limit=8)),
        queue("a", "top", quota(3)),
        flavors=["red"],
        sharing=Sharing.PROPORTIONAL,
        reclaim_rules=ReclaimRules.FAIR_SHARE,
    )
    _, result = admitted(described, [job("a", request_, preemptible=preemptible)], {"a": {"red/cpu": 7}})
    assert Reason(result.reason[0]) is reason


def test_limits_hold_for_what_exceeds_the_capacity_of_the_cluster():
    """It has 4 in all, of which b uses 3; what exceeds that may be tried, up to the limit."""
    described = tree(
        queue("a", "", quota(0, limit=5)), queue("b", "", quota(0)), flavors=["red"], sharing=Sharing.PROPORTIONAL
    )
    jobs = [job("a", 1, count=3), job("a", 2, count=3, created=1), job("a", 1, created=2)]
    _, result = admitted(described, jobs, {"b": {"red/cpu": 3}}, total=4)
    assert result.admitted.tolist() == [3, 1, 0]
    assert set(result.rank.tolist()[1:]) == {0}


def proportional(*queues, **fields):
    fields = {"reclaim_rules": ReclaimRules.FAIR_SHARE, **fields}
    return tree(*queues, sharing=Sharing.PROPORTIONAL, flavors=["red"], **fields)


def test_kai_deserved_first_then_by_weight():
    described = proportional(queue("a", "", quota(4), weight=1.0), queue("b", "", quota(2), weight=3.0))
    _, result = admitted(described, [job("a", 1, count=30), job("b", 1, count=30)], total=[18, 0])
    first = sequence(result)[:18]
    assert sorted(first[:6]) == [0] * 4 + [1] * 2  # what they deserve
    assert (first.count(0), first.count(1)) == (4 + 3, 2 + 9)
    portions = result.portions
    ranks = {int(r): int(portions.items[portions.rank == r].sum()) for r in np.unique(portions.rank)}
    assert ranks[TIERS - 1] == 6
    assert ranks[0] == 60 - 18  # beyond the cluster's capacity: may be tried
    assert min(r for r in ranks if r) >= TIERS - 2 - 14


def test_kai_queue_priority_before_shares():
    described = proportional(queue("a", "", quota(0), priority=1), queue("b", "", quota(0), priority=2))
    _, result = admitted(described, [job("a", 1, count=9), job("b", 1, count=3)], total=[10, 0])
    assert sequence(result)[:3] == [1] * 3


def test_kai_jobs_that_cannot_be_preempted_only_use_what_is_deserved():
    described = proportional(queue("d", "", quota(5)), queue("a", "d", quota(4)))
    jobs = [job("a", 3, preemptible=False), job("a", 3, preemptible=False, created=1), job("a", 3, created=2)]
    queues, result = admitted(described, jobs, total=[100, 0])
    assert result.admitted.tolist() == [1, 0, 1]
    assert (queues.definitions[result.bottleneck[1]].name, result.amount[1]) == ("a", 2)


def test_volcano_proportion_admits_up_to_the_share():
    described = proportional(queue("a", "", weight=1.0), queue("b", "", weight=3.0), division=Division.TOTAL_BY_WEIGHT)
    _, result = admitted(described, [job("a", 1, count=30), job("b", 1, count=30)], total=[20, 0])
    assert result.admitted.tolist() == [5, 15]


def hdrf(total, *described):
    """(name, parent, weight, cpu, gpu, count) of leaves; without amounts: inner queues."""
    queues = [queue(name, parent, weight=float(weight)) for name, parent, weight, *_ in described]
    jobs = [job(name, *amounts) for name, _, _, *amounts in described if amounts]
    counts = [30 if total == 30 else 10] * len(jobs)
    jobs = [{**j, "count": n} for j, n in zip(jobs, counts, strict=True)]
    result = admitted(tree(*queues, sharing=Sharing.HIERARCHICAL_DRF, flavors=["red"]), jobs, total=[total, total])[1]
    within = result.portions.rank > 0
    return np.bincount(result.portions.job[within], result.portions.items[within], len(jobs)).astype(int).tolist()


def test_hdrf_rescales():
    """sci gets 5 of both; dev 5 cpu and prod 5 GB, although eng then uses as much of both as sci."""
    assert hdrf(
        10,
        ("root", "", 100),
        ("sci", "root", 50, 1, 1),
        ("eng", "root", 50),
        ("dev", "eng", 50, 1, 0),
        ("prod", "eng", 50, 0, 1),
    ) == [5, 5, 5]


def test_hdrf_does_not_let_saturated_queues_block_others():
    """Three queues share the cpu; what is left of the memory goes on to the two that use it."""
    assert hdrf(
        30,
        ("root", "", 100),
        ("1", "root", 25, 1, 0),
        ("2", "root", 25, 1, 0),
        ("3", "root", 25),
        ("31", "3", 50, 1, 0),
        ("32", "3", 50, 0, 1),
        ("4", "root", 25, 0, 1),
    ) == [10, 10, 10, 15, 15]


demands = st.tuples(st.integers(1, 4), st.integers(1, 4))


def drf(demand, total):
    """Tasks of each queue, all roots of equal weight, until nothing fits."""
    described = [(f"q{i}", "", 1, *amounts) for i, amounts in enumerate(demand)]
    queues = [queue(name, "", weight=1.0) for name, *_ in described]
    jobs = [job(name, *amounts, count=200) for name, _, _, *amounts in described]
    result = admitted(tree(*queues, sharing=Sharing.HIERARCHICAL_DRF, flavors=["red"]), jobs, total=list(total))[1]
    within = result.portions.rank > 0
    return np.bincount(result.portions.job[within], result.portions.items[within], len(jobs)).astype(int)


@examples(60)
@given(st.lists(demands, min_size=2, max_size=4), st.tuples(st.integers(60, 150), st.integers(60, 150)))
def test_dominant_shares_are_fair_up_to_a_task(demand, total):
    """Sharing incentive, no envy, Pareto efficiency, each up to one task of each queue, as tasks are not divisible."""
    tasks = drf(demand, total)
    used = (np.array(demand) * tasks[:, None]).sum(axis=0)
    assert (used <= total).all()
    for i, own in enumerate(demand):
        assert (used + own > total).any()  # Pareto: not one task fits any more
        alone = min(there // (len(demand) * amount) for amount, there in zip(own, total, strict=True))
        lost = sum(max(-(-theirs // mine) for theirs, mine in zip(other, own, strict=True)) for other in demand)
        assert tasks[i] >= alone - lost  # one task of each queue, in tasks of this one
        for j, other in enumerate(demand):
            if i != j:
                with_others = min(tasks[j] * theirs // amount for amount, theirs in zip(own, other, strict=True))
                assert tasks[i] >= with_others - 1 - max(other) // min(own)


@examples(60)
@given(st.lists(demands, min_size=2, max_size=4), demands, st.tuples(st.integers(90, 180), st.integers(90, 180)))
def test_asking_for_what_is_not_needed_gains_no_task(demand, claim, total):
    """With the amounts that it claims a queue runs no more of its tasks, but for rounding."""
    claim = tuple(np.maximum(claim, demand[0]))
    assume(claim != demand[0])
    true = drf(demand, total)[0]
    claimed = drf([claim, *demand[1:]], total)[0] * min(c // d for c, d in zip(claim, demand[0], strict=True))
    rounding = sum(
        max(-(-theirs // mine) for theirs, mine in zip(other, demand[0], strict=True)) for other in demand[1:]
    )
    assert claimed <= true + max(claim) + rounding  # a task of each queue
