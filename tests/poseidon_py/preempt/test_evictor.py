"""Every victim comes to a definite outcome, whatever the API server answers and whatever happens meanwhile."""

import asyncio

import pytest

from poseidon_py.kube.client import ApiError, BusyError, ConflictError, LostAnswerError, UnreachableError
from tests.poseidon_py.preempt.bench import Bench
from tests.poseidon_py.settling import settle

BUSY = BusyError(429, "TooManyRequests", "later", 7.0)
BROKEN = BusyError(500, "InternalError", "failed calling webhook")
LOST = LostAnswerError("the connection broke")
AWAY = UnreachableError("no route")
FORBIDDEN = ApiError(403, "Forbidden", "pods is forbidden")
INVALID = ApiError(422, "Invalid", "no")
CONFLICT = ConflictError(409, "Conflict", "try again")


async def test_a_victim_gets_its_condition_and_is_deleted_and_both_are_reported():
    bench = Bench()
    await bench.preempt()
    assert [kind for kind, name, _ in bench.api.requests if name == "v"] == ["mark", "delete"]
    assert bench.api.pods["v"]["condition"] == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "poseidon: preempting to accommodate a higher priority pod",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    assert bench.api.pods["p"]["nominated"] == "n"
    assert bench.reports.preemptions == [("v", "p", "n")]
    assert bench.known("v").preempting
    assert bench.known("p").nominated == "n"
    assert bench.outcomes() == {"deleted": 1}
    assert bench.idle


async def test_a_victim_that_has_the_condition_is_only_deleted():
    bench = Bench()
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    bench.observe("v", node="n", status={"conditions": [condition]})
    await bench.preempt()
    assert bench.api.of("mark") == []
    assert bench.api.of("delete") == ["v"]


async def test_a_repeated_decision_changes_nothing():
    bench = Bench()
    await bench.preempt()
    before = list(bench.api.requests)
    await bench.preempt()
    assert bench.api.requests == before
    assert bench.outcomes() == {"deleted": 1}


@pytest.mark.parametrize("kind", ["mark", "delete"])
@pytest.mark.parametrize("fault", [BUSY, BROKEN, LOST, AWAY, CONFLICT, ("lost", LOST)], ids=str)
async def test_a_temporary_failure_is_retried(kind, fault):
    bench = Bench()
    bench.api.only, bench.api.faults = kind, [fault]
    await bench.preempt()
    done = kind == "delete" and fault == ("lost", LOST)  # the pod was found deleted
    assert bench.outcomes() == ({"gone": 1} if done else {"deleted": 1})
    assert bench.api.pods["v"]["deleting"]
    assert bench.api.of("delete") == ["v"] * (2 if kind == "delete" and not done else 1)
    assert bench.known("v").preempting
    if fault is BUSY:
        assert bench.sleeps == [7.0]
    assert bench.idle


async def test_a_read_that_fails_as_well_delays_the_next_attempt():
    bench = Bench()
    bench.api.only, bench.api.faults = "delete", [LOST]
    bench.api.read_faults = [AWAY]
    await bench.preempt()
    assert bench.outcomes() == {"deleted": 1}


@pytest.mark.parametrize("kind", ["mark", "delete"])
async def test_a_victim_that_is_gone_is_fine(kind):
    bench = Bench()
    if kind == "mark":
        del bench.api.pods["v"]
    else:
        bench.api.hold = asyncio.Event()
        bench.take(nominated=[("p", "n")], victims=[("v", "p")])
        await settle()
        bench.api.pods["v"]["uid"] = "another"
        bench.api.hold.set()
    await settle()
    await bench.preempt()
    assert bench.outcomes() == {"gone": 1}
    assert bench.known("v").preempting  # until the watch reports it
    assert (bench.rejected, bench.reports.failures, bench.reports.preemptions) == ([], [], [])


@pytest.mark.parametrize("kind", ["mark", "delete"])
@pytest.mark.parametrize("fault", [FORBIDDEN, INVALID], ids=str)
async def test_a_refused_victim_stays_and_its_preemptor_is_decided_on_anew_later(kind, fault):
    bench = Bench()
    bench.api.only, bench.api.faults = kind, [fault]
    await bench.preempt()
    known, preemptor = bench.known("v"), bench.known("p")
    assert bench.outcomes() == {"refused": 1}
    assert (known.preempting, known.spared, preemptor.nominated) == (False, True, "")
    assert bench.api.pods["p"]["nominated"] == ""
    assert bench.rejected == [("p", bench.store.id_of_node("n"), 1_767_225_601_000_000)]
    assert bench.reports.failures == [("p", f"preempting default/v on n failed: {fault}")]
    (timer,) = bench.timers
    timer.call()
    assert not known.spared


