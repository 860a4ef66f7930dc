"""All settings, in one frozen object; units are in the names."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.cluster.store.quantities import parse


@dataclass(frozen=True)
class NodeShape:
    """A shape of nodes. `weight` is its share among the shapes of a cluster."""

    cpu: str = "32"
    memory: str = "128Gi"
    ephemeral_storage: str = "200Gi"
    pods: int = 110
    extended: Mapping[str, str] = field(default_factory=dict)
    """Extended resources, such as {"nvidia.com/gpu": "8"}."""
    weight: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[tuple[str, int], ...] = ()
    """Devices that drivers publish, such as (("a100", 8), ("nic", 8)); the names are in nodes/devices/equipment.py."""
    taints: tuple[Mapping[str, str], ...] = ()
    reserved_cpu_milli: int = 0
    """Capacity that is not allocatable."""
    reserved_memory: str = "0"

    @property
    def instance_type(self) -> str:
        """The value of the node.kubernetes.io/instance-type label."""
        gpus = self.extended.get("nvidia.com/gpu")
        return f"sim-{self.cpu}c-{self.memory.lower()}" + (f"-{gpus}g" if gpus else "")

    @classmethod
    def parse(cls, text: str) -> NodeShape:
        """`cpu=16,memory=64Gi,pods=110,nvidia.com/gpu=4,weight=1`; Raises ValueError."""
        known: dict[str, str] = {}
        extended: dict[str, str] = {}
        labels: dict[str, str] = {}
        devices: list[tuple[str, int]] = []
        for part in filter(None, text.split(",")):
            name, equals, value = part.partition("=")
            name = {"gpu": "nvidia.com/gpu", "gpus": "nvidia.com/gpu", "mem": "memory"}.get(name, name)
            if not equals or not value:
                raise ValueError(f"{part!r} is not of the form NAME=VALUE, such as cpu=16")
            if name.startswith("label:"):
                labels[name.removeprefix("label:")] = value
                continue
            if name.startswith("device:"):
                devices.append(device_count(f"{name.removeprefix('device:')}={value}"))
                continue
            if parse(value) < 0:
                raise ValueError(f"{part!r} is negative; give 0 or more")
            if "/" in name:
                extended[name] = value
            elif name in ("cpu", "memory", "ephemeral-storage", "pods", "weight"):
                known[name] = value
            else:
                raise ValueError(
                    f"unknown resource {name!r}: use cpu, memory, ephemeral-storage, pods, weight, gpu or a "
                    "qualified name such as nvidia.com/gpu"
                )
        return cls(
            cpu=known.get("cpu", "32"),
            memory=known.get("memory", "128Gi"),
            ephemeral_storage=known.get("ephemeral-storage", "200Gi"),
            pods=int(parse(known.get("pods", "110"))),
            extended=extended,
            weight=int(parse(known.get("weight", "1"))),
            labels=labels,
            devices=tuple(devices),
        )


def device_count(text: str) -> tuple[str, int]:
    """`a100=8`. Raises ValueError."""
    name, equals, count = text.partition("=")
    if not equals or not count.isdecimal():
        raise ValueError(f"{text!r} is not of the form DEVICES=COUNT, such as a100=8")
    return name, int(count)


@dataclass(frozen=True)
class RunTime:
    """The run time of pods without an annotation for it that do not restart forever."""

    distribution: str = "forever"  # forever, fixed, uniform, exponential, lognormal
    a: float = 0.0  # seconds: the fixed time, the low end, the mean, or the median
    b: float = 0.0  # seconds: the high end (uniform); sigma without unit (lognormal)

    def draw(self, rng: random.Random) -> float | None:
        """Seconds, or None: forever."""
        match self.distribution:
            case "fixed":
                return self.a
            case "uniform":
                return rng.uniform(self.a, self.b)
            case "exponential":
                return rng.expovariate(1 / self.a) if self.a > 0 else 0.0
            case "lognormal":
                return self.a * rng.lognormvariate(0.0, self.b)
        return None

    @classmethod
    def parse(cls, text: str) -> RunTime:
        """`forever`, `30`, `uniform:10,60`, `exponential:30` or `lognormal:60,1.5`."""
        if text == "forever":
            return cls()
        found = re.fullmatch(r"(?:(fixed|uniform|exponential|lognormal):)?(\d+\.?\d*)(?:,(\d+\.?\d*))?", text)
        needs_two = found is not None and found[1] in ("uniform", "lognormal")
        if found is None or bool(found[3]) is not needs_two:
            raise ValueError(
                f"{text!r} is not a run time: use forever, SECONDS, uniform:LOW,HIGH, exponential:MEAN or "
                "lognormal:MEDIAN,SIGMA"
            )
        return cls(found[1] or "fixed", float(found[2]), float(found[3] or 0))


@dataclass(frozen=True)
class ClusterSettings:
    """A synthetic cluster."""

    nodes: int = 0
    shapes: tuple[NodeShape, ...] = (NodeShape(),)
    zones: int = 3
    racks_per_zone: int = 4
    node_prefix: str = "node-"
    host: str = "127.0.0.1"
    port: int = 0
    """0 picks a free one."""
    tls: tuple[Path, Path] | None = None
    """Files of a certificate and its key, both PEM; clients trust the certificate itself. None: plain HTTP."""
    token: str = ""
    """If set, requests must carry it as bearer token."""
    seed: int = 0
    run_time: RunTime = RunTime()
    start_seconds: float = 0.2
    """From bind to Running."""
    stop_seconds: float = 0.2
    """From deletion to removal, unless the grace period is shorter."""
    speed: float = 1.0
    """Simulated seconds per real second, for everything that takes time in the cluster."""
    bookmark_seconds: float = 60.0
    history: int = 65536
    """Number of changes kept per kind for watches; older versions answer 410."""
    heartbeat_seconds: float = 10.0
    """Interval at which a kubelet renews its lease; longer in large clusters (at most 200 renewals a second)."""
    node_grace_seconds: float = 4.0
    """Time from the last report of its kubelet until a node becomes Unknown."""
    job_backoff_seconds: float = 0.5
    """Before the first replacement of a Job's failed pod; doubles with each failure in a row, up to 6 min."""
    controllers: bool = True
    """Whether the workload, volume and node controllers run."""
    kubelets: bool = True
    """Whether bound pods run; otherwise they stay pending on their node."""
    device_pools: tuple[tuple[str, int], ...] = ()
    """Devices that are attached to the network: ("fabric", 16) for all nodes, ("zone-fabric", 4) in each zone."""
    device_versions: tuple[str, ...] = ("v1",)
    """Versions of resource.k8s.io that are served: v1, v1beta2, v1beta1, v1alpha3; none: Kubernetes before 1.32."""
    max_events: int = 100_000
    """Number of Event objects kept; the oldest are deleted first."""
