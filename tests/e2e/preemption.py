"""Pods of several priorities, budgets, and what preemption has done: for tests that act as kubelets and controllers.

A pod with LONG as its grace period stays terminating until the test deletes it again, without a grace period, as its
kubelet would when its containers have stopped.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

from tests.e2e.api import PATIENCE, ApiError, Json, View
from tests.e2e.backends import PODS, Backend
from tests.e2e.objects import condition, pod
from tests.e2e.processes import Scheduler
from tests.e2e.real_backend import Real

LOW, MID, HIGH, NEVER = "low", "mid", "high", "never"
PRIORITIES = {LOW: 100, MID: 200, HIGH: 1_000_000_000, NEVER: 300}
"""HIGH is the highest that users may define; pods of NEVER have preemptionPolicy Never."""
LONG = 3600
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
REASON = ("DisruptionTarget", "PreemptionByScheduler")
_numbers = itertools.count()


def define_priorities(backend: Backend) -> None:
    """Creates the classes, and waits until the server admits pods of them, which may be later."""
    for name, value in PRIORITIES.items():
        item: Json = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        backend.create(item | {"value": value} | ({"preemptionPolicy": "Never"} if name == NEVER else {}))
    end = time.monotonic() + PATIENCE
    for name in PRIORITIES:
        while not _admits(backend, name):
            assert time.monotonic() < end, f"pods of priority class {name} are not admitted"
            time.sleep(0.02)  # the server does not say when its admission has the class


def _admits(backend: Backend, name: str) -> bool:
    try:
        backend.api("POST", f"{PODS}?dryRun=All", ranked("p", name))
    except ApiError as error:
        if error.code != 403:
            raise
        return False
    return True


def ranked(name: str, priority: str, *, grace: int = 0, metadata: Json | None = None, **spec: Any) -> Json:
    """A pod of a priority class. `grace`: its grace period, which it uses up."""
    stops = {"cluster.poseidon.io/stop-seconds": str(grace)}
    about = {"annotations": stops, **(metadata or {})}
    return pod(name, metadata=about, priorityClassName=priority, terminationGracePeriodSeconds=grace, **spec)


# -- what has happened -----------------------------------------------------------------------------------------------


def preempted(backend: Backend) -> list[str]:
    """The names of all victims of the test, in the order in which they were marked."""
    found: dict[str, str] = {}
    for _, item in list(backend.pods.history):
        if condition(item, REASON[0]).get("reason") == REASON[1]:
            found.setdefault(item["metadata"]["uid"], item["metadata"]["name"])
    return list(found.values())


def until_terminating(backend: Backend, count: int = 1, prefix: str = "") -> list[Json]:
    """Waits until this many pods are being deleted; returns them."""

    def probe(pods: list[Json]) -> list[Json]:
        going = [p for p in pods if p["metadata"].get("deletionTimestamp") and p["metadata"]["name"].startswith(prefix)]
        return going if len(going) >= count else []

    return backend.pods.until(probe, f"{count} pods that are being deleted")


def until_nominated(backend: Backend, name: str, node: str = "", *, other_than: str = "") -> str:
    """Waits until a pod is nominated, on this node if it is given; returns the node."""

    def probe(pods: list[Json]) -> str:
        found = nomination(pods, name)
        return found if found and found != other_than and node in ("", found) else ""

    return backend.pods.until(probe, f"nomination of {name}")


def until_not_nominated(backend: Backend, name: str) -> None:
    backend.pods.until(lambda pods: nomination(pods, name) == "", f"end of the nomination of {name}")


def nomination(pods: list[Json], name: str) -> str | None:
    """The node that a pod waits for; None: there is no such pod."""
    for item in pods:
        if item["metadata"]["name"] == name:
            return "" if item["spec"].get("nodeName") else str(item["status"].get("nominatedNodeName") or "")
    return None


def attempts(scheduler: Scheduler) -> float:
    return scheduler.metric("poseidon_preemption_attempts_total")


def another_round(backend: Backend) -> None:
    """Waits for a round that considers everything that waits."""
    name = f"nowhere-{next(_numbers)}"
    backend.create(pod(name, nodeSelector={"nowhere": "yes"}))
    backend.until_unschedulable(name)
    backend.delete(PODS, name)


def none_is_evicted_for(backend: Backend, scheduler: Scheduler, *names: str) -> None:
    """Asserts that these pods wait, and that no round decides on a preemption for them or any other pod."""
    for name in names:
        backend.until_unschedulable(name)
    before = attempts(scheduler)
    another_round(backend)
    assert attempts(scheduler) == before
    assert not {item["metadata"]["name"] for _, item in list(backend.pods.history) if _is_nominated(item, names)}


def _is_nominated(item: Json, names: tuple[str, ...]) -> bool:
    return item["metadata"]["name"] in names and bool(item["status"].get("nominatedNodeName"))


# -- budgets ---------------------------------------------------------------------------------------------------------


def guard(backend: Backend, labels: Mapping[str, str], allowed: int = 0) -> None:
    """A budget for running pods with these labels, that allows as many disruptions now."""
    name = next(iter(labels.values()))
    spec = {"maxUnavailable": allowed, "selector": {"matchLabels": dict(labels)}}
    about = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
    backend.create(about)
    _until_allowed(backend, name, allowed)


def relax(backend: Backend, name: str, allowed: int) -> None:
    """Changes how many disruptions a budget allows."""
    backend.patch(f"{BUDGETS}/{name}", {"spec": {"maxUnavailable": allowed}})
    _until_allowed(backend, name, allowed)


def _until_allowed(backend: Backend, name: str, allowed: int) -> None:
    if isinstance(backend, Real):  # which has no disruption controller
        counts = {"disruptionsAllowed": allowed, "currentHealthy": 9, "desiredHealthy": 9 - allowed, "expectedPods": 9}
        generation = backend.api("GET", f"{BUDGETS}/{name}")["metadata"].get("generation", 0)
        backend.patch(f"{BUDGETS}/{name}/status", {"status": counts | {"observedGeneration": generation}})
    view = View(backend.api, BUDGETS)
    try:
        view.until(lambda items: [i for i in items if _allows(i) == (name, allowed)], f"{allowed} allowed by {name}")
    finally:
        view.stop()


def _allows(item: Json) -> tuple[str, int]:
    return item["metadata"]["name"], item.get("status", {}).get("disruptionsAllowed", -1)
