"""Conventions in which a pod names a PodGroup object that declares the gang."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from poseidon_py.conventions import group_keys as m
from poseidon_py.describe.pod_class import NEVER
from poseidon_py.kube.quantity import QuantityError, nanos, requested, schedulable
from poseidon_py.state.gangs.model import (
    Declaration,
    GangHints,
    Invalid,
    Objects,
    OwnerOrGroup,
    Resource,
    number_of,
    number_or,
    shown,
    whole,
)

COSCHEDULING = Resource("scheduling.x-k8s.io", "podgroups", ("v1alpha1",))
VOLCANO = Resource("scheduling.volcano.sh", "podgroups", ("v1beta1",))
KAI = Resource("scheduling.run.ai", "podgroups", ("v2alpha2",))
GODEL = Resource("scheduling.godel.kubewharf.io", "podgroups", ("v1alpha1",))
NATIVE = Resource("scheduling.k8s.io", "podgroups", ("v1", "v1beta1", "v1alpha3", "v1alpha2"))

SIGS = Resource("scheduling.sigs.k8s.io", "podgroups", ("v1alpha1",))
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "priorityclasses", ("v1",), namespaced=False)

GROVE = Resource("scheduler.grove.io", "podgangs", ("v1alpha1",))

GROUPS = (COSCHEDULING, VOLCANO, KAI, GODEL, NATIVE, SIGS, GROVE)
GROUP_KINDS = {"podgroups": "PodGroup", "podgangs": "PodGang"}
"""Kinds by the plural of their resources."""


class _ByPodGroup:
    """What these conventions share: the group's name on the pod, its object, and errors that name the object."""

    name: str
    resource: Resource
    class_counts = False
    """Whether spec.priorityClassName gives the pods their priority; without it their own count."""

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        group = self.group_of(hints)
        if not group:
            return None
        name, label = f"{hints.namespace}/{group}", self.resource.label
        reference = (self.resource, hints.namespace, group)
        pod_group = objects.find(*reference)
        waits = f'pod group "{name}" not found: there is no such object among {label}'
        absent = Declaration(self.name, f"{label}/{name}", name, 0, waits=waits, object_ref=reference)
        if pod_group is None:
            return self.without_object(hints, absent)
        if pod_group.remarks.refused:
            return replace(absent, waits=f'pod group "{name}": {pod_group.remarks.refused[0]}', refused=True)
        try:
            declared = replace(absent, waits="", created_us=pod_group.created_us, **self.declared(hints, pod_group))
        except Invalid as problem:
            raise Invalid(f'pod group "{name}": {problem}') from problem
        named = pod_group.spec.get("priorityClassName") if self.class_counts else None
        if not named or not isinstance(named, str):
            return declared
        reads = ((PRIORITY_CLASSES, "", named),)
        priority_class = objects.find(*reads[0])
        if priority_class is None:
            missing = f"spec.priorityClassName: PriorityClass {named} does not exist; create it or name another"
            return replace(absent, waits=f'pod group "{name}": {missing}', reads=reads)
        return replace(declared, priority=int(str(priority_class.spec["value"])), reads=reads)

    def group_of(self, hints: GangHints) -> str | None:
        """The name of the group; empty or None: the pod does not use this convention."""
        raise NotImplementedError

    def declared(self, hints: GangHints, pod_group: OwnerOrGroup) -> dict[str, Any]:
        """The fields of the Declaration that the object determines. Raises Invalid."""
        raise NotImplementedError

    def without_object(self, hints: GangHints, absent: Declaration) -> Declaration:
        """The declaration while the object does not exist: `absent` waits for it."""
        return absent


def _mapping(spec: Mapping[str, object], name: str) -> dict[str, object]:
    """A field that holds a mapping; empty if it is missing. Raises Invalid."""
    found = spec.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Invalid(f"spec.{name}: {shown(found)} is not valid; give a mapping")
    return found


def _named(spec: Mapping[str, object], name: str, path: str, key: str) -> list[dict[str, Any]]:
    """A field that holds a list of mappings, each with `key`; empty if it is missing. Raises Invalid."""
    found = spec.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) and each.get(key) for each in found):
        raise Invalid(f"{path}: {shown(found)} is not valid; give a list in which each item has a {key}")
    return found


