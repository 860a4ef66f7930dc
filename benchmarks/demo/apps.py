"""The demo's workload as manifests: services, batch jobs, GPU jobs, bare pods, and pods that cannot run.

Amounts follow from the cluster, so that every size shows the same picture: services request about 60 % of the cpu of
untainted nodes, batch jobs another third until they end, and a large Deployment more than is then free on single nodes;
GPU jobs request 1.5 times the GPUs there are, and a few pods request what no node offers. Pods of services may be moved
for others. Urgent pods come last, of a higher priority than all others.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cluster.nodes.kubelets import RUN_SECONDS
from benchmarks.cluster.store.quantities import show
from benchmarks.demo.disruptions import Budget
from benchmarks.demo.workload import (
    CARD_CLASS,
    CARDS_PER_NODE,
    GPU,
    GPU_TOLERATION,
    MIXED,
    POOL_LABEL,
    PodSort,
    allocatable,
    open_capacity,
    pod_sorts,
    shape_of_each,
)

Json = dict[str, Any]

KIND_LABEL = "demo.poseidon.io/kind"
GANG = "poseidon.io/gang"
MOVABLE = "poseidon.io/movable"
NAMESPACE = "default"
_SERVICES_FILL, _BATCH_FILL, _LARGE_FILL, _GANG_FILL = 0.6, 0.35, 0.4, 0.05
LARGE, URGENT = "large", "urgent"
"""Kinds of pods. The second ones are as large as the first ones, and are submitted when these find no node; their
priority class has the same name."""
_URGENT_PRIORITY = 1000
_PODS_PER_APP = 40
_GPU_DEMAND = 1.5
_DISRUPTED: Json = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
"""A Job replaces pods that are preempted, instead of failing."""


@dataclass(frozen=True, slots=True)
class App:
    """One object to create: `path` is its collection, `pods` the number of pods that it makes, all of a kind."""

    kind: str
    path: str
    manifest: Json
    pods: int


def demo_apps(nodes: int, pods: int, scheduler: str, seed: int) -> list[App]:
    """Manifests that make exactly `pods` pods, in random order, but for the large Deployment and the urgent one, which
    are last."""
    return _Mix(nodes, pods, scheduler, seed).apps()


def priority_class() -> App:
    """The class of the urgent pods."""
    manifest = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": URGENT}}
    return App("", "/apis/scheduling.k8s.io/v1/priorityclasses", manifest | {"value": _URGENT_PRIORITY}, 0)


def card_templates() -> list[App]:
    """What claims of network cards ask for: one, or all of a node."""
    path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaimtemplates"
    found = []
    for count in range(1, CARDS_PER_NODE + 1):
        request = {"name": "card", "exactly": {"deviceClassName": CARD_CLASS, "count": count}}
        manifest = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": _cards(count)},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        }
        found.append(App("", path, manifest, 0))
    return found


def _cards(count: int) -> str:
    """The name of the template for so many."""
    return f"cards-{count}"


def demo_budgets(apps: Sequence[App]) -> list[Budget]:
    """Each service may lack an eighth of its pods, at least one."""
    return [
        Budget(
            app.manifest["metadata"]["name"],
            app.manifest["spec"]["selector"]["matchLabels"],
            app.pods - max(app.pods // 8, 1),
        )
        for app in apps
        if app.kind == "service"
    ]


def budget_manifest(budget: Budget) -> App:
    """The object of a budget."""
    spec = {"minAvailable": budget.available, "selector": {"matchLabels": dict(budget.labels)}}
    manifest = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": budget.name}}
    path = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
    return App("", path, manifest | {"spec": spec}, 0)


class _Mix:
    def __init__(self, nodes: int, pods: int, scheduler: str, seed: int) -> None:
        self._rng = random.Random(f"demo {seed}")
        self._seed = seed
        self._scheduler = scheduler
        self._nodes = nodes
        self._pods = pods
        self._offered = open_capacity(MIXED, nodes)
        self._shapes = list(shape_of_each(MIXED, nodes))
        self._gpus = sum(int(shape.extended.get(GPU, 0)) for shape in self._shapes)
        self._has_memory_pool = any(shape.labels.get(POOL_LABEL) == "memory" for shape in self._shapes)

    def apps(self) -> list[App]:
        impossible = self._impossible(min(max(3, self._pods // 100), self._pods // 4))
        gpu = self._gpu_jobs(self._pods * 15 // 100)
        large_pods = min(self._pods // 20, max(1, self._nodes // 2))
        large = self._large(large_pods)
        gang = self._gangs(self._pods // 10)
        urgent = self._urgent(self._pods // 50, large_pods)
        device = self._devices(self._pods // 20)
        others = self._pods - sum(app.pods for app in (*impossible, *gpu, *large, *gang, *device, *urgent))
        bare, batch = others // 20, others * 2 // 5
        service = others - bare - batch
        apps = [*impossible, *gpu, *gang, *device, *self._services(service), *self._batch(batch), *self._bare(bare)]
        self._rng.shuffle(apps)
        return [*apps, *large, *urgent]  # last, when the nodes are in use

    def _services(self, pods: int) -> list[App]:
        apps = []
        for i, (sort, count) in enumerate(self._sorts("service", pods, _SERVICES_FILL)):
            selector = {POOL_LABEL: "memory"} if self._has_memory_pool and i % 8 == 7 else {}
            pod = self._pod("service", sort, selector)
            pod["metadata"]["annotations"] = {MOVABLE: "true"}
            apps.append(self._deployment("service", sort.name, count, pod))
        return apps

    def _batch(self, pods: int) -> list[App]:
        return [
            self._job("batch", sort.name, count, self._pod("batch", sort, seconds=self._rng.uniform(2.0, 6.0)))
            for sort, count in self._sorts("batch", pods, _BATCH_FILL)
        ]

    def _bare(self, pods: int) -> list[App]:
        apps = []
        for i in range(pods):
            sort = PodSort("bare", 100, 2**28)
            manifest = {"apiVersion": "v1", "kind": "Pod", **self._pod("bare", sort)}
            manifest["metadata"] = {**manifest["metadata"], "name": f"bare-{i:04d}"}
            apps.append(App("bare", f"/api/v1/namespaces/{NAMESPACE}/pods", manifest, 1))
        return apps

    def _large(self, pods: int) -> list[App]:
        """Pods that each need most of a node; for many there is none."""
        if not pods:
            return []
        sort = PodSort(LARGE, self._large_cpu(pods), 2**30)
        return [self._deployment(LARGE, LARGE, pods, self._pod(LARGE, sort))]

    def _large_cpu(self, pods: int) -> int:
        cpu = min(int(_LARGE_FILL * self._offered["cpu"] / pods), max(s["cpu"] for s in map(allocatable, self._shapes)))
        return max(100, min(cpu, 12_000) // 100 * 100)

    def _urgent(self, pods: int, large_pods: int) -> list[App]:
        """Pods of high priority, as large as the `large_pods` large ones."""
        if not pods:
            return []
        pod = self._pod(URGENT, PodSort(URGENT, self._large_cpu(large_pods), 2**30))
        pod["spec"]["priorityClassName"] = URGENT
        return [self._deployment(URGENT, URGENT, pods, pod)]

    def _gpu_jobs(self, max_pods: int) -> list[App]:
        """One in two runs forever, the others end."""
        apps: list[App] = []
        requested, pods = 0, 0
        while requested < _GPU_DEMAND * self._gpus and pods < max_pods:
            size = self._rng.choice((1, 1, 2, 4))
            count = min(max_pods - pods, self._rng.randint(1, 4))
            sort = PodSort(
                f"gpu-{len(apps):03d}", 2000 * size, size * 16 * 2**30, gpus=size, tolerations=(GPU_TOLERATION,)
            )
            seconds = None if len(apps) % 2 == 0 else self._rng.uniform(1.0, 2.5)
            apps.append(self._job("gpu", sort.name, count, self._pod("gpu", sort, seconds=seconds)))
            requested += size * count
            pods += count
        return apps

    def _gangs(self, max_pods: int) -> list[App]:
        """Jobs whose pods are placed together or not at all, by one annotation. They run forever: on a slow machine a
        member that ends could have ended before the last one was bound."""
        apps: list[App] = []
        pods = 0
        cpu = max(10, min(1000, int(_GANG_FILL * self._offered["cpu"] / max(max_pods, 1)) // 10 * 10))
        while max_pods - pods >= 2:
            count = min(max_pods - pods, self._rng.randint(2, 12))
            sort = PodSort(f"gang-{len(apps):03d}", cpu, 2**28)
            app = self._job("gang", sort.name, count, self._pod("gang", sort))
            app.manifest["metadata"]["annotations"] = {GANG: "all"}
            apps.append(app)
            pods += count
        return apps

    def _devices(self, max_pods: int) -> list[App]:
        """Jobs whose pods have a claim of network cards each; one in two runs forever, the others end."""
        apps: list[App] = []
        pods = 0
        while pods < max_pods:
            count, size = min(max_pods - pods, self._rng.randint(1, 5)), self._rng.randint(1, CARDS_PER_NODE)
            sort = PodSort(f"device-{len(apps):03d}", 100, 2**28)
            pod = self._pod("device", sort, seconds=None if len(apps) % 2 == 0 else self._rng.uniform(1.0, 2.5))
            pod["spec"]["resourceClaims"] = [{"name": "cards", "resourceClaimTemplateName": _cards(size)}]
            pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "cards"}]
            apps.append(self._job("device", sort.name, count, pod))
            pods += count
        return apps

    def _impossible(self, pods: int) -> list[App]:
        """Larger than any node; for a label that no node has; for nodes whose taint the pods do not tolerate."""
        giant = PodSort("giant", 1_000_000, 2**30)
        small = PodSort("small", 100, 2**28)
        cases: tuple[tuple[str, PodSort, Json], ...] = (
            ("too-large", giant, {}),
            ("nowhere", small, {POOL_LABEL: "nowhere"}),
            ("repelled", small, {POOL_LABEL: "gpu"}),
        )
        counts = [pods // 3 + (i < pods % 3) for i in range(3)]
        return [
            self._deployment("impossible", name, count, self._pod("impossible", sort, selector))
            for (name, sort, selector), count in zip(cases, counts, strict=True)
            if count
        ]

    def _sorts(self, kind: str, pods: int, fill: float) -> list[tuple[PodSort, int]]:
        """Sorts, and the number of pods of each."""
        if not pods:
            return []
        number = max(1, pods // _PODS_PER_APP)
        sorts = pod_sorts(number, pods, fill, self._offered, self._seed * 2 + (kind == "batch"))
        named = [PodSort(sort.name.replace("sort", kind), sort.cpu_milli, sort.memory_bytes) for sort in sorts]
        return [(sort, pods // number + (i < pods % number)) for i, sort in enumerate(named)]

    def _pod(self, kind: str, sort: PodSort, selector: Json | None = None, seconds: float | None = None) -> Json:
        """The metadata and spec of a pod."""
        requests = {name: show(name, amount) for name, amount in sort.requests.items()}
        resources: Json = {"requests": requests}
        if sort.gpus:
            resources["limits"] = {GPU: requests[GPU]}
        spec: Json = {
            "schedulerName": self._scheduler,
            "containers": [{"name": "main", "image": "example.com/app:1", "resources": resources}],
        }
        if selector:
            spec["nodeSelector"] = selector
        if sort.tolerations:
            spec["tolerations"] = [dict(one) for one in sort.tolerations]
        metadata: Json = {"labels": {KIND_LABEL: kind, "app": sort.name}}
        if seconds is not None:
            metadata["annotations"] = {RUN_SECONDS: f"{seconds:.1f}"}
        return {"metadata": metadata, "spec": spec}

    def _deployment(self, kind: str, name: str, count: int, pod: Json) -> App:
        pod["metadata"]["labels"]["app"] = name
        manifest = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"replicas": count, "selector": {"matchLabels": {"app": name}}, "template": pod},
        }
        return App(kind, f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", manifest, count)

    def _job(self, kind: str, name: str, count: int, pod: Json) -> App:
        if "annotations" not in pod["metadata"]:
            pod["metadata"]["annotations"] = {RUN_SECONDS: "1000000"}  # longer than any demo
        pod["spec"]["restartPolicy"] = "Never"
        spec = {"parallelism": count, "completions": count, "backoffLimit": 0, "template": pod}
        spec["podFailurePolicy"] = {"rules": [_DISRUPTED]}
        manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
        return App(kind, f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", manifest, count)
