"""Gangs that nothing declares (`--gangs-from`): the pods of Jobs, and of kinds that users install."""

from __future__ import annotations

import json
import time
from subprocess import CompletedProcess
from uuid import uuid4

import pytest

from poseidon_py.state.gangs.owner_kinds import OWNER_KINDS
from tests.e2e.api import Json
from tests.e2e.backends import Backend, Synthetic
from tests.e2e.conftest import REAL, SYNTHETIC
from tests.e2e.definitions import collection, controlled_by, defined, owner
from tests.e2e.objects import container, node, pod
from tests.e2e.processes import POSEIDON, Scheduler, run

pytestmark = pytest.mark.flags("--gangs-from", "all")
FEW = "1 more member is needed before it can be scheduled"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def pods(name: str, of: Json, *numbers: int, metadata: Json | None = None) -> list[Json]:
    about = {"ownerReferences": [controlled_by(of)], **(metadata or {})}
    return [pod(f"{name}-{at}", metadata=about, cpu="1", restartPolicy="Never") for at in numbers]


def job(name: str, **spec: object) -> Json:
    template = {"spec": {"schedulerName": "poseidon", "containers": [container(cpu="1")], "restartPolicy": "Never"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **spec}}


# each kind is defined in one test only: watches of the synthetic cluster survive the definition of their kind
CUSTOM: dict[str, Json] = {
    "mpijobs": {"mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}}},
    "pytorchjobs": {"pytorchReplicaSpecs": {"Master": {}, "Worker": {"replicas": 2}}},
    "tfjobs": {"tfReplicaSpecs": {"PS": {"replicas": 1}, "Worker": {"replicas": 2}}},
    "rayclusters": {"workerGroupSpecs": [{"groupName": "w", "replicas": 2}]},
    "jobsets": {"replicatedJobs": [{"name": "w", "replicas": 3, "template": {"spec": {"parallelism": 1}}}]},
}


@pytest.mark.parametrize("name", CUSTOM)
def test_the_pods_of_an_operators_kind_are_a_gang(backend: Backend, scheduler: Scheduler, name: str) -> None:
    backend.create(node("a"), node("b"))
    kind = OWNER_KINDS[name]
    with defined(backend, kind):
        (made,) = backend.create(owner(kind, "x", CUSTOM[name]))
        backend.create(*pods("x", made, 0, 1))
        for at in range(2):
            backend.until_event("FailedScheduling", f"x-{at}", FEW)
        assert backend.bound() == {}
        backend.create(*pods("x", made, 2))
        backend.until_bound(3, "x-")


def test_the_gangs_are_listed(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a", cpu="2"))
    light = "pod-group.scheduling.x-k8s.io"
    for name, count in (("small", 2), ("large", 3), ("lacking", 1)):
        labels = {f"{light}/name": name, f"{light}/min-available": str(max(count, 2))}
        backend.create(*(pod(f"{name}-{at}", metadata={"labels": labels}, cpu="1") for at in range(count)))
        if name == "small":
            backend.until_bound(2)
    backend.until_event("FailedScheduling", "large-0", "placed together")
    backend.until_event("FailedScheduling", "lacking-0", FEW)

    def ask(*arguments: str) -> CompletedProcess[str]:
        return run(*POSEIDON, "gangs", "--address", scheduler.address, *arguments)

    found = {gang["name"]: gang for gang in json.loads(ask("--json").stdout)["gangs"]}
    assert {name: gang["state"].split(" ")[0] for name, gang in found.items()} == {
        "default/small": {"synthetic": "Running", "real": "Placed"}[backend.name],
        "default/large": "Pending",
        "default/lacking": "Waiting",
    }
    assert found["default/large"]["why"] == "there was capacity for at most 0 of the 3 members that it lacks"
    (small,) = json.loads(ask("small", "--json").stdout)["gangs"]
    assert [member["node"] for member in small["members"]] == ["a", "a"]
    assert json.loads(ask("--json", "--namespace", "other").stdout) == {"gangs": []}
    wrong = ask("smal")
    assert wrong.returncode == 1
    assert wrong.stderr.strip().endswith("gang smal not found; did you mean default/small?")


def test_each_replica_of_a_leader_worker_set_is_a_gang(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"), node("b"))
    kind = OWNER_KINDS["leaderworkersets"]

    def member(group: int, at: int) -> Json:
        labels = {
            f"leaderworkerset.sigs.k8s.io/{key}": value for key, value in (("name", "x"), ("group-index", str(group)))
        }
        return pod(f"x-{group}-{at}", metadata={"labels": labels}, cpu="1")

    with defined(backend, kind):
        backend.create(member(0, 0), member(1, 0), member(1, 1))
        backend.until_event("FailedScheduling", "x-0-0", 'LeaderWorkerSet "default/x" not found')
        backend.create(owner(kind, "x", {"replicas": 2, "leaderWorkerTemplate": {"size": 2}}))
        backend.until_bound(2, "x-1-")
        backend.until_event("FailedScheduling", "x-0-0", FEW)
        backend.create(member(0, 1))
        backend.until_bound(4)


def test_a_gang_follows_the_size_of_its_owner(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"), node("b"))
    kind = OWNER_KINDS["xgboostjobs"]
    with defined(backend, kind):
        (made,) = backend.create(owner(kind, "x", {"xgbReplicaSpecs": {"Worker": {"replicas": 4}}}))
        backend.create(*pods("x", made, 0, 1, 2))
        backend.until_event("FailedScheduling", "x-0", FEW)
        backend.patch(f"{collection(kind)}/x", {"spec": {"xgbReplicaSpecs": {"Worker": {"replicas": 3}}}})
        backend.until_bound(3)
        backend.patch(f"{collection(kind)}/x", {"spec": {"xgbReplicaSpecs": {"Worker": {"replicas": 5}}}})
        backend.create(*pods("x", made, 3))
        backend.until_event("FailedScheduling", "x-3", FEW)
        backend.create(*pods("x", made, 4))
        backend.until_bound(5)


def test_an_invalid_owner_is_reported_and_others_are_placed(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"))
    kind = OWNER_KINDS["jaxjobs"]
    with defined(backend, kind):
        wrong, right = backend.create(
            owner(kind, "wrong", {"jaxReplicaSpecs": {"Worker": {"replicas": "two"}}}),
            owner(kind, "right", {"jaxReplicaSpecs": {"Worker": {"replicas": 2}}}),
        )
        backend.create(*pods("wrong", wrong, 0), *pods("right", right, 0, 1))
        backend.until_bound(2, "right-")
        problem = "JAXJob default/wrong: spec.jaxReplicaSpecs.Worker.replicas: 'two' is not valid; give a whole number"
        backend.until_event("GangInvalid", "wrong-0", problem)
        assert backend.bound("wrong") == {}
        backend.patch(f"{collection(kind)}/wrong", {"spec": {"jaxReplicaSpecs": {"Worker": {"replicas": 1}}}})
        backend.until_bound(1, "wrong-")


def test_pods_of_other_kinds_are_single(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"))
    (unknown,) = backend.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})
    backend.create(*pods("unknown", unknown, 0))
    backend.until_bound(1)


@REAL  # the synthetic cluster collects pods whose owner does not exist
def test_pods_of_a_kind_that_is_not_installed_are_single(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"))
    kind = OWNER_KINDS["paddlejobs"]
    absent = owner(kind, "x", {}, uid=str(uuid4()))
    backend.create(*pods("absent", absent, 0))
    backend.until_bound(1)
    with defined(backend, kind):  # found although it was not there when it was needed first
        scheduler.until_says("watching paddlejobs.kubeflow.org")
        (made,) = backend.create(owner(kind, "y", {"paddleReplicaSpecs": {"Worker": {"replicas": 2}}}))
        backend.create(*pods("y", made, 0))
        backend.until_event("FailedScheduling", "y-0", FEW)
        backend.create(*pods("y", made, 1))
        backend.until_bound(3)


@REAL  # likewise
def test_pods_of_a_deleted_or_suspended_owner_wait(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"))
    kind = OWNER_KINDS["pytorchjobs"]
    with defined(backend, kind):
        specs = {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}
        paused = {**specs, "runPolicy": {"suspend": True}}
        gone, made = backend.create(owner(kind, "gone", specs), owner(kind, "paused", paused))
        backend.delete(collection(kind), "gone")
        backend.create(*pods("gone", gone, 0, 1), *pods("paused", made, 0, 1))
        backend.until_event("FailedScheduling", "gone-0", "PyTorchJob default/gone does not exist any more")
        backend.until_event("FailedScheduling", "paused-0", "PyTorchJob default/paused is suspended")
        assert backend.bound() == {}
        backend.patch(f"{collection(kind)}/paused", {"spec": {"runPolicy": {"suspend": False}}})
        backend.until_bound(2, "paused-")
        assert backend.bound("gone-") == {}


@REAL
def test_jobs_on_a_server_without_controllers(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"))
    gang, single, none = backend.create(
        job("gang", parallelism=2, completions=2),
        job("single", parallelism=1, completions=3),
        job("none", parallelism=2) | {"metadata": {"name": "none", "annotations": {"poseidon.io/gang": "none"}}},
    )
    backend.create(*pods("gang", gang, 0), *pods("single", single, 0), *pods("none", none, 0))
    backend.until_bound(2)
    backend.until_event("FailedScheduling", "gang-0", FEW)
    backend.create(*pods("gang", gang, 1))
    backend.until_bound(4)


@SYNTHETIC
def test_jobs_are_gangs_from_their_first_to_their_last_pod(synthetic: Synthetic, scheduler: Scheduler) -> None:
    """Two Jobs that do not fit at the same time; a pod that fails is replaced although others have succeeded."""
    synthetic.create(node("a", cpu="4"))
    synthetic.create(job("first", parallelism=3, completions=3))
    first = sorted(synthetic.until_bound(3, "first-"))
    synthetic.create(job("second", parallelism=2, completions=2))
    synthetic.pods.until(lambda found: len(found) == 5, "the pods of the second job")
    waiting = next(p["metadata"]["name"] for p in synthetic.pods.objects.values() if "nodeName" not in p["spec"])
    synthetic.until_event("FailedScheduling", waiting, "gang default/second needs 2 members placed together, 1 fit")
    synthetic.finish_pod(first[0], "Succeeded")
    synthetic.until_bound(2, "second-")
    synthetic.finish_pod(first[1], "Failed")
    synthetic.pods.until(lambda found: len(bound_now(found, "first-") - set(first)) == 1, "the replacement")
    for name in sorted(synthetic.bound()):
        if name not in first[:2]:
            synthetic.finish_pod(name, "Succeeded")
    view = lambda: {j["metadata"]["name"]: j["status"].get("succeeded") for j in synthetic.api("GET", JOBS)["items"]}  # noqa: E731
    end = time.monotonic() + 30
    while view() != {"first": 3, "second": 2}:
        assert time.monotonic() < end, view()
        time.sleep(0.05)
    below = [e for e in synthetic.events.objects.values() if e.get("reason") == "GangBelowMinimum"]
    assert below == []


def bound_now(found: list[Json], prefix: str) -> set[str]:
    return {
        p["metadata"]["name"] for p in found if p["spec"].get("nodeName") and p["metadata"]["name"].startswith(prefix)
    }
