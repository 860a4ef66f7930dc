"""Which queues there are, and the queue of each pod: the only owner of these maps.

One kind of queue is in force at a time. Pods that choose alike are resolved together, and again when an object changes
on which that depends; only the pods whose queue is another one then are described again.
"""

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping

from poseidon_py.describe.queues.messages import queues_message
from poseidon_py.describe.queues.model import Stop, Tree, id_of
from poseidon_py.kube.objects import InvalidField, Pod, annotations_of, labels_of
from poseidon_py.kube.queue_objects.fields import QueueObject
from poseidon_py.kube.queue_objects.keys import queue_annotations, queue_labels
from poseidon_py.kube.storage_objects import Namespace
from poseidon_py.state.gangs.model import OwnerOrGroup, Resource
from poseidon_py.state.queues.choice import NO_QUEUE, Choice, Namespaces, Objects, Query, Resolution
from poseidon_py.state.queues.kinds import AUTO, OFF, sources_of
from poseidon_py.state.queues.past_use import PastUse
from poseidon_py.state.queues.source import Declared, Source, Touched
from poseidon_py.state.records import NO_QUEUE as NO_MEMBERSHIP
from poseidon_py.state.records import PodRecord, QueueMembership
from poseidon_py.util.metrics import Metrics
from poseidon_py.util.work_queue import KeyedQueue
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

