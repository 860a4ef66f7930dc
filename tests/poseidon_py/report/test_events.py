"""Events and conditions: what they say, and which are sent."""

import pytest

from poseidon_py.kube.client import NotFoundError
from poseidon_py.report.eviction_events import EvictionEvents
from tests.poseidon_py.report.reporting import Bench
from tests.poseidon_py.settling import settle, turns_until


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
        assert "observedGeneration" not in condition


async def test_a_condition_names_the_generation_of_the_specification_that_it_is_about():
    """schedule_one.go, since 1.33: CalculatePodConditionObservedGeneration."""
    async with Bench() as bench:
        known = bench.pod()
        known.observed.generation = 3
        bench.reporter.unschedulable(known, "x")
        await settle()
        [(_, patch)] = bench.api.patched
        assert patch["status"]["conditions"][0]["observedGeneration"] == 3


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


async def test_that_a_queue_does_not_exist_is_told_after_a_moment_only():
    """Pods that were created in one apply with their queues were told so, and placed a moment later."""
    async with Bench() as bench:
        placed, waits = bench.pod("placed"), bench.pod("waits")
        for known in (placed, waits):
            bench.reporter.waits_for_queue(known, "queue q does not exist")
        await settle()
        assert bench.api.created == bench.api.patched == []
        bench.pod("placed", node="n")
        bench.reporter.settled(placed)
        bench.reporter.waits_for_quota(waits, "waits for quota of queue q: lacks 1 cpu")
        await settle()
        assert bench.messages == ["waits for quota of queue q: lacks 1 cpu"]
        bench.reporter.waits_for_queue(waits, "queue q does not exist")
        await settle()
        assert len(bench.messages) == 1
        await bench.later()
        assert bench.messages[1:] == ["queue q does not exist"]
        assert bench.now >= 52.0
