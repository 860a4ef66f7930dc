"""What is admitted, in Kueue's order and in that of its lanes, and why the others wait."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.queues import BorrowWithin, Reclaim, Sharing, Stop
from firmament_py.queues.admission import TIERS, Reason, admit
from firmament_py.queues.admission_order import admit_in_order
from firmament_py.queues.quota import available, capacity
from firmament_py.queues.shares import fair_shares
from firmament_py.queues.tree import build
from firmament_py.queues.water_filling import divide
from tests.effort import examples
from tests.firmament_py.queues.admission_oracle import Oracle
from tests.firmament_py.queues.admitting import COHORT, admitted, arrays, job, sequence
from tests.firmament_py.queues.trees import RESOURCES, queue, quota, tree, trees


def test_those_within_nominal_quota_come_before_those_that_borrow():
    """The first job of a borrows 2, although it is older and more important."""
    jobs = [job("a", 12, priority=9), job("b", 10, created=5)]
    _, result = admitted(tree(*COHORT), jobs)
    assert sequence(result) == [1]
    assert result.rank.tolist() == [0, TIERS - 1]
    assert Reason(result.reason[0]) is Reason.LACKING


def test_priority_then_age_among_those_that_borrow():
    tasks = [job("a", 1, count=20, created=1), job("b", 1, count=4, priority=1, created=9), job("b", 1, created=0)]
    _, result = admitted(tree(*COHORT), tasks, {"b": {"red/cpu": 8}})
    # all 20 are within nominal quota, 8 of them are in use: the two of the higher priority first
    assert sequence(result) == [1] * 2 + [0] * 10
    assert result.admitted.tolist() == [10, 2, 0]


def test_a_strict_queue_stops_at_the_first_job_that_does_not_fit():
    strict = tree(queue("a", "", quota(10), strict_fifo=True), queue("b", "", quota(10)))
    jobs = [job(name, cpu, created=created) for name in "ab" for created, cpu in enumerate((4, 7, 1))]
    _, result = admitted(strict, jobs)
    assert result.admitted.tolist() == [1, 0, 0, 1, 0, 1]
    assert [Reason(r) for r in result.reason[:3]] == [Reason.ADMITTED, Reason.LACKING, Reason.BEHIND]


def test_identical_tasks_are_admitted_as_far_as_they_fit():
    _, result = admitted(tree(queue("a", "", quota(100))), [job("a", 3, count=100_000)])
    assert result.admitted.tolist() == [33]
    assert (result.column[0], result.amount[0], result.bottleneck[0]) == (0, 2, 0)  # 1 is left of 100
    assert len(result.portions.job) == 1


def test_the_bottleneck_is_the_queue_whose_limit_lacks():
    queues, result = admitted(
        tree(
            queue("root", "", quota(100)),
            queue("mid", "root", quota(0, 20)),
            queue("a", "mid", quota(5)),
            queue("b", "root", quota(0, limit=30)),
        ),
        [job("a", 25, count=2), job("b", 31), job("a", 200), job("b", 1, count=31)],
    )
    names = [queues.definitions[row].name if row >= 0 else "" for row in result.bottleneck]
    assert names == ["mid", "b", "mid", "b"]
    assert [Reason(r) for r in result.reason] == [Reason.LACKING, Reason.TOO_LARGE, Reason.TOO_LARGE, Reason.LACKING]
    assert result.amount.tolist() == [25, 1, 200, 1]  # of a, after the first item: 25 - 0
    assert result.admitted.tolist() == [1, 0, 0, 30]


@pytest.mark.parametrize(
    ("described", "waiting", "reason"),
    [
        pytest.param(queue("a", "", quota(5), stop=Stop.HOLD), job("a", 1), Reason.CLOSED, id="a stopped queue"),
        pytest.param(queue("a", "nowhere", quota(5)), job("a", 1), Reason.CLOSED, id="a queue that is wrong"),
        pytest.param(queue("a", "", quota(5)), job("a", 1, 1), Reason.NO_QUOTA, id="a resource without quota"),
        pytest.param(queue("a", "", quota(5)), job("a", 1, flavors=["blue"]), Reason.NO_FLAVOR, id="no flavor"),
        pytest.param(queue("a", "", quota(5)), job("a", 6), Reason.TOO_LARGE, id="more than there is"),
        pytest.param(queue("a", "", quota(5)), job("a", 5), Reason.ADMITTED, id="as much as there is"),
    ],
)
def test_reasons(described, waiting, reason):
    _, result = admitted(tree(described), [waiting])
    assert Reason(result.reason[0]) is reason
    assert result.admitted[0] == (reason is Reason.ADMITTED)


def test_jobs_wait_in_leaves_only():
    _, result = admitted(tree(*COHORT), [job("c", 1)])
    assert Reason(result.reason[0]) is Reason.CLOSED


def test_without_jobs_there_is_nothing_to_admit():
    queues, result = admitted(tree(*COHORT), [])
    assert result.admitted.shape == (0,)
    assert len(result.portions.job) == len(queues.problems) == 0


def test_fair_sharing_admits_by_turns():
    described = tree(
        queue("c", "", quota(12)),
        queue("a", "c", quota(0)),
        queue("b", "c", quota(0), weight=2.0),
        sharing=Sharing.FAIR,
    )
    _, result = admitted(described, [job("a", 1, count=20), job("b", 1, count=20)])
    assert result.admitted.tolist() == [4, 8]
    assert sequence(result)[:6] == [1, 0, 1, 1, 0, 1]  # 1/2, then 1 each (a is first), 3/2, 2 and 2, 5/2


def test_the_lane_that_used_least_goes_first_and_each_admission_counts():
    """Lane 1 has used 2 less, so that four of its tasks come before the older and more important ones of lane 0; from
    then on they take turns."""
    jobs = [job("a", 1, count=4, priority=9, lane=0, charge=0.5), job("a", 1, count=9, created=5, lane=1, charge=0.5)]
    one = tree(queue("a", "", quota(10)))
    _, result = admitted(one, jobs, scores={("a", 0): 2.0})
    assert sequence(result) == [1, 1, 1, 1, 0, 1, 0, 1, 0, 1]
    assert result.admitted.tolist() == [3, 7]
    _, result = admitted(one, jobs)  # equal scores: by priority
    assert sequence(result) == [0, 1, 0, 1, 0, 1, 0, 1, 1, 1]


def test_a_lane_whose_job_does_not_fit_is_not_charged():
    jobs = [job("a", 20, lane=0, charge=100.0), job("a", 1, created=1, lane=0, charge=1.0)]
    jobs += [job("a", 1, count=2, created=2, lane=1, charge=1.0)]
    _, result = admitted(tree(queue("a", "", quota(2))), jobs)
    assert sequence(result) == [1, 2]


def test_a_strict_queue_is_blocked_by_the_head_of_the_lane_that_is_served_next():
    jobs = [job("a", 20, created=9, lane=0), job("a", 1, lane=1)]
    strict = tree(queue("a", "", quota(2), strict_fifo=True))
    _, result = admitted(strict, jobs, scores={("a", 1): 1.0})
    assert [Reason(r) for r in result.reason] == [Reason.TOO_LARGE, Reason.BEHIND]
    _, result = admitted(strict, jobs, scores={("a", 0): 1.0})
    assert [Reason(r) for r in result.reason] == [Reason.TOO_LARGE, Reason.ADMITTED]


@st.composite
def waiting_jobs(draw, described):
    parents = {q.parent for q in described.queues}
    leaves = [q.name for q in described.queues if q.id not in parents]
    amounts = st.integers(0, 12)
    one = st.builds(
        job,
        st.sampled_from(leaves),
        amounts,
        amounts,
        count=st.integers(1, 4),
        priority=st.integers(0, 2),
        created=st.integers(0, 3),
        flavors=st.sampled_from([["red", "blue"], ["red"], ["blue"]]),
        lane=st.sampled_from([0, 0, 1, 2]),
        charge=st.sampled_from([0.0, 0.25, 1.0]),
    )
    return draw(st.lists(one, min_size=1, max_size=6))


@examples(120)
@pytest.mark.parametrize("sharing", [Sharing.CLASSICAL, Sharing.FAIR])
@given(trees(limit=True), st.data())
def test_kueue_order_is_that_of_the_oracle(sharing, described, data):
    described = described.__class__(described.queues, described.flavors, sharing)
    jobs = data.draw(waiting_jobs(described))
    names = {q.id: q.name for q in described.queues}
    lanes = sorted({(job["queue"], job["lane"]) for job in jobs})
    scores = {lane: data.draw(st.sampled_from([0.0, 0.5, 2.0])) for lane in lanes}
    expected = Oracle(described, RESOURCES, jobs, scores).run()
    of_name = {(names[identifier], lane): score for (identifier, lane), score in scores.items()}
    queues, result = admitted(described, jobs, scores=of_name)
    assert sequence(result) == expected.sequence
    assert (result.admitted == [j["count"] - left for j, left in zip(jobs, expected.left, strict=True)]).all()
    free = available(queues, capacity(queues), np.zeros_like(queues.nominal))
    for j, reason in enumerate(result.reason):
        if reason == Reason.TOO_LARGE:
            row, column = queues.row[jobs[j]["queue"]], result.column[j]
            assert jobs[j]["request"][queues.resources[column % len(queues.resources)]] > max(0, free[row, column]) or (
                not queues.covered[row, column]
            )
    assert (np.diff(result.portions.rank[result.portions.rank < TIERS - 1]) <= 0).all()  # earlier is higher


@st.composite
def strict_trees(draw, sharing):
    """Some of their queues go strictly by age; of one flavor."""
    of_any = draw(trees(limit=True))
    queues = [
        replace(
            each,
            quotas=tuple(q for q in each.quotas if q.flavor == "red"),
            strict_fifo=draw(st.booleans()),
            reclaim=draw(st.sampled_from(Reclaim)),
        )
        for each in of_any.queues
    ]
    return tree(*queues, flavors=["red"], sharing=sharing)


@examples(120)
@pytest.mark.parametrize("sharing", [Sharing.CLASSICAL, Sharing.FAIR])
@given(data=st.data())
def test_strict_queues_keep_what_their_head_is_entitled_to_as_the_oracle_does(sharing, data):
    described = data.draw(strict_trees(sharing))
    jobs = [one | {"lane": 0, "charge": 0.0, "flavors": ["red"]} for one in data.draw(waiting_jobs(described))]
    used = {q.name: {f"red/{r}": data.draw(st.integers(0, 8)) for r in RESOURCES} for q in described.queues}
    parents = {q.parent for q in described.queues}
    usage = {q.name: used[q.name] for q in described.queues if q.id not in parents}
    expected = Oracle(described, RESOURCES, jobs, {(job["queue"], 0): 0.0 for job in jobs}, usage).run()
    _, result = admitted(described, jobs, usage=usage)
    assert sequence(result) == expected.sequence


KEEPING = tree(
    queue("c"),
    queue("a", "c", quota(3), strict_fifo=True),
    queue("b", "c", quota(3)),
)


@pytest.mark.parametrize(
    ("change", "admits"),
    [
        pytest.param({}, [0, 0], id="kept"),
        pytest.param({"reclaim": Reclaim.LOWER_PRIORITY}, [0, 0], id="what may be reclaimed by priority alone"),
        pytest.param({"reclaim": Reclaim.ANY}, [0, 1], id="what can be reclaimed is lent"),
        pytest.param({"strict_fifo": False}, [0, 1], id="BestEffortFIFO lends"),
    ],
)
@pytest.mark.parametrize("sharing", [Sharing.CLASSICAL, Sharing.FAIR])
def test_what_the_head_of_a_strict_queue_is_entitled_to_is_not_lent(change, admits, sharing):
    """Kueue, scheduler.go, reserveCapacityForUnreclaimablePreempt: the head of a needs all 3, of which b borrows 1.
    Else b would borrow what is free again and again, and a would never have 3."""
    queues = [replace(each, **change) if each.name == "a" else each for each in KEEPING.queues]
    described = replace(KEEPING, queues=tuple(queues), sharing=sharing)
    jobs = [job("a", 3), job("b", 1, created=2)]
    _, result = admitted(described, jobs, usage={"b": {"red/cpu": 4}})
    assert result.admitted.tolist() == admits
    _, result = admitted(described, jobs, usage={"b": {"red/cpu": 3}})
    assert result.admitted.tolist() == [1, 0], "it has all that it needs"
    if sharing is Sharing.CLASSICAL:  # a fair share of the second job is lower
        _, result = admitted(described, jobs, usage={"a": {"red/cpu": 2}, "b": {"red/cpu": 3}})
        assert result.admitted.tolist() == admits


def test_a_head_that_borrows_keeps_up_to_the_borrowing_limit():
    """a may use 5, of which it uses 3; its head needs 4, so 2 of the 3 that are free are kept."""
    described = tree(
        queue("c", "", quota(3)),
        queue("a", "c", quota(3, 2), strict_fifo=True, borrow_within=BorrowWithin(True)),
        queue("b", "c", quota()),
    )
    for requested, admits in ((2, 0), (1, 1)):
        jobs = [job("a", 4), job("b", requested, created=1)]
        _, result = admitted(described, jobs, usage={"a": {"red/cpu": 3}})
        assert result.admitted.tolist() == [0, admits]
    _, result = admitted(described, [job("a", 4, created=1), job("b", 2)], usage={"a": {"red/cpu": 3}})
    assert result.admitted.tolist() == [0, 1], "the older of those that borrow comes first"


def test_nothing_is_compiled_twice():
    """Read-only arrays and other layouts come from callers; each type would cost seconds."""
    queues = build(tree(*COHORT, sharing=Sharing.PROPORTIONAL), RESOURCES)
    jobs = arrays(queues, [job("a", 3)])
    total = np.full(queues.nominal.shape[1], 9)
    usage = np.asfortranarray(queues.nominal // 2)
    for array in (total, usage, jobs.request):
        array.setflags(write=False)
    admit(queues, capacity(queues), usage, jobs, total, fair_shares(queues, total, usage), usage)
    compiled: list[Any] = [admit_in_order, divide]
    assert [len(function.signatures) for function in compiled] == [1, 1]
