"""Every migration comes to a definite outcome, whatever the API server answers and whatever happens meanwhile."""

import asyncio

import pytest

from poseidon_py.feed.update_rows import target
from poseidon_py.kube.client import ApiError, BusyError, ConflictError, LostAnswerError, UnreachableError
from tests.poseidon_py.preempt.bench import Bench
from tests.poseidon_py.settling import settle

BUDGET = BusyError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.", 10.0)
BROKEN = BusyError(500, "InternalError", "failed calling webhook")
UNAVAILABLE = BusyError(503, "ServiceUnavailable", "starting", 7.0)
LOST = LostAnswerError("the connection broke")
AWAY = UnreachableError("no route")
FORBIDDEN = ApiError(403, "Forbidden", "pods is forbidden")
SEVERAL = ApiError(400, "BadRequest", "This pod has more than one PodDisruptionBudget")
CONFLICT = ConflictError(409, "Conflict", "try again")


async def test_a_pod_is_evicted_and_reported():
    bench = Bench()
    await bench.move()
    assert bench.api.requests == [("evict", "v", None)]
    assert bench.reports.migrations == [("v", "n", "m")]
    assert bench.migrations() == {"evicted": 1}
    known = bench.known("v")
    assert (known.migrating, known.preempting, known.resend) == (True, False, True)
    assert bench.idle
    assert bench.timers == []


async def test_it_leaves_from_the_decision_until_it_is_deleted():
    bench = Bench()
    known = bench.known("v")
    known.described.class_id = 5

    def leaving():
        state = target(bench.store, known)
        assert state is not None
        return state.leaving

    bench.api.hold = asyncio.Event()
    assert not leaving()
    await bench.move()
    assert leaving()
    bench.api.hold.set()
    await settle()
    assert leaving()
    bench.store.remove_pod("uid-v")
    assert bench.migrations() == {"evicted": 1}


async def test_a_repeated_decision_changes_nothing():
    bench = Bench()
    await bench.move()
    await bench.move()
    assert bench.api.of("evict") == ["v"]
    assert bench.migrations() == {"evicted": 1}


@pytest.mark.parametrize("fault", [BROKEN, UNAVAILABLE, LOST, AWAY, CONFLICT], ids=str)
async def test_a_temporary_failure_is_retried(fault):
    bench = Bench()
    bench.api.faults = [fault, fault]
    await bench.move()
    assert bench.migrations() == {"evicted": 1}
    assert bench.api.of("evict") == ["v"] * 3
    assert bench.sleeps == ([7.0, 7.0] if fault is UNAVAILABLE else [0.1, 0.2])
    assert bench.idle


async def test_after_a_lost_answer_the_pod_is_read():
    bench = Bench()
    bench.api.faults = [("lost", LOST)]
    await bench.move()
    assert [kind for kind, *_ in bench.api.requests] == ["evict", "read"]
    assert bench.migrations() == {"gone": 1}
    assert bench.known("v").migrating  # until the watch reports it


@pytest.mark.parametrize("how", ["deleted", "another with its name"])
async def test_a_pod_that_is_gone_is_fine(how):
    bench = Bench()
    if how == "deleted":
        del bench.api.pods["v"]
    else:
        bench.api.pods["v"]["uid"] = "another"
    await bench.move()
    assert bench.migrations() == {"gone": 1}
    assert bench.api.of("evict") == ["v"]
    assert "deleting" not in bench.api.pods.get("v", {})
    assert (bench.reports.migrations, bench.timers) == ([], [])


@pytest.mark.parametrize("fault", [BUDGET, FORBIDDEN, SEVERAL], ids=str)
async def test_a_refused_pod_stays_and_is_not_moved_for_a_while(fault, caplog):
    caplog.set_level("INFO")
    bench = Bench()
    bench.api.faults = [fault]
    await bench.move()
    known = bench.known("v")
    assert bench.api.of("evict") == ["v"]
    assert bench.sleeps == []
    assert bench.migrations() == {"refused": 1}
    assert (known.migrating, known.migration_refused, known.spared, known.resend) == (False, True, False, True)
    assert not bench.store.is_movable(known)
    assert f"default/v stays on n: {fault}" in caplog.text
    assert (bench.reports.migrations, bench.reports.failures) == ([], [])
    (timer,) = bench.timers
    known.dirty = False
    timer.call()
    assert bench.store.is_movable(known)
    assert known.dirty  # so that the engine learns it


async def test_the_time_after_refusals_grows_until_the_pod_is_gone():
    bench = Bench()
    for _ in range(3):
        bench.api.faults = [BUDGET]
        await bench.move()
        bench.timers[-1].call()
    assert [timer.seconds for timer in bench.timers] == [30.0, 60.0, 120.0]
    bench.api.faults = [BUDGET]
    await bench.move()
    bench.store.remove_pod("uid-v")
    assert bench.timers[-1].is_cancelled


async def test_failures_without_an_end_count_as_a_refusal():
    bench = Bench(patience=20.0)
    bench.api.faults = [BROKEN] * 50
    await bench.move()
    assert bench.migrations() == {"refused": 1}
    assert not bench.known("v").leaving
    assert bench.known("v").migration_refused
    assert 10.0 < sum(bench.sleeps) <= 20.0


async def test_a_defect_counts_as_a_refusal(caplog):
    bench = Bench()
    bench.api.faults = [RuntimeError("a defect")]
    await bench.move()
    assert bench.migrations() == {"refused": 1}
    assert "a defect" in caplog.text