def start_amounts(spec: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    """spec.minResources in the engine's units, without what is a quota and no resource of nodes. Raises Invalid."""
    found: dict[str, int] = {}
    for name, quantity in sorted(_mapping(spec, "minResources").items()):
        try:
            amount = nanos(str(quantity))
        except QuantityError:
            amount = -1
        if amount < 0:
            raise Invalid(f"spec.minResources[{name}]: {shown(quantity)} is not valid; give a quantity of 0 or more")
        if amount and schedulable(name) and not name.startswith(_QUOTAS):
            found[name] = requested(name, amount)
    return tuple(found.items())


_QUOTAS = ("requests.", "limits.", "count/")
"""How names begin that only ResourceQuotas have; Volcano's controller writes them, and its scheduler ignores them."""


def _timeout(spec: Mapping[str, object]) -> float | None:
    seconds = spec.get("scheduleTimeoutSeconds")
    return None if seconds is None else float(number_of(seconds, "spec.scheduleTimeoutSeconds", 1))


def fluence_size(hints: GangHints) -> int | None:
    """The size that Fluence's label or annotation gives a group; None: there is none. Raises Invalid."""
    for key in m.FLUENCE_SIZES:
        for what, found in (("label", hints.labels), ("annotation", hints.annotations)):
            if key in found:
                return whole(found[key], f"{what} {key}")
    return None


class Coscheduling(_ByPodGroup):
    """The label and PodGroup of scheduler-plugins, and Fluence's size label."""

    name = "scheduling.x-k8s.io PodGroup"
    resource = COSCHEDULING

    def group_of(self, hints: GangHints) -> str | None:
        return hints.labels.get(m.COSCHEDULING)

    def declared(self, hints: GangHints, pod_group: OwnerOrGroup) -> dict[str, Any]:
        minimum = number_of(pod_group.spec.get("minMember", 1), "spec.minMember", 1)
        return {
            "minimum": minimum,
            "timeout": _timeout(pod_group.spec),
            "start_amounts": start_amounts(pod_group.spec),
        }

    def without_object(self, hints: GangHints, absent: Declaration) -> Declaration:
        size = fluence_size(hints)
        if size is None:
            return absent
        return replace(absent, convention="Fluence", minimum=size, maximum=size, size=size, waits="")


class Sigs(Coscheduling):
    """The label and PodGroup of scheduler-plugins 0.19 to 0.24, which Koordinator still uses."""

    name = "scheduling.sigs.k8s.io PodGroup"
    resource = SIGS

    def group_of(self, hints: GangHints) -> str | None:
        return hints.labels.get(m.SIGS)


class Volcano(_ByPodGroup):
    """The annotation and PodGroup of Volcano; task names are roles."""

    name = "Volcano"
    resource = VOLCANO
    class_counts = True

    def group_of(self, hints: GangHints) -> str | None:
        return None if m.GROUP_NUMBER in hints.annotations else hints.annotations.get(m.GROUP_NAME)

    def declared(self, hints: GangHints, pod_group: OwnerOrGroup) -> dict[str, Any]:
        roles = tuple(
            (name, number_of(least, f"spec.minTaskMember[{name}]"))
            for name, least in sorted(_mapping(pod_group.spec, "minTaskMember").items())
        )
        minimum = number_of(pod_group.spec.get("minMember", 0), "spec.minMember")
        if minimum < sum(least for _, least in roles):
            roles = ()  # as in Volcano: minimums of tasks that together exceed that of the group do not count
        amounts = start_amounts(pod_group.spec)
        return {
            "minimum": max(minimum, 1) if amounts else minimum,
            "roles": roles,
            "role": hints.annotations.get(m.VOLCANO_ROLE) or hints.labels.get(m.VOLCANO_ROLE, ""),
            "start_amounts": amounts,
        }


class Kai(_ByPodGroup):
    """The annotation and PodGroup of KAI; subgroups that are not parents of others are roles."""

    name = "KAI"
    resource = KAI
    class_counts = True

    def group_of(self, hints: GangHints) -> str | None:
        return hints.annotations.get(m.KAI_NAME)

    def declared(self, hints: GangHints, pod_group: OwnerOrGroup) -> dict[str, Any]:
        subgroups = _named(pod_group.spec, "subGroups", "spec.subGroups", "name")
        parents = {each.get("parent") for each in subgroups}
        roles = tuple(
            (str(each["name"]), number_or(each.get("minMember"), f"spec.subGroups[{each['name']}].minMember", 1))
            for each in subgroups
            if each["name"] not in parents
        )
        minimum = number_of(pod_group.spec.get("minMember") or 0, "spec.minMember")
        topology = _mapping(pod_group.spec, "topologyConstraint")
        required, preferred = topology.get("requiredTopologyLevel"), topology.get("preferredTopologyLevel")
        return {
            "minimum": max(minimum, sum(least for _, least in roles), 1),
            "roles": roles,
            "role": hints.labels.get(m.KAI_ROLE, ""),
            "node_pool": dict(pod_group.queue_labels).get(m.KAI_POOL),
            "topology_key": str(required or preferred or ""),
            "topology_required": bool(required),
            "narrower_keys": (str(preferred),) if required and preferred and preferred != required else (),
        }


class Grove(_ByPodGroup):
    """The labels of Grove's operator and its PodGang, whose pod groups are roles."""

    name = "Grove"
    resource = GROVE
    class_counts = True

    def group_of(self, hints: GangHints) -> str | None:
        return hints.labels.get(m.GROVE_NAME)

    def declared(self, hints: GangHints, pod_group: OwnerOrGroup) -> dict[str, Any]:
        parts = _named(pod_group.spec, "podgroups", "spec.podgroups", "name")
        roles = tuple(
            (str(each["name"]), number_of(each.get("minReplicas", 0), f"spec.podgroups[{each['name']}].minReplicas"))
            for each in parts
        )
        pack = _mapping(_mapping(pod_group.spec, "topologyConstraint"), "packConstraint")
        required, preferred = pack.get("required"), pack.get("preferred")
        return {
            "minimum": max(sum(least for _, least in roles), 1),
            "roles": roles,
            "role": hints.labels.get(m.GROVE_ROLE, ""),
            "topology_key": str(required or preferred or ""),
            "topology_required": bool(required),
            "narrower_keys": (str(preferred),) if required and preferred and preferred != required else (),
        }


class Godel(_ByPodGroup):
    """The annotation or label and PodGroup of Godel."""

    name = "Godel"
    resource = GODEL
    class_counts = True

    def group_of(self, hints: GangHints) -> str | None:
        return hints.annotations.get(m.GODEL_NAME) or hints.labels.get(m.GODEL_NAME)

    def declared(self, hints: GangHints, pod_group: OwnerOrGroup) -> dict[str, Any]:
        minimum = number_of(pod_group.spec.get("minMember", 1), "spec.minMember", 1)
        return {"minimum": minimum, "timeout": _timeout(pod_group.spec)}


_LEAST_PRIORITY = -(2**31)
_WHOLE = ("podgroup", "all")
"""disruptionMode, in one version or another, of a group that is disrupted as a whole; the default is pod by pod."""


def _mode(value: object) -> str:
    """The mode in lower case: a string, or the only key of a mapping; empty if it is neither."""
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value))
    return value.lower() if isinstance(value, str) else ""


