"""Delayed preemption: evictions that are announced, jobs that keep running after all, and what survives
the end of the leader."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import datetime

import pytest

from tests.e2e.api import PATIENCE, Json
from tests.e2e.backends import PODS, Backend
from tests.e2e.objects import condition, node
from tests.e2e.preemption import HIGH, LONG, LOW, MID, define_priorities, preempted, ranked, until_nominated
from tests.e2e.processes import Scheduler
from tests.e2e.test_queues import OWN, own
from tests.e2e.test_restarts import LEASE

__all__ = ["own"]

Schedule = Callable[..., Scheduler]
STATE, TIME, BY = "poseidon.io/preemption-state", "poseidon.io/eviction-time", "poseidon.io/preempted-by"
SHORT, HOUR = "3s", "1h"


@pytest.fixture(autouse=True)
def _priorities(backend: Backend) -> None:
    define_priorities(backend)


def noticed(
    name: str, priority: str, notice: str = HOUR, *, grace: int = 0, owner: Json | None = None, **spec: str
) -> Json:
    """A pod whose eviction is announced first. `owner`: the object of its job."""
    annotations = {"poseidon.io/preemption-notice": notice, "cluster.poseidon.io/stop-seconds": str(grace)}
    about: Json = {"annotations": annotations}
    if owner is not None:
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "controller": True}
        about["ownerReferences"] = [reference | {"uid": owner["metadata"]["uid"]}]
    return ranked(name, priority, grace=grace, metadata=about, restartPolicy="Never", **spec)


def full(backend: Backend, scheduler: Scheduler, *pods: Json, cpu: str = "2") -> None:
    """One node, `a`, with these pods on it."""
    backend.create(node("a", cpu=cpu))
    backend.until_seen_by(scheduler)
    backend.create(*pods)
    backend.until_bound(len(pods))
    backend.until_seen_by(scheduler)


def states(pods: list[Json]) -> dict[str, str]:
    """Name -> state, of pods that are not being deleted."""
    there = [each["metadata"] for each in pods if not each["metadata"].get("deletionTimestamp")]
    return {each["name"]: each["annotations"][STATE] for each in there if STATE in each.get("annotations", {})}


def until_states(backend: Backend, **expected: str) -> list[Json]:
    return backend.pods.until(lambda pods: pods if states(pods) == expected else [], f"states {expected}")


def now(backend: Backend) -> list[Json]:
    return [*backend.api("GET", PODS)["items"]]


def named(pods: list[Json], name: str) -> Json:
    return next(each for each in pods if each["metadata"]["name"] == name)


def announced(backend: Backend, scheduler: Scheduler) -> None:
    """`victim` on the full node `a` has the announcement that it will be evicted for `preemptor`, in an hour."""
    full(backend, scheduler, noticed("victim", LOW, cpu="2"))
    backend.create(ranked("preemptor", HIGH, cpu="2"))
    until_states(backend, victim="WillEvicted", preemptor="Privileged")


def test_a_victim_is_told_and_leaves_at_its_time_and_its_preemptor_takes_its_place(
    backend: Backend, scheduler: Scheduler
) -> None:
    full(backend, scheduler, noticed("victim", LOW, SHORT, cpu="2"))
    before = time.time()
    backend.create(ranked("preemptor", HIGH, cpu="2"))
    pods = until_states(backend, victim="WillEvicted", preemptor="Privileged")
    victim = named(pods, "victim")
    at = datetime.fromisoformat(victim["metadata"]["annotations"][TIME]).timestamp()
    assert before + 3 <= at <= time.time() + 4
    assert victim["metadata"]["annotations"][BY] == "default/preemptor"
    found = condition(victim, "poseidon.io/WillEvicted")
    assert (found["status"], found["reason"]) == ("True", "PreemptionAnnounced")
    assert preempted(backend) == []
    backend.until_event("EvictionAnnounced", "victim", "so that pod default/preemptor fits")
    until_nominated(backend, "preemptor", "a")
    assert condition(named(pods, "preemptor"), "poseidon.io/Privileged")["status"] == "True"
    assert backend.until_bound(1, "preemptor") == {"preemptor": "a"}
    assert time.time() >= at
    assert preempted(backend) == ["victim"]
    backend.until_event("Preempted", "victim")
    pods = until_states(backend)
    assert condition(named(pods, "preemptor"), "poseidon.io/Privileged")["status"] == "False"


def test_a_victim_that_ends_by_itself_lets_its_preemptor_proceed_at_once(
    backend: Backend, scheduler: Scheduler
) -> None:
    announced(backend, scheduler)
    backend.finish_pod("victim", "Succeeded")
    assert backend.until_bound(1, "preemptor") == {"preemptor": "a"}
    assert preempted(backend) == []


def test_a_victim_keeps_running_if_its_preemptor_is_gone(backend: Backend, scheduler: Scheduler) -> None:
    announced(backend, scheduler)
    backend.delete(PODS, "preemptor")
    pods = until_states(backend)
    assert condition(named(pods, "victim"), "poseidon.io/WillEvicted")["status"] == "False"
    backend.until_event("EvictionCancelled", "victim")
    assert preempted(backend) == []
    backend.create(ranked("next", MID, cpu="2"))  # it can be chosen again
    until_states(backend, victim="WillEvicted", next="Privileged")


def test_a_victim_keeps_running_if_another_node_takes_its_preemptor(backend: Backend, scheduler: Scheduler) -> None:
    announced(backend, scheduler)
    backend.create(node("b", cpu="2"))
    assert backend.until_bound(1, "preemptor") == {"preemptor": "b"}
    until_states(backend)
    assert backend.bound("victim") == {"victim": "a"}
    assert preempted(backend) == []


def test_a_victim_keeps_running_if_room_comes_free_on_its_node(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, scheduler, noticed("victim", LOW, cpu="2"), ranked("other", HIGH, cpu="2"), cpu="4")
    backend.create(ranked("preemptor", MID, cpu="2"))
    until_states(backend, victim="WillEvicted", preemptor="Privileged")
    backend.finish_pod("other", "Succeeded")
    assert backend.until_bound(1, "preemptor") == {"preemptor": "a"}
    until_states(backend)
    assert backend.bound("victim") == {"victim": "a"}
    assert preempted(backend) == []


def test_a_victim_keeps_running_if_it_may_not_be_preempted_any_more(backend: Backend, scheduler: Scheduler) -> None:
    announced(backend, scheduler)
    backend.patch(f"{PODS}/victim", {"metadata": {"annotations": {"poseidon.io/preempt": "false"}}})
    until_states(backend)
    assert preempted(backend) == []
    assert backend.until_unschedulable("preemptor")


def test_neither_side_is_a_victim_of_others(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, scheduler, noticed("victim", LOW, cpu="2"), ranked("immediate", LOW, cpu="1"), cpu="3")
    backend.create(ranked("preemptor", MID, cpu="2"))
    until_states(backend, victim="WillEvicted", preemptor="Privileged")
    backend.create(ranked("urgent", HIGH, cpu="2"))
    assert backend.until_unschedulable("urgent")
    backend.create(ranked("small", HIGH, cpu="1"))
    backend.until_bound(1, "small")
    assert preempted(backend) == ["immediate"]
    assert states(now(backend)) == {"victim": "WillEvicted", "preemptor": "Privileged"}


def test_a_job_is_told_and_evicted_as_a_whole_and_as_few_jobs_as_possible(
    backend: Backend, scheduler: Scheduler
) -> None:
    jobs = backend.create(
        *({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("one", "two"))
    )
    backend.create(node("a", cpu="2"), node("b", cpu="2"))
    backend.until_seen_by(scheduler)
    backend.create(
        *(noticed(f"{job['metadata']['name']}-{i}", LOW, SHORT, owner=job, cpu="1") for job in jobs for i in "xy")
    )
    backend.until_bound(4)
    backend.until_seen_by(scheduler)
    backend.create(ranked("preemptor", HIGH, cpu="1"))
    pods = backend.pods.until(lambda pods: pods if len(states(pods)) == 3 else [], "three states")
    victims = {name for name, state in states(pods).items() if state == "WillEvicted"}
    assert len({name[:3] for name in victims}) == 1
    assert len({named(pods, name)["metadata"]["annotations"][TIME] for name in victims}) == 1
    backend.until_bound(1, "preemptor")
    assert set(preempted(backend)) == victims
    assert len(backend.bound()) == 3


@pytest.mark.parametrize(("allowed", "expected"), [("true", True), ("false", False), ("", True)])
def test_pods_say_whether_they_may_be_preempted(
    backend: Backend, scheduler: Scheduler, allowed: str, expected: bool
) -> None:
    about: Json = {"annotations": {"poseidon.io/preempt": allowed}} if allowed else {}
    full(backend, scheduler, ranked("victim", LOW, metadata=about, cpu="2"))
    backend.create(ranked("preemptor", HIGH, cpu="2"))
    if expected:
        backend.until_bound(1, "preemptor")
    else:
        assert backend.until_unschedulable("preemptor")
    assert preempted(backend) == (["victim"] if expected else [])


@pytest.mark.flags("--protected-priority-classes", f"{LOW},other")
def test_a_priority_class_may_protect_its_pods(backend: Backend, scheduler: Scheduler) -> None:
    about: Json = {"annotations": {"poseidon.io/preempt": "true"}}
    full(backend, scheduler, ranked("safe", LOW, cpu="1"), ranked("willing", LOW, metadata=about, cpu="1"))
    backend.create(ranked("preemptor", HIGH, cpu="1"))
    backend.until_bound(1, "preemptor")
    assert preempted(backend) == ["willing"]


@pytest.mark.flags("--preemption-notice", "3600")
def test_the_scheduler_has_a_notice_for_all(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, scheduler, ranked("victim", LOW, cpu="2", restartPolicy="Never"))
    backend.create(ranked("preemptor", HIGH, cpu="2"))
    until_states(backend, victim="WillEvicted", preemptor="Privileged")
    assert preempted(backend) == []


@pytest.mark.usefixtures("own")
def test_a_queue_gives_a_notice_and_protects_its_pods(backend: Backend, schedule: Schedule) -> None:
    def queue(name: str, **spec: object) -> Json:
        return {"apiVersion": "poseidon.io/v1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}

    backend.create(queue("top", preemptionNotice=HOUR), queue("team", parent="top"), queue("safe", preemptible=False))
    scheduler = schedule("--queues", "poseidon")
    labelled = {"labels": {OWN: "team"}}
    full(backend, scheduler, ranked("victim", LOW, metadata=labelled, cpu="2"))
    backend.create(ranked("preemptor", HIGH, metadata=labelled, cpu="2"))
    until_states(backend, victim="WillEvicted", preemptor="Privileged")
    backend.patch("/apis/poseidon.io/v1/queues/team", {"spec": {"preemptible": False}})
    until_states(backend)
    backend.delete(PODS, "preemptor", "victim")
    backend.delete("/apis/poseidon.io/v1/queues", "top", "team", "safe")
    assert preempted(backend) == []


# -- failover --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", ["leader", "flow service"])
def test_the_next_leader_evicts_at_the_announced_time(backend: Backend, schedule: Schedule, ends: str) -> None:
    leader = schedule(*LEASE)
    leader.until_says("leading: ")
    full(backend, leader, noticed("victim", LOW, "12s", grace=LONG, cpu="2"))
    backend.create(ranked("preemptor", HIGH, cpu="2"))
    pods = until_states(backend, victim="WillEvicted", preemptor="Privileged")
    at = named(pods, "victim")["metadata"]["annotations"][TIME]
    fail(leader, schedule, ends)
    assert preempted(backend) == []
    going = backend.pods.until(_terminating, "the victim is deleted", PATIENCE + 12)
    assert named(going, "victim")["metadata"]["annotations"][TIME] == at
    assert time.time() >= datetime.fromisoformat(at).timestamp()
    backend.delete(PODS, "victim")
    assert backend.until_bound(1, "preemptor") == {"preemptor": "a"}


@pytest.mark.parametrize("ends", ["leader", "flow service"])
def test_the_next_leader_cancels_what_is_not_needed_any_more(backend: Backend, schedule: Schedule, ends: str) -> None:
    leader = schedule(*LEASE)
    leader.until_says("leading: ")
    announced(backend, leader)
    fail(leader, schedule, ends)
    assert states(now(backend)) == {"victim": "WillEvicted", "preemptor": "Privileged"}
    backend.delete(PODS, "preemptor")
    until_states(backend)
    assert preempted(backend) == []


def test_a_preemptor_that_is_deleted_while_no_replica_leads(backend: Backend, schedule: Schedule) -> None:
    leader = schedule(*LEASE)
    leader.until_says("leading: ")
    announced(backend, leader)
    leader.expected = {-signal.SIGKILL}
    leader.end(signal.SIGKILL)
    backend.delete(PODS, "preemptor")
    schedule(*LEASE).until_says("leading: ")
    until_states(backend)
    assert preempted(backend) == []


def fail(leader: Scheduler, schedule: Schedule, ends: str) -> None:
    """Kills the leader, or its flow service, and waits until another one is in its place."""
    if ends == "leader":
        leader.expected = {-signal.SIGKILL}
        standby = schedule(*LEASE)
        leader.end(signal.SIGKILL)
        standby.until_says("leading: ")
    else:
        before = leader.firmament_pid
        os.kill(before, signal.SIGKILL)
        end = time.monotonic() + PATIENCE
        while leader.firmament_pid == before or leader.get("/readyz")[0] != 200:
            assert time.monotonic() < end, "no flow service"
            time.sleep(0.05)


def _terminating(pods: list[Json]) -> list[Json]:
    return pods if any(each["metadata"].get("deletionTimestamp") for each in pods) else []
