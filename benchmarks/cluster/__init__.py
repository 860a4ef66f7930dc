"""A synthetic cluster that speaks the Kubernetes HTTP API on loopback."""

from benchmarks.cluster.cluster import Cluster
from benchmarks.cluster.http.faults import Rule, WatchFaults
from benchmarks.cluster.settings import ClusterSettings, NodeShape, RunTime

__all__ = ["Cluster", "ClusterSettings", "NodeShape", "Rule", "RunTime", "WatchFaults"]
