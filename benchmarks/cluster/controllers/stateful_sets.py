"""StatefulSets: numbered pods, created in order unless the policy is Parallel."""

from __future__ import annotations

from typing import Any

from benchmarks.cluster.controllers.workload import Controller, is_active, is_ready, template_hash
from benchmarks.cluster.store.kinds import POD_PHASE, STATEFUL_SETS
from benchmarks.cluster.store.store import Record

Json = dict[str, Any]

INDEX_LABEL = "apps.kubernetes.io/pod-index"
NAME_LABEL = "statefulset.kubernetes.io/pod-name"
REVISION_LABEL = "controller-revision-hash"


class StatefulSets(Controller):
    """The StatefulSet controller; creates no claims from volumeClaimTemplates."""

    kind = STATEFUL_SETS

    def reconcile(self, record: Record, obj: Json) -> None:
        """Create the next missing pod, or delete the last surplus one, and write the status."""
        spec = obj["spec"]
        desired = spec.get("replicas", 1)
        parallel = spec.get("podManagementPolicy") == "Parallel"
        revision = f"{record.name}-{template_hash(spec['template'])}"
        pods = {_ordinal(pod): pod for pod in self.owned_by(record.uid)}
        if not record.deleting:
            for at in range(desired):
                pod = pods.get(at)
                if pod is None:
                    pods[at] = self._make(record, spec, at, revision)
                elif not is_active(pod):
                    if not pod.deleting:
                        self.drop_pod(pod)
                elif self._outdated(pod, spec, revision) and not self._updating(pods):
                    self.drop_pod(pod)
                if not parallel and not is_ready(pods[at]):
                    break
            surplus = sorted((at for at in pods if at >= desired), reverse=True)
            for at in surplus if parallel else surplus[:1]:
                if not pods[at].deleting:
                    self.drop_pod(pods[at])
        present = [pod for pod in pods.values() if is_active(pod)]
        status: Json = {
            "observedGeneration": obj["metadata"].get("generation", 1),
            "replicas": len(present),
            "currentRevision": revision,
            "updateRevision": revision,
            "collisionCount": 0,
        }
        for name, value in (
            ("readyReplicas", sum(map(is_ready, present))),
            ("availableReplicas", sum(map(is_ready, present))),
            ("updatedReplicas", sum(pod.labels.get(REVISION_LABEL) == revision for pod in present)),
        ):
            status[name] = value
        self.put_status(record, obj, status)

    def _outdated(self, pod: Record, spec: Json, revision: str) -> bool:
        rolls = (spec.get("updateStrategy") or {}).get("type") != "OnDelete"
        return rolls and is_ready(pod) and pod.labels.get(REVISION_LABEL) != revision

    def _updating(self, pods: dict[int, Record]) -> bool:
        return any(pod.deleting or pod.fields[POD_PHASE] == "Pending" for pod in pods.values())

    def _make(self, record: Record, spec: Json, at: int, revision: str) -> Record:
        name = f"{record.name}-{at}"
        labels = {INDEX_LABEL: str(at), NAME_LABEL: name, REVISION_LABEL: revision}
        return self.make_pod(record, spec["template"], name, {"labels": labels})


def _ordinal(pod: Record) -> int:
    text = pod.name.rpartition("-")[2]
    return int(text) if text.isdigit() else 1 << 30