TREE = "tree"
"""The key of the queue of changes: the tree is always sent as a whole."""
_ADMITS = ("kueue",)
"""Kinds whose own controller admits pods before they reach a scheduler, so that quota must not be counted again."""
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
        defer_seconds: float = 0.1,
        past_use: PastUse | None = None,
    ) -> None:
        """`touch` describes a pod again. `mode`: a kind, auto or off. `defer_seconds`: seconds for which changes of the
        tree are collected before it is sent."""
        self.mode = mode
        self.past_use = past_use or PastUse()
        """What queues used in the past."""
        self.queue: KeyedQueue[str] = KeyedQueue("queues", defer_seconds=defer_seconds, metrics=metrics)
        self.namespaces = Namespaces()
        self.sources: dict[str, Source] = sources_of(mode, self.namespaces)
        self.active: Source | None
        """The kind in force; None: no quota is counted."""
        self.reported: Callable[[], None] = lambda: None
        """Called when what `declared` or `standing` says may have changed."""
        self.selected: Callable[[], None] = lambda: None
        """Called when another kind is in force."""
        self.delivered: Callable[[], None] = lambda: None
        """Called when the engine has taken a tree."""
        self._pods = pods
        self._touch = touch
        self._objects = objects
        self._choices: dict[Choice, _Pods] = {}
        self._of_pod: dict[str, _Pods] = {}
        self._dependents: dict[Hashable, set[_Pods]] = {}
        self._running: dict[str, str] = {}
        """Kinds whose own controller or scheduler runs -> its name."""
        self._tree = Tree()
        self._outdated = True
        self._message = flow_pb2.Queues()
        self._keys: set[str] = set()
        self._draining: dict[int, str] = {}
        self._without_half_life: set[str] = set()
        """Keys of queues that are to be served by past use, which does not count."""
        self._parents: set[str] = set()
        self._acknowledged: tuple[int, flow_pb2.Queues | None] = (0, None)
        self._refused: dict[str, str] = {}
        self.active = self._best()

    # -- pods -------------------------------------------------------------------------------------------------

    def describe(self, known: PodRecord, pod: Pod | None) -> None:
        """Brings the queue of a pod up to date; `pod`: its newest state, None if only other objects have changed."""
        if self.mode == OFF:
            return
        group = self._of_pod.get(known.uid)
        if pod is not None:
            if not known.observed.assigned_to_us:
                self.leave(known.uid)
                known.queue = NO_MEMBERSHIP
                return
            labels, annotations = queue_labels(pod.metadata.labels), queue_annotations(pod.metadata.annotations)
            choice = Choice(known.namespace, labels, annotations, known.owner)
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
        """A pod is gone, or another scheduler's."""
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

    def _resolve(self, group: _Pods) -> bool:
        """Returns whether the resolution has changed."""
        before = group.resolution
        query = Query(group.choice, self.namespaces, self._objects(), self._choice_of)
        group.resolution = self.active.resolve(query) if self.active is not None else NO_QUEUE
        group.unknown = query.unknown
        group.membership = _membership(group.resolution)
        self._depend(group, frozenset(query.depends_on))
        return group.resolution != before

    def _depend(self, group: _Pods, now: frozenset[Hashable]) -> None:
        for key in group.depends_on - now:
            dependents = self._dependents[key]
            dependents.discard(group)
            if not dependents:
                del self._dependents[key]
        for key in now - group.depends_on:
            self._dependents.setdefault(key, set()).add(group)
        group.depends_on = now

    def _resolve_again(self, groups: Iterable[_Pods]) -> None:
        for group in groups:
            if self._resolve(group):
                for uid in group.uids:
                    self._touch(uid)

    # -- objects ----------------------------------------------------------------------------------------------

    def put(self, kind: str, resource: Resource, item: QueueObject) -> None:
        """An object of a kind of queue exists or has changed."""
        source = self.sources[kind]
        self._changed(source, source.put(resource, item))

    def drop(self, kind: str, resource: Resource, namespace: str, name: str) -> None:
        """It is gone."""
        source = self.sources[kind]
        self._changed(source, source.drop(resource, namespace, name))

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

    def _changed(self, source: Source, touched: Touched) -> None:
        if self._select() or source is not self.active:
            return
        self._touched(touched)
        self._outdated = True
        self.queue.add(TREE, urgent=False)
        self.reported()

    def _touched(self, touched: Touched) -> None:
        found = [group for key in touched for group in self._dependents.get(key, ())]
        if found:
            self._resolve_again(dict.fromkeys(found))

    # -- the kind in force ------------------------------------------------------------------------------------

    def set_running(self, kind: str, name: str) -> None:
        """Whether the controller or scheduler that a kind belongs to runs: its name; empty: it does not."""
        if self._running.get(kind, "") != name:
            self._running[kind] = name
            self._select()
            self.reported()

    def _select(self) -> bool:
        """Chooses the kind in force. Returns whether it has changed."""
        best = self._best()
        if best is self.active:
            return False
        self.active = best
        log.info("%s", self.why_active())
        self._outdated = True
        self.queue.add(TREE, urgent=False)
        self._resolve_again(list(self._choices.values()))
        self.selected()
        self.reported()
        return True

    def _best(self) -> Source | None:
        for kind, source in self.sources.items():
            if self._running.get(kind) and (self.mode == AUTO or kind in _ADMITS):
                continue
            if self.mode != AUTO or source.in_use:
                return source
        return self.sources.get("poseidon")

    def why_active(self) -> str:
        """Which queues are in force, and why."""
        others = [
            f"{name} runs and admits by its own queues, so those of kind {kind} are not counted again"
            if kind in _ADMITS
            else f"{name} runs, so the queues of kind {kind} are left to it; --queues {kind} counts them here, too"
            for kind, name in self._running.items()
            if name and self.sources[kind].in_use and self.sources[kind] is not self.active
        ]
        unused = [
            kind
            for kind, source in self.sources.items()
            if source.in_use and source is not self.active and not self._running.get(kind)
        ]
        if unused:
            others.append(f"queues of kind {', '.join(unused)} are not used; --queues names the kind to use")
        kind = f"queues of kind {self.active.kind}" if self.active is not None else "no queues"
        return "; ".join([f"{kind} are in force", *others])

    @property
    def admits_workloads(self) -> bool:
        """Whether the queues in force admit workloads, not pods, and nobody else admits these."""
        return self.active is not None and self.active.kind in _ADMITS and not self._running.get(self.active.kind)

    @property
    def writes_status(self) -> bool:
        """Whether the status of the objects in force is ours to write."""
        return self.active is not None and not self._running.get(self.active.kind)

    # -- the tree ---------------------------------------------------------------------------------------------

    @property
    def tree(self) -> Tree:
        """The tree of the kind in force."""
        self._build()
        return self._tree

    @property
    def draining(self) -> Mapping[int, str]:
        """Id -> name of the queues whose running pods are evicted; none where another controller does that."""
        self._build()
        return self._draining if self.writes_status else {}

    def _build(self) -> None:
        if not self._outdated:
            return
        self._outdated = False
        tree = self._tree = self.active.tree() if self.active is not None else Tree()
        tree = self._tree = self.past_use.ruled(tree)
        self._message = queues_message(tree)
        self._parents = {queue.parent for queue in tree.queues}
        self._keys = {queue.key for queue in tree.queues}
        self._draining = {queue.id: queue.name for queue in tree.queues if queue.stop is Stop.HOLD_AND_DRAIN}
        self._without_half_life = {
            queue.key for queue in tree.queues if queue.by_past_use and not self.past_use.counts(tree)
        }

    def message(self) -> flow_pb2.Queues | None:
        """The tree for the engine; None: queues are off."""
        if self.mode == OFF:
            return None
        self._build()
        return self._message

    def is_news(self, epoch: int) -> bool:
        """Whether the engine of an epoch lacks the present tree."""
        self._build()
        return self._acknowledged != (epoch, self._message)

    def sent(self, epoch: int, message: flow_pb2.Queues | None, refusals: Iterable[flow_pb2.Refusal]) -> None:
        """The engine has taken a tree, without what it refused."""
        self._acknowledged = epoch, message
        names = {str(queue.id): queue.key for queue in self.tree.queues} | {
            queue.name: queue.key for queue in self.tree.queues
        }
        refused = {
            names.get(refusal.id, refusal.id): f"{refusal.field}: {refusal.reason}"
            for refusal in refusals
            if refusal.kind == "queue"
        }
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
        if found.key not in self._keys:
            return f"queue {found.name} does not exist: create it or change {found.chosen_by}"
        if found.key in self._parents:
            return f"queue {found.name} has queues below it, which take pods: name one of them in {found.chosen_by}"
        return ""

    def declared(self) -> Iterable[Declared]:
        """All objects in force, with the problems of the tree and those that the engine found."""
        if self.active is None:
            return
        self._build()
        for each in self.active.declared():
            if broken := self.broken(each.key):
                each = each._replace(problems=(broken, *each.problems), inactive=broken, reason="")
            if each.key in self._without_half_life:
                each = each._replace(problems=(*each.problems, _NO_HALF_LIFE))
            yield each

    def summary(self) -> dict[str, object]:
        """For the status of the scheduler."""
        problems = {str(each.ref): [*each.problems] for each in self.declared() if each.problems}
        return {
            "mode": self.mode,
            "kind": self.active.kind if self.active is not None else None,
            "why": self.why_active() if self.mode != OFF else "--queues is off",
            "queues": len(self.tree.queues),
            "problems": problems,
        }


def _membership(found: Resolution) -> QueueMembership:
    if found == NO_QUEUE:
        return NO_MEMBERSHIP
    queue = id_of(found.key) if found.key else 0
    running = id_of(found.running_key) if found.running_key else queue
    local = id_of(found.local_key) if found.local_key else 0
    return QueueMembership(
        queue,
        running,
        found.priority,
        found.never_preempts,
        found.preemptible,
        found.notice,
        local,
        found.topology_levels,
    )
