"""The bridge's records of pods and nodes: the only owner of these maps.

The watches write it, all other packages read it. The key of a pod is its UID, so that a pod that is deleted and created
again with the same name is a different pod. state/pod_lifecycle.py has its states. Every change that may affect the
engine puts the pod's or node's key into its queue, for feed/workers.py.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from poseidon_py.describe.data_inputs import Inputs
from poseidon_py.describe.label_profiles import Profiles
from poseidon_py.describe.task_classes import Classes
from poseidon_py.kube.objects import Node, Pod
from poseidon_py.kube.outcomes import Outcome, outcome_of
from poseidon_py.kube.storage_objects import Namespace
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.announced import Announced
from poseidon_py.state.arrivals import Arrivals
from poseidon_py.state.budgets import Budgets
from poseidon_py.state.default_spreading import DefaultSpreading
from poseidon_py.state.devices.gate import DeviceGate
from poseidon_py.state.gangs.registry import GangRegistry
from poseidon_py.state.listeners import SettledListener
from poseidon_py.state.namespaces import Namespaces
from poseidon_py.state.node_record import NodeRecord
from poseidon_py.state.nominations import Nominations
from poseidon_py.state.observed import fingerprint, is_disrupted
from poseidon_py.state.pod_lifecycle import PodEvent, PodState
from poseidon_py.state.preemption.preemption_rules import PreemptionRules
from poseidon_py.state.preemption.priority_classes import PriorityClasses
from poseidon_py.state.problems import Problems
from poseidon_py.state.queues.past_use import PastUse
from poseidon_py.state.queues.registry import QueueRegistry
from poseidon_py.state.records import PodRecord
from poseidon_py.state.volumes.cache import Storage
from poseidon_py.state.volumes.gate import VolumeGate
from poseidon_py.util.ids import TaskIds, node_id
from poseidon_py.util.work_queue import KeyedQueue
from protos.gen import firmament_pb2

log = logging.getLogger(__name__)

_DESCRIPTIONS = 10_000
"""Unused classes, profiles and input sets are pruned once there are this many."""


class Store:
    """See the module."""

    def __init__(
        self,
        scheduler_names: Iterable[str],
        monotonic: Callable[[], float] = time.monotonic,
        added_affinity: firmament_pb2.NodeSelector | None = None,
        defer_seconds: float = 0.1,
        metrics: Metrics | None = None,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        preemption: bool = True,
        queues: str = "off",
        preemption_rules: PreemptionRules | None = None,
        past_use: PastUse | None = None,
    ) -> None:
        """`added_affinity`: node affinity added to that of every pod. `defer_seconds`: seconds for which changes
        without effect are deferred in the queue of pods. `preemption`: whether the engine preempts. `queues`: the kind
        of queues, auto or off. `past_use`: that of queues."""
        self._scheduler_names = {name: name for name in scheduler_names}
        self._monotonic = monotonic
        self.now_us = now_us
        self.preemption_rules = preemption_rules or PreemptionRules()
        self.announced = Announced()
        self.metrics = metrics if metrics is not None else Metrics()
        """Shared by all components that use this store."""
        self.pods: dict[str, PodRecord] = {}
        """By UID."""
        self.owned: dict[str, set[str]] = {}
        """UID of a controller -> UIDs of its pods."""
        self.nodes: dict[str, NodeRecord] = {}
        """By name."""
        self.classes = Classes(added_affinity)
        self.profiles = Profiles()
        self.inputs = Inputs()
        self.namespaces = Namespaces(self._touch_bound, self.metrics)
        self.avoided: dict[str, set[str]] = {}
        """UID of a controller -> names of the nodes that its pods should avoid."""
        self.storage = Storage()
        self.pod_queue: KeyedQueue[str] = KeyedQueue("pods", defer_seconds=defer_seconds, metrics=self.metrics)
        """UIDs."""
        self.node_queue: KeyedQueue[str] = KeyedQueue("nodes", metrics=self.metrics)
        """Node names; ids for deleted nodes."""
        self.gone_tasks: dict[str, int] = {}
        """UID -> task of pods whose removal has not been sent to the engine yet."""
        self.outcomes: dict[str, Outcome] = {}
        """UID -> outcome of those pods, unless they were deleted."""
        self.gone_nodes: set[str] = set()
        """Ids of nodes whose removal has not been sent to the engine yet."""
        self.problems = Problems(self.metrics)
        self.gangs = GangRegistry(self.pods, self.touch_pod, self.metrics, self.preemption_rules.by_job)
        self.priority_classes = PriorityClasses(self.pods, self.touch_pod)
        self._arrivals = Arrivals()
        self.queues = QueueRegistry(
            self.pods,
            self.touch_pod,
            lambda: self.gangs.objects,
            self.metrics,
            queues,
            past_use=past_use,
            arrivals=self._arrivals,
        )
        admissions = self.gangs.admissions
        admissions.requests_of, admissions.id_of_node = self._requests_of, self.id_of_node
        admissions.drains = lambda queue: not self.queues.continues(queue)
        self.spreading = DefaultSpreading(self.profiles, lambda: self.gangs.objects, self.touch_pod)
        self.volumes = VolumeGate(
            self.storage, self.pods, self.touch_pod, self.touch_node, self.touch_nodes, preemption=preemption
        )
        self.devices = DeviceGate(self.pods, self.touch_pod, self.touch_node, self.touch_nodes, self.queues)
        self.budgets = Budgets(self.metrics)
        self.nominations = Nominations(self.touch_pod)
        self._settled_listeners: list[SettledListener] = [self.volumes, self.devices, self.spreading]
        self._tasks = TaskIds(self.metrics)
        self._on_node: dict[str, dict[str, None]] = {}
        """Node name -> UIDs of the pods that are bound to it."""
        self._node_name: dict[str, str] = {}
        self._prune_at = _DESCRIPTIONS

    def subscribe(self, *listeners: SettledListener) -> None:
        """Notified of bound and deleted pods, in this order."""
        self._settled_listeners.extend(listeners)

    # -- lookups ----------------------------------------------------------------------------------------------

    def pod_of_task(self, task: int) -> PodRecord | None:
        uid = self._tasks.uid(task)
        return self.pods.get(uid) if uid is not None else None

    def pod_named(self, namespace: str, name: str) -> PodRecord | None:
        """Searches all pods; used for queries of users."""
        found = [p for p in self.pods.values() if p.name == name and p.namespace == namespace]
        return found[-1] if found else None

    def node_with_id(self, ident: str) -> str | None:
        """The name of an existing node; None: it does not exist."""
        return self._node_name.get(ident)

    def id_of_node(self, name: str) -> str:
        """The id of the node with that name; for an unknown node an id derived from the name alone."""
        node = self.nodes.get(name)
        return node.id if node is not None else node_id(name, "")

    def _requests_of(self, known: PodRecord) -> Mapping[str, int]:
        """Empty while they are unknown."""
        described = self.classes.get(known.described.class_id)
        return dict(described.requests) if described is not None else {}

    def labels_of_node(self, name: str) -> Mapping[str, str] | None:
        """None: the node does not exist."""
        node = self.nodes.get(name)
        return node.base.labels if node is not None and node.base is not None else None

    def waiting(self) -> Iterator[PodRecord]:
        return (
            pod for pod in self.pods.values() if pod.observed.scheduler and not pod.node and not pod.observed.deleting
        )

    # -- reports of the watches -------------------------------------------------------------------------------

    def observe_pod(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if (outcome := outcome_of(pod)) is not None:
            assigned_to_us = pod.spec.scheduler_name in self._scheduler_names
            self.gangs.ended(pod, succeeded=outcome is Outcome.SUCCEEDED, assigned_to_us=assigned_to_us)
            self.remove_pod(uid, outcome)
            return
        known = self.pods.get(uid)
        if known is None:
            if not uid:
                raise ValueError("a pod without UID")
            # a removed pod that is listed again (the server's data was restored) keeps its id
            task = self.gone_tasks.pop(uid, 0) or self._tasks.add(uid)
            self.outcomes.pop(uid, None)
            known = self.pods[uid] = PodRecord(pod, task, self._monotonic())
            known.created_us = self._arrivals.moment(known.created_us)
            if known.owner:
                self.owned.setdefault(known.owner, set()).add(uid)
        spec, node = pod.spec, pod.spec.node_name or ""
        print_now = fingerprint(pod) if node else 0
        # not urgent if the engine already has it on this node and only the API server, which may add the node's labels
        # on binding, or the kubelet has changed it
        urgent = not node or (print_now != known.observed.fingerprint if node == known.node else node != known.assumed)
        known.observed.fingerprint = print_now
        before = known.node
        self._advance(known, PodEvent.OBSERVE_BOUND if node else PodEvent.OBSERVE_WAITING, node)
        if node != before:
            self._move(known, before)
        known.observed.scheduler = self._scheduler_names.get(spec.scheduler_name or "", "")
        known.observe_gates(bool(spec.gates), self._monotonic())
        known.observed.deleting = pod.metadata.deleting is not None
        known.observed.disrupted = bool(node) and is_disrupted(pod)
        known.observed.version = pod.metadata.resource_version
        known.observed.generation = pod.metadata.generation or 0
        self.announced.observe(known, pod)
        if not (node or known.observed.assigned_to_us):
            self.problems.pod_valid(uid)
            return  # another scheduler places it
        self.nominations.observe(known, pod.status.nominated or "", known.observed.version)
        known.observed.newest = pod
        known.dirty = True
        self.pod_queue.add(uid, urgent=urgent)

    def _move(self, known: PodRecord, before: str) -> None:
        """Updates the nodes when the pod is no longer on `before`."""
        if before:
            self._take_off(before, known.uid)
        if known.node:
            self._on_node.setdefault(known.node, {})[known.uid] = None
            self._settled(known)

    def _take_off(self, node: str, uid: str) -> None:
        there = self._on_node.get(node, {})
        there.pop(uid, None)
        if not there:
            self._on_node.pop(node, None)

    def remove_pod(self, uid: str, outcome: Outcome | None = None) -> None:
        """A pod was deleted, or has ended with that outcome."""
        self.problems.pod_gone(uid)
        if outcome is None:
            self.gangs.forget_ended(uid)
        known = self.pods.pop(uid, None)
        if known is None:
            return
        if known.node:
            self._take_off(known.node, uid)
        if known.owner:
            self.owned[known.owner].discard(uid)
            if not self.owned[known.owner]:
                del self.owned[known.owner]
        self.gangs.gone(known)
        self.queues.leave(uid)
        known.observed.deleting = True
        self._advance(known, PodEvent.REMOVE)
        self.nominations.removed(known)
        self._settled(known)
        self.gone_tasks[uid] = known.task
        if outcome is not None:
            self.outcomes[uid] = outcome
        self.pod_queue.add(uid)

    def assume(self, known: PodRecord, node: str) -> bool:
        """The pod is being bound to the node with that name. False, without a change: illegal in its state."""
        return self._advance(known, PodEvent.ASSUME, node)

    def release(self, known: PodRecord) -> bool:
        """The assumed placement has ended without a bind. False as above."""
        released = self._advance(known, PodEvent.RELEASE)
        if released:
            self.volumes.released(known)
            self.devices.released(known)
        return released

    def _advance(self, known: PodRecord, event: PodEvent, node: str = "") -> bool:
        if known.advance(event, node):
            return True
        self.metrics.illegal_transitions.labels(known.state.name, event.name).inc()
        log.error("rejected event %s of pod %s in state %s", event.name, known.full_name, known.state.name)
        return False

    def _settled(self, known: PodRecord) -> None:
        for listener in self._settled_listeners:
            listener.settled(known)

    def forget_gone(self, uids: Iterable[str]) -> None:
        """The engine has removed these pods: their task ids are free."""
        for uid in uids:
            self.outcomes.pop(uid, None)
            task = self.gone_tasks.pop(uid, None)
            if task is not None:
                self._tasks.remove(task)

    def pods_listed(self, uids: set[str]) -> None:
        """Removes the pods that are not in a new list, because they were deleted while there was no watch."""
        present = (*self.pods, *self.problems.invalid, *self.gangs.ended_pods())
        for uid in [uid for uid in present if uid not in uids]:
            self.remove_pod(uid)
        self.announced.pods_listed()

    def observe_node(self, node: Node) -> None:
        name, uid = node.metadata.name, node.metadata.uid
        known = self.nodes.get(name)
        if known is None or known.uid != uid:
            if known is not None:
                self.remove_node(name)
            known = self.nodes[name] = NodeRecord(node)
            self._node_name[known.id] = name
            self.gone_nodes.discard(known.id)
            for pod in self._on_node.get(name, ()):  # sent with the id of an unknown node, or of the former one
                self.pods[pod].dirty = True
                self.pod_queue.add(pod)
            self.nominations.node_added(name)
        known.newest = node
        known.dirty = True
        self.node_queue.add(name)

    def remove_node(self, name: str) -> None:
        known = self.nodes.pop(name, None)
        if known is None:
            return
        self._node_name.pop(known.id, None)
        self.note_avoided(name, ())
        self.problems.node_gone(known.uid)
        self.nominations.node_removed(name)
        self.gone_nodes.add(known.id)
        self.node_queue.add(known.id)

    def nodes_listed(self, uids: set[str]) -> None:
        """Likewise for nodes."""
        for name in [node.name for node in self.nodes.values() if node.uid not in uids]:
            self.remove_node(name)
        self.problems.nodes_listed(uids)

    def touch_pod(self, uid: str) -> None:
        """Marks the pod for a new description, because a dependency of its description has changed."""
        known = self.pods.get(uid)
        if known is not None:
            known.dirty = True
            self.pod_queue.add(uid)

    def set_revocable(self, known: PodRecord, revocable: bool) -> None:
        """Sets whether the bind of an assumed pod waits. The engine learns it unless that changes again soon."""
        if known.state is PodState.ASSUMED and known.revocable != revocable:
            known.revocable, known.dirty = revocable, True
            self.pod_queue.add(known.uid, urgent=False)

    def resend_pod(self, uid: str) -> None:
        """Has the pod's row sent again even if it has not changed, because a round has changed the engine's."""
        known = self.pods.get(uid)
        if known is not None:
            known.resend = True
            self.touch_pod(uid)

    def touch_node(self, name: str) -> None:
        """Likewise for a node."""
        known = self.nodes.get(name)
        if known is not None:
            known.dirty = True
            self.node_queue.add(name)

    def touch_nodes(self) -> None:
        for name in self.nodes:
            self.touch_node(name)

    def note_avoided(self, node: str, owners: Iterable[str]) -> None:
        """Sets the controllers whose pods should avoid the node (preferAvoidPods)."""
        avoiding, changed = set(owners), set[str]()
        for owner in avoiding | {owner for owner, nodes in self.avoided.items() if node in nodes}:
            nodes = self.avoided.setdefault(owner, set())
            before = bool(nodes)
            (nodes.add if owner in avoiding else nodes.discard)(node)
            if bool(nodes) != before:
                changed.add(owner)
            if not nodes:
                del self.avoided[owner]
        if changed:
            for known in self.waiting():
                if known.owner in changed:
                    self.touch_pod(known.uid)

    def observe_namespace(self, item: Namespace) -> None:
        """Raises InvalidField."""
        self.queues.observe_namespace(item)
        self.namespaces.observe(item)

    def remove_namespace(self, name: str) -> None:
        self.queues.remove_namespace(name)
        self.namespaces.remove(name)

    def _touch_bound(self, namespace: str) -> None:
        for known in self.pods.values():
            if known.node and known.namespace == namespace:
                self.touch_pod(known.uid)

    def is_movable(self, known: PodRecord) -> bool:
        """Whether the pod may be evicted in order to run on another node. One of a gang may not: the others need it."""
        if known.gang.id or known.gang.blocked or known.spared or known.migration_refused or known.devices.is_tied:
            return False
        movable = known.described.movable
        return known.namespace in self.namespaces.movable if movable is None else movable

    def prune(self) -> bool:
        """Removes unused classes, profiles and input sets, once there may be many. Returns whether it has."""
        if len(self.classes) + len(self.profiles) + len(self.inputs) < self._prune_at:
            return False
        pods = self.pods.values()
        self.classes.keep({pod.described.class_id for pod in pods} | {pod.described.template for pod in pods})
        self.profiles.keep({pod.described.profile for pod in pods})
        self.inputs.keep({pod.described.inputs for pod in pods})
        self._prune_at = max(_DESCRIPTIONS, 2 * (len(self.classes) + len(self.profiles) + len(self.inputs)))
        return True
