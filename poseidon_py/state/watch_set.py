"""Which watches there are, and which handlers they feed."""

from collections.abc import Sequence
from typing import Any

from poseidon_py.kube import list_watch as kinds
from poseidon_py.kube.list_watch import Kind, Source, Watch, WatchOptions
from poseidon_py.state.handlers import NodeHandler, PodHandler
from poseidon_py.state.listeners import PodListener
from poseidon_py.state.object_handler import ObjectHandler, by_name, by_namespace
from poseidon_py.state.store import Store


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
        Watch(source, kinds.NODES, NodeHandler(store), options, metrics=store.metrics),
        Watch(source, kinds.NAMESPACES, namespaces, options, metrics=store.metrics),
        Watch(source, kinds.PODS, PodHandler(store, of_pods), options, metrics=store.metrics),
        Watch(source, kinds.BUDGETS, disruption_budgets, options, metrics=store.metrics),
    )


def service_watch(source: Source, store: Store, options: WatchOptions) -> Watch[Any]:
    """What runs from the start, too, if pods are spread by default."""
    services: ObjectHandler[Any] = ObjectHandler(
        "service", by_namespace, store.spreading.put_service, store.spreading.drop_service, store.metrics
    )
    return Watch(source, kinds.SERVICES, services, options, metrics=store.metrics)


def storage_watches(source: Source, store: Store, options: WatchOptions) -> tuple[Watch[Any], ...]:
    """The watches that run from the first pod with a claim on."""
    storage, metrics = store.storage, store.metrics
    handlers: tuple[tuple[Kind[Any], ObjectHandler[Any]], ...] = (
        (kinds.STORAGE_CLASSES, ObjectHandler("class", by_name, storage.put_class, storage.drop_class, metrics)),
        (kinds.CSI_DRIVERS, ObjectHandler("driver", by_name, storage.put_driver, storage.drop_driver, metrics)),
        (kinds.CSI_NODES, ObjectHandler("csi node", by_name, storage.put_csi_node, storage.drop_csi_node, metrics)),
        (
            kinds.CAPACITIES,
            ObjectHandler("capacity", by_namespace, storage.put_capacity, storage.drop_capacity, metrics),
        ),
        (
            kinds.ATTACHMENTS,
            ObjectHandler("attachment", by_name, storage.put_attachment, storage.drop_attachment, metrics),
        ),
        (kinds.VOLUMES, ObjectHandler("volume", by_name, storage.put_volume, storage.drop_volume, metrics)),
        (kinds.CLAIMS, ObjectHandler("claim", by_namespace, storage.put_claim, storage.drop_claim, metrics)),
    )
    return tuple(Watch(source, kind, handler, options, metrics=metrics) for kind, handler in handlers)
