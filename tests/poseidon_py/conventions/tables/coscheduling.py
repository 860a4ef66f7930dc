"""PodGroups and ElasticQuotas of scheduler-plugins, the labels of its earlier releases, and Fluence."""

import itertools

from poseidon_py.state.gangs.by_pod_group import COSCHEDULING, PRIORITY_CLASSES, SIGS
from tests.poseidon_py.conventions.case import Case, field_case, key_case
from tests.poseidon_py.conventions.outcomes import Json, World, a_pod, an_object

CONVENTIONS = ("coscheduling", "fluence")

NAME, SIGS_NAME = "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"
LIGHT, LIGHT_SIGS = "pod-group.scheduling.x-k8s.io/", "pod-group.scheduling.sigs.k8s.io/"
FLUX = "fluence.flux-framework.org/"


def _groups(label: str, resource):
    def world(body: Json) -> World:
        pods = tuple(a_pod(name, labels={label: "g"}) for name in "abc")
        return World(objects=((resource, an_object("g", **body)),), pods=pods)

    return world


def _named(labels: Json) -> World:
    """Pods with labels, and groups of both resources."""
    groups = tuple(
        (resource, an_object(name, spec={"minMember": 2})) for resource in (COSCHEDULING, SIGS) for name in "gh"
    )
    return World(objects=groups, pods=tuple(a_pod(name, labels=labels) for name in "ab"))


def of_class(annotations: Json) -> World:
    """A pod of a PriorityClass."""
    classes = ((PRIORITY_CLASSES, an_object("c", namespace="", value=1, annotations=annotations)),)
    return World(objects=classes, pods=(a_pod("a", node="n", spec={"priorityClassName": "c", "priority": 1}),))


def _annotated(annotations: Json) -> World:
    return World(pods=tuple(a_pod(name, labels={FLUX + "group": "g"}, annotations=annotations) for name in "ab"))


def _quota(body: Json) -> World:
    spec = {"min": {"cpu": "1"}, "max": {"cpu": "8"}, **body["spec"]}
    return World("elasticquota", queue_objects=(("ElasticQuota", an_object("q", spec=spec)),), pods=(a_pod("a"),))


def _of_groups(path: str, one: object, other: object) -> Case:
    """The same for both groups of the API."""
    return field_case(_groups(NAME, COSCHEDULING), {"spec": {"minMember": 2}}, path, one, other)


FIELDS = {
    ("PodGroup", "spec.minResources{}"): _of_groups("spec.minResources", {"cpu": "2"}, {"cpu": "900"}),
    ("PodGroup", "spec.minMember"): _of_groups("spec.minMember", 2, 3),
    ("PodGroup", "spec.scheduleTimeoutSeconds"): _of_groups("spec.scheduleTimeoutSeconds", 5, 50),
    ("ElasticQuota", "spec.min{}"): field_case(_quota, {"spec": {}}, "spec.min", {"cpu": "1"}, {"cpu": "2"}),
    ("ElasticQuota", "spec.max{}"): field_case(_quota, {"spec": {}}, "spec.max", {"cpu": "8"}, {"cpu": "9"}),
}

LABELS = {
    NAME: key_case(_named, NAME, "g", "h"),
    LIGHT + "name": key_case(_named, LIGHT + "name", "g", "h", **{LIGHT + "min-available": "2"}),
    LIGHT + "min-available": key_case(_named, LIGHT + "min-available", "2", "3", **{LIGHT + "name": "g"}),
    SIGS_NAME: key_case(_named, SIGS_NAME, "g", "h"),
    LIGHT_SIGS + "name": key_case(_named, LIGHT_SIGS + "name", "g", "h", **{LIGHT_SIGS + "min-available": "2"}),
    LIGHT_SIGS + "min-available": key_case(
        _named, LIGHT_SIGS + "min-available", "2", "3", **{LIGHT_SIGS + "name": "g"}
    ),
    "fluence.pod-group": key_case(_named, "fluence.pod-group", "g", "h", **{"fluence.group-size": "2"}),
    "fluence.group-size": key_case(_named, "fluence.group-size", "2", "3", **{"fluence.pod-group": "g"}),
    FLUX + "group": key_case(_named, FLUX + "group", "g", "h", **{"fluence.group-size": "2"}),
}

ANNOTATIONS = {
    FLUX + "group-size": key_case(_annotated, FLUX + "group-size", "2", "3"),
    **{
        f"preemption-toleration.scheduling.{group}/{name}": key_case(
            of_class,
            f"preemption-toleration.scheduling.{group}/{name}",
            "100",
            "0",
            **{f"preemption-toleration.scheduling.{group}/{other}": "200"},
        )
        for group in ("x-k8s.io", "sigs.k8s.io")
        for name, other in itertools.permutations(("minimum-preemptable-priority", "toleration-seconds"))
    },
}
