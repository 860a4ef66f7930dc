"""All simulated kubelets: they admit or reject bound pods, run them, end them, and finish deletions.

A pod bound to a node without capacity for it is rejected with the reason of a real kubelet, and counted, which makes
over-commitment visible. Changes in the store trigger all work, through the agenda, without polling.

    bound -> admitted -> (start delay) -> Running -> (run time) -> Succeeded | Failed
          -> rejected: Failed, reason OutOfcpu, OutOfmemory, OutOfpods, OutOf<extended resource>, ...

A pod whose claims cannot be prepared on its node stays Pending after the start delay, with an event, until they can.
"""

from __future__ import annotations

import random
from typing import Any

from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.nodes import pod_status
from benchmarks.cluster.nodes.affinity import selects, tolerates
from benchmarks.cluster.nodes.claim_names import may_have_claims
from benchmarks.cluster.nodes.devices.inventory import Inventory
from benchmarks.cluster.nodes.devices.preparation import mapped_requests, unprepared
from benchmarks.cluster.nodes.pod_events import record_event
from benchmarks.cluster.nodes.resources import Amounts, amounts, pod_amounts
from benchmarks.cluster.settings import ClusterSettings
from benchmarks.cluster.store.clock import Agenda
from benchmarks.cluster.store.kinds import NODES, POD_NODE, POD_PHASE, PODS
from benchmarks.cluster.store.store import Change, Record

Json = dict[str, Any]

RUN_SECONDS = "cluster.poseidon.io/run-seconds"
START_SECONDS = "cluster.poseidon.io/start-seconds"
STOP_SECONDS = "cluster.poseidon.io/stop-seconds"
EXIT_CODE = "cluster.poseidon.io/exit-code"
FAIL_FIRST = "cluster.poseidon.io/fail-first"
_DONE = ("Succeeded", "Failed")
_PREPARE_AGAIN_SECONDS = 1.0


class _Node:
    """The state of one kubelet."""

    __slots__ = ("allocatable", "index", "labels", "name", "pods", "taints", "up", "used")

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.up = True
        self.labels: dict[str, str] = {}
        self.taints: list[Json] = []
        self.allocatable: Amounts = {}
        self.used: Amounts = {}
        self.pods: dict[str, Amounts] = {}  # admitted and not ended, by UID


