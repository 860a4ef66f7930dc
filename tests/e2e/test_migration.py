"""Running pods that opted in move to nodes that cost less, and no others do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.e2e.api import Json
from tests.e2e.backends import Synthetic, bound
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.objects import node, pod
from tests.e2e.preemption import another_round, guard
from tests.e2e.processes import Scheduler

Schedule = Callable[..., Scheduler]

POLICY = ("--policy=load-spreading", "--policy-option=move-cost=1")
"""A pod moves wherever there are two pods fewer."""


def replica_set(backend: Synthetic, name: str, replicas: int, annotations: Json | None = None) -> None:
    template = pod("", metadata={"labels": {"app": name}, "annotations": annotations or {}})
    body = {"metadata": template["metadata"], "spec": template["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": body}
    backend.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec})


def uneven(backend: Synthetic, scheduler: Scheduler) -> None:
    """Six pods on node `a`, of which four may be moved, and the empty node `b`."""
    backend.create(node("a"), node("b"))
    backend.patch_node("b", {"spec": {"unschedulable": True}})
    backend.until_seen_by(scheduler)
    movable = {"poseidon.io/movable": "true"}
    guard(backend, {"app": "guarded"}, allowed=0)
    replica_set(backend, "movable", 4, movable)
    replica_set(backend, "guarded", 1, movable)
    replica_set(backend, "plain", 1)
    assert set(backend.until_bound(6).values()) == {"a"}
    backend.until_seen_by(scheduler)
    backend.patch_node("b", {"spec": {"unschedulable": False}})


def migrated(backend: Synthetic) -> list[str]:
    """Names of the pods with that event."""
    return [
        event["involvedObject"]["name"] for event in backend.events.objects.values() if event["reason"] == "Migrated"
    ]


def evictions(synthetic: Synthetic) -> int:
    """Number of pods that the server has evicted since its start."""
    return sum(entry["what"] == "evict" for entry in synthetic.api("GET", "/_audit")["entries"])


@SYNTHETIC
def test_pods_move_until_another_move_saves_nothing(synthetic: Synthetic, schedule: Schedule) -> None:
    before = evictions(synthetic)
    scheduler = schedule("--migrate=always", "--migrate-after=0", *POLICY)
    uneven(synthetic, scheduler)

    def balanced(pods: list[Json]) -> dict[str, str]:
        found = bound(pods)
        return found if Counter(found.values()) == {"a": 3, "b": 3} and len(pods) == 6 else {}

    found = synthetic.pods.until(balanced, "three pods on each node")
    assert {name.partition("-")[0] for name, at in found.items() if at == "b"} == {"movable"}
    another_round(synthetic)
    assert evictions(synthetic) == before + 3
    synthetic.events.until(lambda _: len(migrated(synthetic)) == 3, "three events")
    assert all(name.startswith("movable-") for name in migrated(synthetic))
    assert synthetic.bound() == found


@SYNTHETIC
@pytest.mark.parametrize("flags", [(), ("--migrate=always",)], ids=["never", "not yet"])
def test_by_default_and_before_they_have_run_for_a_while_pods_stay(
    synthetic: Synthetic, schedule: Schedule, flags: tuple[str, ...]
) -> None:
    before = evictions(synthetic)
    scheduler = schedule(*flags, *POLICY)
    uneven(synthetic, scheduler)
    another_round(synthetic)
    assert set(synthetic.bound().values()) == {"a"}
    assert evictions(synthetic) == before
