"""Whether the pods of a manifest would fit now: POST /fits, which `poseidon fits` prints.

Asked: {"objects": [...], "namespace": str, "minimum": int | null, "topology": str, "priority": int | null,
        "preempt": bool}
Answered: {
    "fits": bool
    "pods": int
    "minimum": int                 so many are needed together; 0: all are needed, each is placed on its own
    "gang": str                    what makes them a gang; empty: nothing
    "places": [{"workload", "node", "count", "after_evictions"}]
    "waiting": [{"workload", "count", "message"}]    why others would wait
    "at_best": int | null          if a gang does not fit: how many of its pods do at best
    "victims": [...]               pods that would be evicted
    "notes": [...]                 what is not taken into account
    "seconds": float
}
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from poseidon_py.app.queries.manifests import Manifest, Template, manifest, note_problems
from poseidon_py.describe.bandwidth import Bandwidth
from poseidon_py.describe.label_profiles import describe_profile
from poseidon_py.describe.node_pool import demand
from poseidon_py.describe.pod_class import describe_class
from poseidon_py.describe.reason_keys import NODE_POOL
from poseidon_py.describe.task_classes import Extras, extend
from poseidon_py.kube.objects import InvalidField
from poseidon_py.report import messages
from poseidon_py.state.gangs.keys import gang_hints_of
from poseidon_py.state.gangs.model import Convention, Declaration, Objects, Owner, OwnerOrGroup, Resource, Unknown
from poseidon_py.state.gangs.resolve import resolve
from protos.gen import firmament_pb2, flow_pb2

Json = dict[str, Any]


class Question(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of the request."""

    objects: list[Any]
    namespace: str = "default"
    minimum: int | None = None
    topology: str = ""
    priority: int | None = None
    preempt: bool = False


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
    ) -> None:
        """`cluster`: its PodGroups, for pods that name one; `without_marks`: see GangRegistry; `added`: node affinity
        of every pod. Raises InvalidField, and Unknown if a PodGroup is being looked up: ask again."""
        found = manifest(question.objects, question.namespace, question.priority)
        self._notes = found.notes
        self._workloads: dict[int, list[str]] = {}
        self.request = flow_pb2.FitRequest(preempts=question.preempt, now_us=now_us)
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
        except InvalidField as error:
            raise InvalidField(f"{template.workload}: {error.field}", error.reason) from error
        if declared is not None and declared.node_pool:
            task_class = extend(task_class, Extras(((NODE_POOL, demand(declared.node_pool).SerializeToString()),)))
        profile = describe_profile(template.pod)
        self.request.members.add(count=template.number, profile_id=profile.id, **{"class": task_class})
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
            "waiting": [
                {
                    "workload": self._workload(each.class_id),
                    "count": each.waiting,
                    "message": messages.unscheduled(each.nodes, each.reasons, self._terms(), detailed=True),
                }
                for each in reply.unscheduled
            ],
            "at_best": reply.at_best if reply.at_best >= 0 else None,
            "victims": list(reply.victims),
            "notes": self._notes,
            "seconds": reply.seconds,
        }

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


def question_of(body: Mapping[str, Any]) -> Question:
    """Raises InvalidField."""
    try:
        return msgspec.convert(body, Question)
    except msgspec.ValidationError as error:
        raise InvalidField("the question", str(error)) from error