async def test_delays_after_refusals_grow_until_the_preemptor_is_bound():
    bench = Bench()
    for _ in range(3):
        bench.api.only, bench.api.faults = "delete", [FORBIDDEN]
        await bench.preempt()
    delays = [not_before - 1_767_225_600_000_000 for *_, not_before in bench.rejected]
    assert delays == [1_000_000, 2_000_000, 4_000_000]
    assert [timer.seconds for timer in bench.timers] == [30.0, 60.0, 120.0]
    assert [timer.is_cancelled for timer in bench.timers] == [True, True, False]
    bench.observe("p", node="m")
    bench.store.remove_pod("uid-v")
    assert bench.timers[-1].is_cancelled


async def test_failures_without_an_end_count_as_a_refusal():
    bench = Bench(patience=20.0)
    bench.api.only, bench.api.faults = "delete", [BROKEN] * 50
    await bench.preempt()
    assert bench.outcomes() == {"refused": 1}
    assert not bench.known("v").preempting
    assert sum(bench.sleeps) <= 20.0


async def test_other_victims_of_the_preemptor_stay_after_a_refusal():
    bench = Bench(concurrency=1)
    bench.bound("w")
    bench.api.only, bench.api.faults = "mark", [FORBIDDEN]
    bench.take(nominated=[("p", "n")], victims=[("v", "p"), ("w", "p")])
    await settle()
    assert bench.outcomes() == {"refused": 1, "dropped": 1}
    assert not bench.known("w").preempting
    assert bench.api.of("delete") == []


async def test_the_number_of_requests_in_flight_is_bounded():
    bench = Bench(concurrency=3)
    for number in range(10):
        bench.bound(f"w{number}")
    bench.api.hold = asyncio.Event()
    bench.take(nominated=[("p", "n")], victims=[(f"w{number}", "p") for number in range(10)])
    await settle()
    assert bench.api.in_flight == 3
    bench.api.hold.set()
    await settle()
    assert bench.api.largest_in_flight == 3
    assert bench.outcomes() == {"deleted": 10}


# -- the state changes meanwhile --------------------------------------------------------------------------------------


async def retrying(bench):
    """A deletion that waits for its next attempt."""
    bench.asleep = asyncio.Event()
    bench.api.only, bench.api.faults = "delete", [AWAY]
    await bench.preempt()
    assert len(bench.preemptor.evictor.tasks) == 1
    bench.api.requests.clear()


async def woken(bench):
    bench.asleep.set()
    await settle()


async def test_a_victim_that_goes_by_itself_between_two_attempts():
    bench = Bench()
    await retrying(bench)
    bench.store.remove_pod("uid-v")
    await woken(bench)
    assert bench.api.of("delete") == []
    assert bench.outcomes() == {"gone": 1}
    assert bench.idle


async def test_a_victim_that_another_client_deletes():
    bench = Bench()
    await retrying(bench)
    bench.observe("v", node="n", deleting=True)
    await woken(bench)
    assert bench.api.of("delete") == []
    assert bench.outcomes() == {"gone": 1}


@pytest.mark.parametrize("how", ["deleted", "bound elsewhere"])
async def test_without_its_preemptor_a_victim_stays(how):
    bench = Bench()
    await retrying(bench)
    if how == "deleted":
        bench.store.remove_pod("uid-p")
    else:
        bench.observe("p", node="m")
    await woken(bench)
    assert bench.api.of("delete") == []
    assert bench.outcomes() == {"dropped": 1}
    assert not bench.known("v").preempting
    assert bench.known("v").resend


async def test_a_preemptor_that_is_being_deleted_needs_no_victim():
    bench = Bench()
    await retrying(bench)
    bench.observe("p", deleting=True)
    await woken(bench)
    assert bench.outcomes() == {"dropped": 1}


async def test_a_victim_that_another_pod_waits_for_goes_without_its_preemptor():
    bench = Bench()
    bench.pending("q")
    bench.take(nominated=[("q", "n")])
    await retrying(bench)
    bench.store.remove_pod("uid-p")
    await woken(bench)
    assert bench.api.of("delete") == ["v"]
    assert bench.outcomes() == {"deleted": 1}


async def test_a_deletion_that_was_accepted_is_not_undone():
    bench = Bench()
    await bench.preempt()
    bench.store.remove_pod("uid-p")
    assert bench.known("v").preempting
    bench.store.remove_pod("uid-v")
    assert bench.outcomes() == {"deleted": 1}


@pytest.mark.parametrize("how", ["not bound", "bound again"])
async def test_a_victim_that_is_not_bound_after_all_is_dropped(how):
    bench = Bench()
    await retrying(bench)
    bench.observe("v")  # the API server's data was restored
    if how == "bound again":
        bench.observe("v", node="n")
        assert bench.outcomes() == {"dropped": 1}
    await woken(bench)
    assert bench.api.of("delete") == []
    assert bench.outcomes() == {"dropped": 1}
    assert not bench.known("v").leaving
    assert bench.idle


