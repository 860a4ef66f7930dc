"""Kubernetes' PodGroups in the version that the server has, and what must hold of them after every test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.e2e.api import PATIENCE, ApiError, Json, View
from tests.e2e.backends import Backend, Synthetic
from tests.e2e.objects import condition
from tests.e2e.preemption import HIGH, PRIORITIES, REASON, ranked

API = "scheduling.k8s.io"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VERSIONS = ("v1", "v1beta1", "v1alpha3", "v1alpha2")
"""In the order of preference; the last one has other names for the disruption modes, and no preemption policy."""


def served(backend: Backend) -> str:
    """The version of PodGroups that the server has; empty: none."""
    try:
        offered = [each["version"] for each in backend.api("GET", f"/apis/{API}")["versions"]]
    except ApiError:
        return ""
    for version in VERSIONS:
        if version in offered:
            resources = backend.api("GET", f"/apis/{API}/{version}")["resources"]
            if any(each["name"] == "podgroups" for each in resources):
                return version
    return ""


@contextmanager
def defined(backend: Backend, version: str = "v1beta1") -> Iterator[None]:
    """PodGroups on the synthetic cluster, as custom resources of this version; a real server has its own or none."""
    if not isinstance(backend, Synthetic):
        if not served(backend):
            pytest.skip("the server has no PodGroups")
        yield
        return
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    one = {"name": version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    spec = {
        "group": API,
        "scope": "Namespaced",
        "names": {"plural": "podgroups", "kind": "PodGroup"},
        "versions": [one],
    }
    name = f"podgroups.{API}"
    about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}}
    backend.create({**about, "spec": spec})
    end = time.monotonic() + PATIENCE
    while not served(backend):
        assert time.monotonic() < end, "PodGroups are not served"
        time.sleep(0.02)  # discovery cannot be watched
    try:
        yield
    finally:
        backend.delete(DEFINITIONS, name)


@dataclass
class Group:
    """A PodGroup of the test. `minimum`: 0 for the basic policy."""

    name: str
    minimum: int
    priority: str
    whole: bool

    def pods(
        self, count: int, *, cpu: str = "1", first: int = 1, priority: str = "", grace: int = 0, **spec: Any
    ) -> list[Json]:
        """Members NAME-1, NAME-2, ..., of the group's priority unless another one is given."""
        reference = {"podGroupName": self.name}
        names = [f"{self.name}-{at}" for at in range(first, first + count)]
        of_class = priority or self.priority
        return [ranked(n, of_class, cpu=cpu, grace=grace, schedulingGroup=reference, **spec) for n in names]

    def members(self, pods: list[Json]) -> list[Json]:
        return [p for p in pods if p["spec"].get("schedulingGroup", {}).get("podGroupName") == self.name]


@dataclass
class PodGroups:
    """Creates PodGroups; `check` at the end of a test."""

    backend: Backend
    version: str
    created: list[Group] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/apis/{API}/{self.version}/namespaces/default/podgroups"

    def create(self, name: str, minimum: int = 0, *, priority: str = HIGH, whole: bool = False, **spec: Any) -> Group:
        """A gang with that minimum, or, without one, a group of the basic policy."""
        policy: Json = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
        mode: Any = {"all" if whole else "single": {}}
        if self.version == "v1alpha2":
            mode = "PodGroup" if whole else "Pod"
        # a real server derives the number from the class, and accepts the right one
        rank = {"priorityClassName": priority, "priority": PRIORITIES[priority]}
        body = {"schedulingPolicy": policy, "disruptionMode": mode, **rank, **spec}
        about = {"apiVersion": f"{API}/{self.version}", "kind": "PodGroup", "metadata": {"name": name}}
        self.backend.create({**about, "spec": body})
        group = Group(name, minimum, priority, whole)
        self.created.append(group)
        return group

    def until_condition(self, name: str, kind: str, status: str) -> Json:
        """Waits until a PodGroup has a condition with this status, empty: no such condition."""

        def probe(items: list[Json]) -> Json | None:
            found = next((i for i in items if i["metadata"]["name"] == name), {})
            return found if condition(found, kind).get("status", "") == status else None

        view = View(self.backend.api, self.path)
        try:
            found = view.until(probe, f"{kind}={status} on {name}")
        finally:
            view.stop()
        assert found is not None
        return condition(found, kind)

    def check(self) -> None:
        """No gang has fewer bound members than its minimum, none that is disrupted as a whole has lost a part, and no
        member was deleted before all of its gang's victims had the condition."""
        for group in self.created:
            self.backend.pods.until(self._is_no_half(group), f"all or no members of {group.name} on nodes")
            check_order(self.backend, group)

    def _is_no_half(self, group: Group) -> Callable[[list[Json]], bool]:
        def probe(pods: list[Json]) -> bool:
            there = [p for p in group.members(pods) if p["spec"].get("nodeName") and not is_leaving(p)]
            if not there:
                return True
            victims = {name for name, _ in _victims(self.backend, group)}
            return len(there) >= group.minimum and not (group.whole and victims)

        return probe

    def clean(self) -> None:
        for group in self.created:  # no controller of a real server runs that would remove its finalizer
            self.backend.patch(f"{self.path}/{group.name}", {"metadata": {"finalizers": None}})
        self.backend.delete(self.path, *(group.name for group in self.created))


def is_leaving(item: Json) -> bool:
    return "deletionTimestamp" in item["metadata"]


def _is_victim(item: Json) -> bool:
    found = condition(item, REASON[0])
    return (found.get("status"), found.get("reason")) == ("True", REASON[1])


def _victims(backend: Backend, group: Group) -> set[tuple[str, str]]:
    """Names and UIDs of all members that ever had the condition of a victim."""
    history = [item for _, item in list(backend.pods.history)]
    return {(p["metadata"]["name"], p["metadata"]["uid"]) for p in group.members(history) if _is_victim(p)}


def check_order(backend: Backend, group: Group) -> None:
    """If all members that were bound at the first deletion of a victim are victims, all had the condition by then."""
    victims = {uid for _, uid in _victims(backend, group)}
    bound: dict[str, bool] = {}
    for what, item in list(backend.pods.history):
        uid = item["metadata"]["uid"]
        if not group.members([item]) or not item["spec"].get("nodeName"):
            continue
        if (what == "DELETED" or is_leaving(item)) and uid in victims:
            if set(bound) <= victims:
                assert all(bound.values()), f"{item['metadata']['name']} was deleted before all had the condition"
            return
        bound[uid] = _is_victim(item)
