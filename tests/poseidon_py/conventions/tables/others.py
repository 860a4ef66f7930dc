"""Gangs of Grove and Godel."""

from poseidon_py.state.gangs.by_pod_group import GODEL, GROVE, PRIORITY_CLASSES, SIGS
from tests.poseidon_py.conventions.case import ABSENT, Case, changed, key_case
from tests.poseidon_py.conventions.outcomes import Json, World, a_pod, an_object
from tests.poseidon_py.conventions.tables import coscheduling

CONVENTIONS = ("grove", "godel")

GODEL_NAME = "godel.bytedance.com/pod-group-name"
GODEL_PREEMPTION = "godel.bytedance.com/can-be-preempted"
GODEL_PROTECTION = "godel.bytedance.com/protection-duration-from-preemption"
GANG, CLIQUE = "grove.io/podgang", "grove.io/podclique"
CLASS = (PRIORITY_CLASSES, an_object("high", namespace="", value=70))
FLAT = {"podgroups": [{"name": "a", "minReplicas": 1}]}


def _of(resource, pods: tuple[Json, ...], base: Json, path: str, one: object, other: object) -> Case:
    def world(value: object) -> World:
        return World(objects=(CLASS, (resource, an_object("g", **changed({"spec": base}, path, value)))), pods=pods)

    return Case(world(one), world(other))


def _grove(path: str, one: object, other: object) -> Case:
    pods = tuple(a_pod(name, labels={GANG: "g", CLIQUE: name}) for name in "ab")
    return _of(GROVE, pods, FLAT, path, one, other)


def _godel(path: str, one: object, other: object) -> Case:
    pods = tuple(a_pod(name, annotations={GODEL_NAME: "g"}) for name in "ab")
    return _of(GODEL, pods, {"minMember": 2}, path, one, other)


def _sigs(path: str, one: object, other: object) -> Case:
    pods = tuple(a_pod(name, labels={coscheduling.SIGS_NAME: "g"}) for name in "ab")
    return _of(SIGS, pods, {"minMember": 2}, path, one, other)


def _labelled(labels: Json) -> World:
    gangs = {"podgroups": [{"name": "a", "minReplicas": 1}, {"name": "b", "minReplicas": 1}]}
    objects = tuple((GROVE, an_object(name, spec=gangs)) for name in "gh")
    groups = tuple((GODEL, an_object(name, spec={"minMember": 2})) for name in "gh")
    return World(objects=(*objects, *groups), pods=tuple(a_pod(name, labels=labels) for name in "ab"))


def _annotated(annotations: Json) -> World:
    groups = tuple((GODEL, an_object(name, spec={"minMember": 2})) for name in "gh")
    return World(objects=groups, pods=tuple(a_pod(name, annotations=annotations) for name in "ab"))


_PACK = "spec.topologyConstraint.packConstraint"

FIELDS = {
    ("PodGroup", "spec.minMember"): _sigs("spec.minMember", 2, 3),
    ("PodGroup", "spec.minResources{}"): _sigs("spec.minResources", {"cpu": "2"}, {"cpu": "900"}),
    ("PodGroup", "spec.scheduleTimeoutSeconds"): _godel("spec.scheduleTimeoutSeconds", 5, 50),
    ("PodGroup", "spec.priorityClassName"): _godel("spec.priorityClassName", ABSENT, "high"),
    ("PodGang", "spec.podgroups[].minReplicas"): _grove("spec.podgroups[].minReplicas", 1, 2),
    ("PodGang", "spec.podgroups[].name"): _grove("spec.podgroups[].name", "a", "b"),
    ("PodGang", "spec.priorityClassName"): _grove("spec.priorityClassName", ABSENT, "high"),
    ("PodGang", f"{_PACK}.preferred"): _grove(f"{_PACK}.preferred", "zone", "rack"),
    ("PodGang", f"{_PACK}.required"): _grove(f"{_PACK}.required", "zone", "rack"),
}

ANNOTATIONS = {
    GODEL_NAME: key_case(_annotated, GODEL_NAME, "g", "h"),
    GODEL_PROTECTION: key_case(_annotated, GODEL_PROTECTION, "60", "90"),
    GODEL_PREEMPTION: key_case(_annotated, GODEL_PREEMPTION, "true", "false"),
}

LABELS = {
    GANG: key_case(_labelled, GANG, "g", "h"),
    CLIQUE: key_case(_labelled, CLIQUE, "a", "b", **{GANG: "g"}),
    GODEL_NAME: key_case(_labelled, GODEL_NAME, "g", "h"),
}