class Native(_ByPodGroup):
    """spec.schedulingGroup and the PodGroup of Kubernetes itself, whose versions still change.

    disruptionMode: Pod or PodGroup in v1alpha2, {single: {}} or {all: {}} later. preemptionPolicy: since v1alpha3.
    """

    name = "scheduling.k8s.io PodGroup"
    resource = NATIVE

    def group_of(self, hints: GangHints) -> str | None:
        return hints.group

    def declared(self, hints: GangHints, pod_group: OwnerOrGroup) -> dict[str, Any]:
        policy = _mapping(pod_group.spec, "schedulingPolicy")
        minimum = 0  # basic: the pods belong together, and are placed one by one
        if "gang" in policy:
            minimum = number_of(_mapping(policy, "gang").get("minCount"), "spec.schedulingPolicy.gang.minCount", 1)
        elif "basic" not in policy:
            raise Invalid(f"spec.schedulingPolicy: {', '.join(policy) or 'empty'} is not valid; give gang or basic")
        constraints = _mapping(pod_group.spec, "schedulingConstraints")
        topology = _named(constraints, "topology", "spec.schedulingConstraints.topology", "key")
        key = str(topology[0]["key"]) if topology else ""
        # The API server resolves priorityClassName, and sets 0 without one: that is nobody's declaration.
        priority = pod_group.spec.get("priority") if pod_group.spec.get("priorityClassName") else None
        return {
            "minimum": minimum,
            "topology_key": key,
            "topology_required": bool(key),
            "disrupted_whole": _mode(pod_group.spec.get("disruptionMode")) in _WHOLE,
            "priority": None if priority is None else number_of(priority, "spec.priority", _LEAST_PRIORITY),
            "never_preempts": pod_group.spec.get("preemptionPolicy") == NEVER,
        }
