"""Pods, nodes and audits as an API server shows them, for the demo's checks."""

from benchmarks.demo.evidence import Evidence

GOOD_METRICS = {
    'poseidon_rounds_total{result="placed"}': 3.0,
    "poseidon_firmament_starts_total": 1.0,
    "poseidon_placements_dropped_total": 0.0,
}


def make_node(name="n1", cpu="4", memory="8Gi", pods="10", labels=None, taints=(), **extended):
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, **extended}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": allocatable},
    }


def make_pod(name="p1", node="", cpu="1", memory="1Gi", phase="", scheduler="poseidon", reason=None, **spec):
    """Without a node it is pending, with a condition unless `reason` is empty."""
    requests = {"cpu": cpu, "memory": memory}
    conditions = []
    reason = "Unschedulable" if reason is None else reason
    if not node and reason:
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": "0/1 nodes are available"}
        conditions.append(condition)
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {}},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
            **({"nodeName": node} if node else {}),
            **spec,
        },
        "status": {"phase": phase or ("Running" if node else "Pending"), "conditions": conditions},
    }


def audit(*entries):
    """(what, pod name, node) each."""
    return [
        {"what": what, "namespace": "default", "name": name, "uid": f"uid-{name}", "node": node}
        for what, name, node in entries
    ]


def make_evidence(pods, nodes=None, entries=None, **changes):
    """Valid evidence with `changes`; binds of the bound pods are in the audit unless `entries` are given."""
    if entries is None:
        entries = [
            ("bind", pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in pods if "nodeName" in pod["spec"]
        ]
    fields = {"audit": audit(*entries), "metrics": GOOD_METRICS, **changes}
    return Evidence(pods=pods, nodes=nodes or [make_node()], **fields)
