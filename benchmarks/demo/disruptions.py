"""Pods that were preempted during a run, and the disruption budgets at that moment, from a watch of all pods.

The watch has the API server's order, so the number of ready pods when a victim is deleted is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.demo.progress import Pod

PREEMPTED = ("DisruptionTarget", "PreemptionByScheduler")
"""Type and reason of a victim's condition."""


@dataclass(frozen=True, slots=True)
class Budget:
    """At least `available` pods with these labels remain ready. Such a budget needs no controller to be understood."""

    name: str
    labels: Mapping[str, str]
    available: int

    def counts(self, labels: Mapping[str, str]) -> bool:
        """Whether pods with these labels are its own."""
        return self.labels.items() <= labels.items()


@dataclass(slots=True)
class PodHistory:
    """What a pod was during the run."""

    name: str
    priority: int
    priority_class: str
    owner: str
    """Kind of its owner; empty: it has none."""
    labels: Mapping[str, str]
    nodes: set[str] = field(default_factory=set)
    """All nodes that it was nominated on or bound to."""
    ready: bool = False
    leaving: bool = False
    victim: bool = False
    """It was preempted, and deleted afterwards."""
    succeeded: bool = False


class Disruptions:
    """`observe` all changes of pods in order."""

    def __init__(self, budgets: Sequence[Budget] = ()) -> None:
        self.budgets = budgets
        self.pods: dict[str, PodHistory] = {}
        """By UID, also those that are deleted."""
        self.counted = 0
        """Number of victims that any budget counts."""
        self.exceeded: list[str] = []

    @property
    def victims(self) -> dict[str, PodHistory]:
        """By UID."""
        return {uid: pod for uid, pod in self.pods.items() if pod.victim}

    @property
    def removed(self) -> int:
        """Number of victims that are not recreated: without an owner, or Succeeded just before their deletion, which
        their Job counts as completions."""
        return sum(not pod.owner or pod.succeeded for pod in self.victims.values())

    def observe(self, what: str, pod: Pod) -> None:
        """A pod was added, modified or deleted."""
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        known = self.pods.get(metadata.uid)
        if known is None:
            owner = metadata.owners[0].kind if metadata.owners else ""
            known = self.pods[metadata.uid] = PodHistory(
                metadata.name, spec.priority or 0, spec.priority_class or "", owner, metadata.labels or {}
            )
        known.nodes.update(filter(None, (spec.node, status.nominated)))
        leaves = what == "DELETED" or metadata.deleting is not None
        known.succeeded = status.phase == "Succeeded"
        known.ready = status.phase == "Running" and not leaves
        if leaves and not known.leaving:
            known.leaving = True
            known.victim = PREEMPTED in {(each.type, each.reason) for each in status.conditions or ()}
            if known.victim:
                self._compare(known)

    def _compare(self, victim: PodHistory) -> None:
        """Compares the budgets of a pod with the ready pods that remain without it."""
        own = [budget for budget in self.budgets if budget.counts(victim.labels)]
        self.counted += bool(own)
        for budget in own:
            ready = sum(pod.ready and budget.counts(pod.labels) for pod in self.pods.values())
            if ready < budget.available:
                self.exceeded.append(f"{budget.name}: {ready} of {budget.available} ready after {victim.name} left")
