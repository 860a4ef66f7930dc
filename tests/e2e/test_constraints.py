"""Inter-pod and volume constraints: where a pod may run, and the message if nowhere, compared with kube-scheduler.

Cases are as in test_feasibility.py; `others` run on node `a`. Storage objects are named after their case, because a
real API server without controllers does not remove claims.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.api import Json
from tests.e2e.backends import NODES, PODS, Backend
from tests.e2e.conftest import REAL
from tests.e2e.objects import container, node, pod
from tests.e2e.processes import Process, Scheduler
from tests.e2e.test_feasibility import Case, kube_scheduler, normal, outcome, whole

__all__ = ["kube_scheduler"]

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
TWO = [node("a", labels={ZONE: "x"}), node("b", labels={ZONE: "y"})]
PORTS = "node(s) didn't have free ports for the requested pod ports"
SPREAD = "node(s) didn't match pod topology spread constraints"


def labelled(name: str, app: str, **spec: Any) -> Json:
    return pod(name, metadata={"labels": {"app": app}}, **spec)


def term(app: str, key: str = HOST, **fields: Any) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}


def near(*terms: Json) -> Json:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def far(*terms: Json) -> Json:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def spread(key: str = ZONE, app: str = "web", **fields: Any) -> list[Json]:
    selector = {"matchLabels": {"app": app}}
    return [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, **fields}
    ]


def port(number: int = 80, **fields: Any) -> list[Json]:
    return [container() | {"ports": [{"containerPort": number, "hostPort": number, **fields}]}]


WEB = labelled("web", "web")
CASES = {
    "near": Case(TWO, pod("p", affinity=near(term("web"))), where="a", others=[WEB]),
    "near nobody": Case(TWO, pod("p", affinity=near(term("web"))), why="2 node(s) didn't match pod affinity rules."),
    "near itself": Case(TWO[:1], labelled("p", "p", affinity=near(term("p"))), where="a"),
    "near, another namespace": Case(
        TWO,
        pod("p", affinity=near(term("web", namespaces=["kube-system"]))),
        why="2 node(s) didn't match pod affinity rules.",
        others=[WEB],
    ),
    "near, every namespace": Case(
        TWO, pod("p", affinity=near(term("web", namespaceSelector={}))), where="a", others=[WEB]
    ),
    "near, label keys": Case(
        TWO,
        labelled("p", "web", affinity=near({"topologyKey": HOST, "labelSelector": {}, "matchLabelKeys": ["app"]})),
        where="a",
        others=[WEB],
    ),
    "far": Case(TWO, pod("p", affinity=far(term("web"))), where="b", others=[WEB]),
    "far from a whole zone": Case(
        [node("a", labels={ZONE: "x"}), node("b", labels={ZONE: "x"})],
        pod("p", affinity=far(term("web", ZONE))),
        why="2 node(s) didn't match pod anti-affinity rules.",
        others=[WEB],
    ),
    "others keep away": Case(
        TWO[:1],
        WEB | {"metadata": {"name": "p", "labels": {"app": "web"}}},
        why="1 node(s) didn't satisfy existing pods anti-affinity rules.",
        others=[pod("shy", affinity=far(term("web")))],
    ),
    # minDomains: for a scheduler that does not know b yet there is nothing to spread over
    "spread": Case(TWO, labelled("p", "web", topologySpreadConstraints=spread(minDomains=2)), where="b", others=[WEB]),
    "spread, the other is full": Case(
        [TWO[0], node("b", labels={ZONE: "y"}, cpu="50m")],
        labelled("p", "web", topologySpreadConstraints=spread()),
        why=f"1 Insufficient cpu, 1 {SPREAD}.",
        others=[WEB],
    ),
    "spread, label missing": Case(
        [node("a")],
        labelled("p", "web", topologySpreadConstraints=spread()),
        why=f"1 {SPREAD} (missing required label).",
    ),
    "spread, too few domains": Case(
        TWO[:1],
        labelled("p", "web", topologySpreadConstraints=spread(minDomains=2)),
        why=f"1 {SPREAD}.",
        others=[WEB],
    ),
    "spread, tainted nodes left out": Case(
        [TWO[0], TWO[1] | {"spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}}],
        labelled("p", "web", topologySpreadConstraints=spread(nodeTaintsPolicy="Honor")),
        where="a",
        others=[WEB],
    ),
    "spread, empty selector": Case(
        TWO[:1],
        labelled("p", "web", topologySpreadConstraints=spread(labelSelector={}, minDomains=2)),
        where="a",
        others=[WEB],
    ),
    "port": Case(TWO, pod("p", containers=port()), where="b", others=[pod("web", containers=port())]),
    "port taken": Case(
        TWO[:1], pod("p", containers=port()), why=f"1 {PORTS}.", others=[pod("web", containers=port(hostIP="10.0.0.1"))]
    ),
    "port of another address": Case(
        TWO[:1],
        pod("p", containers=port(hostIP="10.0.0.2")),
        where="a",
        others=[pod("web", containers=port(hostIP="10.0.0.1"))],
    ),
    "port of another protocol": Case(
        TWO[:1], pod("p", containers=port(protocol="UDP")), where="a", others=[pod("web", containers=port())]
    ),
    "port of a sidecar": Case(
        TWO[:1],
        pod("p", containers=port()),
        why=f"1 {PORTS}.",
        others=[
            pod("web", initContainers=[port()[0] | {"name": "side", "restartPolicy": "Always"}]),
        ],
    ),
    "port of the node's network": Case(
        TWO[:1],
        pod("p", containers=port()),
        why=f"1 {PORTS}.",
        others=[pod("web", hostNetwork=True, containers=[container() | {"ports": [{"containerPort": 80}]}])],
    ),
}


def claiming(name: str) -> Json:
    return pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])


def claim(name: str, **spec: Any) -> Json:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": name}
    metadata = {"name": name, "annotations": BOUND if "volumeName" in spec else {}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": body | spec}


def volume(name: str, *hosts: str, labels: Json | None = None, **spec: Any) -> Json:
    body: Json = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": name}
    body["csi"] = {"driver": "sim.csi", "volumeHandle": name}
    if hosts:
        demand = {"matchExpressions": [{"key": HOST, "operator": "In", "values": list(hosts)}]}
        body["nodeAffinity"] = {"required": {"nodeSelectorTerms": [demand]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": body | spec,
    }


def waiting(name: str, provisioner: str = "sim.csi", **fields: Any) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **fields,
    }


NONE = "kubernetes.io/no-provisioner"
OTHER_ZONE = [{"matchLabelExpressions": [{"key": ZONE, "values": ["elsewhere"]}]}]
VOLUMES: dict[str, tuple[list[Json], Case]] = {
    "no claim": ([], Case(TWO, claiming("no-claim"), why='persistentvolumeclaim "no-claim" not found.')),
    "unbound": (
        [claim("unbound")],
        Case(TWO, claiming("unbound"), why="pod has unbound immediate PersistentVolumeClaims."),
    ),
    "no volume": (
        [claim("gone", volumeName="gone-pv")],
        Case(TWO, claiming("gone"), why='persistentvolume "gone-pv" not found.'),
    ),
    "on b": ([volume("on-b", "b"), claim("on-b", volumeName="on-b")], Case(TWO, claiming("on-b"), where="b")),
    "on no node": (
        [volume("on-c", "c"), claim("on-c", volumeName="on-c")],
        Case(TWO, claiming("on-c"), why="2 node(s) didn't match PersistentVolume's node affinity."),
    ),
    "in a zone": (
        [volume("zonal", labels={ZONE: "z__y"}), claim("zonal", volumeName="zonal")],
        Case(TWO, claiming("zonal"), where="b"),
    ),
    "in no zone": (
        [volume("outer", labels={ZONE: "z"}), claim("outer", volumeName="outer")],
        Case(TWO, claiming("outer"), why="2 node(s) had no available volume zone."),
    ),
    "none to take": (
        [waiting("static", NONE), claim("static")],
        Case(TWO, claiming("static"), why="2 node(s) didn't find available persistent volumes to bind."),
    ),
    "not made there": (
        [waiting("topo", allowedTopologies=OTHER_ZONE), claim("topo")],
        Case(TWO, claiming("topo"), why="2 node(s) didn't find available persistent volumes to bind."),
    ),
    "an ephemeral volume without its claim": (
        [],
        Case(
            TWO,
            pod(
                "p",
                volumes=[
                    {
                        "name": "tmp",
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "spec": {
                                    "accessModes": ["ReadWriteOnce"],
                                    "resources": {"requests": {"storage": "1Gi"}},
                                }
                            }
                        },
                    }
                ],
            ),
            why='waiting for ephemeral volume controller to create the persistentvolumeclaim "p-tmp".',
        ),
    ),
}


def make(backend: Backend, storage: list[Json]) -> None:
    """Creates storage objects, unless an earlier test has left them."""
    for item in storage:
        home = {
            "PersistentVolume": "/api/v1/persistentvolumes",
            "PersistentVolumeClaim": "/api/v1/namespaces/default/persistentvolumeclaims",
            "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
        }[item["kind"]]
        there = {one["metadata"]["name"] for one in backend.api("GET", home)["items"]}
        if item["metadata"]["name"] not in there:
            backend.api("POST", home, item)


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_between_pods(backend: Backend, scheduler: Scheduler, case: Case) -> None:
    assert outcome(backend, scheduler, case) == (case.where, whole(case))


@pytest.mark.parametrize(("storage", "case"), [pytest.param(*both, id=name) for name, both in VOLUMES.items()])
def test_volumes(backend: Backend, scheduler: Scheduler, storage: list[Json], case: Case) -> None:
    make(backend, storage)
    assert outcome(backend, scheduler, case) == (case.where, whole(case))


@REAL
@pytest.mark.parametrize(
    ("storage", "case"),
    [pytest.param([], case, id=name) for name, case in CASES.items()]
    + [pytest.param(*both, id=name) for name, both in VOLUMES.items()],
)
def test_as_kube_scheduler(
    kube_scheduler: Process,
    backend: Backend,
    scheduler: Scheduler,
    storage: list[Json],
    case: Case,
    record_property: Callable[..., None],
) -> None:
    make(backend, storage)
    mine = outcome(backend, scheduler, case)
    backend.delete(PODS, "p", *(other["metadata"]["name"] for other in case.others))
    backend.delete(NODES, *(one["metadata"]["name"] for one in case.nodes))
    backend.pods.until(lambda pods: not pods)
    theirs = outcome(backend, scheduler, case, "default-scheduler")
    record_property("ours", mine[1])
    record_property("theirs", theirs[1])
    assert mine[0] == theirs[0]
    assert _sentence(mine[1]) == _sentence(theirs[1])


def _sentence(message: str) -> str:
    try:
        return normal(message)
    except ValueError:  # one about the pod, without counts
        return message.split(". ")[0].rstrip(".")
