"""Partly bound gangs: completed, unwound, or kept."""

import asyncio

import pytest

from poseidon_py.kube.client import ApiError, BusyError, ConflictError, UnreachableError, api_error
from poseidon_py.kube.objects import micros
from poseidon_py.kube.requests.retry_after import MAX_SECONDS
from tests.poseidon_py.bind.test_gang_binder import CLAIM, Rig
from tests.poseidon_py.settling import settle
from tests.poseidon_py.state.gangs.builders import JOB


async def half_bound(rig, **fields):
    rig.pods("a", "b", "c", **fields)
    rig.kube.faults = [None, ConflictError(409, "Conflict", "no"), None]
    rig.place("a", "b", "c")
    await rig.run()


async def half(rig, **fields):
    await half_bound(rig, **fields)
    rig.deadlines[0].call()
    await settle()


async def test_a_partly_bound_gang_is_evicted_after_its_timeout():
    rig = Rig()
    await half(rig, owner=JOB)
    assert rig.deadlines[0].seconds == 60.0
    assert rig.evicted == ["a", "c"]
    text = (
        "pod group ns/g: only 2 of 3 members could be bound in time; it is evicted, to be scheduled with its gang again"
    )
    assert rig.remarks == [(name, "GangUnwound", text) for name in ("a", "c")]


async def test_the_workload_of_a_partly_bound_gang_is_suspended_if_it_can_be():
    """Evictions of seven of eight members would end a Job for good."""
    rig = Rig()
    rig.suspends = True
    await half(rig, owner=JOB)
    assert rig.suspended == [["a", "c"]]
    assert rig.evicted == []
    text = "pod group ns/g: only 2 of 3 members could be bound in time; its workload is suspended, and starts again"
    assert rig.remarks == [(name, "GangUnwound", text) for name in ("a", "c")]


async def test_members_without_a_controller_stay():
    rig = Rig()
    await half(rig)
    assert rig.evicted == []
    assert {reason for _, reason, _ in rig.remarks} == {"GangHalfBound"}


async def test_with_unwind_keep_members_stay():
    rig = Rig(unwind="keep")
    await half(rig, owner=JOB)
    assert rig.evicted == []
    assert {reason for _, reason, _ in rig.remarks} == {"GangHalfBound"}


async def test_binds_that_are_still_repeated_at_the_deadline_are_given_back():
    rig = Rig()
    rig.pods("a", "b", "c", owner=JOB)
    rig.kube.faults = [None, BusyError(503, "", ""), BusyError(503, "", "")]
    rig.place("a", "b", "c")
    await rig.run()
    rig.gone("a")
    rig.deadlines[0].call()
    await settle()
    assert sorted(rig.rejected) == ["b", "c"]
    rig.tick()
    await settle()
    assert rig.bound == ["a"]
    assert await rig.binder.drain(0.1)


async def test_a_gang_that_was_complete_is_never_unwound():
    rig = Rig()
    rig.pods("a", "b", "c", owner=JOB)
    rig.place("a", "b", "c")
    await rig.run()
    rig.gone("b")
    rig.pod("d", owner=JOB)
    rig.kube.faults = [ConflictError(409, "Conflict", "no")]
    rig.place("d")
    await rig.run()
    for timer in rig.deadlines:
        if not timer.cancelled:
            timer.call()
    await settle()
    assert rig.evicted == []


async def half_and_then_deleted(rig):
    await half_bound(rig)
    for name in ("a", "b", "c"):
        rig.gone(name)
    assert not rig.store.gangs.groups


async def test_a_gang_of_the_same_name_is_not_bound_before_its_volumes_are_ready():
    rig = Rig()
    await half_and_then_deleted(rig)
    rig.pods("d", "e", "f")
    ready = asyncio.Event()
    rig.store.pods["uid-f"].volumes.claims = (CLAIM,)
    rig.prepare = lambda known, node: ready.wait() if known.name == "f" else None
    rig.place("d", "e", "f")
    await rig.run()
    assert rig.bound == ["a", "c"]
    assert [timer.cancelled for timer in rig.deadlines] == [True, False]
    rig.deadlines[0].call()
    assert rig.rejected == ["b"]
    ready.set()
    await rig.run()
    assert rig.bound == ["a", "c", "d", "e", "f"]
    assert not len(rig.gangs)


