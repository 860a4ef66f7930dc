"""Which watches there are, and which handlers they feed."""

from collections.abc import Sequence
from typing import Any

from poseidon_py.kube import storage_objects as storage_kinds
from poseidon_py.kube.budget_objects import DisruptionBudget
from poseidon_py.kube.list_watch import Kind, Source, Watch, WatchOptions
from poseidon_py.kube.objects import Node, Pod
from poseidon_py.kube.service_objects import Service
from poseidon_py.state.handlers import NodeHandler, PodHandler
from poseidon_py.state.listeners import PodListener
from poseidon_py.state.object_handler import ObjectHandler, by_name, by_namespace
from poseidon_py.state.store import Store

PODS = Kind("pods", "/api/v1/pods", Pod)
"""Ended ones, too: a watch without them reports that a pod is gone, but not how it ended."""
NODES = Kind("nodes", "/api/v1/nodes", Node)

BUDGETS = Kind(
    "poddisruptionbudgets",
    "/apis/policy/v1/poddisruptionbudgets",
    DisruptionBudget,
    without="pods are preempted regardless of their disruption budgets",
)

SERVICES = Kind("services", "/api/v1/services", Service, without="pods are not spread by their services")

_STORAGE = "/apis/storage.k8s.io/v1"
NAMESPACES = Kind("namespaces", "/api/v1/namespaces", storage_kinds.Namespace)
CLAIMS = Kind("persistentvolumeclaims", "/api/v1/persistentvolumeclaims", storage_kinds.Claim)
VOLUMES = Kind("persistentvolumes", "/api/v1/persistentvolumes", storage_kinds.Volume)
STORAGE_CLASSES = Kind("storageclasses", f"{_STORAGE}/storageclasses", storage_kinds.StorageClass)
CSI_NODES = Kind("csinodes", f"{_STORAGE}/csinodes", storage_kinds.CsiNode)
CSI_DRIVERS = Kind("csidrivers", f"{_STORAGE}/csidrivers", storage_kinds.CsiDriver)
ATTACHMENTS = Kind(
    "volumeattachments",
    f"{_STORAGE}/volumeattachments",
    storage_kinds.VolumeAttachment,
    without="volumes that are attached although no pod uses them do not count for limits of nodes",
)
CAPACITIES = Kind("csistoragecapacities", f"{_STORAGE}/csistoragecapacities", storage_kinds.Capacity)


def first_watches(
    source: Source, store: Store, options: WatchOptions, of_pods: Sequence[PodListener] = ()
) -> tuple[Watch[Any], ...]:
    """The watches that run from the start; no round begins before all have listed. `of_pods`: are told of pods."""
    namespaces: ObjectHandler[Any] = ObjectHandler(
        "namespace", by_name, store.observe_namespace, store.remove_namespace, store.metrics
    )
    disruption_budgets: ObjectHandler[Any] = ObjectHandler(
        "disruption budget", by_namespace, store.budgets.put, store.budgets.drop, store.metrics
    )
    return (
        Watch(source, NODES, NodeHandler(store), options, metrics=store.metrics),
        Watch(source, NAMESPACES, namespaces, options, metrics=store.metrics),
        Watch(source, PODS, PodHandler(store, of_pods), options, metrics=store.metrics),
        Watch(source, BUDGETS, disruption_budgets, options, metrics=store.metrics),
    )


def service_watch(source: Source, store: Store, options: WatchOptions) -> Watch[Any]:
    """What runs from the start, too, if pods are spread by default."""
    services: ObjectHandler[Any] = ObjectHandler(
        "service", by_namespace, store.spreading.put_service, store.spreading.drop_service, store.metrics
    )
    return Watch(source, SERVICES, services, options, metrics=store.metrics)


def storage_watches(source: Source, store: Store, options: WatchOptions) -> tuple[Watch[Any], ...]:
    """The watches that run from the first pod with a claim on."""
    storage, metrics = store.storage, store.metrics
    handlers: tuple[tuple[Kind[Any], ObjectHandler[Any]], ...] = (
        (STORAGE_CLASSES, ObjectHandler("class", by_name, storage.put_class, storage.drop_class, metrics)),
        (CSI_DRIVERS, ObjectHandler("driver", by_name, storage.put_driver, storage.drop_driver, metrics)),
        (CSI_NODES, ObjectHandler("csi node", by_name, storage.put_csi_node, storage.drop_csi_node, metrics)),
        (
            CAPACITIES,
            ObjectHandler("capacity", by_namespace, storage.put_capacity, storage.drop_capacity, metrics),
        ),
        (
            ATTACHMENTS,
            ObjectHandler("attachment", by_name, storage.put_attachment, storage.drop_attachment, metrics),
        ),
        (VOLUMES, ObjectHandler("volume", by_name, storage.put_volume, storage.drop_volume, metrics)),
        (CLAIMS, ObjectHandler("claim", by_namespace, storage.put_claim, storage.drop_claim, metrics)),
    )
    return tuple(Watch(source, kind, handler, options, metrics=metrics) for kind, handler in handlers)
