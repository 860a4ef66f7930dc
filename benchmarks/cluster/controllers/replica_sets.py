"""ReplicaSets and ReplicationControllers: keep the desired number of pods, replacing those that end or are deleted."""

from __future__ import annotations

from typing import Any

from benchmarks.cluster.controllers.workload import Controller, is_active, is_ready, surplus_order
from benchmarks.cluster.store.kinds import REPLICA_SETS, REPLICATION_CONTROLLERS
from benchmarks.cluster.store.store import Record

Json = dict[str, Any]

_BURST = 200
"""Pods created in one step, so that a large set does not block the event loop."""


class ReplicaSets(Controller):
    """The ReplicaSet controller."""

    kind = REPLICA_SETS

    def reconcile(self, record: Record, obj: Json) -> None:
        """Create or delete pods, then write the status."""
        spec = obj["spec"]
        desired = spec.get("replicas", 1)
        active = [pod for pod in self.owned_by(record.uid) if is_active(pod)]
        if not record.deleting:
            missing = desired - len(active)
            for _ in range(min(missing, _BURST)):
                active.append(self.make_pod(record, spec["template"]))
            if missing > _BURST:
                self.queue(record.key)
            elif missing < 0:
                active.sort(key=surplus_order)
                for pod in active[:-missing]:
                    self.drop_pod(pod)
                active = active[-missing:]
        ready = sum(map(is_ready, active))
        status: Json = {"replicas": len(active), "observedGeneration": obj["metadata"].get("generation", 1)}
        if active:
            status["fullyLabeledReplicas"] = len(active)
        if ready:
            status["readyReplicas"] = status["availableReplicas"] = ready
        self.put_status(record, obj, status)


class ReplicationControllers(ReplicaSets):
    """The controller of ReplicationControllers."""

    kind = REPLICATION_CONTROLLERS