async def test_a_gang_of_the_same_name_that_is_found_half_bound_gets_a_deadline_of_its_own():
    rig = Rig()
    await half_and_then_deleted(rig)
    rig.pod("d", owner=JOB, node="n")
    rig.pods("e", "f", owner=JOB)
    assert [timer.cancelled for timer in rig.deadlines] == [True, False]
    await call(rig.deadlines)
    assert rig.evicted == ["d"]


def lost(rig, name, **fields):
    """Another client evicts a member."""
    rig.pod(name, node="n", deleting=True, put=False, **fields)
    rig.gone(name)


async def broken(rig):
    rig.pods("a", "b", "c", owner=JOB)
    rig.place("a", "b", "c")
    await rig.run()
    lost(rig, "b")
    assert len(rig.gangs) == 1


async def call(deadlines):
    for timer in list(deadlines):
        if not timer.cancelled:
            timer.call()
    await settle()


async def test_a_gang_that_is_disrupted_as_a_whole_is_evicted_if_what_it_lost_is_not_replaced():
    rig = Rig(whole=True)
    await broken(rig)
    rig.pod("d", owner=JOB)
    await call(rig.deadlines)
    assert rig.evicted == ["a", "c"]
    text = (
        "pod group ns/g: only 2 of 3 members are left and the others were not replaced in time; it can only be "
        "disrupted as a whole; it is evicted, to be scheduled with its gang again"
    )
    assert rig.remarks == [(name, "GangUnwound", text) for name in ("a", "c")]


async def test_it_is_not_if_the_others_are_victims_of_preemption_themselves():
    rig = Rig(whole=True)
    await broken(rig)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    for name in ("a", "c"):
        rig.pod(name, node="n", put=False, status={"conditions": [condition]})
    rig.pod("d", owner=JOB)
    await call(rig.deadlines)
    assert rig.evicted == []


async def test_it_is_not_if_members_are_replaced_in_time_or_none_is_pending():
    rig = Rig(whole=True)
    await broken(rig)
    await call(rig.deadlines)  # it was not replaced
    assert rig.evicted == []
    rig.pod("d", owner=JOB)  # now it was
    assert len(rig.gangs) == 1
    rig.place("d")
    await settle()
    await call(rig.deadlines)
    assert rig.evicted == []
    assert rig.bound == ["a", "b", "c", "d"]


async def test_after_a_restart_only_a_gang_that_never_was_complete_is_unwound():
    for since_us, evicted in ((2**60, ["a"]), (0, [])):  # the others wait since before that bind; since after it
        rig = Rig()
        rig.since_us = since_us
        rig.pod("a", owner=JOB, node="n")
        rig.pods("b", "c", owner=JOB)
        assert len(rig.gangs) == 1
        rig.deadlines[0].call()
        await settle()
        assert rig.evicted == evicted


async def test_members_that_were_created_in_the_second_of_the_bind_are_no_replacements():
    """A store orders pods of one second by their arrival: later than that second begins, which is all a bind tells."""
    rig = Rig()
    rig.since_us = micros("2026-11-28T10:00:00Z")
    rig.pod("a", owner=JOB, node="n", created="2026-11-28T10:00:00Z")
    rig.pods("b", "c", owner=JOB, created="2026-11-28T10:00:00Z")
    rig.deadlines[0].call()
    await settle()
    assert rig.evicted == ["a"]


def under_a_budget(rig):
    """Evictions wait for the event that is returned."""
    budget = asyncio.Event()

    async def evict(known):
        if not budget.is_set():
            raise BusyError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
        rig.evicted.append(known.name)

    async def sleep(seconds):
        await budget.wait()

    rig.unwinder._evict, rig.unwinder._sleep = evict, sleep
    return budget


async def test_a_gang_completed_while_a_budget_prevents_evictions_is_not_evicted(caplog):
    rig = Rig()
    budget = under_a_budget(rig)
    await half(rig, owner=JOB)
    await call(rig.deadlines)
    assert "cannot evict ns/a yet: 429 TooManyRequests: Cannot evict pod as it would violate" in caplog.text
    message = list(rig.remarks)
    rig.place("b")
    await settle()
    assert rig.bound == ["a", "b", "c"]
    budget.set()
    await settle()
    assert (rig.evicted, rig.remarks) == ([], message)


