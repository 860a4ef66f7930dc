"""Conventions in which a pod names a PodGroup and the object says the rest."""

from collections.abc import Mapping
from typing import Any

from poseidon_py.state.gangs import keys as m
from poseidon_py.state.gangs.model import (
    Declaration,
    GangHints,
    Invalid,
    Objects,
    OwnerOrGroup,
    Resource,
    number_of,
    whole,
)

COSCHEDULING = Resource("scheduling.x-k8s.io", "podgroups", ("v1alpha1",))
VOLCANO = Resource("scheduling.volcano.sh", "podgroups", ("v1beta1",))
KAI = Resource("scheduling.run.ai", "podgroups", ("v2alpha2",))
GODEL = Resource("scheduling.godel.kubewharf.io", "podgroups", ("v1alpha1",))
NATIVE = Resource("scheduling.k8s.io", "podgroups", ("v1", "v1beta1", "v1alpha3", "v1alpha2"))

GROUPS = (COSCHEDULING, VOLCANO, KAI, GODEL, NATIVE)


def _found(
    convention: str, resource: Resource, group: str, hints: GangHints, objects: Objects
) -> tuple[OwnerOrGroup | None, Declaration]:
    """The PodGroup, and a declaration that waits for it."""
    name = f"{hints.namespace}/{group}"
    where = (resource, hints.namespace, group)
    waits = f'pod group "{name}" not found: there is no such object among {resource.label}'
    key = f"{resource.label}/{name}"
    return objects.find(*where), Declaration(convention, key, name, 0, waits=waits, object_ref=where)


def _declared(waiting: Declaration, pod_group: OwnerOrGroup, minimum: int, **more: Any) -> Declaration:
    return Declaration(
        waiting.convention,
        waiting.key,
        waiting.name,
        minimum,
        created_us=pod_group.created_us,
        object_ref=waiting.object_ref,
        **more,
    )


def _part(spec: Mapping[str, object], name: str) -> dict[str, object]:
    """A field that holds fields. Raises Invalid."""
    found = spec.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Invalid(f"spec.{name}: is no object")
    return found


def _timeout(spec: Mapping[str, object]) -> float | None:
    seconds = spec.get("scheduleTimeoutSeconds")
    return None if seconds is None else float(number_of(seconds, "spec.scheduleTimeoutSeconds", 1))


class Coscheduling:
    """The label and PodGroup of scheduler-plugins, and Fluence's size label beside it."""

    name = "scheduling.x-k8s.io PodGroup"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        group = hints.labels.get(m.COSCHEDULING)
        if not group:
            return None
        pod_group, waiting = _found(self.name, COSCHEDULING, group, hints, objects)
        if pod_group is not None:
            minimum = number_of(pod_group.spec.get("minMember", 1), "spec.minMember", 1)
            return _declared(waiting, pod_group, minimum, timeout=_timeout(pod_group.spec))
        size = hints.labels.get(m.FLUENCE_SIZE) or hints.annotations.get(m.FLUENCE_SIZE)
        if size is not None:
            minimum = whole(size, f"label {m.FLUENCE_SIZE}")
            return Declaration(
                "Fluence",
                waiting.key,
                waiting.name,
                minimum,
                maximum=minimum,
                size=minimum,
                object_ref=waiting.object_ref,
            )
        return waiting


class Volcano:
    """The annotation and PodGroup of Volcano; task names are roles."""

    name = "Volcano"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        group = hints.annotations.get(m.GROUP_NAME)
        if not group or m.GROUP_NUMBER in hints.annotations:
            return None
        pod_group, waiting = _found(self.name, VOLCANO, group, hints, objects)
        if pod_group is None:
            return waiting
        roles = tuple(
            (name, number_of(least, f"spec.minTaskMember[{name}]"))
            for name, least in sorted(_part(pod_group.spec, "minTaskMember").items())
        )
        minimum = number_of(pod_group.spec.get("minMember", 1), "spec.minMember")
        return _declared(waiting, pod_group, minimum, roles=roles, role=hints.annotations.get(m.VOLCANO_ROLE, ""))


class Kai:
    """The annotation and PodGroup of KAI; subgroups without parts of their own are roles."""

    name = "KAI"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        group = hints.annotations.get(m.KAI_NAME)
        if not group:
            return None
        pod_group, waiting = _found(self.name, KAI, group, hints, objects)
        if pod_group is None:
            return waiting
        subgroups = pod_group.spec.get("subGroups") or []
        if not isinstance(subgroups, list) or not all(isinstance(each, dict) and "name" in each for each in subgroups):
            raise Invalid("spec.subGroups: is no list of named subgroups")
        parents = {each.get("parent") for each in subgroups}
        roles = tuple(
            (str(each["name"]), number_of(each.get("minMember", 1), f"spec.subGroups[{each['name']}].minMember"))
            for each in subgroups
            if each["name"] not in parents
        )
        topology = _part(pod_group.spec, "topologyConstraint")
        required, preferred = topology.get("requiredTopologyLevel"), topology.get("preferredTopologyLevel")
        return _declared(
            waiting,
            pod_group,
            max(number_of(pod_group.spec.get("minMember") or 0, "spec.minMember"), sum(least for _, least in roles), 1),
            roles=roles,
            role=hints.labels.get(m.KAI_ROLE, ""),
            topology_key=str(required or preferred or ""),
            topology_required=bool(required),
        )


class Godel:
    """The annotation or label and PodGroup of Godel."""

    name = "Godel"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        group = hints.annotations.get(m.GODEL_NAME) or hints.labels.get(m.GODEL_NAME)
        if not group:
            return None
        pod_group, waiting = _found(self.name, GODEL, group, hints, objects)
        if pod_group is None:
            return waiting
        minimum = number_of(pod_group.spec.get("minMember", 1), "spec.minMember", 1)
        return _declared(waiting, pod_group, minimum, timeout=_timeout(pod_group.spec))


_WHOLE = ("podgroup", "all")
"""disruptionMode, in one version or another, of a group that is disrupted as a whole; the default is pod by pod."""


def _mode(value: object) -> str:
    """The mode, which is a word or the one key of an object; empty: none is given, or it is something else."""
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value))
    return value.lower() if isinstance(value, str) else ""


class Native:
    """Kubernetes' own: spec.schedulingGroup and PodGroup, whose versions still change."""

    name = "scheduling.k8s.io PodGroup"

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        if not hints.group:
            return None
        pod_group, waiting = _found(self.name, NATIVE, hints.group, hints, objects)
        if pod_group is None:
            return waiting
        policy = _part(pod_group.spec, "schedulingPolicy")
        minimum = 0  # basic: the pods belong together, and are placed one by one
        if "gang" in policy:
            minimum = number_of(_part(policy, "gang").get("minCount"), "spec.schedulingPolicy.gang.minCount", 1)
        elif "basic" not in policy:
            raise Invalid(f"spec.schedulingPolicy: is neither gang nor basic but {', '.join(policy) or 'empty'}")
        topology = _part(pod_group.spec, "schedulingConstraints").get("topology") or []
        if not isinstance(topology, list) or not all(isinstance(each, dict) and each.get("key") for each in topology):
            raise Invalid("spec.schedulingConstraints.topology: is no list of keys")
        key = str(topology[0]["key"]) if topology else ""
        whole_only = _mode(pod_group.spec.get("disruptionMode")) in _WHOLE
        return _declared(
            waiting, pod_group, minimum, topology_key=key, topology_required=bool(key), disrupted_whole=whole_only
        )
