"""Persistent volumes: binds claims to volumes, and creates volumes for claims whose class has a provisioner."""

from __future__ import annotations

from typing import Any

from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.store.clock import Agenda
from benchmarks.cluster.store.kinds import CLAIMS, NODES, STORAGE_CLASSES, VOLUMES
from benchmarks.cluster.store.quantities import parse
from benchmarks.cluster.store.store import Change, Record

Json = dict[str, Any]

SELECTED_NODE = "volume.kubernetes.io/selected-node"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_TOPOLOGY = ("topology.kubernetes.io/zone",)
PROVISIONS = "cluster.poseidon.io/provisions"
"""Annotation of a storage class: "never", or the names of the nodes, separated by commas, for which it provisions
volumes. For another node that fails, as without capacity there: the claim loses its selected node."""


class Volumes:
    """The volume binder and an external provisioner in one."""

    def __init__(self, api: Api, agenda: Agenda) -> None:
        self._api = api
        self._agenda = agenda
        self._queued: set[str] = set()
        api.store.subscribe(CLAIMS, self._claim_changed)
        api.store.subscribe(VOLUMES, self._volume_changed)
        api.store.subscribe(STORAGE_CLASSES, lambda change: self._queue_waiting())

    def _queue(self, key: str) -> None:
        if key not in self._queued:
            self._queued.add(key)
            self._agenda.call_soon(lambda: self._reconcile(key))

    def _queue_waiting(self) -> None:
        for record in self._api.store.collection(CLAIMS).objects.values():
            if b'"phase":"Pending"' in record.raw:
                self._queue(record.key)

    def _claim_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            claim = change.record
            self._agenda.call_soon(lambda: self._release(claim))
        else:
            self._queue(change.record.key)

    def _volume_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            return
        volume = change.record.parse()
        # a new volume may fit, and one that a scheduler assigned to a claim completes it
        if (volume["spec"].get("claimRef") or {}).get("name") or change.type == "ADDED":
            self._queue_waiting()

    def _reconcile(self, key: str) -> None:
        self._queued.discard(key)
        record = self._api.store.collection(CLAIMS).objects.get(key)
        if record is None or record.deleting:
            return
        claim = record.parse()
        if (claim.get("status") or {}).get("phase") == "Bound":
            return
        spec = claim["spec"]
        class_name = spec.get("storageClassName")
        if class_name is None:
            class_name = self._default_class()
        found = self._find(record, claim, class_name)
        if found is not None:
            self._bind(record, claim, *found)
            return
        if not class_name or spec.get("volumeName"):
            return
        stored = self._api.store.get(STORAGE_CLASSES, "", class_name)
        if stored is None:
            return
        storage_class = stored.parse()
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if storage_class.get("volumeBindingMode") == "WaitForFirstConsumer" and not node:
            return
        able = (storage_class["metadata"].get("annotations") or {}).get(PROVISIONS)
        if storage_class.get("provisioner") == _NO_PROVISIONER or able == "never":
            return
        if able is not None and node not in able.split(","):
            del claim["metadata"]["annotations"][SELECTED_NODE]
            self._api.store.put(CLAIMS, claim, record)
        else:
            volume = self._provision(record, claim, storage_class, node)
            self._bind(record, claim, volume, volume.parse())

    def _default_class(self) -> str:
        for record in self._api.store.collection(STORAGE_CLASSES).records():
            annotations = record.parse()["metadata"].get("annotations") or {}
            if annotations.get(_DEFAULT_CLASS) == "true":
                return record.name
        return ""

    def _find(self, claimant: Record, claim: Json, class_name: str) -> tuple[Record, Json] | None:
        """The volume that the claim names, else the one reserved for it, else the smallest that fits."""
        spec = claim["spec"]
        named = spec.get("volumeName")
        fits: list[tuple[Any, Record, Json]] = []
        for record in self._api.store.collection(VOLUMES).records():
            volume = record.parse()
            reserved = volume["spec"].get("claimRef")
            if reserved:
                mine = reserved.get("name") == claimant.name and reserved.get("namespace") == claimant.namespace
                if mine and reserved.get("uid") in (None, "", claimant.uid):
                    return record, volume
                continue
            if named:
                if record.name == named:
                    return record, volume
                continue
            if self._fits(volume, spec, class_name):
                fits.append((parse((volume["spec"].get("capacity") or {}).get("storage", "0")), record, volume))
        if named or not fits or self._waits(class_name, claim):
            return None
        _, record, volume = min(fits, key=lambda one: (one[0], one[1].name))
        return record, volume

    def _waits(self, class_name: str, claim: Json) -> bool:
        """Whether binding waits for a scheduler, which names the volume or the node."""
        stored = self._api.store.get(STORAGE_CLASSES, "", class_name) if class_name else None
        return stored is not None and b'"WaitForFirstConsumer"' in stored.raw

    def _fits(self, volume: Json, claim_spec: Json, class_name: str) -> bool:
        spec = volume["spec"]
        if (spec.get("storageClassName") or "") != class_name:
            return False
        if set(claim_spec.get("accessModes") or ()) - set(spec.get("accessModes") or ()):
            return False
        requested = ((claim_spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
        return parse((spec.get("capacity") or {}).get("storage", "0")) >= parse(requested)

    def _provision(self, claimant: Record, claim: Json, storage_class: Json, node: str | None) -> Record:
        spec = claim["spec"]
        volume: Json = {
            "metadata": {"name": f"pvc-{claimant.uid}"},
            "spec": {
                "capacity": {"storage": ((spec.get("resources") or {}).get("requests") or {}).get("storage", "1Gi")},
                "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
                "storageClassName": storage_class["metadata"]["name"],
                "csi": {"driver": storage_class.get("provisioner", ""), "volumeHandle": f"pvc-{claimant.uid}"},
                "claimRef": {"namespace": claimant.namespace, "name": claimant.name, "uid": claimant.uid},
            },
        }
        home = self._api.store.get(NODES, "", node) if node else None
        if home is not None:
            expressions = [
                {"key": key, "operator": "In", "values": [home.labels[key]]} for key in _TOPOLOGY if key in home.labels
            ]
            if expressions:
                terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
                volume["spec"]["nodeAffinity"] = {"required": terms}
        return self._api.create(VOLUMES, "", volume)

    def _bind(self, claimant: Record, claim: Json, record: Record, volume: Json) -> None:
        volume["spec"]["claimRef"] = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": claimant.namespace,
            "name": claimant.name,
            "uid": claimant.uid,
        }
        volume["status"] = {"phase": "Bound"}
        self._api.store.put(VOLUMES, volume, record)
        claim["spec"]["volumeName"] = record.name
        claim["metadata"].setdefault("annotations", {})[_BIND_COMPLETED] = "yes"
        claim["status"] = {
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes") or [],
            "capacity": volume["spec"].get("capacity") or {},
        }
        self._api.store.put(CLAIMS, claim, claimant)

    def _release(self, claim: Record) -> None:
        for record in list(self._api.store.collection(VOLUMES).records()):
            volume = record.parse()
            if (volume["spec"].get("claimRef") or {}).get("uid") != claim.uid:
                continue
            if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                self._api.remove(VOLUMES, record)
            else:
                volume["status"] = {"phase": "Released"}
                self._api.store.put(VOLUMES, volume, record)
