"""Plain kubectl with claims, classes, slices and rules."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import yaml

from benchmarks.cluster import Cluster, NodeShape
from benchmarks.cluster.api.patches import MERGE_PATCH
from benchmarks.cluster.store.device_kinds import FINALIZER, RESOURCE_CLAIMS
from benchmarks.cluster.store.kinds import PODS
from tests.benchmarks.cluster.builders import until
from tests.benchmarks.cluster.device_builders import (
    allocation,
    claim,
    claim_template,
    consumer,
    pod_with_claim,
    request,
    taint_rule,
)

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

Run = Callable[..., Awaitable[str]]


@pytest.fixture
def ctl(kubectl: Callable[..., subprocess.CompletedProcess[str]]) -> Run:
    """kubectl's output, or with `fails`, what it complains about."""

    async def run(*arguments: str, fails: bool = False, **options: Any) -> str:
        done = await asyncio.to_thread(kubectl, *arguments, **options)
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stderr if fails else done.stdout

    return run


def manifests(*objects: Any) -> str:
    return yaml.safe_dump_all(objects)


async def test_devices_are_got_and_described(ctl, cluster):
    cluster.add_nodes(1, NodeShape(devices=(("a100", 2), ("nic", 2))), prefix="gpu-")
    lines = (await ctl("get", "resourceslices")).splitlines()
    assert lines[0].split() == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert sorted(tuple(line.split()[1:4]) for line in lines[1:]) == [
        ("gpu-00003", "dra.net", "gpu-00003"),
        ("gpu-00003", "gpu.nvidia.com", "gpu-00003"),
    ]
    assert "gpu.nvidia.com" in await ctl("get", "deviceclasses")
    assert "Extended Resource Name:  nvidia.com/gpu" in await ctl("describe", "deviceclass", "gpu.nvidia.com")
    described = await ctl("describe", "resourceslices")
    assert "NVIDIA A100-SXM4-40GB" in described
    selected = await ctl("get", "resourceslices", "--field-selector=spec.driver=dra.net", "-o", "name")
    assert len(selected.splitlines()) == 1


async def test_a_claim_from_its_manifest_to_its_end(ctl, cluster):
    text = manifests(claim_template(), claim("c", request(count=2)), pod_with_claim("p", template="t"))
    assert (await ctl("apply", "-f", "-", stdin=text)).splitlines() == [
        "resourceclaimtemplate.resource.k8s.io/t created",
        "resourceclaim.resource.k8s.io/c created",
        "pod/p created",
    ]
    assert "unchanged" in await ctl("apply", "-f", "-", stdin=text)
    await until(lambda: len(cluster.objects(RESOURCE_CLAIMS)) == 2)
    lines = (await ctl("get", "resourceclaims")).splitlines()
    assert lines[0].split() == ["NAME", "STATE", "AGE"]
    assert [line.split()[1] for line in lines[1:]] == ["pending", "pending"]
    changed = manifests(claim("c", request(count=3)))
    assert "spec: Invalid value" in await ctl("apply", "-f", "-", fails=True, stdin=changed)
    generated = "jsonpath={.status.resourceClaimStatuses[0].resourceClaimName}"
    assert (await ctl("get", "pod", "p", "-o", generated)).startswith("p-gpu-")
    uid = cluster.get(PODS, "p")["metadata"]["uid"]
    await ctl("patch", "resourceclaim", "c", "--type=merge", "-p", f'{{"metadata":{{"finalizers":["{FINALIZER}"]}}}}')
    status = {"status": {"allocation": allocation(), "reservedFor": [consumer("p", uid)]}}
    cluster.api.patch(RESOURCE_CLAIMS, "default", "c", status, MERGE_PATCH, "status")
    assert "allocated,reserved" in await ctl("get", "resourceclaim", "c")
    assert "gpu.example.com" in await ctl("describe", "resourceclaim", "c")
    await ctl("delete", "resourceclaim", "c", "--wait=false")
    assert "deleted,allocated,reserved" in await ctl("get", "resourceclaim", "c")
    patch = f'{{"status":{{"reservedFor":[{{"$patch":"delete","uid":"{uid}"}}]}}}}'
    await ctl("patch", "resourceclaim", "c", "--subresource=status", "--type=strategic", "-p", patch)
    await until(lambda: len(cluster.objects(RESOURCE_CLAIMS)) == 1)


async def test_a_rule_is_applied_by_the_server(ctl, cluster):
    text = manifests(taint_rule(driver="gpu.example.com"))
    assert "serverside-applied" in await ctl("apply", "--server-side", "-f", "-", stdin=text)
    lines = (await ctl("get", "devicetaintrules")).splitlines()
    assert lines[0].split() == ["NAME", "KEY", "VALUE", "EFFECT", "TIMEADDED", "AGE"]
    assert lines[1].split()[:3] == ["r", "example.com/broken", "NoExecute"]

    def conditions() -> Any:
        (rule,) = [one for one in cluster.objects(rules) if one["metadata"]["name"] == "r"]
        return rule["status"].get("conditions")

    rules = cluster.kinds.find("resource.k8s.io", "v1", "devicetaintrules")
    await until(conditions)
    assert "NotStarted" in await ctl("describe", "devicetaintrule", "r")


async def test_kubectl_waits_for_a_claim(ctl, cluster: Cluster):
    cluster.create(claim())
    waiting = asyncio.create_task(
        ctl("wait", "resourceclaim/c", "--for=jsonpath={.status.allocation.devices.results[0].device}=gpu-0")
    )
    status = {"status": {"allocation": allocation()}}
    cluster.api.patch(RESOURCE_CLAIMS, "default", "c", status, MERGE_PATCH, "status")
    assert "condition met" in await waiting
