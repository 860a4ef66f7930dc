"""Manifests of jobs and commands, and waits for what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.api import Json, View
from tests.e2e.backends import Backend
from tests.e2e.objects import container
from tests.e2e.processes import Process

BATCH = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"

Start = Callable[..., Process]


def task(name: str = "w", replicas: int = 2, **fields: Any) -> Json:
    template = {"spec": {"restartPolicy": "Never", "containers": [container(cpu="100m")]}}
    return {"name": name, "replicas": replicas, "template": template, **fields}


def job(name: str, *tasks: Json, annotations: Json | None = None, **fields: Any) -> Json:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"schedulerName": "poseidon", "tasks": list(tasks) or [task()], **fields},
    }


def policy(action: str, event: str = "PodFailed") -> Json:
    return {"action": action, "event": event}


def command(job_name: str, action: str) -> Json:
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job_name}
    metadata = {"name": f"{job_name}-{action.lower()}"}
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": metadata,
        "target": target,
        "action": action,
    }


def until_phase(jobs: View, name: str, phase: str, **status: Any) -> Json:
    """Waits until a job is in a phase, with these values in its status, 0 for missing ones; returns it."""

    def probe(items: list[Json]) -> Json | None:
        for item in items:
            found = item.get("status", {})
            there = found.get("state", {}).get("phase") == phase
            if item["metadata"]["name"] == name and there and all(found.get(k, 0) == v for k, v in status.items()):
                return item
        return None

    found = jobs.until(probe, f"job {name} {phase} {status}")
    assert found is not None
    return found


def until_pods(backend: Backend, *names: str, **texts: str) -> dict[str, Json]:
    """Waits until exactly these pods exist, none of which is being deleted, with these annotations of volcano.sh."""
    expected = {f"volcano.sh/{key.replace('_', '-')}": text for key, text in texts.items()}

    def probe(pods: list[Json]) -> dict[str, Json]:
        found = {p["metadata"]["name"]: p for p in pods if "deletionTimestamp" not in p["metadata"]}
        marked = all(expected.items() <= p["metadata"].get("annotations", {}).items() for p in found.values())
        return found if sorted(found) == sorted(names) and len(found) == len(pods) and marked else {}

    return backend.pods.until(probe, f"pods {names} {texts}")


def phase(backend: Backend, state: str, *names: str) -> None:
    for name in names:
        backend.finish_pod(name, state)
