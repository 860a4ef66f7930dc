"""Which watches there are, and whom they tell."""

from typing import Any

from poseidon_py.kube import list_watch as kinds
from poseidon_py.kube.list_watch import Kind, Source, Watch, WatchOptions
from poseidon_py.state.handlers import NodeFollower, ObjectFollower, PodFollower, by_name, by_namespace
from poseidon_py.state.store import Store


def first_watches(source: Source, store: Store, options: WatchOptions) -> tuple[Watch[Any], ...]:
    """Those that run all the time; no round begins before all have listed."""
    namespaces: ObjectFollower[Any] = ObjectFollower(
        "namespace", by_name, store.observe_namespace, store.remove_namespace, store.metrics
    )
    return (
        Watch(source, kinds.NODES, NodeFollower(store), options, metrics=store.metrics),
        Watch(source, kinds.NAMESPACES, namespaces, options, metrics=store.metrics),
        Watch(source, kinds.PODS, PodFollower(store), options, metrics=store.metrics),
    )


def storage_watches(source: Source, store: Store, options: WatchOptions) -> tuple[Watch[Any], ...]:
    """Those that run once there is a pod with a claim."""
    storage, metrics = store.storage, store.metrics
    follow: tuple[tuple[Kind[Any], ObjectFollower[Any]], ...] = (
        (kinds.STORAGE_CLASSES, ObjectFollower("class", by_name, storage.put_class, storage.drop_class, metrics)),
        (kinds.CSI_DRIVERS, ObjectFollower("driver", by_name, storage.put_driver, storage.drop_driver, metrics)),
        (kinds.CSI_NODES, ObjectFollower("csi node", by_name, storage.put_csi_node, storage.drop_csi_node, metrics)),
        (
            kinds.CAPACITIES,
            ObjectFollower("capacity", by_namespace, storage.put_capacity, storage.drop_capacity, metrics),
        ),
        (kinds.VOLUMES, ObjectFollower("volume", by_name, storage.put_volume, storage.drop_volume, metrics)),
        (kinds.CLAIMS, ObjectFollower("claim", by_namespace, storage.put_claim, storage.drop_claim, metrics)),
    )
    return tuple(Watch(source, kind, follower, options, metrics=metrics) for kind, follower in follow)
