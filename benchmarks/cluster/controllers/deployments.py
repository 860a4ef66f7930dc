"""Deployments: one ReplicaSet per template, rolled over as pods become ready."""

from __future__ import annotations

import copy
from fractions import Fraction
from math import ceil, floor
from typing import Any

from benchmarks.cluster.controllers.workload import Controller, owner_reference, template_hash
from benchmarks.cluster.store.clock import now_text
from benchmarks.cluster.store.kinds import DEPLOYMENTS, REPLICA_SETS
from benchmarks.cluster.store.store import Record

Json = dict[str, Any]

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"


class Deployments(Controller):
    """The Deployment controller."""

    kind = DEPLOYMENTS
    owned = REPLICA_SETS

    def reconcile(self, record: Record, obj: Json) -> None:
        """Create the ReplicaSet of the current template, move replicas to it, write the status."""
        if record.deleting:
            return
        spec = obj["spec"]
        desired = spec.get("replicas", 1)
        sets = [(one, one.parse()) for one in self.owned_by(record.uid) if not one.deleting]
        digest = template_hash(spec["template"])
        current = next((pair for pair in sets if pair[0].labels.get(HASH_LABEL) == digest), None)
        others = [pair for pair in sets if pair is not current]
        if current is None:
            revision = 1 + max((_revision(one) for _, one in sets), default=0)
            replicas = desired if not others else 0
            made = self._make_set(record, spec, digest, revision, replicas)
            current = (made, made.parse())
        if not spec.get("paused"):
            self._roll(spec, desired, current, others)
        sets = [(one, one.parse()) for one in self.owned_by(record.uid) if not one.deleting]
        self._write_status(record, obj, desired, current[0].uid, sets)

    def _make_set(self, owner: Record, spec: Json, digest: str, revision: int, replicas: int) -> Record:
        template = copy.deepcopy(spec["template"])
        labels = template.setdefault("metadata", {}).setdefault("labels", {})
        labels[HASH_LABEL] = digest
        selector = copy.deepcopy(spec["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}
        return self.api.create(
            REPLICA_SETS,
            owner.namespace,
            {
                "metadata": {
                    "name": f"{owner.name}-{digest}",
                    "labels": dict(labels),
                    "annotations": {REVISION: str(revision)},
                    "ownerReferences": [owner_reference(DEPLOYMENTS, owner)],
                },
                "spec": {"replicas": replicas, "selector": selector, "template": template},
            },
        )

    def _roll(self, spec: Json, desired: int, current: tuple[Record, Json], others: list[tuple[Record, Json]]) -> None:
        strategy = spec.get("strategy") or {}
        old_total = sum(one["spec"].get("replicas", 0) for _, one in others)
        have = current[1]["spec"].get("replicas", 0)
        if strategy.get("type") == "Recreate":
            for old in others:
                self._resize(old, 0)
            if not any((one.get("status") or {}).get("replicas") for _, one in others):
                self._resize(current, desired)
            return
        rolling = strategy.get("rollingUpdate") or {}
        surge = _share(rolling.get("maxSurge", "25%"), desired, up=True)
        down = _share(rolling.get("maxUnavailable", "25%"), desired, up=False)
        if not surge and not down:
            down = 1
        self._resize(current, min(desired, max(have, desired + surge - old_total)) if others else desired)
        # by specified size, not by status: a set that has been scaled down may not have deleted its pods yet
        target = current[1]["spec"].get("replicas", 0)
        needed = desired - down
        removable = target + old_total - needed - (target - _available(current[1]))
        spare = min(removable, _available(current[1]) + sum(_available(one) for _, one in others) - needed)
        for old in others:
            size = old[1]["spec"].get("replicas", 0)
            unready = size - _available(old[1])  # these do not count: scaling them down does not reduce availability
            cut = min(size, max(0, removable), unready + max(0, spare))
            if cut > 0:
                self._resize(old, size - cut)
                removable -= cut
                spare -= max(0, cut - unready)

    def _resize(self, pair: tuple[Record, Json], replicas: int) -> None:
        record, obj = pair
        if obj["spec"].get("replicas") != replicas:
            obj["spec"]["replicas"] = replicas
            self.api.replace(REPLICA_SETS, record, obj)

    def _write_status(
        self, record: Record, obj: Json, desired: int, current: str, sets: list[tuple[Record, Json]]
    ) -> None:
        total = ready = updated = 0
        for one, parsed in sets:
            part = parsed.get("status") or {}
            total += part.get("replicas", 0)
            ready += part.get("readyReplicas", 0)
            if one.uid == current:
                updated = part.get("replicas", 0)
        status: Json = {"observedGeneration": obj["metadata"].get("generation", 1)}
        for name, value in (
            ("replicas", total),
            ("updatedReplicas", updated),
            ("readyReplicas", ready),
            ("availableReplicas", ready),
            ("unavailableReplicas", max(0, desired - ready)),
        ):
            if value:
                status[name] = value
        available = ready >= desired - _share(
            ((obj["spec"].get("strategy") or {}).get("rollingUpdate") or {}).get("maxUnavailable", 0), desired, up=False
        )
        done = updated == total == ready == desired
        known = {one["type"]: one for one in (obj.get("status") or {}).get("conditions") or ()}
        status["conditions"] = [
            _condition(known, "Available", available, "MinimumReplicasAvailable", "MinimumReplicasUnavailable"),
            _condition(known, "Progressing", True, "NewReplicaSetAvailable" if done else "ReplicaSetUpdated", ""),
        ]
        self.put_status(record, obj, status)


def _available(replica_set: Json) -> int:
    """The number of available pods, at most the replicas that the set is to keep."""
    available = (replica_set.get("status") or {}).get("availableReplicas", 0)
    return min(int(available), int(replica_set["spec"].get("replicas", 0)))


def _condition(known: dict[str, Json], type_: str, true: bool, reason: str, otherwise: str) -> Json:
    status = "True" if true else "False"
    before = known.get(type_) or {}
    now = now_text()
    moved = before.get("lastTransitionTime", now) if before.get("status") == status else now
    desired = {"type": type_, "status": status, "reason": reason if true else otherwise, "message": ""}
    same = all(before.get(key) == value for key, value in desired.items())
    return before if same else {**desired, "lastUpdateTime": now, "lastTransitionTime": moved}


def _share(stated: Any, whole: int, *, up: bool) -> int:
    """A count or a percentage of the replicas."""
    if isinstance(stated, str) and stated.endswith("%"):
        part = Fraction(stated[:-1]) * whole / 100
        return ceil(part) if up else floor(part)
    return int(stated)


def _revision(replica_set: Json) -> int:
    text = (replica_set["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0