@pytest.mark.parametrize(
    "error",
    [BusyError(429, "TooManyRequests", "a budget"), UnreachableError("refused"), ApiError(403, "Forbidden", "no")],
)
async def test_a_rejected_eviction_is_retried_until_it_succeeds(error):
    rig, pauses = Rig(), []
    evict, tries = rig.unwinder._evict, []

    async def refuse(known):
        tries.append(known.name)
        if known.name == "a" and tries.count("a") <= 20:
            raise error
        await evict(known)
        rig.gone(known.name)

    async def sleep(seconds):
        pauses.append(seconds)

    rig.unwinder._evict, rig.unwinder._sleep = refuse, sleep
    await half(rig, owner=JOB)
    await call(rig.deadlines)
    assert rig.evicted == ["c", "a"]  # those that can be evicted do not wait for those that cannot
    assert (tries.count("a"), tries.count("c")) == (21, 1)
    assert (pauses[0], max(pauses), len(pauses)) == (0.5, 60.0, 20)
    assert [(name, reason) for name, reason, _ in rig.remarks] == [
        ("a", "GangHalfBound"),
        ("c", "GangUnwound"),
        ("a", "GangUnwound"),
    ]
    assert rig.remarks[0][2].endswith(f"it cannot be evicted yet: {error}")


@pytest.mark.parametrize("message", [b"3600", b"inf", b"nan"])
async def test_no_budget_delays_the_retry_of_an_eviction_forever(message):
    rig, pauses = Rig(), []
    evict, faults = rig.unwinder._evict, [api_error(429, b"", message)]

    async def refuse(known):
        if faults:
            raise faults.pop()
        await evict(known)

    async def sleep(seconds):
        pauses.append(seconds)

    rig.unwinder._evict, rig.unwinder._sleep = refuse, sleep
    await half(rig, owner=JOB)
    await call(rig.deadlines)
    assert sorted(rig.evicted) == ["a", "c"]
    assert [0 <= seconds <= MAX_SECONDS for seconds in pauses] == [True]


async def test_no_member_is_evicted_once_none_is_pending():
    rig = Rig()
    budget = under_a_budget(rig)
    await half(rig, owner=JOB)
    await call(rig.deadlines)
    rig.gone("b")
    budget.set()
    await settle()
    assert rig.evicted == []


async def test_a_member_that_was_deleted_is_not_evicted():
    rig = Rig()
    budget = under_a_budget(rig)
    await half(rig, owner=JOB)
    await call(rig.deadlines)
    rig.gone("a")
    budget.set()
    await settle()
    assert rig.evicted == ["c"]


async def test_a_member_that_ends_during_another_eviction_is_not_evicted():
    rig = Rig()
    evict = rig.unwinder._evict

    async def slowly(known):
        await evict(known)
        if known.name == "a":
            rig.gone("c")

    rig.unwinder._evict = slowly
    await half(rig, owner=JOB)
    assert rig.evicted == ["a"]


async def test_while_evictions_are_rejected_another_timeout_has_no_effect():
    rig = Rig()
    budget = under_a_budget(rig)
    await half(rig, owner=JOB)
    message = list(rig.remarks)
    for _ in range(3):
        rig.pod("d", owner=JOB)  # any news of a member finds the gang half bound
        assert len(rig.gangs) == 1
        await call(rig.deadlines[-1:])
    assert (len(rig.unwinder._tasks), rig.remarks) == (1, message)
    budget.set()
    await settle()
    assert rig.evicted == ["a", "c"]
    assert not rig.unwinder._evicting


async def test_a_member_bound_while_evictions_are_rejected_is_evicted_too():
    rig = Rig()
    budget = under_a_budget(rig)
    rig.pods("a", "b", "c", "d", minimum=4, owner=JOB)
    rig.kube.faults = [None, ConflictError(409, "Conflict", "no"), ConflictError(409, "Conflict", "no"), None]
    rig.place("a", "b", "c", "d")
    await rig.run()
    await call(rig.deadlines)
    rig.kube.faults = [None, ConflictError(409, "Conflict", "no")]
    rig.place("b", "c")
    await settle()
    await call(rig.deadlines[-1:])
    budget.set()
    await settle()
    assert sorted(rig.evicted) == ["a", "b", "d"]


async def test_a_deposed_leader_evicts_no_pod():
    rig = Rig()
    budget = under_a_budget(rig)
    await half(rig, owner=JOB)
    await call(rig.deadlines)
    rig.binder.halt()
    rig.gangs.clear()
    budget.set()
    await settle()
    assert rig.evicted == []