async def test_the_number_of_requests_in_flight_is_bounded_together_with_those_of_preemption():
    bench = Bench(concurrency=3)
    for number in range(10):
        bench.bound(f"w{number}")
    bench.api.hold = asyncio.Event()
    bench.take(victims=[("v", "p")], migrations=[(f"w{number}", "m") for number in range(10)])
    await settle()
    assert bench.api.in_flight == 3
    bench.api.hold.set()
    await settle()
    assert bench.api.largest_in_flight == 3
    assert bench.migrations() == {"evicted": 10}
    assert bench.outcomes() == {"deleted": 1}


# -- the state changes meanwhile --------------------------------------------------------------------------------------


async def retrying(bench):
    """An eviction that waits for its next attempt."""
    bench.asleep = asyncio.Event()
    bench.api.faults = [AWAY]
    await bench.move()
    assert len(bench.preemptor.migrator.tasks) == 1
    bench.api.requests.clear()
    bench.known("v").resend = False


async def woken(bench):
    bench.asleep.set()
    await settle()
    assert bench.idle


@pytest.mark.parametrize("how", ["removed", "being deleted"])
async def test_a_pod_that_goes_by_itself_between_two_attempts(how):
    bench = Bench()
    await retrying(bench)
    if how == "removed":
        bench.store.remove_pod("uid-v")
        assert bench.idle
    else:
        bench.observe("v", node="n", deleting=True)
    await woken(bench)
    assert bench.api.requests == []
    assert bench.migrations() == {"gone": 1}


@pytest.mark.parametrize("how", ["target removed", "opted out", "victim", "not bound", "bound again"])
async def test_a_migration_without_its_reason_is_dropped(how):
    bench = Bench()
    await retrying(bench)
    known = bench.known("v")
    match how:
        case "target removed":
            bench.store.remove_node("m")
        case "opted out":
            known.described.movable = False
        case "victim":
            known.preempting = True
        case "not bound":  # the API server's data was restored
            bench.observe("v")
        case "bound again":
            bench.observe("v")
            bench.observe("v", node="n")
    await woken(bench)
    assert bench.api.requests == []
    assert bench.migrations() == {"dropped": 1}
    assert (known.migrating, known.resend, known.migration_refused) == (False, True, False)


async def test_a_pod_that_the_watch_reports_deleted_before_its_eviction_is_answered():
    bench = Bench()
    bench.api.hold = asyncio.Event()
    await bench.move()
    bench.store.remove_pod("uid-v")
    bench.api.hold.set()
    await settle()
    assert bench.migrations() == {"evicted": 1}
    assert bench.idle


async def test_a_pod_that_is_bound_again_after_its_eviction_does_not_leave():
    bench = Bench()
    await bench.move()
    bench.observe("v")  # the API server's data was restored
    bench.observe("v", node="n")
    assert not bench.known("v").leaving


async def test_a_victim_is_not_moved():
    bench = Bench()
    bench.take(nominated=[("p", "n")], victims=[("v", "p")], migrations=[("v", "m")])
    await settle()
    assert bench.api.of("evict") == []
    assert bench.migrations() == {}
    assert bench.outcomes() == {"deleted": 1}


async def test_a_pod_whose_migration_was_refused_can_be_a_victim():
    bench = Bench()
    bench.api.faults = [BUDGET]
    await bench.move()
    await bench.preempt()
    assert bench.outcomes() == {"deleted": 1}


# -- leadership -------------------------------------------------------------------------------------------------------


async def test_nothing_is_sent_after_the_lease_has_run_out():
    bench = Bench()
    bench.leads = False
    await bench.move()
    assert bench.api.requests == []
    assert bench.migrations() == {"dropped": 1}
    assert (bench.known("v").migrating, bench.known("v").resend) == (False, True)


async def test_an_eviction_that_waits_ends_with_leadership_and_can_be_decided_again():
    bench = Bench()
    await retrying(bench)
    bench.preemptor.halt()
    assert bench.idle
    assert (bench.known("v").migrating, bench.known("v").resend) == (False, True)
    await bench.move()
    assert bench.api.requests == []
    bench.preemptor.resume()
    bench.asleep = None
    await bench.move()
    assert bench.migrations() == {"dropped": 2, "evicted": 1}


@pytest.mark.parametrize("fault", [None, BUDGET, AWAY], ids=str)
async def test_leadership_is_lost_in_the_middle_of_a_request(fault):
    bench = Bench()
    bench.api.hold, bench.api.faults = asyncio.Event(), [fault]
    await bench.move()
    bench.preemptor.halt()
    assert bench.known("v").migrating  # the request may succeed
    bench.api.hold.set()
    await settle()
    assert bench.idle
    assert bench.migrations() == ({"dropped": 1} if fault else {"evicted": 1})
    assert bench.known("v").migrating is (fault is None)
    assert bench.timers == []


async def test_leadership_is_lost_while_evictions_wait_for_a_slot():
    bench = Bench(concurrency=1)
    bench.bound("w")
    bench.api.hold = asyncio.Event()
    bench.take(migrations=[("v", "m"), ("w", "m")])
    await settle()
    bench.leads = False
    bench.api.hold.set()
    await settle()
    assert bench.api.of("evict") == ["v"]
    assert bench.migrations() == {"evicted": 1, "dropped": 1}
    assert not bench.known("w").migrating


async def test_stopping_waits_for_requests_in_flight_and_cancels_timers():
    bench = Bench()
    bench.bound("w")
    bench.api.faults = [BUDGET]
    await bench.move()
    bench.api.hold = asyncio.Event()
    bench.take(migrations=[("w", "m")])
    await settle()
    stopping = asyncio.create_task(bench.preemptor.stop(30.0))
    await settle()
    assert not stopping.done()
    bench.api.hold.set()
    await stopping
    assert bench.migrations() == {"refused": 1, "evicted": 1}
    assert bench.timers[0].is_cancelled