class Kubelets:
    """Every node's kubelet."""

    def __init__(self, api: Api, agenda: Agenda, settings: ClusterSettings, inventory: Inventory) -> None:
        self._api = api
        self._agenda = agenda
        self._settings = settings
        self._inventory = inventory
        self._random = random.Random(f"kubelets {settings.seed}")
        self._nodes: dict[str, _Node] = {}
        self._home: dict[str, _Node] = {}  # UID of every pod that a kubelet has seen, until the pod is removed
        self._waiting: dict[str, list[Record]] = {}  # pods bound to nodes that do not exist, or are down
        self._failed_of: dict[str, int] = {}  # pods failed on purpose, per owner
        self._stopping: set[str] = set()
        self._addresses = 0
        self.rejected: dict[str, int] = {}
        """Rejections per reason."""
        self.unprepared: dict[str, str] = {}
        """Pods (namespace/name) whose claims could not be prepared when they were to start, with the last reason."""
        for record in api.store.collection(NODES).records():
            self._know(record)
        api.store.subscribe(NODES, self._node_changed)
        api.store.subscribe(PODS, self._pod_changed)

    def used(self, node: str) -> Amounts:
        """The requests of the admitted pods of a node, in base units."""
        return dict(self._nodes[node].used) if node in self._nodes else {}

    def is_up(self, node: str) -> bool:
        """Whether the node's kubelet runs."""
        found = self._nodes.get(node)
        return found is not None and found.up

    def names(self) -> list[str]:
        """The nodes that have a kubelet."""
        return list(self._nodes)

    def set_up(self, node: str, up: bool) -> None:
        """Stop a kubelet (its pods freeze as they are), or start it again."""
        found = self._nodes[node]
        found.up = up
        if up:
            for record in self._waiting.pop(node, []):
                self._agenda.call_soon(lambda record=record: self._look_again(record))  # type: ignore[misc]

    # changes in the store

    def _know(self, record: Record) -> None:
        node = self._nodes.get(record.name)
        if node is None:
            node = self._nodes[record.name] = _Node(record.name, len(self._nodes))
            for waiting in self._waiting.pop(record.name, []):
                self._agenda.call_soon(lambda waiting=waiting: self._look_again(waiting))  # type: ignore[misc]
        obj = record.parse()
        node.labels = record.labels
        node.taints = (obj.get("spec") or {}).get("taints") or []
        status = obj.get("status") or {}
        try:
            node.allocatable = amounts(status.get("allocatable") or status.get("capacity"))
        except ValueError:
            node.allocatable = {}

    def _node_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            self._nodes.pop(change.record.name, None)
        else:
            self._know(change.record)

    def _pod_changed(self, change: Change) -> None:
        record = change.record
        uid = record.uid
        if change.type == "DELETED":
            self._free(uid)
            self._home.pop(uid, None)
            self._stopping.discard(uid)
            return
        if not record.fields[POD_NODE]:
            return
        if uid not in self._home:
            if record.fields[POD_PHASE] not in _DONE:
                self._agenda.call_soon(lambda: self._admit(record))
        elif record.fields[POD_PHASE] in _DONE:
            self._free(uid)
        if record.deleting and uid not in self._stopping:
            self._stopping.add(uid)
            self._agenda.call_soon(lambda: self._stop(record))

    def _look_again(self, record: Record) -> None:
        current = self._current(record)
        if current is None:
            return
        if current.uid not in self._home:
            self._admit(current)
        if current.deleting:
            self._stop(current)

    def _current(self, record: Record) -> Record | None:
        """The pod's present record, if it is still the same pod."""
        current = self._api.store.collection(PODS).objects.get(record.key)
        return current if current is not None and current.uid == record.uid else None

    def _free(self, uid: str) -> None:
        node = self._home.get(uid)
        if node is None:
            return
        taken = node.pods.pop(uid, None)
        if taken is not None:
            for name, amount in taken.items():
                node.used[name] -= amount

    # actions

    def _hold(self, record: Record, node: _Node | None) -> bool:
        """Whether the pod's node has no running kubelet; if so, the pod is queued until there is one."""
        if node is not None and node.up:
            return False
        self._waiting.setdefault(record.fields[POD_NODE], []).append(record)
        return True

    def _admit(self, record: Record) -> None:
        current = self._current(record)
        if current is None or current.uid in self._home or current.fields[POD_PHASE] in _DONE:
            return
        node = self._nodes.get(current.fields[POD_NODE])
        if self._hold(current, node) or node is None:
            return
        self._home[current.uid] = node
        pod = current.parse()
        need = pod_amounts(pod["spec"])
        for name in mapped_requests(pod):
            need.pop(name, None)
        refusal = self._refusal(pod, need, node)
        if refusal is not None:
            self._reject(current, pod, *refusal)
            return
        need["pods"] = 1
        node.pods[current.uid] = need
        for name, amount in need.items():
            node.used[name] = node.used.get(name, 0) + amount
        delay = _seconds(pod, START_SECONDS, self._settings.start_seconds)
        self._agenda.after(delay, lambda: self._start(current))

    def _refusal(self, pod: Json, need: Amounts, node: _Node) -> tuple[str, str] | None:
        free_pods = node.allocatable.get("pods", 0) - node.used.get("pods", 0)
        if free_pods < 1:
            return _short("pods", 1, node)
        for name, amount in need.items():
            if amount and node.used.get(name, 0) + amount > node.allocatable.get(name, 0):
                return _short(name, amount, node)
        spec = pod["spec"]
        if not selects(spec, node.name, node.labels):
            return (
                "NodeAffinity",
                "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
            )
        tolerations = spec.get("tolerations") or ()
        for taint in node.taints:
            if taint.get("effect") == "NoExecute" and tolerates(tolerations, taint) is None:
                return (
                    "TaintToleration",
                    "Pod was rejected: Predicate TaintToleration failed: "
                    "node(s) had taints that the pod didn't tolerate",
                )
        return None

    def _reject(self, record: Record, pod: Json, reason: str, message: str) -> None:
        self.rejected[reason] = self.rejected.get(reason, 0) + 1
        pod_status.reject(pod, reason, message)
        written = self._api.store.put(PODS, pod, record)
        node = record.fields[POD_NODE]
        self._api.audit.add(written.version, "reject", record.namespace, record.name, record.uid, node, reason)

    def _start(self, record: Record) -> None:
        current = self._current(record)
        node = self._home.get(record.uid)
        if current is None or current.deleting or current.fields[POD_PHASE] != "Pending" or node is None:
            return
        if not node.up:
            self._agenda.after(1.0, lambda: self._start(record))
            return
        pod = current.parse()
        if may_have_claims(current) and not self._prepare(current, pod, node):
            self._agenda.after(_PREPARE_AGAIN_SECONDS, lambda: self._start(record))
            return
        self._addresses += 1
        at = self._addresses
        address = f"10.{128 + (at >> 16 & 127)}.{at >> 8 & 255}.{at & 255}"
        host = f"10.{node.index >> 16 & 255}.{node.index >> 8 & 255}.{node.index & 255}"
        pod_status.run(pod, address, host)
        self._api.store.put(PODS, pod, current)
        run = self._run_seconds(pod)
        if run is not None:
            self._agenda.after(run, lambda: self._finish(current))

    def _prepare(self, record: Record, pod: Json, node: _Node) -> bool:
        """Whether the pod's claims are ready on the node; if not, an event says why."""
        problem = unprepared(self._api.store, self._inventory, record, pod, node.name, node.labels)
        if problem:
            self.unprepared[record.key] = problem
            message = f"Failed to prepare dynamic resources: prepare dynamic resources: {problem}"
            record_event(self._api, record, "FailedPrepareDynamicResources", message, "kubelet")
        return not problem

    def _run_seconds(self, pod: Json) -> float | None:
        stated = _seconds(pod, RUN_SECONDS, -1.0)
        if stated >= 0:
            return stated
        if pod["spec"].get("restartPolicy") == "Always":
            return None
        return self._settings.run_time.draw(self._random)

    def _finish(self, record: Record) -> None:
        current = self._current(record)
        node = self._home.get(record.uid)
        if current is None or current.deleting or current.fields[POD_PHASE] != "Running" or node is None:
            return
        if not node.up:
            self._agenda.after(1.0, lambda: self._finish(record))
            return
        pod = current.parse()
        code = self._exit_code(pod)
        policy = pod["spec"].get("restartPolicy")
        if policy == "Always" or (policy == "OnFailure" and code):
            pod_status.restart(pod, code)
            self._api.store.put(PODS, pod, current)
            again = self._run_seconds(pod)
            self._agenda.after(10.0 if again is None else max(again, 1.0), lambda: self._finish(record))
            return
        pod_status.finish(pod, code)
        written = self._api.store.put(PODS, pod, current)
        phase = "Failed" if code else "Succeeded"
        self._api.audit.add(written.version, "finish", current.namespace, current.name, current.uid, node.name, phase)

    def _exit_code(self, pod: Json) -> int:
        annotations = pod["metadata"].get("annotations") or {}
        first = annotations.get(FAIL_FIRST, "")
        if first.isdigit():
            owners = pod["metadata"].get("ownerReferences") or [{"uid": pod["metadata"]["uid"]}]
            owner = owners[0]["uid"]
            failed = self._failed_of.get(owner, 0)
            if failed < int(first):
                self._failed_of[owner] = failed + 1
                return 1
        code = annotations.get(EXIT_CODE, "0")
        return int(code) if code.isdigit() else 0

    def _stop(self, record: Record) -> None:
        """A deletion began: end the pod within its grace period."""
        current = self._current(record)
        if current is None or self._hold(current, self._nodes.get(current.fields[POD_NODE])):
            return
        pod = current.parse()
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        self._agenda.after(
            min(grace, _seconds(pod, STOP_SECONDS, self._settings.stop_seconds)), lambda: self._end(current)
        )

    def _end(self, record: Record) -> None:
        current = self._current(record)
        if current is None or self._hold(current, self._nodes.get(current.fields[POD_NODE])):
            return
        pod = current.parse()
        metadata = pod["metadata"]
        metadata["deletionGracePeriodSeconds"] = 0
        if metadata.get("finalizers"):
            if current.fields[POD_PHASE] not in _DONE:
                pod_status.finish(pod, 143)
            self._api.store.put(PODS, pod, current)
        else:
            self._api.remove(PODS, current, pod)


def _short(name: str, asked: int, node: _Node) -> tuple[str, str]:
    used, capacity = node.used.get(name, 0), node.allocatable.get(name, 0)
    problem = f"Node didn't have enough resource: {name}, requested: {asked}, used: {used}, capacity: {capacity}"
    return f"OutOf{name}", f"Pod was rejected: {problem}"


def _seconds(pod: Json, annotation: str, default: float) -> float:
    given = (pod["metadata"].get("annotations") or {}).get(annotation)
    if given is None:
        return default
    try:
        value = float(given)
    except ValueError:
        return default
    return value if value >= 0 and value == value else default
