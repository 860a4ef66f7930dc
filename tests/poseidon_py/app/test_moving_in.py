"""The commands of docs/moving-in.md, with kubectl, on the synthetic cluster. In the thorough profile alone.

The test plays the other schedulers, and binds their pods.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest

from benchmarks.cluster.api.binding import bind
from benchmarks.cluster.store.kinds import LEASES
from deploy.tools import ToolsError, tools
from poseidon_py.kube.informers import informers
from poseidon_py.state.queues import watches
from tests.effort import NO_HELM, THOROUGH
from tests.paths import ROOT
from tests.poseidon_py.app.queue_kinds import declare, install, install_kai, install_volcano
from tests.poseidon_py.gang_world import World, template
from tests.poseidon_py.world import world_of

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.skipif(not THOROUGH, reason="make test-thorough runs it"),
]

KUEUE = "kueue.x-k8s.io/v1beta2"
LIMIT = 4
"""Cores of the queue."""


@dataclass(frozen=True)
class Source:
    """What is moved from. `namespace`, `controller`: the Deployment that counts its quotas."""

    title: str
    scheduler: str
    kind: str = ""
    namespace: str = ""
    controller: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


SOURCES = [
    Source("kube-scheduler", "default-scheduler"),
    Source(
        "Kueue", "default-scheduler", "kueue", "kueue-system", "kueue-controller-manager",
        labels={"kueue.x-k8s.io/queue-name": "team-a"},
    ),
    Source(
        "Volcano", "volcano", "volcano", "volcano-system", "volcano-scheduler",
        annotations={"scheduling.volcano.sh/queue-name": "team-a"},
    ),
    Source(
        "KAI", "kai-scheduler", "kai", "kai-scheduler", "kai-scheduler-default",
        labels={"kai.scheduler/queue": "team-a"},
    ),
]  # fmt: skip


def commands(title: str) -> dict[int, list[list[str]]]:
    """The lines of kubectl in the section of the page, by the number of their step."""
    page = (ROOT / "docs" / "moving-in.md").read_text()
    (section,) = (each for each in page.split("\n## ") if each.startswith(f"From {title}\n"))
    found: dict[int, list[list[str]]] = defaultdict(list)
    step = 0
    for line in section.splitlines():
        if start := re.match(r"(\d)\. ", line):
            step = int(start[1])
        elif line.startswith("       kubectl "):
            found[step].append(shlex.split(line))
    return found


class MovingWorld(World):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.placed_by_other: set[str] = set()
        self.any_node = self.cluster.add_nodes(1, prefix="other-")[0]

    async def kubectl(self, arguments: list[str]) -> None:
        try:
            program = tools() / "kubectl"
        except ToolsError as error:
            pytest.skip(NO_HELM + str(error))
        process = await asyncio.create_subprocess_exec(
            str(program), f"--kubeconfig={self.folder / 'kubeconfig'}", *arguments[1:],
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()

    def install_source(self, source: Source) -> None:
        if source.kind == "kueue":
            install(self.cluster, "ClusterQueue", "LocalQueue", "ResourceFlavor")
            amounts = {"cpu": LIMIT, "memory": "1Ti"}
            resources = [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
            groups = [{"coveredResources": list(amounts), "flavors": [{"name": "all", "resources": resources}]}]
            declare(self.cluster, KUEUE, "ResourceFlavor", "all", {})
            declare(self.cluster, KUEUE, "ClusterQueue", "q", {"resourceGroups": groups, "namespaceSelector": {}})
            declare(self.cluster, KUEUE, "LocalQueue", "team-a", {"clusterQueue": "q"}, "default")
        elif source.kind == "volcano":
            install_volcano(self.cluster)
            declare(self.cluster, "scheduling.volcano.sh/v1beta1", "Queue", "team-a", {"capability": {"cpu": LIMIT}})
        elif source.kind == "kai":
            install_kai(self.cluster)
            free, cpu = {"quota": 0, "limit": -1}, {"quota": 1000 * LIMIT, "limit": 1000 * LIMIT}
            spec = {"resources": {"cpu": cpu, "memory": free, "gpu": free}}
            declare(self.cluster, "scheduling.run.ai/v2", "Queue", "team-a", spec)
        if source.namespace:
            self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": source.namespace}})
            self.deploy(source.controller, 1, "nobody", {"app": "controller"}, source.namespace)

    def deploy(
        self, name: str, replicas: int, scheduler: str, labels: dict[str, str], namespace: str = "default", **keys: Any
    ) -> None:
        pods = template("1", scheduler=scheduler, labels={**labels, "name": name}, **keys)
        pods["spec"]["restartPolicy"] = "Always"
        spec = {"replicas": replicas, "selector": {"matchLabels": {"name": name}}, "template": pods}
        metadata = {"name": name, "namespace": namespace}
        self.cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})

    def of(self, scheduler: str, prefix: str = "trainer-") -> dict[str, str]:
        """Pods that name the scheduler -> their nodes."""
        return {
            name: pod["spec"].get("nodeName", "")
            for name, pod in self.pods.items()
            if name.startswith(prefix) and pod["spec"]["schedulerName"] == scheduler
        }

    def place(self, scheduler: str, prefix: str = "trainer-") -> None:
        """As the other scheduler does. None of its pods has been bound by another one before."""
        for name, node in self.of(scheduler, prefix).items():
            if not node:
                body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": self.any_node}}
                bind(self.cluster.api, "default", name, body)
                self.placed_by_other.add(name)

    def rolled_over(self, before: str, after: str, *, by_other: bool) -> bool:
        if by_other:
            self.place(after)
        now = self.of(after)
        return not self.of(before) and len(now) == 2 and set(now) <= self.running("trainer-")


@pytest.fixture
async def world(tmp_path, monkeypatch):
    monkeypatch.setattr(watches, "RECHECK", 0.1)
    monkeypatch.setattr(informers, "RECHECK", 0.1)
    async with world_of(MovingWorld, tmp_path) as world:
        yield world


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.title)
async def test_queue_by_queue_with_running_jobs_and_back(world, source):
    steps = commands(source.title)
    assert sorted(steps) == ([2, 3, 4] if source.kind else [2, 4])
    world.install_source(source)
    keys = {"annotations": source.annotations}
    world.deploy("trainer", 2, source.scheduler, source.labels, **keys)
    world.cluster.add_pods(1, template("1", scheduler=source.scheduler, labels=source.labels, **keys), prefix="old-")
    await world.until(lambda: len(world.of(source.scheduler)) == 2)
    for prefix in ("trainer-", "old-"):
        world.place(source.scheduler, prefix)
    # 1. beside it: nothing changes
    bridge = await world.bridge(queue_takeover_after=0.5)
    if source.kind:
        await world.until(lambda: bridge.store.queues.kinds.running.get(source.kind))
    (old,) = (pod["metadata"]["uid"] for name, pod in world.pods.items() if name.startswith("old-"))
    # 2. the workloads of a queue
    for command in steps[2]:
        await world.kubectl(command)
    await world.until(lambda: world.rolled_over(source.scheduler, "poseidon", by_other=False))
    # 3. the quotas: what runs counts, whoever placed it
    if source.kind:
        for command in steps[3]:
            await world.kubectl(command)
        await world.until(lambda: bridge.store.queues.active.kind == source.kind)
        world.cluster.add_pods(2, template("1", labels=source.labels, **keys), prefix="new-")
        await world.until(lambda: len(world.bound("new-")) == 1)
        waiting = ({"new-0000", "new-0001"} - world.bound("new-")).pop()
        await world.until(lambda: "WaitingForQuota" in str(world.pods[waiting]["status"].get("conditions")))
        assert {pod["metadata"]["uid"] for name, pod in world.pods.items() if name.startswith("old-")} == {old}
        world.delete("old-0000")
        await world.until(lambda: len(world.bound("new-")) == 2)
    # 4. back
    by_us = world.bound("new-")
    for command in steps[4]:
        await world.kubectl(command)
    await world.until(lambda: world.rolled_over("poseidon", source.scheduler, by_other=True))
    assert set(world.of(source.scheduler)) <= world.placed_by_other
    if source.kind:
        await world.until(lambda: bridge.store.queues.active.kind != source.kind)
    await world.stop(bridge)
    assert world.bound("new-") == by_us <= world.running("new-")
    world.check()


async def test_the_lease_of_kube_scheduler_decides_which_of_the_two_schedules(world):
    """Step 3 from kube-scheduler, by the commands of docs/install.md."""
    holder = {
        "holderIdentity": "kube-scheduler",
        "leaseDurationSeconds": 15,
        "renewTime": "2099-01-01T00:00:00.000000Z",
    }
    metadata = {"name": "kube-scheduler", "namespace": "kube-system"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": holder}
    world.cluster.create(lease)
    fast = {"lease_duration": 3.0, "renew_deadline": 2.0, "retry_period": 0.1}
    names = {"scheduler_name": ("default-scheduler",), "lease_name": "kube-scheduler"}
    bridge = await world.bridge(leader_elect=True, **names, **fast)
    world.cluster.add_pods(3, template(scheduler="default-scheduler"), prefix="pod-")
    await world.until(lambda: len(bridge.store.pods) == 3)
    assert not bridge.election.leading
    found = world.cluster.get(LEASES, "kube-scheduler", "kube-system")
    found["spec"]["holderIdentity"] = ""  # kube-scheduler releases it when it stops
    world.cluster.api.update(LEASES, "kube-system", "kube-scheduler", found)
    await world.until(lambda: len(world.bound("pod-")) == 3)
    await world.stop(bridge)
    assert not world.cluster.get(LEASES, "kube-scheduler", "kube-system")["spec"].get("holderIdentity")
    world.check()
