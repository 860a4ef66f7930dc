"""The order of admission: Kueue's against an oracle, those of KAI and Volcano by their examples; what is reported."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from firmament_py.model.queues import BorrowWithin, Division, Fungibility, Reclaim, ReclaimRules, Sharing, Stop
from firmament_py.queues.admission import TIERS, Jobs, Reason, admit
from firmament_py.queues.admission_order import admit_in_order
from firmament_py.queues.quota import available, capacity
from firmament_py.queues.shares import fair_shares
from firmament_py.queues.tree import build
from firmament_py.queues.water_filling import divide
from tests.effort import examples
from tests.firmament_py.queues.admission_oracle import Oracle
from tests.firmament_py.queues.trees import RESOURCES, queue, queue_id, quota, tree, trees

pytestmark = pytest.mark.xdist_group("numba")  # compiles once, not in every worker


LANES = 3


def job(
    name,
    cpu=0,
    gpu=0,
    *,
    count=1,
    priority=0,
    created=0,
    flavors=None,
    preemptible=True,
    lane=0,
    charge=0.0,
    own=None,
    others=None,
):
    """`own`, `others`: {column: amount} that it may preempt."""
    return {
        "queue": queue_id(name),
        "request": {"cpu": cpu, "gpu": gpu},
        "count": count,
        "priority": priority,
        "created": created,
        "flavors": flavors,
        "preemptible": preemptible,
        "lane": lane,
        "charge": charge,
        "own": own or {},
        "others": others or {},
    }


def arrays(queues, jobs):
    return Jobs(
        queue=np.array([queues.row[j["queue"]] for j in jobs], np.int64),
        request=np.array([[j["request"].get(r, 0) for r in queues.resources] for j in jobs], np.int64),
        count=np.array([j["count"] for j in jobs], np.int64),
        priority=np.array([j["priority"] for j in jobs], np.int64),
        created_us=np.array([j["created"] for j in jobs], np.int64),
        suitable=np.array([[j["flavors"] is None or f in j["flavors"] for f in queues.flavors] for j in jobs]),
        preemptible=np.array([j["preemptible"] for j in jobs]),
        lane=np.array([LANES * queues.row[j["queue"]] + j["lane"] for j in jobs], np.int64),
        charge=np.array([j["charge"] for j in jobs], np.float64),
        victims=(victims(queues, jobs, "own"), victims(queues, jobs, "others")),
    )


def victims(queues, jobs, field):
    found = np.zeros((len(jobs), queues.nominal.shape[1]), np.int64)
    for j, job in enumerate(jobs):
        for on, amount in job[field].items():
            found[j, queues.column(*on.split("/"))] = amount
    return found


def admitted(described, jobs, usage=None, total=1000, scores=None):
    """The queues, and what admit says of the jobs; `usage`: name -> {column: amount}; `scores`: (name, lane) ->
    score."""
    queues = build(described, RESOURCES)
    own = np.zeros_like(queues.nominal)
    for name, amounts in (usage or {}).items():
        for on, amount in amounts.items():
            own[queues.row[queue_id(name)], queues.column(*on.split("/"))] = amount
    totals = np.full(queues.nominal.shape[1], total) if isinstance(total, int) else np.array(total)
    waiting = arrays(queues, jobs)
    request = own.copy()
    for row, amounts in zip(waiting.queue, waiting.request * waiting.count[:, None], strict=True):
        request[row] += np.tile(amounts, len(queues.flavors))
    share = fair_shares(queues, totals, request)
    score = np.zeros(LANES * queues.count)
    for (name, lane), value in (scores or {}).items():
        score[LANES * queues.row[queue_id(name)] + lane] = value
    return queues, admit(queues, capacity(queues), own, waiting, totals, share, score=score)


def sequence(result):
    """Jobs in the order of their admission, once for each item."""
    return np.repeat(result.portions.job, result.portions.items).tolist()


COHORT = (
    queue("c"),
    queue("a", "c", quota(10)),
    queue("b", "c", quota(10)),
)


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


def test_jobs_wait_in_leaves_only():
    _, result = admitted(tree(*COHORT), [job("c", 1)])
    assert Reason(result.reason[0]) is Reason.CLOSED


def test_without_jobs_there_is_nothing_to_admit():
    queues, result = admitted(tree(*COHORT), [])
    assert result.admitted.shape == (0,)
    assert len(result.portions.job) == len(queues.problems) == 0


FLAVORED = (quota(4, on="red/cpu"), quota(10, on="blue/cpu"))


@pytest.mark.parametrize(
    ("fungibility", "reclaim", "cpu", "expected"),
    [
        pytest.param(Fungibility(), Reclaim.NEVER, 3, "red", id="the first flavor"),
        pytest.param(Fungibility(), Reclaim.NEVER, 5, "red", id="the first flavor, borrowing"),
        pytest.param(Fungibility(True), Reclaim.NEVER, 5, "blue", id="the next flavor rather than borrowing"),
        pytest.param(Fungibility(), Reclaim.NEVER, 9, "blue", id="the next flavor, as this one does not fit"),
        pytest.param(Fungibility(False, False), Reclaim.ANY, 4, "red", id="no preemption is needed"),
    ],
)
def test_flavors(fungibility, reclaim, cpu, expected):
    described = tree(
        queue("c", "", quota(4)),
        queue("a", "c", *FLAVORED, fungibility=fungibility, reclaim=reclaim),
        flavors=["red", "blue"],
    )
    queues, result = admitted(described, [job("a", cpu)])
    assert queues.flavors[result.flavor[0, 0]] == expected


def test_preemption_on_the_first_flavor_rather_than_the_next_one():
    """b uses all of red, and a could preempt it within its nominal 4."""
    described = [queue("c"), queue("b", "c", quota(0))]
    for keeps, count in ((True, 0), (False, 1)):
        a = queue("a", "c", *FLAVORED, fungibility=Fungibility(False, not keeps), reclaim=Reclaim.ANY)
        waiting = job("a", 4, others={"red/cpu": 4})
        _, result = admitted(tree(*described, a), [waiting], {"b": {"red/cpu": 4}})
        assert result.admitted[0] == count
        assert result.rank[0] == TIERS - 1  # within its guarantee


STATES = {  # of a flavor for a job of 4: nominal amounts of a and b, what they use, what the job may preempt of each
    "fits": ((4, 0), (0, 0), (0, 0)),
    "borrows": ((0, 4), (0, 0), (0, 0)),
    "reclaims": ((4, 0), (0, 4), (0, 4)),
    "preempts": ((4, 0), (4, 0), (4, 0)),
    "reclaims and borrows": ((2, 2), (0, 4), (0, 4)),
    "preempts and borrows": ((2, 2), (4, 0), (4, 0)),
    "in use": ((4, 0), (4, 0), (0, 0)),
    "too small": ((3, 0), (0, 0), (0, 0)),
}
DEFAULT = Fungibility()
STOP = Fungibility(False, False)
STOP_TO_PREEMPT, STOP_TO_BORROW = Fungibility(True, False), Fungibility(False, True)
NEXT = Fungibility(True, True)
PREEMPTING = Fungibility(True, True, True)


@pytest.mark.parametrize(
    ("fungibility", "red", "blue", "expected"),
    [
        (DEFAULT, "fits", "fits", "red"),
        (DEFAULT, "preempts", "fits", "blue"),
        (STOP, "preempts", "fits", "red, by preemption"),
        (STOP, "reclaims", "fits", "red, by preemption"),
        (STOP, "in use", "fits", "blue"),
        (STOP, "too small", "fits", "blue"),
        (DEFAULT, "borrows", "fits", "red"),
        (NEXT, "borrows", "fits", "blue"),
        (NEXT, "borrows", "too small", "red"),
        (NEXT, "borrows", "borrows", "red"),
        (NEXT, "borrows", "in use", "red"),
        (STOP, "reclaims and borrows", "fits", "red, by preemption"),
        (STOP_TO_PREEMPT, "reclaims and borrows", "fits", "blue"),
        (STOP_TO_BORROW, "reclaims and borrows", "fits", "blue"),
        (STOP_TO_PREEMPT, "preempts", "fits", "red, by preemption"),
        (DEFAULT, "preempts", "reclaims", "blue, by preemption"),
        (DEFAULT, "reclaims", "preempts", "red, by preemption"),
        (DEFAULT, "preempts", "preempts", "red, by preemption"),
        (STOP, "preempts", "reclaims", "red, by preemption"),
        (DEFAULT, "reclaims and borrows", "preempts", "red, by preemption"),
        (PREEMPTING, "reclaims and borrows", "preempts", "blue, by preemption"),
        (DEFAULT, "reclaims and borrows", "reclaims", "blue, by preemption"),
        (NEXT, "reclaims", "borrows", "blue"),
        (PREEMPTING, "reclaims", "borrows", "red, by preemption"),
        (PREEMPTING, "borrows", "preempts", "blue, by preemption"),
        (PREEMPTING, "in use", "borrows", "blue"),
        (PREEMPTING, "too small", "borrows", "blue"),
        (DEFAULT, "in use", "preempts and borrows", "blue, by preemption"),
        (DEFAULT, "too small", "in use", "blue, by preemption"),
        (DEFAULT, "in use", "in use", "red, by preemption"),
        (DEFAULT, "too small", "too small", "none"),
    ],
)
def test_kueues_choice_of_a_flavor(fungibility, red, blue, expected):
    """Of a job that has its victims taken into account, and may preempt while it borrows."""
    columns = {"red/cpu": STATES[red], "blue/cpu": STATES[blue]}
    quotas = [[quota(nominal[number], on=on) for on, (nominal, _, _) in columns.items()] for number in range(2)]
    a = queue("a", "c", *quotas[0], fungibility=fungibility, reclaim=Reclaim.ANY, borrow_within=BorrowWithin(True))
    described = tree(queue("c"), a, queue("b", "c", *quotas[1]), flavors=["red", "blue"])
    usage = {name: {on: used[n] for on, (_, used, _) in columns.items()} for n, name in enumerate("ab")}
    own, others = ({on: victims[n] for on, (_, _, victims) in columns.items()} for n in range(2))
    queues, result = admitted(described, [job("a", 4, own=own, others=others)], usage)
    if result.admitted[0]:
        assert expected == queues.flavors[result.flavor[0, 0]]
        assert result.claimed[0, 0] == -1
    elif result.claimed[0, 0] >= 0:
        assert expected == f"{queues.flavors[result.claimed[0, 0]]}, by preemption"
        assert Reason(result.reason[0]) is Reason.LACKING
    else:
        assert expected == "none"
        assert Reason(result.reason[0]) is Reason.TOO_LARGE


@pytest.mark.parametrize("try_next", [False, True])
def test_a_job_that_borrows_one_resource_waits_for_another_one_that_it_could_preempt(try_next):
    """Where preemption is preferred to borrowing, the free resource that is borrowed is the worse one of the two."""
    fungibility = Fungibility(False, try_next, True)
    a = queue("a", "c", quota(0), quota(4, on="red/gpu"), fungibility=fungibility, reclaim=Reclaim.ANY)
    described = tree(queue("c"), a, queue("b", "c", quota(10), quota(0, on="red/gpu")), flavors=["red"])
    queues, result = admitted(described, [job("a", 1, 4, others={"red/gpu": 4})], {"b": {"red/gpu": 4}})
    assert result.admitted.tolist() == [0]
    assert (Reason(result.reason[0]), result.amount[0]) == (Reason.LACKING, 4)
    assert result.column[0] == queues.column("red", "gpu")
    assert result.claimed[0].tolist() == [0, 0]


def test_all_groups_of_resources_have_a_flavor_to_claim():
    """Cpu fits on red, gpu is in use on red and could be preempted on blue."""
    groups = (("cpu",), ("gpu",))
    quotas = quota(4, on="red/cpu"), quota(2, on="blue/gpu")
    described = tree(queue("a", "", *quotas, resource_groups=groups), flavors=["red", "blue"])
    waiting = job("a", 4, 2, own={"blue/gpu": 2})
    queues, result = admitted(described, [waiting], {"a": {"blue/gpu": 2}})
    assert [queues.flavors[f] for f in result.claimed[0]] == ["red", "blue"]
    assert (Reason(result.reason[0]), result.amount[0]) == (Reason.LACKING, 2)


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
