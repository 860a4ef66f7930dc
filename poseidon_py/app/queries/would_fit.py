"""Whether the pods of a manifest would fit: POST /fits, which `poseidon fits` and `poseidon what-if` print.

Asked: {"objects": [...], "namespace": str, "minimum": int | null, "topology": str, "priority": int | null,
        "preempt": bool,
        "override_priority": bool      the priority is that of all pods, not only of those that have none
        "queue": str                   the name of the queue whose quotas count for them
        "add_nodes": [{"count": int, "like": str, "amounts": {name: quantity}}]    nodes that the cluster has besides
        "drain": [str]                 nodes whose pods leave and seek others; without objects, nothing else is asked
        "ever": bool}                  if they do not fit now, say whether they do once all other pods have left
Answered: {
    "fits": bool
    "pods": int
    "minimum": int                 so many are needed together; 0: all are needed, each is placed on its own
    "gang": str                    what makes them a gang; empty: nothing
    "places": [{"workload", "node", "count", "after_evictions"}]
    "waiting": [{"workload", "count", "message"}]    why others would wait
    "at_best": int | null          if a gang does not fit: how many of its pods do at best
    "victims": [...]               pods that would be evicted
    "verdict": str | null          one of VERDICTS, if it was asked for
    "never": [{"workload", "count", "message"}]      why they would wait even if all others had left
    "at_best_ever": int | null     how many pods of a gang would fit then at best
    "displaced": int               pods of drained nodes, but for those of DaemonSets
    "stranded": [...]              those of them that would find no other node
    "notes": [...]                 what is not taken into account
    "seconds": float
}
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from poseidon_py.app.queries.manifests import Manifest, Template, manifest, note_problems
from poseidon_py.describe.bandwidth import Bandwidth
from poseidon_py.describe.label_profiles import describe_profile
from poseidon_py.describe.node_pool import demand
from poseidon_py.describe.pod_class import describe_class
from poseidon_py.describe.reason_keys import NODE_POOL
from poseidon_py.describe.requests import offered_by
from poseidon_py.describe.task_classes import Extras, extend
from poseidon_py.kube.objects import InvalidField, Pod
from poseidon_py.report import messages
from poseidon_py.state.gangs.keys import gang_hints_of
from poseidon_py.state.gangs.model import Convention, Declaration, Objects, Owner, OwnerOrGroup, Resource, Unknown
from poseidon_py.state.gangs.resolve import resolve
from protos.gen import firmament_pb2, flow_pb2

Json = dict[str, Any]


NOW, LATER, NEVER, NOT_FOUND = VERDICTS = "now", "later", "never", "not found"
"""later: they fit once all other pods have left. never: not even then, which is proved. not found: the search finds no
placement even then, and no bound excludes one; that happens to groups of different pods."""
_VERDICTS = {
    flow_pb2.FitReply.FITS_LATER: LATER,
    flow_pb2.FitReply.NEVER_FITS: NEVER,
    flow_pb2.FitReply.NOT_FOUND: NOT_FOUND,
}
_MAX_NODES = 10_000
_PODS = "110"
"""That an added node takes unless it says otherwise: the kubelet's default."""


class AddNodes(Struct, kw_only=True, forbid_unknown_fields=True):
    """Nodes like another one, or with amounts of resources."""

    count: int
    like: str = ""
    amounts: dict[str, str] = {}


