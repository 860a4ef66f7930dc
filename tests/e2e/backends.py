"""The interface of the two API servers that tests run on, and the synthetic one. See real_backend.py.

Neither has kubelets or controllers: the tests write nodes and the ends of pods, in the same way on both.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.api import MERGE, PATIENCE, Api, Json, View
from tests.e2e.objects import overcommitted
from tests.e2e.processes import POSEIDON, Process, Scheduler

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
EVENTS = "/api/v1/namespaces/default/events"
_LEFT_BEHIND = (
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/apps/v1/namespaces/default/replicasets",
    "/api/v1/namespaces/default/replicationcontrollers",
    "/api/v1/namespaces/default/services",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    PODS,
    NODES,
    "/api/v1/namespaces/default/configmaps",
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/deviceclasses",
)


@dataclass(frozen=True)
class Bind:
    """A binding that the API server executed."""

    uid: str
    name: str
    node: str


class Backend(ABC):
    """An API server, and its views during a test."""

    name: str
    api: Api
    kubeconfig: Path

    def __init__(self) -> None:
        self.pods: View
        self.nodes: View
        self.events: View
        self._capacity: dict[str, dict[str, str]] = {}

    # -- what differs -----------------------------------------------------------------------------------------

    @abstractmethod
    def all_binds(self) -> list[Bind]:
        """All successful bindings since the start, in order."""

    @abstractmethod
    def rejections(self) -> dict[str, int]:
        """Number of pods that kubelets rejected since the start, by reason."""

    @contextmanager
    @abstractmethod
    def outage(self) -> Iterator[None]:
        """Stops the API server, with all requests in flight, and restarts it afterwards at the same address."""

    @abstractmethod
    def close(self) -> None:
        """Stops the processes."""

    # -- life of a test ---------------------------------------------------------------------------------------

    def begin(self) -> None:
        """An empty cluster, and views of it."""
        self.clean()
        self.pods, self.nodes, self.events = View(self.api, PODS), View(self.api, NODES), View(self.api, EVENTS)
        self._binds_before = len(self.all_binds())
        self._rejections_before = self.rejections()
        self.shrinking: set[str] = set()
        """Nodes that the test makes smaller while binds may be on their way: their kubelets may refuse."""

    def finish(self) -> None:
        for view in (self.pods, self.nodes, self.events):
            view.stop()
        self.clean()

    def clean(self) -> None:
        for path in _LEFT_BEHIND:
            items = self.api("GET", path)["items"]
            names = (item["metadata"]["name"] for item in items)
            own = [name for name in names if not (name.startswith(("system-", "apiserver-")) or name == "kubernetes")]
            for item in items:
                if item["metadata"].get("finalizers"):
                    self.patch(f"{path}/{item['metadata']['name']}", {"metadata": {"finalizers": None}})
            self.api.many("DELETE", [(f"{path}/{name}?gracePeriodSeconds=0", None) for name in own])
        self.api("DELETE", EVENTS)

    def check(self) -> None:
        """The invariants: every pod bound at most once, no node over-committed at any time, no kubelet rejection."""
        binds = self.binds()
        uids = [bind.uid for bind in binds]
        assert len(uids) == len(set(uids)), "a pod was bound twice"
        if self.shrinking:
            failed = {
                p["spec"]["nodeName"] for _, p in self.pods.history if p.get("status", {}).get("phase") == "Failed"
            }
            assert failed <= self.shrinking
        else:
            assert self.new_rejections() == {}
        self._check_capacity()

    def _check_capacity(self) -> None:
        offered: dict[str, dict[str, str]] = {}
        shrunk: set[str] = set()
        for what, item in self.nodes.history:
            name, allocatable = item["metadata"]["name"], item.get("status", {}).get("allocatable", {})
            if (name in offered and offered[name] != allocatable) or what == "DELETED":
                shrunk.add(name)
            offered[name] = allocatable
        for name in shrunk:  # judged by the tests that do this
            offered.pop(name, None)
        bound: dict[str, Json] = {}
        for what, item in self.pods.history:
            uid = item["metadata"]["uid"]
            if what == "DELETED" or not item["spec"].get("nodeName"):
                bound.pop(uid, None)
                continue
            new, bound[uid] = uid not in bound, item
            if new:
                mates = [p for p in bound.values() if p["spec"]["nodeName"] == item["spec"]["nodeName"]]
                assert overcommitted(mates, offered) == [], f"binding {item['metadata']['name']}"

    def binds(self) -> list[Bind]:
        """The bindings of this test."""
        return self.all_binds()[self._binds_before :]

    def bound(self, prefix: str = "") -> dict[str, str]:
        """Pod -> node, for pods that are bound now."""
        return self.pods.until(lambda pods: (True, bound(pods, prefix)))[1]

    def all_bound_once(self, count: int) -> None:
        """Asserts that there are this many pods, all bound, each by one request."""
        self.until_bound(count)
        assert len(self.pods.objects) == count
        # a real server may record a binding after clients have seen it: there may be fewer records, never more
        uids = [bind.uid for bind in self.binds()]
        assert len(uids) == len(set(uids))
        assert set(uids) <= set(self.pods.objects)

    def new_rejections(self) -> dict[str, int]:
        now = self.rejections()
        return {
            key: n - self._rejections_before.get(key, 0)
            for key, n in now.items()
            if n != self._rejections_before.get(key, 0)
        }

    # -- doing things -----------------------------------------------------------------------------------------

    def create(self, *items: Json) -> list[Json]:
        """Creates nodes, pods and other objects, by default in the default namespace."""
        return self.api.many("POST", [(home_of(item), item) for item in items])

    def delete(self, path: str, *names: str, grace: int = 0) -> None:
        self.api.many("DELETE", [(f"{path}/{name}?gracePeriodSeconds={grace}", None) for name in names])

    def patch(self, path: str, body: Json) -> Any:
        return self.api("PATCH", path, body, MERGE)

    def patch_node(self, name: str, body: Json) -> Any:
        return self.patch(f"{NODES}/{name}", body)

    def resize_node(self, name: str, **resources: str) -> None:
        """Changes a node's capacity and allocatable; names as in objects.node."""
        amounts = {{"gpu": "example.com/gpu"}.get(k, k.replace("_", "-")): v for k, v in resources.items()}
        body = {"status": {"capacity": amounts, "allocatable": amounts}}
        self.patch(f"{NODES}/{name}/status", body)

    def bind(self, pod: str, node: str) -> None:
        """Binds a pod as another scheduler would."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        self.api("POST", f"{PODS}/{pod}/binding", body)

    def finish_pod(self, name: str, phase: str) -> None:
        """Ends a pod as a kubelet would: Succeeded or Failed."""
        self.patch(f"{PODS}/{name}/status", {"status": {"phase": phase}})

    # -- waiting ----------------------------------------------------------------------------------------------

    def until_bound(self, count: int, prefix: str = "", seconds: float = PATIENCE) -> dict[str, str]:
        """Waits until at least this many pods (with these names) are bound; returns pod -> node."""

        def probe(pods: list[Json]) -> dict[str, str]:
            found = bound(pods, prefix)
            return found if len(found) >= count else {}

        return self.pods.until(probe, f"{count} bound pods {prefix}*", seconds)

    def until_seen_by(self, scheduler: Scheduler) -> None:
        """Waits until a scheduler has all present nodes, and all pods on them."""
        nodes, pods = self.api("GET", NODES)["items"], self.api("GET", PODS)["items"]
        scheduler.until_knows(len(nodes), len(bound(pods)))

    def until_event(self, reason: str, pod: str, text: str = "") -> Json:
        """Waits for an event about a pod, with this text in its message. One of a pod of that name in the test before
        can still arrive."""

        def probe(events: list[Json]) -> Json | None:
            seen = [item["metadata"] for _, item in list(self.pods.history)]
            uids = {metadata["uid"] for metadata in seen if metadata["name"] == pod}
            for event in events:
                about = event["involvedObject"]
                if (event.get("reason"), about["name"]) == (reason, pod) and text in event.get("message", ""):
                    if uids and about.get("uid") not in uids:
                        continue
                    return event
            return None

        found = self.events.until(probe, f"event {reason} on {pod}: {text!r}")
        assert found is not None
        return found

    def until_unschedulable(self, pod: str) -> str:
        """Waits for the PodScheduled=False condition; returns its message."""

        def probe(pods: list[Json]) -> str:
            for item in pods:
                if item["metadata"]["name"] != pod:
                    continue
                for each in item["status"].get("conditions", []):
                    if (each["type"], each["status"], each.get("reason")) == ("PodScheduled", "False", "Unschedulable"):
                        return str(each["message"])
            return ""

        return self.pods.until(probe, f"{pod} unschedulable")


def bound(pods: list[Json], prefix: str = "") -> dict[str, str]:
    """Pod -> node, for bound pods."""
    return {
        p["metadata"]["name"]: p["spec"]["nodeName"]
        for p in pods
        if p["spec"].get("nodeName") and p["metadata"]["name"].startswith(prefix)
    }


_OF_NO_NAMESPACE = (
    "Node", "Namespace", "PersistentVolume", "StorageClass", "PriorityClass", "RuntimeClass",
    "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding",
    "ResourceSlice", "DeviceClass", "DeviceTaintRule",
    "Queue", "ClusterQueue", "Cohort", "ResourceFlavor", "WorkloadPriorityClass",
)  # fmt: skip


def home_of(item: Json) -> str:
    """The collection of an object."""
    api, kind = item["apiVersion"], item["kind"].lower()
    root = f"/{'apis' if '/' in api else 'api'}/{api}"
    if item["kind"] not in _OF_NO_NAMESPACE:
        root += f"/namespaces/{item['metadata'].get('namespace', 'default')}"
    return f"{root}/{kind}{'es' if kind.endswith('s') else 's'}"


def free_ports(count: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


class Synthetic(Backend):
    """`poseidon cluster` in a separate process."""

    name = "synthetic"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.kubeconfig = folder / "kubeconfig"
        self._process = Process(
            [
                *POSEIDON, "cluster", "--nodes=0", "--port=0", "--start-delay=0.01", "--bookmark-interval=5",
                "--device-versions=v1,v1beta2,v1beta1,v1alpha3",
                f"--kubeconfig-out={self.kubeconfig}",
            ],
            folder / "cluster.log",
        )  # fmt: skip
        url = self._process.until_says(r"synthetic cluster .* at (\S+)")[1]
        self.api = Api(url)

    def begin(self) -> None:
        self.faults({"clear": True})
        super().begin()

    def finish(self) -> None:
        self.faults({"clear": True})
        super().finish()

    def faults(self, order: Json) -> Json:
        """See docs/synthetic-cluster.md."""
        answer: Json = self.api("POST", "/_faults", order)
        return answer

    def all_binds(self) -> list[Bind]:
        entries = self.api("GET", "/_audit")["entries"]
        return [Bind(e["uid"], e["name"], e["node"]) for e in entries if e["what"] == "bind"]

    def rejections(self) -> dict[str, int]:
        found: dict[str, int] = self.api("GET", "/_stats")["rejected"]
        return found

    @contextmanager
    def outage(self) -> Iterator[None]:
        # the test continues to use the server: it alone creates pods
        verbs = ["get", "list", "watch", "update", "patch", "delete"]
        rules = [
            {"verbs": ["create"], "resources": ["pods/binding"], "rate_lost": 0.5, "rate_reset": 0.5},
            {"verbs": verbs, "rate_reset": 1.0},
        ]
        self.faults({"rules": rules, "drop_watches": True})
        yield
        self.faults({"clear": True})

    def close(self) -> None:
        assert self._process.end() == 0, self._process.output
