"""Which queues there are, and the queue of each pod: the only owner of these maps.

One kind of queue is in force at a time. Pods that choose alike are resolved together, and again when an object changes
on which that depends; only the pods whose queue is another one then are described again.

What is not known closes: a pod that names a queue waits until that can be read, and is in force.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable, Mapping, Set

from poseidon_py.describe.queues.model import Tree
from poseidon_py.devices.device_quotas import NO_QUOTAS, DeviceQuotas
from poseidon_py.kube.objects import InvalidField, Pod, annotations_of, labels_of
from poseidon_py.kube.queue_objects.fields import QueueObject
from poseidon_py.kube.queue_objects.keys import queue_annotations, queue_labels
from poseidon_py.kube.storage_objects import Namespace
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.arrivals import Arrivals
from poseidon_py.state.gangs.model import OwnerOrGroup, Resource
from poseidon_py.state.queues.built_tree import BuiltTree
from poseidon_py.state.queues.choice import NO_QUEUE, Choice, Namespaces, Objects, Query, Resolution
from poseidon_py.state.queues.in_force import IN_USE, InForce
from poseidon_py.state.queues.kinds import OFF
from poseidon_py.state.queues.membership import counted, membership_of
from poseidon_py.state.queues.past_use import PastUse
from poseidon_py.state.queues.source import Declared, Source, Touched
from poseidon_py.state.records import NO_QUEUE as NO_MEMBERSHIP
from poseidon_py.state.records import PodRecord
from poseidon_py.util.work_queue import KeyedQueue
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

TREE = "tree"
"""The key of the queue of changes: the tree is always sent as a whole."""
OPENING_DELAY = 10.0
"""Seconds after which pods whose queue was deleted are in none, if nothing but that queue put them into one."""
_NO_HALF_LIFE = "spec.admissionScope: has no effect, as past use does not count; give --queue-half-life SECONDS"


class _Pods:
    """The pods of one choice."""

    __slots__ = ("choice", "depends_on", "membership", "resolution", "uids", "unknown")

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self.uids: set[str] = set()
        self.resolution = NO_QUEUE
        self.membership = NO_MEMBERSHIP
        self.depends_on: frozenset[Hashable] = frozenset()
        self.unknown = True
        """Whether it must be resolved again before its next use."""


class QueueRegistry:
    """See the module."""

    def __init__(
        self,
        pods: Mapping[str, PodRecord],
        touch: Callable[[str], None],
        objects: Callable[[], Objects],
        metrics: Metrics,
        mode: str = OFF,
        past_use: PastUse | None = None,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
        arrivals: Arrivals | None = None,
    ) -> None:
        """`touch` describes a pod again. `mode`: a kind, auto or off."""
        self.mode = mode
        self.past_use = past_use or PastUse()
        """What queues used in the past."""
        self.by_workload = True
        """Whether queues that admit workloads do, rather than each pod by itself."""
        self.queue: KeyedQueue[str] = KeyedQueue("queues", metrics=metrics)
        self.namespaces = Namespaces()
        self.kinds = InForce(mode, self.namespaces)
        self.reported: Callable[[], None] = lambda: None
        """Called when what `declared` or `standing` says may have changed."""
        self.selected: Callable[[], None] = lambda: None
        """Called when another kind is in force, or owners of other namespaces are workloads without naming a queue."""
        self.taken_over: Callable[[str, str], None] = lambda kind, name: None
        """Called when the queues of a kind are taken over, because the controller of this name is gone."""
        self.served: Callable[[], Mapping[str, str]] = dict
        """Extended resource by the class of devices that serves it."""
        self.quotas_of_devices: Callable[[DeviceQuotas], None] = lambda quotas: None
        """Takes what devices count as, whenever that is found anew."""
        self.delivered: Callable[[], None] = lambda: None  # called when the engine has taken a tree
        self._pods = pods
        self._touch = touch
        self.objects = objects
        self._choices: dict[Choice, _Pods] = {}
        self._of_pod: dict[str, _Pods] = {}
        self._dependents: dict[Hashable, set[_Pods]] = {}
        self._call_later = call_later
        self._arrivals = arrivals or Arrivals()
        self._opening: set[_Pods] = set()  # their queue was deleted a moment ago, and they are in none now
        self._built: BuiltTree | None = None
        self._message = flow_pb2.Queues()
        self._acknowledged: tuple[int, flow_pb2.Queues | None] = (0, None)
        self._refused: dict[str, str] = {}

    # -- pods -------------------------------------------------------------------------------------------------

    def describe(self, known: PodRecord, pod: Pod | None) -> None:
        """Brings the queue of a pod up to date; `pod`: its newest state, None if only other objects have changed."""
        if self.mode == OFF:
            return
        group = self._of_pod.get(known.uid)
        if pod is not None:
            assigned = known.observed.assigned_to_us
            labels, annotations = queue_labels(pod.metadata.labels), queue_annotations(pod.metadata.annotations)
            choice = Choice(known.namespace, labels, annotations, known.owner, assigned)
            if group is None or group.choice != choice:
                self.leave(known.uid)
                group = self._choices.setdefault(choice, _Pods(choice))
                group.uids.add(known.uid)
                self._of_pod[known.uid] = group
                self._touched({("owner", known.uid)})
        if group is None:
            return
        if group.unknown:
            self._resolve(group)
        known.queue = group.membership

    def leave(self, uid: str) -> None:
        """A pod is gone."""
        group = self._of_pod.pop(uid, None)
        if group is None:
            return
        group.uids.discard(uid)
        if not group.uids:
            del self._choices[group.choice]
            self._depend(group, frozenset())

    def resolution_of(self, known: PodRecord) -> Resolution:
        group = self._of_pod.get(known.uid)
        return group.resolution if group is not None else NO_QUEUE

    def _choice_of(self, uid: str) -> Choice | None:
        group = self._of_pod.get(uid)
        return group.choice if group is not None else None

    def _resolve(self, group: _Pods, *, deleted: bool = False) -> bool:
        """Returns whether the resolution has changed. `deleted`: because an object was deleted; pods that are in no
        queue then stay in the one that is gone for a moment, as the object may be about to be created again."""
        before = group.resolution
        query = Query(group.choice, self.namespaces, self.objects(), self._choice_of)
        group.resolution = self.kinds.resolution(query)
        group.unknown = query.unknown
        if deleted and before.key and group.resolution == NO_QUEUE:
            group.resolution = before
            self._open_later(group)
        found = membership_of(group.resolution, self._created(group.resolution))
        group.membership = found if group.choice.assigned else counted(group.resolution, found)
        self._depend(group, frozenset(query.depends_on))
        return group.resolution != before

    def _created(self, found: Resolution) -> int:
        """When the workload was created; 0: its pods are admitted one by one."""
        if not (found.workload and self.by_workload):
            return 0
        return self._arrivals.moment_of(found.workload, found.workload_us)

    def _depend(self, group: _Pods, now: frozenset[Hashable]) -> None:
        for key in group.depends_on - now:
            dependents = self._dependents[key]
            dependents.discard(group)
            if not dependents:
                del self._dependents[key]
        for key in now - group.depends_on:
            self._dependents.setdefault(key, set()).add(group)
        group.depends_on = now

    def _open_later(self, group: _Pods) -> None:
        def open_now() -> None:
            self._opening.discard(group)
            if group.uids:
                self._resolve_again([group])

        if group not in self._opening:
            self._opening.add(group)
            (self._call_later or asyncio.get_running_loop().call_later)(OPENING_DELAY, open_now)

    def _resolve_again(self, groups: Iterable[_Pods], *, deleted: bool = False) -> None:
        for group in groups:
            if self._resolve(group, deleted=deleted):
                for uid in group.uids:
                    self._touch(uid)

    # -- objects ----------------------------------------------------------------------------------------------

    def put(self, kind: str, resource: Resource, item: QueueObject) -> None:
        """An object of a kind of queue exists or has changed."""
        source, namespace = self.kinds.sources[kind], item.metadata.namespace
        before = self.has_default(namespace)
        used = source.in_use
        touched = source.put(resource, item)
        self._changed(source, touched if source.in_use == used else touched | {(IN_USE, kind)})
        self._compare_default(namespace, before)

    def drop(self, kind: str, resource: Resource, namespace: str, name: str) -> None:
        """It is gone."""
        source, before = self.kinds.sources[kind], self.has_default(namespace)
        used = source.in_use
        touched = source.drop(resource, namespace, name)
        touched = touched if source.in_use == used else touched | {(IN_USE, kind)}
        self._changed(source, touched, deleted=True)
        self._compare_default(namespace, before)

    def has_default(self, namespace: str) -> bool:
        """Whether owners in a namespace that name no queue count as if they named one."""
        return self.active is not None and self.active.has_default(namespace)

    def _compare_default(self, namespace: str, before: bool) -> None:
        if self.has_default(namespace) != before:
            self.selected()

    def observe_namespace(self, item: Namespace) -> None:
        if self.mode == OFF:
            return
        name = item.metadata.name
        try:
            labels, annotations = labels_of(item.metadata), annotations_of(item.metadata)
        except InvalidField:
            return  # the last valid ones are kept
        before = self.namespaces.labels.get(name), self.namespaces.annotations.get(name)
        if before != (labels, annotations):
            self.namespaces.labels[name], self.namespaces.annotations[name] = labels, annotations
            self._namespace_changed(name)

    def remove_namespace(self, name: str) -> None:
        if self.namespaces.labels.pop(name, None) is not None:
            self.namespaces.annotations.pop(name, None)
            self._namespace_changed(name)

    def _namespace_changed(self, name: str) -> None:
        if self.active is not None:
            self._changed(self.active, {("namespace", name)})

    def object_changed(self, resource: Resource, entry: OwnerOrGroup) -> None:
        """An owner of pods or a group has changed, or is gone."""
        self._touched({("owner", entry.uid), (resource, entry.namespace, entry.name)})

    def _changed(self, source: Source, touched: Touched, *, deleted: bool = False) -> None:
        if not touched or self._select(deleted=deleted):
            return
        self._touched(touched, deleted=deleted)
        if source is self.active:
            self._outdated()

    def _touched(self, touched: Touched, *, deleted: bool = False) -> None:
        found = [group for key in touched for group in self._dependents.get(key, ())]
        if found:
            self._resolve_again(dict.fromkeys(found), deleted=deleted)

    def _outdated(self) -> None:
        self._built = None
        self.queue.add(TREE)
        self.reported()

    # -- the kind in force ------------------------------------------------------------------------------------

    def set_running(self, kind: str, name: str) -> None:
        """Whether the controller or scheduler that a kind belongs to runs: its name; empty: it does not."""
        if self.kinds.running.get(kind) != name:
            self.kinds.running[kind] = name
            self._reconsider()

    def set_unreadable(self, kind: str, why: str) -> None:
        """Why the objects of a kind cannot be read, and the remedy; empty: they can."""
        if self.kinds.unreadable.get(kind, "") != why:
            self.kinds.unreadable.pop(kind, None)
            if why:
                self.kinds.unreadable[kind] = why
            self._reconsider()

    def _reconsider(self) -> None:
        if not self._select():
            self._resolve_again(list(self._choices.values()))
            self.reported()

    def _select(self, *, deleted: bool = False) -> bool:
        """Chooses the kind in force. Returns whether it has changed."""
        if not self.kinds.select():
            return False
        log.info("%s", self.kinds.why())
        self._resolve_again(list(self._choices.values()), deleted=deleted)
        self.selected()
        self._outdated()
        return True

    @property
    def active(self) -> Source | None:
        """The kind in force; None: no quota is counted."""
        return self.kinds.active

    # -- the tree ---------------------------------------------------------------------------------------------

    @property
    def built(self) -> BuiltTree:
        """The tree of the kind in force, with what is derived from it."""
        if self._built is None:
            self._built = BuiltTree(self.active, self.past_use, self.served())
            self._message = self._built.message if self._built.message != self._message else self._message
            self.quotas_of_devices(self._built.device_quotas)
        return self._built

    def device_quotas(self) -> DeviceQuotas:
        """What devices of claims count as now."""
        return self.built.device_quotas if self.mode != OFF else NO_QUOTAS

    def classes_changed(self) -> None:
        """Other classes of devices serve extended resources."""
        if self.device_quotas().exclusive:
            self._outdated()

    def takes(self, known: PodRecord, *, started: bool = False) -> bool:
        """Whether the queue of a pod still takes pods: it can have been closed while a round ran. `started`: the pod is
        of a workload that keeps its quota."""
        return known.queue.id in self.built.taking or (started and self.continues(known.queue.running_id))

    def continues(self, queue: int) -> bool:
        """Whether workloads go on that have started in the queue with this id."""
        return queue in self.built.continuing

    @property
    def tree(self) -> Tree:
        """The tree of the kind in force."""
        return self.built.tree

    @property
    def draining(self) -> Mapping[int, str]:
        """Id -> name of the queues whose running pods are evicted; none where another controller does that."""
        return self.built.draining if self.kinds.writes_status else {}

    def message(self) -> flow_pb2.Queues | None:
        """The tree for the engine; None: queues are off."""
        return self._message if self.mode != OFF and self.built is not None else None

    def is_news(self, epoch: int) -> bool:
        """Whether the engine of an epoch lacks the present tree."""
        message = self.message()
        known_to, sent = self._acknowledged
        return message is not None and (epoch != known_to or message is not sent)

    def sent(self, epoch: int, message: flow_pb2.Queues | None, refusals: Iterable[flow_pb2.Refusal]) -> None:
        """The engine has taken a tree, without what it refused."""
        self._acknowledged = epoch, message
        refused = self.built.by_key(refusals)
        if refused != self._refused:
            self._refused = refused
            self.reported()
        self.delivered()

    def broken(self, key: str) -> str:
        """Why a declared queue is not used, and the remedy; empty: it is, or it is not declared."""
        return self.tree.problems.get(key) or self._refused.get(key, "")

    def problem_of(self, known: PodRecord) -> str:
        """Why no queue takes a pod, and the remedy; empty: its queue takes pods, or it is in none."""
        found = self.resolution_of(known)
        if found.problem or not found.key:
            return found.problem
        if problem := self.broken(found.key):
            return f"queue {found.name} is not used: {problem}"
        if found.key not in self.built:
            return f"queue {found.name} does not exist: create it or change {found.chosen_by}"
        if self.built.has_queues_below(found.key):
            return f"queue {found.name} has queues below it, which take pods: name one of them in {found.chosen_by}"
        return self.built.why_closed(found.local_key, found.key)

    def covered(self, known: PodRecord) -> Set[str] | None:
        """The resources for which the queue of a pod has quota; None: it needs none for others."""
        return self.built.covered(self.resolution_of(known).key)

    def declared(self) -> Iterable[Declared]:
        """All objects in force, with the problems of the tree and those that the engine found."""
        if self.active is None:
            return
        for each in self.active.all_declared():
            if broken := self.broken(each.key):
                each = each._replace(problems=(broken, *each.problems), inactive=broken, reason="")
            if each.key in self.built.without_half_life:
                each = each._replace(problems=(*each.problems, _NO_HALF_LIFE))
            yield each

    def summary(self) -> dict[str, object]:
        """For the status of the scheduler."""
        problems = {str(each.ref): [*each.problems] for each in self.declared() if each.problems}
        return {
            "mode": self.mode,
            "kind": self.active.kind if self.active is not None else None,
            "why": self.kinds.why() if self.mode != OFF else "--queues is off",
            "queues": len(self.tree.queues),
            "problems": problems,
        }
