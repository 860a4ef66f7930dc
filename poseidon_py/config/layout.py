"""Where each setting is in a PoseidonConfiguration: section -> key -> field of Settings.

Names are those of KubeSchedulerConfiguration where the meaning is the same. The settings of scheduler names and of the
policy are elsewhere, since they belong to a profile (document.py).
"""

from collections.abc import Iterator, Mapping
from typing import Any

API_VERSION, KIND = "poseidon.io/v1", "PoseidonConfiguration"

PROFILES = "profiles"
OF_PROFILES = ("scheduler_name", "policy", "policy_option")
"""The settings that profiles hold."""

LAYOUT: Mapping[str, Mapping[str, Any]] = {
    "clientConnection": {
        "kubeconfig": "kubeconfig",
        "context": "context",
        "qps": "kube_api_qps",
        "burst": "kube_api_burst",
    },
    "leaderElection": {
        "leaderElect": "leader_elect",
        "leaseDuration": "lease_duration",
        "renewDeadline": "renew_deadline",
        "retryPeriod": "retry_period",
        "resourceName": "lease_name",
        "resourceNamespace": "lease_namespace",
    },
    "placement": {
        "bandwidth": "bandwidth",
        "linkBandwidth": "link_bandwidth",
        "defaultSpreading": "default_spreading",
        "addedNodeAffinity": "added_node_affinity",
        "improve": "improve",
    },
    "usage": {
        "basis": "usage",
        "samples": "usage_samples",
        "halfLife": "usage_half_life",
        "staleAfter": "usage_stale",
        "interval": "usage_interval",
        "prometheus": {
            "url": "prometheus_url",
            "tokenFile": "prometheus_token_file",
            "caFile": "prometheus_ca",
            "queries": "prometheus_queries",
        },
    },
    "gangs": {
        "from": "gangs_from",
        "timeout": "gang_timeout",
        "reserveAfter": "gang_reserve_after",
        "unwind": "gang_unwind",
    },
    "preemption": {
        "enabled": "preemption",
        "beyondBudgets": "preempt_beyond_budgets",
        "notice": "preemption_notice",
        "longestNotice": "longest_preemption_notice",
        "protectedPriorityClasses": "protected_priority_classes",
    },
    "moves": {
        "when": "migrate",
        "after": "migrate_after",
        "atOnce": "moves_at_once",
        "perHour": "moves_per_hour",
    },
    "devices": {"claims": "devices"},
    "queues": {
        "kind": "queues",
        "unit": "queue_unit",
        "takeoverAfter": "queue_takeover_after",
        "suspendWorkloads": "suspend_workloads",
        "resumedPods": "resumed_pods",
        "drainRate": "queue_drain_rate",
        "halfLife": "queue_half_life",
        "usageWeight": "queue_usage_weight",
        "yunikornFile": "yunikorn_queues",
    },
    "jobs": {"ended": "ended_jobs", "endedFor": "ended_jobs_seconds", "hooksFile": "hooks"},
    "rounds": {
        "window": "batch_window",
        "longestWindow": "batch_window_max",
        "podWorkers": "pod_workers",
        "nodeWorkers": "node_workers",
    },
    "binding": {
        "concurrency": "bind_concurrency",
        "timeout": "bind_timeout",
        "patience": "bind_patience",
        "volumeTimeout": "volume_timeout",
    },
    "events": {"rate": "event_rate", "concurrency": "event_concurrency"},
    "watches": {"pageSize": "list_page", "timeout": "watch_timeout", "silence": "watch_silence"},
    "flowService": {
        "address": "firmament_address",
        "caFile": "firmament_ca_file",
        "certFile": "firmament_cert_file",
        "keyFile": "firmament_key_file",
        "insecure": "firmament_insecure",
        "statsAddress": "stats_address",
        "batchSize": "batch_size",
        "timeout": "rpc_timeout",
        "arguments": "firmament_args",
    },
    "serving": {
        "healthAddress": "health_address",
        "healthPort": "health_port",
        "bindAddress": "bind_address",
        "securePort": "secure_port",
        "dashboard": "dashboard",
        "certFile": "tls_cert_file",
        "keyFile": "tls_private_key_file",
    },
    "process": {"startupTimeout": "startup_timeout", "shutdownTimeout": "shutdown_timeout"},
    "logging": {"level": "log_level", "format": "log_format"},
}

HEADINGS: Mapping[str, str] = {
    "clientConnection": "Cluster",
    PROFILES: "Schedulers and policy",
    "leaderElection": "Leader election",
    "placement": "Placement",
    "usage": "Measured usage",
    "gangs": "Gangs",
    "preemption": "Preemption",
    "moves": "Moves of running pods",
    "devices": "Devices",
    "queues": "Queues",
    "jobs": "Jobs",
    "rounds": "Rounds",
    "binding": "Binding",
    "events": "Events",
    "watches": "Watches",
    "flowService": "Flow service",
    "serving": "Health and metrics",
    "process": "Start and stop",
    "logging": "Logs",
}
"""Section -> its name in helps."""


def _places(within: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key, value in within.items():
        if isinstance(value, str):
            yield value, (*above, key)
        else:
            yield from _places(value, (*above, key))


PLACES: Mapping[str, tuple[str, ...]] = dict(_places(LAYOUT))
"""Field of Settings -> its path; without those of profiles."""


PATHS: Mapping[str, str] = {
    **{name: ".".join(place) for name, place in PLACES.items()},
    "scheduler_name": f"{PROFILES}[].schedulerName",
    "policy": f"{PROFILES}[].policy.name",
    "policy_option": f"{PROFILES}[].policy.options",
}
"""Field of Settings -> its path in messages."""


def section_of(name: str) -> str:
    """The section of a field of Settings, empty for other names."""
    if name in OF_PROFILES:
        return PROFILES
    return PLACES.get(name, ("",))[0]
