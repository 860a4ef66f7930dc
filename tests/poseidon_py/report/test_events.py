"""Events and conditions: complete after a burst, without delaying binds."""

import asyncio
from typing import Any

import pytest

from poseidon_py.kube.client import ApiError, BusyError, ConflictError, NotFoundError, UnreachableError, api_error
from poseidon_py.kube.retry_after import MAX_SECONDS
from poseidon_py.report.events import Reporter
from poseidon_py.report.eviction_events import EvictionEvents
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import pod
from tests.poseidon_py.settling import settle, turns_until


class Api:
    def __init__(self) -> None:
        self.created: list[Any] = []
        self.merged: list[Any] = []
        self.patched: list[Any] = []
        self.faults: list[Exception] = []
        self.merge_faults: list[Exception] = []
        self.patch_faults: list[Exception] = []

    def _maybe(self, faults):
        if faults:
            raise faults.pop(0)

    async def create(self, path, body, timeout=30.0):
        await asyncio.sleep(0)
        self._maybe(self.faults)
        self.created.append((path, body))
        return b""

    async def merge(self, path, patch):
        self._maybe(self.merge_faults)
        self.merged.append((path, patch))
        return b""

    async def patch_pod_status(self, namespace, name, patch):
        self._maybe(self.patch_faults)
        self.patched.append((name, patch))


class Timer:
    def __init__(self, at, call):
        self.at, self.call, self.cancelled = at, call, False

    def cancel(self):
        self.cancelled = True


class Bench:
    def __init__(self, rate=0.0, concurrency=2) -> None:
        self.api, self.store = Api(), Store(["poseidon"])
        self.now, self.busy, self.saturated = 50.0, False, False
        self.reporter = Reporter(
            self.api,
            self.store,
            self,
            rate=rate,
            concurrency=concurrency,
            sleep=self.sleep,
            call_later=self.call_later,
            monotonic=lambda: self.now,
            now=lambda: 1_767_225_600.0 + self.now,
        )
        self.store.subscribe(self.reporter)
        self.timers: list[Timer] = []

    def call_later(self, seconds, call):
        self.timers.append(Timer(self.now + seconds, call))
        return self.timers[-1]

    async def later(self):
        """Time passes until no timer is left."""
        await settle()
        while self.timers:
            timer = min(self.timers, key=lambda timer: timer.at)
            self.timers.remove(timer)
            if not timer.cancelled:
                self.now = max(self.now, timer.at)
                timer.call()
            await settle()

    async def sleep(self, seconds):
        self.now += seconds
        await asyncio.sleep(0)

    async def __aenter__(self):
        self.reporter.start()
        return self

    async def __aexit__(self, *_):
        await self.reporter.stop()

    def pod(self, name="a", **fields):
        self.store.observe_pod(pod(name, **fields))
        return self.store.pods[f"uid-{name}"]

    @property
    def messages(self):
        return [body["message"] for _, body in self.api.created]


async def test_a_scheduled_event_as_kubectl_describe_shows_it():
    async with Bench() as bench:
        bench.reporter.scheduled(bench.pod(namespace="team"), "n1")
        await settle()
        [(path, event)] = bench.api.created
        assert path == "/api/v1/namespaces/team/events"
        assert (event["reason"], event["type"]) == ("Scheduled", "Normal")
        assert event["message"] == "Successfully assigned team/a to n1"
        about = event["involvedObject"]
        assert (about["kind"], about["namespace"], about["name"], about["uid"]) == ("Pod", "team", "a", "uid-a")
        assert event["source"] == {"component": "poseidon"}
        assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:00:50Z"
        assert event["count"] == 1
        assert bench.api.patched == []


async def test_the_event_of_a_victim_names_its_preemptor():
    async with Bench() as bench:
        known, preemptor = bench.pod("v", node="n1"), bench.pod("p", namespace="team")
        bench.reporter.scheduled(known, "n1")
        EvictionEvents(bench.reporter).preempted(known, preemptor, "n1")
        bench.store.remove_pod("uid-v")  # it may be gone before it is reported
        await settle()
        [(path, event)] = [each for each in bench.api.created if each[1]["reason"] == "Preempted"]
        assert path == "/api/v1/namespaces/default/events"
        assert (event["type"], event["action"]) == ("Normal", "Preempting")
        assert event["message"] == "Preempted by pod uid-p on node n1"
        assert event["involvedObject"]["name"] == "v"
        about = {"apiVersion": "v1", "kind": "Pod", "namespace": "team", "name": "p", "uid": "uid-p"}
        assert event["related"] == about
        assert len(bench.api.created) == 2


async def test_the_event_of_a_pod_that_migrates_names_both_nodes():
    async with Bench() as bench:
        known = bench.pod("v", node="n1")
        bench.reporter.scheduled(known, "n1")
        EvictionEvents(bench.reporter).migrated(known, "n1", "n2", "")
        bench.store.remove_pod("uid-v")
        await settle()
        [event] = [event for _, event in bench.api.created if event["reason"] == "Migrated"]
        assert (event["type"], event["action"]) == ("Normal", "Migrating")
        assert event["message"] == "poseidon: evicted from node n1, because node n2 costs less"
        assert event["involvedObject"]["uid"] == "uid-v"
        assert len(bench.api.created) == 2


@pytest.mark.parametrize("needed_by", ["", "default/w"])
async def test_the_event_of_a_pod_that_a_plan_evicts_has_the_reason_of_the_plan(needed_by):
    async with Bench() as bench:
        known = bench.pod("v", node="n1")
        known.planned = "the plan empties n1"
        EvictionEvents(bench.reporter).migrated(known, "n1", "n2", needed_by)
        await settle()
        assert bench.messages == ["poseidon: evicted from node n1 for node n2: the plan empties n1"]


