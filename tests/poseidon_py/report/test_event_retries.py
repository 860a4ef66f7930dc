"""Events and conditions that cannot be sent at once: all are sent in the end, without delaying binds."""

import asyncio

import pytest

from poseidon_py.kube.client import ApiError, BusyError, ConflictError, UnreachableError, api_error
from poseidon_py.kube.requests.retry_after import MAX_SECONDS
from tests.poseidon_py.report.reporting import Bench
from tests.poseidon_py.settling import settle


async def test_a_condition_that_conflicts_is_set_on_the_next_version():
    async with Bench() as bench:
        known = bench.pod(version=1)
        bench.api.patch_faults = [ConflictError(409, "Conflict", "modified")]
        bench.reporter.unschedulable(known, "x")
        await asyncio.sleep(0)
        known.observed.version = "2"
        await bench.later()
        assert [patch["metadata"]["resourceVersion"] for _, patch in bench.api.patched] == ["2"]


@pytest.mark.parametrize("seen", [False, True], ids=["not-seen-yet", "seen"])
async def test_an_older_condition_does_not_replace_a_newer_one_that_was_sent_meanwhile(monkeypatch, seen):
    """The first request is slow; the second, of another worker, overtakes it, so that the first conflicts."""
    async with Bench() as bench:
        known, slow = bench.pod(version=1), asyncio.Event()
        patch = bench.api.patch_pod_status

        async def overtaken(namespace, name, body):
            if body["status"]["conditions"][0]["message"] == "old" and not slow.is_set():
                await slow.wait()
                raise ConflictError(409, "Conflict", "modified")
            await patch(namespace, name, body)

        monkeypatch.setattr(bench.api, "patch_pod_status", overtaken)
        bench.reporter.unschedulable(known, "old")
        await settle()
        bench.reporter.unschedulable(known, "new")
        await settle()
        if seen:
            known.observed.version = "2"
        slow.set()
        await bench.later()
        assert [body["status"]["conditions"][0]["message"] for _, body in bench.api.patched] == ["new"]
        assert bench.messages == ["new"]


async def test_flush_does_not_wait_for_obsolete_reports():
    async with Bench() as bench:
        bench.busy = True
        bench.reporter._pending._next = bench.now + 1000  # so that nothing is sent
        bench.reporter.unschedulable(bench.pod(), "0/1 nodes are available")
        bench.pod(node="n1")
        assert await asyncio.wait_for(bench.reporter.flush(5), 1)
        assert bench.messages == []


async def test_flush_sends_all_even_beside_binds():
    async with Bench(rate=1.0) as bench:
        bench.busy = True
        bench.reporter._pending._next = bench.now
        for number in range(50):
            bench.reporter.scheduled(bench.pod(f"p{number}"), "n")
        assert await bench.reporter.flush(5)
        assert len(bench.messages) == 50
        assert bench.now == 50.0


async def test_flush_has_an_end(caplog):
    async with Bench() as bench:
        never = asyncio.Event()
        bench.api.create = lambda *_, **__: never.wait()
        bench.reporter.scheduled(bench.pod(), "n")
        bench.reporter.scheduled(bench.pod("b"), "n")
        bench.reporter.scheduled(bench.pod("c"), "n")
        assert not await bench.reporter.flush(0.01)
        assert "not sent" in caplog.text


@pytest.mark.parametrize("error", [BusyError(429, "", "", 3.0), BusyError(500, "", ""), UnreachableError("down")])
async def test_a_report_that_could_not_be_sent_is_sent_later(error):
    async with Bench() as bench:
        bench.api.faults = [error, error]
        bench.reporter.scheduled(bench.pod(), "n")
        await bench.later()
        assert len(bench.messages) == 1
        assert bench.now >= 50 + (6 if getattr(error, "retry_after", None) else 1)


@pytest.mark.parametrize("message", [b"3600", b"inf", b"nan", b"-1"])
async def test_an_unlimited_retry_after_delays_no_other_report(message):
    async with Bench(concurrency=2) as bench:
        bench.api.faults = [api_error(429, b"", message) for _ in range(2)]
        for name in ("a", "b", "c"):
            bench.reporter.scheduled(bench.pod(name), "n")
        await settle()
        assert bench.messages == ["Successfully assigned default/c to n"]
        assert bench.now < 51  # nothing has waited
        await bench.later()
        assert len(bench.messages) == 3
        assert bench.now <= 50 + MAX_SECONDS


async def test_a_newer_report_replaces_one_that_waits_for_its_retry():
    async with Bench() as bench:
        known = bench.pod()
        bench.api.faults = [BusyError(429, "", "", 30.0)]
        bench.reporter.unschedulable(known, "old")
        await settle()
        bench.reporter.unschedulable(known, "new")
        await bench.later()
        assert bench.messages == ["new"]
        assert bench.now < 80  # and the news is not held up either


async def test_flush_waits_for_what_is_to_be_repeated_but_not_once_the_pod_is_bound():
    async with Bench() as bench:
        bench.api.faults = [BusyError(429, "", "", 30.0)]
        bench.reporter.unschedulable(bench.pod(), "x")
        await settle()
        assert not await bench.reporter.flush(0.0)
        bench.pod(node="n1")
        assert await bench.reporter.flush(5.0)
        assert bench.messages == []


async def test_a_condition_that_conflicts_waits_for_the_watch_and_delays_no_other():
    async with Bench(concurrency=1) as bench:
        known = bench.pod(version=1)
        bench.api.patch_faults = [ConflictError(409, "Conflict", "modified")]
        bench.reporter.unschedulable(known, "x")
        await settle()
        bench.reporter.scheduled(bench.pod("b"), "n")
        await settle()
        assert bench.messages == ["Successfully assigned default/b to n"]
        known.observed.version = "2"
        await bench.later()
        assert [patch["metadata"]["resourceVersion"] for _, patch in bench.api.patched] == ["2"]
        assert bench.messages[1:] == ["x"]


async def test_a_condition_that_always_conflicts_is_left_out_and_the_event_is_sent():
    async with Bench() as bench:
        bench.api.patch_faults = [ConflictError(409, "Conflict", "modified") for _ in range(100)]
        bench.reporter.unschedulable(bench.pod(), "x")
        await bench.later()
        assert (bench.messages, bench.api.patched) == (["x"], [])


async def test_a_report_that_is_refused_is_dropped():
    async with Bench() as bench:
        bench.api.faults = [ApiError(403, "Forbidden", "namespace is terminating")]
        bench.reporter.scheduled(bench.pod(), "n")
        bench.reporter.scheduled(bench.pod("b"), "n")
        await settle()
        assert bench.messages == ["Successfully assigned default/b to n"]
        assert await bench.reporter.flush(1)


async def test_the_condition_is_set_even_if_the_event_fails():
    async with Bench() as bench:
        bench.api.faults = [ApiError(422, "Invalid", "a policy denies events")]
        bench.reporter.unschedulable(bench.pod(), "0/1 nodes are available: 1 Insufficient cpu.")
        await settle()
        assert (len(bench.api.created), len(bench.api.patched)) == (0, 1)
