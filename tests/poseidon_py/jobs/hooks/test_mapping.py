"""What hooks are given of transitions."""

import msgspec
import pytest

from poseidon_py.hooks.transition import delivery_id
from poseidon_py.jobs.cache import read_job
from poseidon_py.jobs.hooks.mapping import deliveries
from poseidon_py.jobs.objects import JobObject, JobPod
from poseidon_py.jobs.rules.machines import ReplicaState
from poseidon_py.jobs.rules.noted import Noted
from poseidon_py.jobs.rules.replicas import replica_of
from poseidon_py.jobs.transitions import Transition, transition_of
from tests.poseidon_py.jobs.builders import task

T0 = 1767225600.0  # 2026-01-01T00:00:00Z


def decoded(body, kind):
    return msgspec.json.decode(msgspec.json.encode(body), type=kind)


def job(annotations=None, labels=None):
    metadata = {
        "name": "train", "namespace": "team-a", "uid": "job-uid", "resourceVersion": "1",
        "annotations": annotations or {}, "labels": labels or {},
    }  # fmt: skip
    return read_job(decoded({"metadata": metadata, "spec": {"tasks": [task()], "queue": "q"}}, JobObject))


def pod(phase="Running", state=None, **metadata):
    texts = {"task-spec": "worker", "task-index": "0", "job-version": "0", "job-name": "train", "queue-name": "q"}
    requests = [{"cpu": "3500m", "memory": "1Gi", "nvidia.com/gpu": "2"}, {"cpu": "500m"}]
    return replica_of(
        decoded(
            {
                "metadata": {
                    "name": "train-worker-0", "namespace": "team-a", "uid": "pod-uid", "resourceVersion": "9",
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                    "annotations": {f"volcano.sh/{key}": text for key, text in texts.items()}
                    | metadata.pop("annotations", {}),
                    **metadata,
                },
                "spec": {
                    "nodeName": "n",
                    "containers": [{"name": "ab"[at], "resources": {"requests": r}} for at, r in enumerate(requests)],
                },
                "status": {"phase": phase, "containerStatuses": [{"state": state or {}}]},
            },
            JobPod,
        )
    )  # fmt: skip


RUNS = {"running": {"startedAt": "2026-01-01T00:00:10Z"}}
ENDED = {"terminated": {"startedAt": "2026-01-01T00:00:10Z", "finishedAt": "2026-01-01T00:01:10Z", "exitCode": 3}}


def observed(old, replica, now=T0 + 500):
    return Transition(
        "replica", old, replica.state, "team-a", "train", "job-uid", now, replica.task, replica.name, replica.uid,
        "ExitCode 3" if replica.exit_code else "", observed=replica,
    )  # fmt: skip


def test_a_replica_has_what_billing_needs():
    (found,) = deliveries(observed("Running", pod("Failed", ENDED)), job({"poseidon.io/user": "anna"}))
    assert (found.machine, found.id, found.name, found.user_id) == ("replica", "pod-uid", "train-worker-0", "anna")
    assert (found.job, found.before, found.after, found.at) == ("team-a/train", "Running", "Failed", T0 + 70)
    assert found.details == {
        # 3500m + 500m
        "requests.cpu": "4", "requests.memory": str(2**30), "requests.nvidia.com/gpu": "2",
        "task": "worker", "pod": "train-worker-0", "node": "n", "queue": "q", "reason": "ExitCode 3",
        "since": "2026-01-01T00:00:10.000000Z",
    }  # fmt: skip


def test_another_process_reports_the_same_deliveries():
    """One has seen everything, the other one the end alone, later."""
    first = [
        *deliveries(observed(ReplicaState.ABSENT, pod("Pending"), T0 + 1), job()),
        *deliveries(observed("Pending", pod("Running", RUNS), T0 + 11), job()),
        *deliveries(observed("Running", pod("Failed", ENDED), T0 + 71), job()),
    ]
    second = list(deliveries(observed(ReplicaState.ABSENT, pod("Failed", ENDED)), job()))
    assert [delivery_id(each) for each in first] == [delivery_id(each) for each in second]
    assert [each.at for each in first] == [each.at for each in second] == [T0, T0 + 10, T0 + 70]
    assert len({delivery_id(each) for each in first}) == 3


def test_two_losses_of_a_node_are_two_occasions():
    def lost(at):
        found = pod("Unknown", RUNS)
        return delivery_id(next(deliveries(observed("Running", _changed(found, at)), job())))

    assert lost(1.0) != lost(2.0)
    assert lost(1.0) == lost(1.0)


def _changed(replica, at):
    from dataclasses import replace

    return replace(replica, readiness_changed=at)


@pytest.mark.parametrize(
    ("annotations", "labels", "user"),
    [
        pytest.param({"poseidon.io/user": "anna@example.com"}, {}, "anna@example.com", id="annotation"),
        pytest.param({}, {"poseidon.io/user": "bob"}, "bob", id="label"),
        pytest.param(
            {"poseidon.io/user": "anna"}, {"poseidon.io/user": "bob"}, "anna", id="the annotation comes first"
        ),
        pytest.param({}, {}, "team-a", id="namespace"),
    ],
)
def test_the_user(annotations, labels, user):
    found = job(annotations, labels)
    noted = Noted("job", "", "Pending", "Running", T0 + 5, T0, "", "", 4)
    (of_job,) = deliveries(transition_of(found.owner, noted), found)
    (of_replica,) = deliveries(observed("Pending", pod("Running", RUNS)), found)
    assert (of_job.user_id, of_replica.user_id) == (user, user)


def test_a_replica_of_a_job_that_is_gone_has_the_user_of_its_pod():
    left = pod("Running", RUNS, annotations={"poseidon.io/user": "anna"})
    assert {each.user_id for each in deliveries(observed("Running", left), None)} == set()
    gone = Transition("replica", "Running", "Absent", "team-a", "train", "job-uid", T0 + 90, observed=left)
    found = list(deliveries(gone, None))
    assert [(each.before, each.after, each.user_id) for each in found] == [
        ("Running", "Terminating", "anna"),
        ("Terminating", "Absent", "anna"),
    ]
    assert [each.at for each in found] == [T0 + 90, T0 + 90]


def test_jobs_and_tasks():
    found = job()
    noted = [
        Noted("job", "", "Running", "Restarting", T0 + 5, T0, "PodFailed", "pod train-w-0", 7),
        Noted("task", "w", "Running", "Restarting", T0 + 5, 0.0, "", "", 8),
    ]
    of_job, of_task = (next(deliveries(transition_of(found.owner, each), found)) for each in noted)
    assert (of_job.id, of_job.name, of_job.job, of_job.at) == ("job-uid", "train", "team-a/train", T0 + 5)
    assert of_job.details == {
        "queue": "q", "reason": "PodFailed", "message": "pod train-w-0", "since": "2026-01-01T00:00:00.000000Z",
    }  # fmt: skip
    assert (of_task.machine, of_task.id, of_task.name) == ("task", "job-uid/w", "train-w")
    assert of_task.details == {"task": "w", "queue": "q"}
    later = msgspec.structs.replace(noted[0], number=9, time=T0 + 5)
    again = msgspec.structs.replace(noted[0], time=T0 + 99)
    ids = [delivery_id(next(deliveries(transition_of(found.owner, each), found))) for each in (noted[0], again, later)]
    assert ids[0] == ids[1] != ids[2]
