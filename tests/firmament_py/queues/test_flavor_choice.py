"""Which flavor a job gets, or claims by preemption."""

import pytest

from firmament_py.model.queues import BorrowWithin, Fungibility, Reclaim
from firmament_py.queues.admission import TIERS, Reason
from tests.firmament_py.queues.admitting import admitted, job
from tests.firmament_py.queues.trees import queue, quota, tree

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
