"""Node objects as a kubelet would register them."""

from __future__ import annotations

from typing import Any

from benchmarks.cluster.settings import NodeShape
from benchmarks.cluster.store.clock import now_text
from benchmarks.cluster.store.quantities import show, units

Json = dict[str, Any]

RACK_LABEL = "topology.kubernetes.io/rack"
KUBELET_VERSION = "v1.36.0"


def node_object(name: str, index: int, shape: NodeShape, zone: str, rack: str, region: str = "sim") -> Json:
    """A ready node."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": shape.instance_type,
        "topology.kubernetes.io/region": region,
        **({"topology.kubernetes.io/zone": zone} if zone else {}),
        **({RACK_LABEL: rack} if rack else {}),
        **shape.labels,
    }
    capacity = {
        "cpu": shape.cpu,
        "ephemeral-storage": shape.ephemeral_storage,
        "memory": shape.memory,
        "pods": str(shape.pods),
        **shape.extended,
    }
    allocatable = {
        **capacity,
        "cpu": show("cpu", units("cpu", shape.cpu) - shape.reserved_cpu_milli),
        "memory": show("memory", units("memory", shape.memory) - units("memory", shape.reserved_memory)),
    }
    address = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
    spec: Json = {"podCIDR": "", "providerID": f"sim://{name}"}
    if shape.taints:
        spec["taints"] = [dict(taint) for taint in shape.taints]
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": conditions(now_text()),
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "simulated://1.0",
                "kernelVersion": "6.0.0-sim",
                "kubeProxyVersion": "",
                "kubeletVersion": KUBELET_VERSION,
                "machineID": name,
                "operatingSystem": "linux",
                "osImage": "Simulated Linux",
                "systemUUID": name,
            },
            "images": [],
        },
    }


def conditions(now: str) -> list[Json]:
    """The conditions of a healthy node."""
    conditions = (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    )
    return [
        {
            "type": type_,
            "status": status,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        for type_, status, reason, message in conditions
    ]