@pytest.mark.parametrize("fault", [None, AWAY], ids=str)
async def test_a_victim_that_is_bound_again_during_its_deletion_is_not_deleted_again(fault):
    bench = Bench()
    bench.known("v").observed.disrupted = True
    bench.api.hold, bench.api.only, bench.api.faults = asyncio.Event(), "delete", [fault]
    await bench.preempt()
    bench.observe("v")
    bench.observe("v", node="n")
    bench.api.hold.set()
    await settle()
    assert bench.api.of("delete") == ["v"]
    assert bench.outcomes() == ({"dropped": 1} if fault else {"deleted": 1})
    assert not bench.known("v").preempting


async def test_a_victim_that_is_bound_again_after_its_deletion_can_be_one_again():
    bench = Bench()
    await bench.preempt()
    bench.api.put("v")
    bench.observe("v")
    bench.observe("v", node="n")
    assert not bench.known("v").leaving
    await bench.preempt()
    assert bench.outcomes() == {"deleted": 2}


# -- leadership -------------------------------------------------------------------------------------------------------


async def test_nothing_is_sent_after_the_lease_has_run_out():
    bench = Bench()
    bench.leads = False
    await bench.preempt()
    assert bench.api.requests == []
    assert bench.outcomes() == {"dropped": 1}
    assert (bench.known("v").preempting, bench.known("p").nominated) == (False, "")
    assert bench.known("v").resend


@pytest.mark.parametrize("kind", ["mark", "delete"])
async def test_leadership_is_lost_in_the_middle_of_a_request(kind):
    bench = Bench()
    if kind == "delete":
        bench.known("v").observed.disrupted = True
    bench.api.hold = asyncio.Event()
    bench.take(nominated=[("p", "n")], victims=[("v", "p")])
    await settle()
    bench.preemptor.halt()
    bench.api.hold.set()
    await settle()
    assert bench.idle
    assert bench.api.of("delete") == (["v"] if kind == "delete" else [])
    assert bench.outcomes() == ({"deleted": 1} if kind == "delete" else {"dropped": 1})
    assert bench.known("v").preempting is (kind == "delete")
    assert bench.known("p").nominated == "n"  # it was written


async def test_what_was_not_sent_is_over_when_another_replica_leads():
    bench = Bench()
    await retrying(bench)
    bench.preemptor.halt()
    assert bench.idle
    assert not bench.known("v").preempting
    bench.preemptor.resume()
    bench.asleep = None
    await bench.preempt()
    assert bench.outcomes() == {"dropped": 1, "deleted": 1}


async def test_a_refusal_that_comes_after_leadership_is_not_reported():
    bench = Bench()
    bench.api.only, bench.api.faults = "mark", [FORBIDDEN]
    bench.api.hold = asyncio.Event()
    bench.take(nominated=[("p", "n")], victims=[("v", "p")])
    await settle()
    bench.preemptor.halt()
    bench.api.hold.set()
    await settle()
    assert bench.outcomes() == {"dropped": 1}
    assert (bench.reports.failures, bench.rejected, bench.timers) == ([], [], [])


async def test_stopping_waits_for_requests_in_flight_as_long_as_it_may():
    bench = Bench()
    bench.known("v").observed.disrupted = True
    bench.api.hold = asyncio.Event()
    bench.take(victims=[("v", "p")])
    await settle()
    stopping = asyncio.create_task(bench.preemptor.stop(30.0))
    await settle()
    assert not stopping.done()
    bench.api.hold.set()
    await stopping
    assert bench.outcomes() == {"deleted": 1}
    bench.bound("w")
    bench.preemptor.resume()
    bench.api.hold = asyncio.Event()
    bench.take(victims=[("w", "p")])
    await settle()
    await bench.preemptor.stop()
    assert "deleting" not in bench.api.pods["w"]


async def test_a_victim_whose_bind_waits_is_taken_back_and_not_deleted():
    """kube-scheduler's PreemptPod: a pod that is not bound yet is preempted in memory, with the same event."""
    bench = Bench()
    bench.pending("w")
    bench.store.assume(bench.known("w"), "n")
    bench.store.set_revocable(bench.known("w"), True)
    bench.take(nominated=[("p", "n")], victims=[("w", "p")])
    await settle()
    assert bench.withdrawn == ["uid-w"]
    assert bench.api.of("delete") == bench.api.of("mark") == []
    assert bench.reports.preemptions == [("w", "p", "n")]
    assert bench.outcomes() == {"unbound": 1}
    assert not bench.known("w").preempting


@pytest.mark.parametrize("generation", [0, 4])
async def test_the_condition_of_a_victim_names_the_generation_of_its_specification(generation):
    bench = Bench()
    bench.known("v").observed.generation = generation
    await bench.preempt()
    assert bench.api.pods["v"]["condition"].get("observedGeneration", 0) == generation
