"""Plain kubectl against the synthetic cluster."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import yaml

from benchmarks.cluster.store.kinds import (
    BUDGETS,
    CONFIGMAPS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICES,
)
from tests.benchmarks.cluster.builders import budget, job, pod, replicated, until

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


def words(line: str) -> list[str]:
    return [part for part in line.split("  ") if part.strip()]


async def test_get_and_describe_nodes(ctl, cluster):
    lines = (await ctl("get", "nodes")).splitlines()
    assert lines[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert lines[1].split()[:3] == ["node-00000", "Ready", "<none>"]
    wide = (await ctl("get", "nodes", "-o", "wide")).splitlines()
    assert "INTERNAL-IP" in wide[0]
    assert "CONTAINER-RUNTIME" in wide[0]
    cluster.create(pod(cpu="2"))
    bind(cluster, "p", "node-00001")
    described = await ctl("describe", "node", "node-00001")
    assert "cpu                2 (6%)" in described
    assert "topology.kubernetes.io/zone=zone-1" in described


def bind(cluster, name: str, node: str) -> None:
    from benchmarks.cluster.api.binding import bind as bind_pod

    bind_pod(cluster.api, "default", name, {"metadata": {"name": name}, "target": {"name": node}})


async def test_pods_from_creation_to_deletion(ctl, cluster):
    manifest = yaml.safe_dump(pod("web", cpu="1", labels={"app": "web"}))
    assert "pod/web created" in await ctl("create", "-f", "-", stdin=manifest)
    assert "AlreadyExists" in await ctl("create", "-f", "-", stdin=manifest, fails=True)
    assert (await ctl("get", "pods")).splitlines()[1].split()[:3] == ["web", "0/1", "Pending"]
    bind(cluster, "web", "node-00002")
    await ctl("wait", "pod/web", "--for=condition=Ready", "--timeout=10s")
    line = (await ctl("get", "pods", "-o", "wide")).splitlines()[1].split()
    assert line[:3] == ["web", "1/1", "Running"]
    assert "node-00002" in line
    described = await ctl("describe", "pod", "web")
    assert "Node:             node-00002/10.0.0.2" in described
    assert "PodScheduled                True" in described
    assert await ctl("get", "pods", "-l", "app=web,app notin (db)", "-o", "name") == "pod/web\n"
    assert await ctl("get", "pods", "--field-selector", "spec.nodeName=node-00002", "-o", "name") == "pod/web\n"
    assert "pod/web labeled" in await ctl("label", "pod", "web", "tier=front")
    assert "pod/web annotated" in await ctl("annotate", "pod", "web", "note=x")
    assert "not found" in await ctl("get", "pod", "none", fails=True)
    assert 'pod "web" deleted' in await ctl("delete", "pod", "web")
    assert not cluster.objects(PODS)


async def test_apply_in_both_ways(ctl, cluster):
    manifest = replicated("Deployment", replicas=2)
    text = yaml.safe_dump(manifest)
    assert "deployment.apps/web created" in await ctl("apply", "-f", "-", stdin=text)
    assert "deployment.apps/web unchanged" in await ctl("apply", "-f", "-", stdin=text)
    manifest["spec"]["replicas"] = 3
    text = yaml.safe_dump(manifest)
    assert "deployment.apps/web configured" in await ctl("apply", "-f", "-", stdin=text)
    assert "serverside-applied" in await ctl("apply", "--server-side", "-f", "-", stdin=text)
    assert "(server dry run)" in await ctl("apply", "--dry-run=server", "-f", "-", stdin=text)
    assert "deployment.apps/web scaled" in await ctl("scale", "deployment/web", "--replicas=4")
    await until(lambda: len(cluster.objects(PODS)) == 4)
    for obj in cluster.objects(PODS):
        bind(cluster, obj["metadata"]["name"], "node-00000")
    assert "successfully rolled out" in await ctl("rollout", "status", "deployment/web", "--timeout=10s")
    line = (await ctl("get", "deployment", "web")).splitlines()[1].split()
    assert line[:4] == ["web", "4/4", "4", "4"]
    assert "deleted" in await ctl("delete", "deployment", "web", "--cascade=foreground")
    assert not cluster.objects(REPLICA_SETS)


async def test_nodes_are_cordoned_tainted_drained_and_deleted(ctl, cluster):
    cluster.create(replicated("ReplicaSet", replicas=1))
    cluster.create(budget("b", "web", maxUnavailable=1))
    await until(lambda: cluster.objects(PODS))
    bind(cluster, cluster.objects(PODS)[0]["metadata"]["name"], "node-00000")
    assert "cordoned" in await ctl("cordon", "node-00000")
    status = (await ctl("get", "node", "node-00000")).splitlines()[1].split()[1]
    assert status == "Ready,SchedulingDisabled"
    taints = cluster.get(NODES, "node-00000")["spec"]["taints"]
    assert [taint["key"] for taint in taints] == ["node.kubernetes.io/unschedulable"]
    assert "drained" in await ctl("drain", "node-00000", "--timeout=15s")
    assert [entry.node for entry in cluster.audit.of("evict")] == ["node-00000"]
    assert "uncordoned" in await ctl("uncordon", "node-00000")
    assert "tainted" in await ctl("taint", "nodes", "node-00001", "dedicated=x:NoSchedule")
    assert "untainted" in await ctl("taint", "nodes", "node-00001", "dedicated-")
    assert "deleted" in await ctl("delete", "node", "node-00002")
    assert len(cluster.objects(NODES)) == 2


async def test_jobs_events_and_watches(ctl, cluster):
    created = await ctl("create", "-f", "-", stdin=yaml.safe_dump(job(completions=1)))
    assert "job.batch/j created" in created
    await until(lambda: cluster.objects(PODS))
    name = cluster.objects(PODS)[0]["metadata"]["name"]
    bind(cluster, name, "node-00000")
    await ctl("wait", "job/j", "--for=condition=Complete", "--timeout=10s")
    line = (await ctl("get", "jobs")).splitlines()[1].split()
    assert line[:3] == ["j", "Complete", "1/1"]
    made = cluster.get(PODS, name)
    involved = {"kind": "Pod", "namespace": "default", "name": name, "uid": made["metadata"]["uid"]}
    event = {
        "metadata": {"name": f"{name}.1"},
        "involvedObject": involved,
        "reason": "Scheduled",
        "message": "Successfully assigned",
        "type": "Normal",
        "count": 1,
        "firstTimestamp": "2024-01-01T00:00:00Z",
        "lastTimestamp": "2024-01-01T00:00:00Z",
    }
    cluster.api.create(EVENTS, "default", event)
    events = (await ctl("get", "events")).splitlines()
    assert events[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert f"pod/{name}" in events[1]
    assert "Successfully assigned" in await ctl("describe", "pod", name)
    watched = await ctl("get", "pods", "-w", "--output-watch-events", "--request-timeout=1s")
    assert watched.splitlines()[1].split()[:2] == ["ADDED", name]


async def test_other_commands_of_users(ctl, cluster):
    assert "nodes" in await ctl("api-resources")
    assert "v1.3" in await ctl("version")
    assert await ctl("auth", "can-i", "create", "pods") == "yes\n"
    assert "node-00000" in await ctl("top", "nodes")
    assert "system-node-critical" in await ctl("get", "priorityclasses")
    created = await ctl("create", "deployment", "quick", "--image=app:1", "--replicas=2", "--port=80")
    assert "deployment.apps/quick created" in created
    spec = cluster.get(DEPLOYMENTS, "quick")["spec"]
    assert spec["replicas"] == 2
    assert spec["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert "created" in await ctl("create", "namespace", "team")
    assert "created" in await ctl("create", "configmap", "c", "--from-literal=a=b", "-n", "team")
    assert cluster.get(CONFIGMAPS, "c", "team")["data"] == {"a": "b"}
    assert "created" in await ctl("create", "job", "j", "--image=app:1", "-n", "team")
    assert "created" in await ctl("create", "priorityclass", "high", "--value=5")
    assert "created" in await ctl("create", "pdb", "b", "--selector=app=x", "--min-available=50%", "-n", "team")
    assert cluster.get(BUDGETS, "b", "team")["spec"]["minAvailable"] == "50%"
    assert "KIND:       Pod" in await ctl("explain", "pods")
    patched = await ctl(
        "patch", "node", "node-00000", "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/x","value":"y"}]'
    )
    assert "patched" in patched
    assert "Invalid value" in await ctl("create", "-f", "-", stdin=yaml.safe_dump(pod("p", cpu="-1")), fails=True)


async def test_objects_that_kubectl_generates_from_options(ctl, cluster):
    """These bodies come in protobuf, like those of all `create` commands with options instead of files."""
    await ctl("create", "secret", "generic", "s", "--from-literal=a=b")
    secret = cluster.get(SECRETS, "s")
    assert (secret["data"], secret["type"]) == ({"a": "Yg=="}, "Opaque")
    await ctl("create", "quota", "q", "--hard=cpu=1500m,pods=2", "--scopes=BestEffort")
    assert cluster.get(RESOURCE_QUOTAS, "q")["spec"] == {
        "hard": {"cpu": "1500m", "pods": "2"},
        "scopes": ["BestEffort"],
    }
    await ctl("create", "service", "nodeport", "n", "--tcp=80:http", "--node-port=30080")
    spec = cluster.get(SERVICES, "n")["spec"]
    assert spec["type"] == "NodePort"
    assert spec["ports"] == [
        {"name": "80-http", "protocol": "TCP", "port": 80, "targetPort": "http", "nodePort": 30080}
    ]
    await ctl("create", "priorityclass", "low", "--value=-5", "--preemption-policy=Never", "--description=x")
    remaining = cluster.get(PRIORITY_CLASSES, "low")
    assert (remaining["value"], remaining["preemptionPolicy"], remaining["description"]) == (-5, "Never", "x")
    await ctl("create", "pdb", "b", "--selector=app=x", "--max-unavailable=1")
    assert cluster.get(BUDGETS, "b")["spec"] == {"selector": {"matchLabels": {"app": "x"}}, "maxUnavailable": 1}
    await ctl("create", "job", "j", "--image=app:1", "--", "echo", "hi")
    template = cluster.get(JOBS, "j")["spec"]["template"]["spec"]
    assert template["containers"][0]["command"] == ["echo", "hi"]
    assert template["restartPolicy"] == "Never"
    assert "created" in await ctl("create", "serviceaccount", "robot")
    assert "*.*" in await ctl("auth", "can-i", "--list")
    assert "system:admin" in await ctl("auth", "whoami")


async def test_pods_for_debugging(ctl, cluster):
    node_selector = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
    ]}}  # fmt: skip
    peers = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    container = {
        "name": "main",
        "image": "app:1",
        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}],
        "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
        "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
        "resources": {"requests": {"cpu": "100m"}, "limits": {"nvidia.com/gpu": "1"}},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    original = pod("p", containers=[container])
    original["spec"] |= {
        "affinity": {
            "nodeAffinity": node_selector,
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": peers}]
            },
        },
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
    }
    created = cluster.create(original)
    await ctl("debug", "p", "--copy-to=q", "--set-image=main=app:2", "--keep-liveness", "--profile=general")
    copied = cluster.get(PODS, "q")["spec"]
    for name in ("affinity", "tolerations", "volumes"):
        assert copied[name] == created["spec"][name]
    main = copied["containers"][0]
    assert main["image"] == "app:2"
    for name in ("env", "lifecycle", "resources"):
        assert main[name] == created["spec"]["containers"][0][name]
    assert main["livenessProbe"]["httpGet"]["port"] == "http"
    await ctl("debug", "node/node-00001", "--image=app:1", "--profile=sysadmin")
    made = next(one for one in cluster.objects(PODS) if one["metadata"]["name"].startswith("node-debugger"))
    assert made["spec"]["nodeName"] == "node-00001"
    assert made["spec"]["volumes"] == [{"name": "host-root", "hostPath": {"path": "/"}}]
    assert made["spec"]["containers"][0]["securityContext"] == {"privileged": True}
    assert "drained" in await ctl("drain", "node-00001", "--force", "--disable-eviction", "--timeout=15s")
