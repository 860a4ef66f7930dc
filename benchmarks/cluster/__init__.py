"""A synthetic cluster that speaks the Kubernetes HTTP API on loopback.

Import direction, each line may import only from lines below it:

    __main__ > cli > cluster > (admin: sees cluster only as a type)
    http, controllers, bootstrap
    subresources, tables, watches, lists, usage, kubelets, node_life and the other controllers one by one
    controller, pod_status
    binding > deletion > api
    views, custom_columns, kind_columns, protobuf, nodes, affinity, load
    store, schema, columns, pod_columns, patches, validation, defaults, resources, discovery, paths
    selectors, settings
    errors, kinds, messages, faults, audit, clock, amounts
"""

from benchmarks.cluster.cluster import Cluster
from benchmarks.cluster.http.faults import Rule, WatchFaults
from benchmarks.cluster.settings import ClusterSettings, NodeShape, RunTime

__all__ = ["Cluster", "ClusterSettings", "NodeShape", "Rule", "RunTime", "WatchFaults"]
