"""The node controller: taints that follow a node's state, eviction from failed nodes, heartbeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.cluster.api.defaults import NOT_READY, UNREACHABLE
from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.nodes.affinity import tolerates
from benchmarks.cluster.nodes.kubelets import Kubelets
from benchmarks.cluster.settings import ClusterSettings
from benchmarks.cluster.store.clock import Agenda, now_micro_text, now_text
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import LEASES, NODES, POD_NODE, POD_PHASE, PODS
from benchmarks.cluster.store.store import Change, Record

Json = dict[str, Any]

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OWN_KEYS = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)
_LEASE_NAMESPACE = "kube-node-lease"
_MAX_RENEWALS_PER_S = 200
_ORPHAN_CHECK_SECONDS = 20.0


class NodeLife:
    """Watches nodes and pods; writes taints, conditions, leases and deletions."""

    def __init__(self, api: Api, agenda: Agenda, settings: ClusterSettings, kubelets: Kubelets | None) -> None:
        self._api = api
        self._agenda = agenda
        self._settings = settings
        self._kubelets = kubelets
        self._queued: set[str] = set()
        self._evicting: dict[tuple[str, str], int] = {}  # (pod UID, taint) to the generation of its timer
        self._tainted: dict[str, list[Json]] = {}  # NoExecute taints of nodes that have any
        self._next_lease = 0
        if settings.controllers:
            api.store.subscribe(NODES, self._node_changed)
            api.store.subscribe(PODS, self._pod_changed)
        if settings.kubelets and settings.heartbeat_seconds > 0:
            agenda.after(settings.heartbeat_seconds, self._renew_leases)

    # failing and restoring

    def fail(self, name: str) -> None:
        """The node's kubelet stops reporting."""
        if self._kubelets is None or name not in self._kubelets.names():
            raise ValueError(f"there is no kubelet on a node {name!r}")
        self._kubelets.set_up(name, False)
        self._agenda.after(self._settings.node_grace_seconds, lambda: self._lost(name))

    def restore(self, name: str) -> None:
        """The node's kubelet reports again."""
        if self._kubelets is None or name not in self._kubelets.names():
            raise ValueError(f"there is no kubelet on a node {name!r}")
        self._kubelets.set_up(name, True)
        self._set_ready(name, "True", "KubeletReady", "kubelet is posting ready status")

    def _lost(self, name: str) -> None:
        if self._kubelets is not None and not self._kubelets.is_up(name):
            self._set_ready(name, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")

    def _set_ready(self, name: str, value: str, reason: str, message: str) -> None:
        record = self._api.store.get(NODES, "", name)
        if record is None:
            return
        node = record.parse()
        now = now_text()
        for condition in node.setdefault("status", {}).setdefault("conditions", []):
            down = value == "Unknown"
            if condition["type"] != "Ready" and not down and condition["status"] != "Unknown":
                continue
            desired = value if condition["type"] == "Ready" else ("Unknown" if down else "False")
            if condition["status"] != desired:
                condition.update(status=desired, reason=reason, message=message, lastTransitionTime=now)
            if not down:
                condition["lastHeartbeatTime"] = now
        self._api.replace(NODES, record, node, "status")

    # taints

    def _node_changed(self, change: Change) -> None:
        name = change.record.name
        if change.type == "DELETED":
            self._tainted.pop(name, None)
            self._await_orphans(name)
        elif name not in self._queued:
            self._queued.add(name)
            self._agenda.call_soon(lambda: self._sync(name))

    def _sync(self, name: str) -> None:
        self._queued.discard(name)
        record = self._api.store.get(NODES, "", name)
        if record is None:
            return
        node = record.parse()
        spec = node.setdefault("spec", {})
        taints: list[Json] = spec.get("taints") or []
        desired = _desired_taints(node)
        own = [taint for taint in taints if taint["key"] in _OWN_KEYS]
        if {(t["key"], t["effect"]) for t in own} != set(desired):
            updated = [taint for taint in taints if taint["key"] not in _OWN_KEYS]
            had = {(t["key"], t["effect"]): t for t in own}
            for key, effect in desired:
                new = {"key": key, "effect": effect, "timeAdded": now_text()}
                updated.append(had.get((key, effect), new))
            taints = updated
            if taints:
                spec["taints"] = taints
            else:
                spec.pop("taints", None)
            self._api.replace(NODES, record, node)
        self._expel(name, [taint for taint in taints if taint["effect"] == "NoExecute"])

    # eviction by NoExecute taints

    def _expel(self, node: str, taints: list[Json]) -> None:
        before = self._tainted.get(node, [])
        if [_identity(t) for t in before] == [_identity(t) for t in taints]:
            return
        if taints:
            self._tainted[node] = taints
        else:
            self._tainted.pop(node, None)
        if not taints:
            return
        for record in list(self._api.store.collection(PODS).records()):
            if record.fields[POD_NODE] == node:
                self._consider(record, taints)

    def _pod_changed(self, change: Change) -> None:
        if not self._tainted or change.type == "DELETED":
            return
        record = change.record
        node = record.fields[POD_NODE]
        bound_now = change.before is None or change.before.fields[POD_NODE] != node
        if bound_now and node in self._tainted:
            self._agenda.call_soon(lambda: self._consider(record, self._tainted.get(node, ())))

    def _consider(self, record: Record, taints: Sequence[Json]) -> None:
        """Start the eviction timer of a pod under these taints; the shortest toleration counts."""
        if record.fields[POD_PHASE] in ("Succeeded", "Failed") or record.deleting:
            return
        tolerations = record.parse()["spec"].get("tolerations") or ()
        delay: float | None = None
        for taint in taints:
            toleration = tolerates(tolerations, taint)
            seconds = 0.0 if toleration is None else toleration.get("tolerationSeconds")
            if seconds is not None:
                delay = seconds if delay is None else min(delay, seconds)
        if delay is not None:
            desired = [_identity(taint) for taint in taints]
            self._agenda.after(max(delay, 0.0), lambda: self._evict(record, desired))

    def _evict(self, record: Record, under: list[tuple[str, str, str]]) -> None:
        node = record.fields[POD_NODE]
        if [_identity(taint) for taint in self._tainted.get(node, ())] != under:
            return  # the node recovered, or another timer runs for its new taints
        current = self._api.store.collection(PODS).objects.get(record.key)
        if current is None or current.uid != record.uid or current.deleting:
            return
        pod = current.parse()
        pod["status"].setdefault("conditions", []).append(
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByTaintManager",
                "message": "Taint manager: deleting due to NoExecute taint",
                "lastProbeTime": None,
                "lastTransitionTime": now_text(),
            }
        )
        self._api.store.put(PODS, pod, current)
        delete(self._api, PODS, current.namespace, current.name)

    def _await_orphans(self, node: str) -> None:
        """Checks later on the pods that are bound to a node that does not exist."""
        there = {record.uid for record in self._pods_on(node)}
        self._agenda.after(_ORPHAN_CHECK_SECONDS, lambda: self._collect_orphans(node, there))

    def _collect_orphans(self, node: str, there: set[str]) -> None:
        """Remove the pods of a deleted node, which has no kubelet to end them. there: UIDs of those that were bound to
        it at the last check; later ones have as much time until they are removed, since a node may come after them."""
        if self._api.store.get(NODES, "", node) is not None:
            return
        pods = self._pods_on(node)
        for record in pods:
            if record.uid in there:
                delete(self._api, PODS, record.namespace, record.name, {"gracePeriodSeconds": 0})
        if any(record.uid not in there for record in pods):
            self._await_orphans(node)

    def _pods_on(self, node: str) -> list[Record]:
        return [record for record in self._api.store.collection(PODS).records() if record.fields[POD_NODE] == node]

    # leases

    def _renew_leases(self) -> None:
        names = self._kubelets.names() if self._kubelets is not None else []
        every = self._settings.heartbeat_seconds
        batch = max(1, min(len(names), int(_MAX_RENEWALS_PER_S * min(every, 1.0))))
        batches = max(1, -(-len(names) // batch))
        for _ in range(min(batch, len(names))):
            self._next_lease = (self._next_lease + 1) % len(names)
            name = names[self._next_lease]
            if self._kubelets is not None and self._kubelets.is_up(name):
                self._renew(name)
        self._agenda.after(max(every / batches, batch / _MAX_RENEWALS_PER_S), self._renew_leases)

    def _renew(self, name: str) -> None:
        record = self._api.store.get(LEASES, _LEASE_NAMESPACE, name)
        if record is not None:
            lease = record.parse()
            lease["spec"]["renewTime"] = now_micro_text()
            self._api.store.put(LEASES, lease, record)
            return
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now_micro_text()}
        try:
            self._api.create(LEASES, _LEASE_NAMESPACE, {"metadata": {"name": name}, "spec": spec})
        except ApiError:
            return  # the namespace of the leases has been deleted


def _identity(taint: Json) -> tuple[str, str, str]:
    return taint["key"], taint.get("value") or "", taint["effect"]


def _desired_taints(node: Json) -> list[tuple[str, str]]:
    """The taints that the node's state calls for: (key, effect)."""
    desired: list[tuple[str, str]] = []
    if node["spec"].get("unschedulable"):
        desired.append((UNSCHEDULABLE, "NoSchedule"))
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = next((one["status"] for one in conditions if one["type"] == "Ready"), "True")
    key = {"False": NOT_READY, "Unknown": UNREACHABLE}.get(ready)
    if key is not None:
        desired += [(key, "NoSchedule"), (key, "NoExecute")]
    return desired