class Question(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of the request."""

    objects: list[Any]
    namespace: str = "default"
    minimum: int | None = None
    topology: str = ""
    priority: int | None = None
    preempt: bool = False
    override_priority: bool = False
    queue: str = ""
    add_nodes: list[AddNodes] = []
    drain: list[str] = []
    ever: bool = False


class _Objects:
    """The objects of a manifest, then those of the cluster."""

    def __init__(self, found: Manifest, cluster: Objects) -> None:
        self._by_name = {(resource, each.namespace, each.name): each for resource, each in found.objects}
        self._by_uid = {each.uid: each for _, each in found.objects}
        self._cluster = cluster

    def find(self, resource: Resource, namespace: str, name: str) -> OwnerOrGroup | None:
        return self._by_name.get((resource, namespace, name)) or self._cluster.find(resource, namespace, name)

    def owner(self, owner: Owner, namespace: str) -> OwnerOrGroup | None:
        return self._by_uid.get(owner.uid)

    def has_owner(self, uid: str) -> bool:
        return uid in self._by_uid

    def known_owner(self, uid: str) -> OwnerOrGroup | None:
        return self._by_uid.get(uid)

    def children(self, uid: str) -> Iterable[OwnerOrGroup]:
        return ()

    def unreadable(self, owner: Owner) -> str:
        return ""

    def serves(self, resource: Resource) -> bool:
        return True


class Fitting:
    """One question: `request` for the flow service, then `answer` of its reply."""

    def __init__(
        self,
        question: Question,
        cluster: Objects,
        *,
        without_marks: tuple[Convention, ...] = (),
        added: firmament_pb2.NodeSelector | None = None,
        bandwidth: Bandwidth,
        now_us: int,
        queues: Mapping[str, int] = MappingProxyType({}),
        devices: Callable[[Pod], Mapping[str, int]] = lambda pod: MappingProxyType({}),
    ) -> None:
        """`cluster`: its PodGroups, for pods that name one; `without_marks`: see GangRegistry; `added`: node affinity
        of every pod; `queues`: name -> id of those that take pods; `devices`: what a pod counts as in their columns,
        which may raise InvalidField. Raises InvalidField, and Unknown if a PodGroup is
        being looked up: ask again."""
        self._workloads: dict[int, list[str]] = {}
        self._devices = devices
        self.asks_for_devices = False
        self.request = flow_pb2.FitRequest(
            preempts=question.preempt,
            now_us=now_us,
            added_nodes=map(_added, question.add_nodes),
            drained_nodes=question.drain,
            says_whether_ever=question.ever,
        )
        self._queue = _queue_id(question.queue, queues)
        self._pods, self._source, self._notes = 0, "", list[str]()
        if question.drain and not question.objects:
            return
        found = manifest(question.objects, question.namespace, question.priority, override=question.override_priority)
        self._notes = found.notes
        gang = self._gang(self._read(question, found, _Objects(found, cluster), without_marks, added, bandwidth))
        self._pods = sum(template.number for template in found.templates)
        self._source = gang.convention if gang is not None else ""
        if question.minimum is not None:
            self.request.minimum = question.minimum
        elif gang is not None:
            self.request.minimum = gang.minimum
        if not 0 <= self.request.minimum <= self._pods:
            raise InvalidField("minimum", f"is {self.request.minimum}, of {self._pods} pods; give 0 to {self._pods}")
        key = question.topology or (gang.topology_key if gang is not None else "")
        self.request.topology_key = key
        self.request.topology_required = bool(question.topology) or (gang is not None and gang.topology_required)
        if question.topology and not self.request.minimum:
            raise InvalidField("topology", "needs pods that are placed together; give a minimum")

    def _add(
        self,
        template: Template,
        declared: Declaration | None,
        added: firmament_pb2.NodeSelector | None,
        bandwidth: Bandwidth,
    ) -> None:
        try:
            task_class = describe_class(template.pod, added, bandwidth)
            columns = self._devices(template.pod)
        except InvalidField as error:
            raise InvalidField(f"{template.workload}: {error.field}", error.reason) from error
        if declared is not None and declared.node_pool:
            task_class = extend(task_class, Extras(((NODE_POOL, demand(declared.node_pool).SerializeToString()),)))
        if columns:
            self.asks_for_devices = True
            task_class = extend(task_class, Extras(requests=tuple(sorted(columns.items()))))
        profile = describe_profile(template.pod)
        of = {"class": task_class, "queue_id": self._queue}
        self.request.members.add(count=template.number, profile_id=profile.id, **of)
        if profile not in self.request.profiles:
            self.request.profiles.append(profile)
        names = self._workloads.setdefault(task_class.id, [])
        if template.workload not in names:
            names.append(template.workload)

    def _read(
        self,
        question: Question,
        found: Manifest,
        objects: Objects,
        without_marks: tuple[Convention, ...],
        added: firmament_pb2.NodeSelector | None,
        bandwidth: Bandwidth,
    ) -> dict[str, Declaration]:
        """Adds the pods to the request. The gangs that they are in, by key; the key of pods without one is empty.
        Raises InvalidField if all pods are left out, and Unknown."""
        gangs: dict[str, Declaration] = {}
        problems = []
        for template in list(found.templates):
            try:
                declared = _declared(template, objects, without_marks) if question.minimum is None else None
                self._add(template, declared, added, bandwidth)
            except InvalidField as error:
                problems.append(error)
                found.templates.remove(template)
                continue
            key = declared.key if declared is not None and declared.minimum else ""
            gangs.setdefault(key, declared if declared is not None else Declaration("", "", "", 0))
        note_problems(found, problems)
        return gangs

    def _gang(self, gangs: Mapping[str, Declaration]) -> Declaration | None:
        """The gang of all pods; None: there is none. Raises InvalidField."""
        if len(gangs) > 1:
            names = ", ".join(gang.name if key else "pods without a gang" for key, gang in gangs.items())
            raise InvalidField(
                "the manifest", f"has several gangs ({names}); give one of them, or a minimum for all pods together"
            )
        key, gang = next(iter(gangs.items()))
        return gang if key else None

    def answer(self, reply: flow_pb2.FitReply) -> Json:
        """Raises InvalidField if there is no answer."""
        if reply.problem:
            raise InvalidField("the flow service", reply.problem)
        return {
            "fits": reply.fits,
            "pods": self._pods,
            "minimum": self.request.minimum,
            "gang": self._source,
            "places": [
                {
                    "workload": self._workload(each.class_id),
                    "node": each.node,
                    "count": each.count,
                    "after_evictions": each.after_evictions,
                }
                for each in sorted(reply.places, key=lambda each: (self._workload(each.class_id), each.node))
            ],
            "waiting": self._waiting(reply.unscheduled),
            "at_best": reply.at_best if reply.at_best >= 0 else None,
            "victims": list(reply.victims),
            "verdict": None if not self.request.says_whether_ever else NOW if reply.fits else _VERDICTS[reply.ever],
            "never": self._waiting(reply.never),
            "at_best_ever": reply.at_best_ever if reply.never and reply.at_best_ever >= 0 else None,
            "displaced": reply.displaced,
            "stranded": list(reply.stranded),
            "notes": self._notes,
            "seconds": reply.seconds,
        }

    def _waiting(self, unscheduled: Iterable[flow_pb2.Unscheduled]) -> list[Json]:
        return [
            {
                "workload": self._workload(each.class_id),
                "count": each.waiting,
                "message": messages.unscheduled(each.nodes, each.reasons, self._terms(), detailed=True),
            }
            for each in unscheduled
        ]

    def _terms(self) -> messages.GangTerms:
        topology = self.request.topology_key if self.request.topology_required else ""
        return messages.GangTerms(self.request.minimum, topology=topology)

    def _workload(self, class_id: int) -> str:
        return ", ".join(self._workloads.get(class_id, ()))


def _declared(template: Template, objects: Objects, without_marks: tuple[Convention, ...]) -> Declaration | None:
    hints = gang_hints_of(template.pod)
    if hints is None:
        return None
    found = resolve(hints, objects, without_marks)
    if found.unknown:
        raise Unknown(found.unknown)
    if found.declaration is None and found.invalid:
        raise InvalidField(template.workload, found.invalid)
    if found.declaration is not None and found.declaration.waits:
        raise InvalidField(template.workload, f"{found.declaration.waits}; add it to the manifest, or give a minimum")
    return found.declaration


def _added(nodes: AddNodes) -> flow_pb2.AddedNodes:
    """Raises InvalidField."""
    if not 1 <= nodes.count <= _MAX_NODES:
        raise InvalidField("add_nodes", f"has a count of {nodes.count}; give 1 to {_MAX_NODES}")
    if bool(nodes.like) == bool(nodes.amounts):
        raise InvalidField("add_nodes", "needs a node that they are like, or amounts of resources")
    amounts = {"pods": _PODS, **nodes.amounts}.items() if nodes.amounts else ()
    try:
        return flow_pb2.AddedNodes(count=nodes.count, like=nodes.like, allocatable=offered_by(amounts))
    except InvalidField as error:
        raise InvalidField("add_nodes", f"{error.field.removeprefix('status.')} {error.reason}") from error


def _queue_id(name: str, queues: Mapping[str, int]) -> int:
    """0: no queue is asked for. Raises InvalidField."""
    if not name:
        return 0
    if name not in queues:
        close = get_close_matches(name, queues, 1)
        remedy = f"there are {', '.join(sorted(queues)[:8])}" if queues else "there are none"
        if close:
            remedy = f"did you mean {close[0]}?"
        raise InvalidField("queue", f"is {name!r}, which takes no pods; {remedy}")
    return queues[name]


def question_of(body: Mapping[str, Any]) -> Question:
    """Raises InvalidField."""
    try:
        return msgspec.convert(body, Question)
    except msgspec.ValidationError as error:
        raise InvalidField("the question", str(error)) from error
