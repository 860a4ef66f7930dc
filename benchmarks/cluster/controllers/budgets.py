"""PodDisruptionBudgets: how many pods may be evicted now."""

from __future__ import annotations

import time
from fractions import Fraction
from math import ceil
from typing import Any

from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.controllers.workload import is_active, is_ready
from benchmarks.cluster.store.clock import Agenda, now_text, parse_rfc3339
from benchmarks.cluster.store.kinds import BUDGETS, JOBS, PODS, REPLICA_SETS, STATEFUL_SETS
from benchmarks.cluster.store.selectors import LabelTest, from_structured
from benchmarks.cluster.store.store import Change, Record

Json = dict[str, Any]

_FORGET_EVICTED_S = 120.0
"""Seconds after which an eviction without a deletion no longer counts."""


class Budgets:
    """The disruption controller."""

    def __init__(self, api: Api, agenda: Agenda) -> None:
        self._api = api
        self._agenda = agenda
        self._queued: set[str] = set()
        self._selectors: dict[str, dict[str, LabelTest]] = {}  # namespace to key to test
        api.store.subscribe(BUDGETS, self._budget_changed)
        api.store.subscribe(PODS, self._pod_changed)

    def _queue(self, key: str) -> None:
        if key not in self._queued:
            self._queued.add(key)
            self._agenda.call_soon(lambda: self._reconcile(key))

    def _budget_changed(self, change: Change) -> None:
        record = change.record
        tests = self._selectors.setdefault(record.namespace, {})
        if change.type == "DELETED":
            tests.pop(record.key, None)
            return
        tests[record.key] = from_structured((record.parse().get("spec") or {}).get("selector"))
        self._queue(record.key)

    def _pod_changed(self, change: Change) -> None:
        for key, holds in self._selectors.get(change.record.namespace, {}).items():
            if holds(change.record.labels) or (change.before is not None and holds(change.before.labels)):
                self._queue(key)

    def _reconcile(self, key: str) -> None:
        self._queued.discard(key)
        record = self._api.store.collection(BUDGETS).objects.get(key)
        if record is None:
            return
        holds = self._selectors[record.namespace][key]
        pods = [
            pod
            for pod in self._api.store.collection(PODS).records(record.namespace)
            if holds(pod.labels) and is_active(pod)
        ]
        obj = record.parse()
        status = self._status(obj, record, pods)
        if (obj.get("status") or {}) != status:
            obj["status"] = status
            self._api.store.put(BUDGETS, obj, record)

    def _status(self, obj: Json, record: Record, pods: list[Record]) -> Json:
        spec, old = obj.get("spec") or {}, obj.get("status") or {}
        present = {pod.name for pod in pods}
        now = time.time()
        evicted = {
            name: stamp
            for name, stamp in (old.get("disruptedPods") or {}).items()
            if name in present and now - parse_rfc3339(stamp) < _FORGET_EVICTED_S
        }
        healthy = sum(is_ready(pod) and pod.name not in evicted for pod in pods)
        min_available, max_unavailable = spec.get("minAvailable"), spec.get("maxUnavailable")
        expected = len(pods)
        if max_unavailable is not None:
            expected = self._scale(pods)
            desired = max(0, expected - _share(max_unavailable, expected))
        elif isinstance(min_available, str):
            expected = self._scale(pods)
            desired = _share(min_available, expected)
        else:
            desired = int(min_available if min_available is not None else 1)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status: Json = {
            "observedGeneration": obj["metadata"].get("generation", 1),
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        }
        if evicted:
            status["disruptedPods"] = evicted
        value = "True" if allowed else "False"
        before: Json = next(iter(old.get("conditions") or ()), {})
        status["conditions"] = [
            {
                "type": "DisruptionAllowed",
                "status": value,
                "reason": "SufficientPods" if allowed else "InsufficientPods",
                "message": "",
                "observedGeneration": status["observedGeneration"],
                "lastTransitionTime": (before["lastTransitionTime"] if before.get("status") == value else now_text()),
            }
        ]
        return status

    def _scale(self, pods: list[Record]) -> int:
        """The expected number of pods: the replicas of the owners, and one for each pod without an owner."""
        total = 0
        seen: set[str] = set()
        for pod in pods:
            owner = pod.owners[0] if pod.owners else ""
            if not owner:
                total += 1
            elif owner not in seen:
                seen.add(owner)
                size = self._size_of(pod)
                total += size if size is not None else sum(1 for one in pods if owner in one.owners)
        return total

    def _size_of(self, pod: Record) -> int | None:
        reference = pod.parse()["metadata"]["ownerReferences"][0]
        for kind, size in ((REPLICA_SETS, "replicas"), (STATEFUL_SETS, "replicas"), (JOBS, "parallelism")):
            if kind.kind == reference.get("kind"):
                owner = self._api.store.get(kind, pod.namespace, reference["name"])
                if owner is not None:
                    return int(owner.parse()["spec"].get(size, 1))
        return None


def _share(stated: Any, whole: int) -> int:
    if isinstance(stated, str) and stated.endswith("%"):
        return ceil(Fraction(stated[:-1]) * whole / 100)
    return int(stated)
