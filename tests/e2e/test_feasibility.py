"""The nodes on which a pod may run, and the message if there is none, as in kube-scheduler.

Each case is a few nodes and one pod. The oracle is kube-scheduler's result for the same pod: stated in the case and,
if its binary is in the folder of the real API server, observed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.e2e.api import Json
from tests.e2e.backends import NODES, PODS, Backend
from tests.e2e.conftest import REAL
from tests.e2e.objects import container, expression, node, pod, required, taint
from tests.e2e.processes import Process, Scheduler
from tests.e2e.real_backend import Real

ZONES = [node("a", labels={"zone": "a", "rank": "1"}), node("b", labels={"zone": "b", "rank": "2"}), node("c")]
TAINTED = [
    node("a", taints=[taint("dedicated", "ml")]),
    node("b", taints=[taint("maintenance", effect="NoExecute")]),
    node("c", taints=[taint("slow", effect="PreferNoSchedule")], pods=0),
]
CORDONED = [node("a") | {"spec": {"unschedulable": True}}]
MISMATCH = "node(s) didn't match Pod's node affinity/selector"


@dataclass(frozen=True)
class Case:
    """A pod in a cluster: its node (one of `where`), or why there is none."""

    nodes: list[Json]
    pod: Json
    where: str = ""
    why: str = ""
    others: list[Json] = field(default_factory=list)
    """Bound to node `a` before."""


def tolerating(key: str, **fields: str) -> Json:
    return pod("p", tolerations=[{"key": key, **fields}])


def declaring(item: Json, feature: str) -> Json:
    return item | {"status": item["status"] | {"declaredFeatures": [feature]}}


RULE = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
RESTARTING_ALL = container() | {"restartPolicy": "Never", "restartPolicyRules": [RULE]}
SIDECAR = container("side", cpu="1") | {"restartPolicy": "Always"}
CASES = {
    "cpu": Case([node("a", cpu="1"), node("b", cpu="2")], pod("p", cpu="3"), why="2 Insufficient cpu."),
    "cpu fits exactly": Case([node("a", cpu="1999m"), node("b", cpu="2")], pod("p", cpu="2"), where="b"),
    "memory to the byte": Case(
        [node("a", memory="1048575"), node("b", memory="1Mi")], pod("p", cpu="1", memory="1Mi"), where="b"
    ),
    "memory": Case([node("a", memory="1Gi")], pod("p", memory="1.5Gi"), why="1 Insufficient memory."),
    "ephemeral storage": Case(
        [node("a", ephemeral_storage="1Gi")], pod("p", ephemeral_storage="2Gi"), why="1 Insufficient ephemeral-storage."
    ),
    "extended resource": Case(
        [node("a", gpu=1), node("b"), node("c", gpu=4)], pod("p", containers=[container(gpu=2)]), where="c"
    ),
    "extended resource that no node offers": Case(
        [node("a"), node("b")], pod("p", containers=[container(gpu=1)]), why="2 Insufficient example.com/gpu."
    ),
    "too many pods": Case([node("a", pods=1)], pod("p"), why="1 Too many pods.", others=[pod("other")]),
    "several reasons on one node": Case(
        [node("a", cpu="1", memory="1Gi", pods=0)],
        pod("p", cpu="2", memory="2Gi"),
        why="1 Insufficient cpu, 1 Insufficient memory, 1 Too many pods.",
    ),
    "several containers": Case(
        [node("a", cpu="3"), node("b", cpu="4")],
        pod("p", containers=[container("x", cpu="2"), container("y", cpu="2")]),
        where="b",
    ),
    "an init container counts if it is larger": Case(
        [node("a", cpu="3")],
        pod("p", containers=[container(cpu="1")], initContainers=[container("i", cpu="4")]),
        why="1 Insufficient cpu.",
    ),
    "an init container does not add up": Case(
        [node("a", cpu="3"), node("b", cpu="2")],
        pod("p", containers=[container(cpu="2")], initContainers=[container("i", cpu="3")]),
        where="a",
    ),
    "a sidecar adds up": Case(
        [node("a", cpu="2")],
        pod("p", containers=[container(cpu="1500m")], initContainers=[SIDECAR]),
        why="1 Insufficient cpu.",
    ),
    "a sidecar counts beside later init containers": Case(
        [node("a", cpu="2500m"), node("b", cpu="3")],
        pod("p", containers=[container(cpu="500m")], initContainers=[SIDECAR, container("i", cpu="2")]),
        where="b",
    ),
    "a sidecar does not count beside earlier init containers": Case(
        [node("a", cpu="2")],
        pod("p", containers=[container(cpu="500m")], initContainers=[container("i", cpu="2"), SIDECAR]),
        where="a",
    ),
    "pod-level resources replace those of containers": Case(
        [node("a", cpu="1"), node("b", cpu="3")],
        pod("p", containers=[container(cpu="1")], resources={"requests": {"cpu": "2"}}),
        where="b",
    ),
    "node selector": Case(ZONES, pod("p", nodeSelector={"zone": "b"}), where="b"),
    "node selector that nothing has": Case(ZONES, pod("p", nodeSelector={"zone": "z"}), why=f"3 {MISMATCH}."),
    "affinity In": Case(ZONES, pod("p", affinity=required(expression("zone", "In", "z", "a"))), where="a"),
    "affinity NotIn, which an absent label satisfies": Case(
        ZONES, pod("p", affinity=required(expression("zone", "NotIn", "a", "b"))), where="c"
    ),
    "affinity Exists": Case(ZONES[1:], pod("p", affinity=required(expression("zone", "Exists"))), where="b"),
    "affinity DoesNotExist": Case(ZONES, pod("p", affinity=required(expression("zone", "DoesNotExist"))), where="c"),
    "affinity Gt": Case(ZONES, pod("p", affinity=required(expression("rank", "Gt", "1"))), where="b"),
    "affinity Lt": Case(ZONES, pod("p", affinity=required(expression("rank", "Lt", "2"))), where="a"),
    "affinity by name": Case(
        ZONES, pod("p", affinity=required(expression("metadata.name", "In", "c", field=True))), where="c"
    ),
    "one of several terms is enough": Case(
        ZONES, pod("p", affinity=required(expression("zone", "In", "z"), expression("rank", "In", "2"))), where="b"
    ),
    "selector and affinity must both hold": Case(
        ZONES,
        pod("p", nodeSelector={"zone": "a"}, affinity=required(expression("rank", "Gt", "1"))),
        why=f"3 {MISMATCH}.",
    ),
    "taints": Case(
        TAINTED,
        pod("p"),
        why="1 Too many pods, 2 node(s) had untolerated taint(s).",
    ),
    "toleration Equal": Case(TAINTED, tolerating("dedicated", operator="Equal", value="ml"), where="a"),
    "toleration Exists": Case(TAINTED, tolerating("dedicated", operator="Exists", effect="NoSchedule"), where="a"),
    "toleration of NoExecute": Case(TAINTED, tolerating("maintenance", operator="Exists"), where="b"),
    "toleration of another value": Case(
        TAINTED[:1], tolerating("dedicated", value="web"), why="1 node(s) had untolerated taint(s)."
    ),
    "toleration of another effect": Case(
        TAINTED[:1],
        tolerating("dedicated", operator="Exists", effect="NoExecute"),
        why="1 node(s) had untolerated taint(s).",
    ),
    "cordoned": Case(CORDONED, pod("p"), why="1 node(s) were unschedulable."),
    "cordoned, and tolerated": Case(
        CORDONED, tolerating("node.kubernetes.io/unschedulable", operator="Exists"), where="a"
    ),
    "cordoned, and tainted": Case(
        [node("a") | {"spec": {"unschedulable": True, "taints": [taint("x")]}}],
        pod("p"),
        why="1 node(s) were unschedulable.",
    ),
    "a feature that one node declares": Case(
        [node("a"), declaring(node("b"), "RestartAllContainersOnContainerExits"), declaring(node("c"), "Other")],
        pod("p", containers=[RESTARTING_ALL]),
        where="b",
    ),
    "a feature that no node declares": Case(
        [node("a"), declaring(node("b"), "Other")],
        pod("p", containers=[RESTARTING_ALL]),
        why="2 node(s) didn't match Pod's required features.",
    ),
    "a bound that is no number": Case(
        ZONES, pod("p", affinity=required(expression("rank", "Gt", "x"), expression("zone", "In", "b"))), where="b"
    ),
    "different reasons on different nodes": Case(
        [node("a", cpu="1"), node("b", taints=[taint("x", "1")]), node("c", labels={"no": "yes"})],
        pod("p", cpu="2", affinity=required(expression("no", "DoesNotExist"))),
        why=f"1 Insufficient cpu, 1 {MISMATCH}, 1 node(s) had untolerated taint(s).",
    ),
    "no nodes": Case([], pod("p"), why="no nodes available to schedule pods"),
}


def outcome(backend: Backend, scheduler: Scheduler, case: Case, scheduler_name: str = "poseidon") -> tuple[str, str]:
    """Node and message."""
    others = [{**other, "spec": {**other["spec"], "schedulerName": "nobody"}} for other in case.others]
    backend.create(*case.nodes, *others)
    for other in others:
        backend.bind(other["metadata"]["name"], "a")
    scheduler.until_knows(len(case.nodes), len(others))  # nodes and pods come on watches of their own
    backend.create({**case.pod, "spec": {**case.pod["spec"], "schedulerName": scheduler_name}})

    def probe(pods: list[Json]) -> tuple[str, str] | None:
        # a verdict that was reached before the last node had become known is followed by another
        total = f"0/{len(case.nodes)} " if case.nodes else ""
        for item in pods:
            if item["metadata"]["name"] == "p":
                for each in item["status"].get("conditions", []):
                    if (each["type"], each.get("reason")) == ("PodScheduled", "Unschedulable"):
                        return ("", each["message"]) if each["message"].startswith(total) else None
                return (item["spec"]["nodeName"], "") if item["spec"].get("nodeName") else None
        return None

    found = backend.pods.until(probe, f"the fate of p by {scheduler_name}")
    assert found is not None
    return found


def whole(case: Case) -> str:
    return f"0/{len(case.nodes)} nodes are available: {case.why}" if case.nodes and case.why else case.why


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_the_node_or_the_reason(backend: Backend, scheduler: Scheduler, case: Case) -> None:
    assert outcome(backend, scheduler, case) == (case.where, whole(case))
    if case.why:
        assert backend.until_event("FailedScheduling", "p", whole(case))["type"] == "Warning"
    else:
        backend.until_event("Scheduled", "p", case.where)


def test_overhead_adds_up(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a", cpu="2"))
    item = pod("p", cpu="1500m")
    if isinstance(backend, Real):  # whose admission takes it from the runtime class, and only from there
        overhead = {"podFixed": {"cpu": "1"}}
        body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "heavy"}}
        backend.create(body | {"handler": "heavy", "overhead": overhead})
        item["spec"]["runtimeClassName"] = "heavy"
    else:
        item["spec"]["overhead"] = {"cpu": "1"}
    backend.create(item)
    assert backend.until_unschedulable("p") == "0/1 nodes are available: 1 Insufficient cpu."
    backend.resize_node("a", cpu="2500m")
    backend.until_bound(1)


def test_a_cordoned_node_takes_no_pod_until_it_is_uncordoned(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"), node("b"))
    backend.patch_node("a", {"spec": {"unschedulable": True}})
    backend.nodes.until(lambda nodes: any(n["spec"].get("unschedulable") for n in nodes))
    # what a scheduler does not know yet it cannot heed: something that only follows the news about `a` comes first
    backend.patch_node("b", {"metadata": {"labels": {"seen": "yes"}}})
    backend.create(pod("first", nodeSelector={"seen": "yes"}))
    backend.until_bound(1)
    backend.create(*(pod(f"p{at}") for at in range(6)))
    assert set(backend.until_bound(7).values()) == {"b"}
    backend.patch_node("a", {"spec": {"unschedulable": None}})
    backend.create(pod("only-a", nodeSelector={"kubernetes.io/hostname": "a"}))
    assert backend.until_bound(1, "only-a") == {"only-a": "a"}


def test_changed_labels_and_taints_let_pending_pods_be_placed(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a", taints=[taint("hold")]))
    backend.create(pod("p", nodeSelector={"zone": "a"}))
    backend.until_event("FailedScheduling", "p", "1 node(s) had untolerated taint(s).")
    backend.patch_node("a", {"spec": {"taints": None}})
    backend.until_event("FailedScheduling", "p", MISMATCH)
    backend.patch_node("a", {"metadata": {"labels": {"zone": "a"}}})
    backend.until_bound(1)


@pytest.fixture(scope="module")
def kube_scheduler(server: Backend) -> Iterator[Process]:
    assert isinstance(server, Real)
    running = server.scheduler()
    if running is None:
        pytest.skip("there is no kube-scheduler beside kube-apiserver")
    yield running
    running.end(9)


_LOOK_ALIKE: tuple[tuple[str, str], ...] = (
    # since 1.35 it leaves the taint out
    (r"untolerated taint(?:\(s\)| \{[^}]*\})", "untolerated taint(s)"),
)


def normal(message: str) -> str:
    """The sentence about nodes; kube-scheduler continues with preemption and claims."""
    head, colon, reasons = message.partition(": ")
    reasons = reasons.split(". ")[0].rstrip(".")
    for pattern, text in _LOOK_ALIKE:
        reasons = re.sub(pattern, text, reasons)
    counts: dict[str, int] = {}
    for part in filter(None, reasons.split(", ")):
        count, _, reason = part.partition(" ")
        counts[reason] = counts.get(reason, 0) + int(count)
    return head + colon + ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


@REAL
@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_as_kube_scheduler(
    kube_scheduler: Process, backend: Backend, scheduler: Scheduler, case: Case, record_property: Callable[..., None]
) -> None:
    mine = outcome(backend, scheduler, case)
    backend.delete(PODS, "p", *(other["metadata"]["name"] for other in case.others))
    backend.delete(NODES, *(one["metadata"]["name"] for one in case.nodes))
    backend.pods.until(lambda pods: not pods)
    theirs = outcome(backend, scheduler, case, "default-scheduler")
    record_property("ours", mine[1])
    record_property("theirs", theirs[1])
    assert mine[0] == theirs[0]
    assert normal(mine[1]) == normal(theirs[1])
