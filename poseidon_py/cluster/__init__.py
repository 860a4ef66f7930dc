"""A synthetic cluster that speaks the Kubernetes HTTP API on loopback.

Import direction, each line may import only from lines below it:

    cli, __main__
    cluster, admin, bootstrap
    http, controllers
    subresources, tables, watches, lists, usage, kubelets, node_life, the controllers one by one
    binding, deletion, pod_status
    api
    views, paths, discovery, columns, patches, validation, defaults, affinity, resources, nodes
    store
    selectors, faults, audit
    errors, kinds, clock, amounts, settings
"""

from poseidon_py.cluster.cluster import Cluster
from poseidon_py.cluster.faults import Rule, WatchFaults
from poseidon_py.cluster.settings import ClusterSettings, NodeShape, RunTime

__all__ = ["Cluster", "ClusterSettings", "NodeShape", "Rule", "RunTime", "WatchFaults"]
