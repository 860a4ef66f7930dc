"""Nodes that are full of pods or of gangs, for tests of preemption."""

from __future__ import annotations

from tests.e2e.api import Json
from tests.e2e.backends import PODS, Backend
from tests.e2e.objects import node
from tests.e2e.pod_groups import Group
from tests.e2e.preemption import LOW, ranked, until_terminating
from tests.e2e.processes import Scheduler
from tests.e2e.test_constraints import HOST


def full(backend: Backend, scheduler: Scheduler, *pods: Json, **nodes: str) -> None:
    """Nodes with so many cpus, and these pods on them."""
    backend.create(*(node(name, cpu=cpu) for name, cpu in nodes.items()))
    backend.until_seen_by(scheduler)
    backend.create(*pods)
    backend.until_bound(len(pods))
    backend.until_seen_by(scheduler)


def lows(*nodes: str, cpu: str = "1", grace: int = 0) -> list[Json]:
    """Single pods low-1, low-2, ..., each for the node named at its place."""
    named = enumerate(nodes, start=1)
    return [ranked(f"low-{at}", LOW, cpu=cpu, grace=grace, nodeSelector={HOST: where}) for at, where in named]


def stop_all(backend: Backend, count: int) -> None:
    """Waits for so many terminating pods, whose containers then have stopped."""
    backend.delete(PODS, *(p["metadata"]["name"] for p in until_terminating(backend, count)))


def running(backend: Backend, scheduler: Scheduler, group: Group, count: int) -> None:
    """A node `a` that is full of members of the group."""
    full(backend, scheduler, *group.pods(count), a=str(count))
