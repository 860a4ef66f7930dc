"""Nominations are written after the pod's record, and those of other writers are followed."""

import asyncio

import pytest

from poseidon_py.kube.client import ApiError, BusyError, ConflictError, LostAnswerError, UnreachableError
from tests.poseidon_py.preempt.bench import Bench
from tests.poseidon_py.settling import settle

BUSY = BusyError(429, "TooManyRequests", "later", 7.0)
LOST = LostAnswerError("the connection broke")
TEMPORARY = [BUSY, LOST, ("lost", LOST), UnreachableError("no route"), ConflictError(409, "Conflict", "again")]


def written(bench, name="p"):
    return [node for kind, which, node in bench.api.requests if (kind, which) == ("nominate", name)]


def reported(bench, nominated, version, name="p", **fields):
    bench.observe(name, version=version, status={"nominatedNodeName": nominated} if nominated else {}, **fields)


async def test_a_nomination_is_written_changed_and_ended():
    bench = Bench()
    for nominated in ("n", "m"):
        bench.take(nominated=[("p", nominated)])
        await settle()
    bench.take(unnominated=["p"])
    await settle()
    assert written(bench) == ["n", "m", ""]
    assert bench.known("p").nominated == ""
    assert bench.store.metrics.former_preemptions._value.get() == 2
    assert bench.idle


async def test_the_end_of_a_nomination_that_was_never_written_is_not_written():
    bench = Bench()
    bench.take(unnominated=["p"])
    await settle()
    assert written(bench) == []


async def test_changes_during_a_request_are_written_after_it():
    bench = Bench()
    bench.api.hold = asyncio.Event()
    for nominated in ("n", "m", "n", "m"):
        bench.take(nominated=[("p", nominated)])
        await settle()
    bench.api.hold.set()
    await settle()
    assert written(bench) == ["n", "m"]


@pytest.mark.parametrize("fault", TEMPORARY, ids=str)
async def test_a_temporary_failure_is_retried(fault):
    bench = Bench()
    bench.api.faults = [fault, fault]
    bench.take(nominated=[("p", "n")])
    await settle()
    assert written(bench) == ["n"] * 3
    assert bench.api.pods["p"]["nominated"] == "n"
    assert bench.sleeps == ([7.0, 7.0] if fault is BUSY else [0.2, 0.4])
    assert bench.idle


@pytest.mark.parametrize("fault", [ApiError(403, "Forbidden", "no"), ApiError(422, "Invalid", "no")], ids=str)
async def test_a_nomination_that_cannot_be_written_holds_nevertheless(fault, caplog):
    bench = Bench()
    bench.api.faults = [fault]
    bench.take(nominated=[("p", "n")])
    await settle()
    assert written(bench) == ["n"]
    assert bench.known("p").nominated == "n"
    assert "cannot write the nomination of default/p" in caplog.text
    assert bench.idle


async def test_failures_without_an_end_are_given_up():
    bench = Bench(patience=5.0)
    bench.api.faults = [BUSY] * 50
    bench.take(nominated=[("p", "n")])
    await settle()
    assert written(bench) == ["n"]
    assert bench.known("p").nominated == "n"
    assert bench.idle


async def test_a_pod_that_is_gone_ends_it():
    bench = Bench()
    del bench.api.pods["p"]
    bench.take(nominated=[("p", "n")])
    await settle()
    assert written(bench) == ["n"]
    assert bench.idle


@pytest.mark.parametrize("end", ["bound", "removed"])
async def test_a_retry_ends_with_the_wait_of_the_pod(end):
    bench = Bench()
    bench.asleep, bench.api.faults = asyncio.Event(), [BUSY]
    bench.take(nominated=[("p", "n")])
    await settle()
    known = bench.known("p")
    if end == "bound":
        bench.observe("p", node="n")
    else:
        bench.store.remove_pod("uid-p")
    assert known.nominated == ""
    bench.asleep.set()
    await settle()
    assert written(bench) == ["n"]
    assert bench.idle


# -- the watch, and other writers -------------------------------------------------------------------------------------


async def test_a_nomination_on_the_api_server_holds_when_the_pod_is_first_seen():
    bench = Bench()
    bench.pending("q", status={"nominatedNodeName": "n"})
    assert bench.known("q").nominated == "n"
    bench.take(nominated=[("q", "n")])
    await settle()
    assert written(bench, "q") == []  # it is there


async def test_an_echo_of_our_patch_changes_nothing():
    bench = Bench()
    bench.take(nominated=[("p", "n")])
    await settle()  # at version 1001
    bench.take(nominated=[("p", "m")])
    await settle()  # 1002
    reported(bench, "", 1000)
    reported(bench, "n", 1001)
    assert bench.known("p").nominated == "m"
    reported(bench, "m", 1002)
    assert bench.known("p").nominated == "m"
    bench.take(nominated=[("p", "m")])
    await settle()
    assert written(bench) == ["n", "m"]


async def test_reports_while_a_patch_is_due_have_no_effect():
    bench = Bench()
    bench.api.hold = asyncio.Event()
    bench.take(nominated=[("p", "n")])
    reported(bench, "m", 900)
    await settle()
    assert bench.known("p").nominated == "n"
    bench.api.hold.set()
    await settle()
    assert bench.known("p").nominated == "n"


async def test_another_writer_after_us_is_followed():
    bench = Bench()
    bench.take(nominated=[("p", "n")])
    await settle()
    reported(bench, "n", 1001)
    reported(bench, "m", 1005)
    assert bench.known("p").nominated == "m"
    reported(bench, "", 1006)
    assert bench.known("p").nominated == ""
    reported(bench, "", 1007)
    bench.take(nominated=[("p", "n")])
    reported(bench, "", 1008)  # not changed
    assert bench.known("p").nominated == "n"
    await settle()


async def test_another_writer_after_us_that_is_reported_before_our_answer_is_followed():
    bench = Bench()
    bench.api.hold = asyncio.Event()
    bench.take(nominated=[("p", "n")])
    await settle()
    reported(bench, "n", 1001)
    reported(bench, "m", 1002)
    assert bench.known("p").nominated == "n"
    bench.api.hold.set()
    await settle()
    assert bench.known("p").nominated == "m"


# -- leadership -------------------------------------------------------------------------------------------------------


async def test_what_is_not_written_is_over_when_another_replica_leads():
    bench = Bench()
    bench.pending("q", status={"nominatedNodeName": "m"})
    bench.asleep, bench.api.faults = asyncio.Event(), [BUSY, BUSY]
    bench.take(nominated=[("p", "n"), ("q", "n")])
    await settle()
    bench.preemptor.halt()
    assert (bench.known("p").nominated, bench.known("q").nominated) == ("", "m")
    assert bench.idle
    reported(bench, "n", 1100)  # by the new leader
    assert bench.known("p").nominated == "n"


async def test_a_failure_after_leadership_ends_it():
    bench = Bench()
    bench.api.hold, bench.api.faults = asyncio.Event(), [BUSY]
    bench.take(nominated=[("p", "n")])
    await settle()
    bench.preemptor.halt()
    bench.api.hold.set()
    await settle()
    assert written(bench) == ["n"]
    assert bench.known("p").nominated == ""
    assert bench.idle