async def test_an_unschedulable_pod_gets_an_event_and_the_condition_on_the_version_that_is_known():
    async with Bench() as bench:
        bench.reporter.unschedulable(bench.pod(version=77), "0/1 nodes are available: 1 Insufficient cpu.")
        await settle()
        [(_, event)] = bench.api.created
        assert (event["reason"], event["type"]) == ("FailedScheduling", "Warning")
        [(name, patch)] = bench.api.patched
        assert (name, patch["metadata"]) == ("a", {"uid": "uid-a", "resourceVersion": "77"})
        [condition] = patch["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "PodScheduled",
            "False",
            "Unschedulable",
        )
        assert condition["message"] == event["message"]
        assert condition["lastTransitionTime"] == "2026-01-01T00:00:50Z"


async def test_a_repeat_counts_up_the_event_and_leaves_the_condition():
    async with Bench() as bench:
        known = bench.pod()
        for message in ("x", "y", "x", "x"):
            bench.reporter.unschedulable(known, message)
            await settle()
        assert bench.messages == ["x", "y"]
        name = bench.api.created[0][1]["metadata"]["name"]
        assert [(path.rsplit("/", 1)[1], patch["count"]) for path, patch in bench.api.merged] == [(name, 2), (name, 3)]
        assert [patch["status"]["conditions"][0]["message"] for _, patch in bench.api.patched] == ["x", "y", "x"]
        # the transition was to False; a new reason is none
        assert ["lastTransitionTime" in p["status"]["conditions"][0] for _, p in bench.api.patched] == [
            True,
            False,
            False,
        ]


async def test_an_event_that_has_expired_is_created_again():
    async with Bench() as bench:
        known = bench.pod()
        bench.api.merge_faults = [NotFoundError(404, "", "")]
        for _ in range(2):
            bench.reporter.unschedulable(known, "x")
            await settle()
        assert bench.messages == ["x", "x"]


async def test_reports_of_a_pod_coalesce_to_the_newest():
    async with Bench() as bench:
        known = bench.pod()
        bench.reporter.unschedulable(known, "old")
        bench.reporter.unschedulable(known, "new")
        bench.reporter.scheduled(known, "n")
        await settle()
        assert bench.messages == ["Successfully assigned default/a to n"]


async def test_why_a_pod_waits_is_not_reported_once_it_is_bound():
    async with Bench() as bench:
        known = bench.pod()
        bench.reporter.unschedulable(known, "x")
        bench.pod(node="n")
        await settle()
        assert (bench.messages, bench.api.patched) == ([], [])
        bench.reporter.unschedulable(known, "late")  # from a round that ran before
        await settle()
        assert (bench.messages, bench.api.patched) == ([], [])


async def test_why_a_pod_waits_is_not_reported_once_it_is_gone():
    async with Bench() as bench:
        bench.reporter.unschedulable(bench.pod(), "x")
        bench.store.remove_pod("uid-a")
        await settle()
        assert bench.messages == []


async def test_the_condition_is_not_set_on_a_pod_that_is_being_bound():
    async with Bench() as bench:
        known = bench.pod()
        assert bench.store.assume(known, "n")
        bench.reporter.unschedulable(known, "x")
        await settle()
        assert bench.api.patched == []


async def test_a_condition_that_conflicts_is_set_on_the_next_version():
    async with Bench() as bench:
        known = bench.pod(version=1)
        bench.api.patch_faults = [ConflictError(409, "Conflict", "modified")]
        bench.reporter.unschedulable(known, "x")
        await asyncio.sleep(0)
        known.observed.version = "2"
        await bench.later()
        assert [patch["metadata"]["resourceVersion"] for _, patch in bench.api.patched] == ["2"]


async def test_an_event_has_the_time_at_which_it_happened():
    async with Bench() as bench:
        bench.busy = True
        bench.reporter.scheduled(bench.pod(), "n1")
        await turns_until(lambda: bench.now > 51)
        assert bench.messages == []
        bench.busy = False
        await settle()
        [(_, event)] = bench.api.created
        assert event["firstTimestamp"] == "2026-01-01T00:00:50Z"


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


async def test_an_invalid_pod_gets_an_event_even_if_it_could_never_be_decoded():
    async with Bench() as bench:
        bench.reporter.invalid("default", "bad", "uid-bad", "spec.priority: not a number")
        await settle()
        assert bench.messages == ["cannot use spec.priority: not a number"]
        assert bench.api.patched == []


async def test_an_additional_event_is_sent_even_if_the_pod_is_bound():
    async with Bench() as bench:
        known = bench.pod()
        bench.reporter.remark(known, "InvalidAnnotation", "metadata.annotations[x]: is odd; write y")
        bench.reporter.scheduled(known, "n")
        bench.pod(node="n")
        await bench.reporter.flush(1.0)
        message = {(event["reason"], event["type"], event["message"]) for _, event in bench.api.created}
        assert message == {
            ("InvalidAnnotation", "Warning", "metadata.annotations[x]: is odd; write y"),
            ("Scheduled", "Normal", "Successfully assigned default/a to n"),
        }


async def test_the_condition_is_set_even_if_the_event_fails():
    async with Bench() as bench:
        bench.api.faults = [ApiError(422, "Invalid", "a policy denies events")]
        bench.reporter.unschedulable(bench.pod(), "0/1 nodes are available: 1 Insufficient cpu.")
        await settle()
        assert (len(bench.api.created), len(bench.api.patched)) == (0, 1)
