"""Kubernetes' own PodGroups."""

from typing import Any

from poseidon_py.state.gangs.by_pod_group import NATIVE
from tests.poseidon_py.builders import node_json
from tests.poseidon_py.conventions.case import ABSENT, Case, field_case
from tests.poseidon_py.conventions.outcomes import Json, World, a_pod, an_object

CONVENTIONS = ("native",)

GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}
FIRST_CLASS = {"priorityClassName": "high", "priority": 70}


def _group(body: Json) -> World:
    pods = tuple(a_pod(name, spec={"schedulingGroup": {"podGroupName": "g"}}) for name in "abc")
    return World(objects=((NATIVE, an_object("g", **body)),), pods=pods)


def _pod(body: Json) -> World:
    groups = tuple((NATIVE, an_object(name, spec=GANG)) for name in "gh")
    return World(objects=groups, pods=(a_pod("a", spec=body.get("spec")),))


def _field(path: str, one: object, other: object, **spec: object) -> Case:
    return field_case(_group, {"spec": {**GANG, **spec}}, path, one, other)


def _claiming(body: Json) -> World:
    """A pod with the entry of a claim, which its status names, too."""
    spec = {"deviceClassName": "gpu"}
    claims = [
        an_object(name, owner=OWNER, spec={"devices": {"requests": [{"name": name, "exactly": spec}]}}) for name in "cd"
    ]
    device = {"driver": "x.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}
    slices = an_object("s", namespace="", spec={**device, "allNodes": True, "devices": [{"name": "d0"}]})
    pod = a_pod("a", spec=body["spec"])
    pod["status"]["resourceClaimStatuses"] = [{"name": "e", "resourceClaimName": "c"}]
    return World(
        devices=(
            ("DeviceClass", an_object("gpu", namespace="", spec={})),
            ("ResourceSlice", slices),
            *(("ResourceClaim", each) for each in claims),
        ),
        pods=(pod,),
        nodes=(node_json("n"),),
    )


OWNER = {"uid": "uid-a", "controller": True, "kind": "Pod", "name": "a"}


def _claims_of_group(template: bool = False) -> dict[str, Any]:
    """A world of a PodGroup with one claim, as a pod has it; by the name of the claim, or of a template."""
    source = {"resourceClaimTemplateName": "c"} if template else {"resourceClaimName": "c"}

    def world(body: Json) -> World:
        entry = {"resourceClaims": [{"name": "e", **source}], "schedulingGroup": {"podGroupName": "g"}}
        return _claiming({"spec": entry})._replace(objects=((NATIVE, an_object("g", **body)),))

    return {"world": world, "base": {"spec": {**GANG, "resourceClaims": [{"name": "e", **source}]}}}


_EITHER = field_case(_group, {"spec": {}}, "spec.schedulingPolicy", {"basic": {}}, GANG["schedulingPolicy"])

FIELDS = {
    ("PodGroup", "spec.schedulingPolicy.basic{}"): _EITHER,
    ("PodGroup", "spec.schedulingPolicy.gang.minCount"): _field("spec.schedulingPolicy.gang.minCount", 2, 3),
    ("PodGroup", "spec.schedulingConstraints.topology[].key"): _field(
        "spec.schedulingConstraints.topology[].key", "zone", "rack"
    ),
    ("PodGroup", "spec.priorityClassName"): _field("spec.priorityClassName", ABSENT, "high", priority=70),
    ("PodGroup", "spec.priority"): _field("spec.priority", 50, 70, priorityClassName="high"),
    ("PodGroup", "spec.disruptionMode"): _field("spec.disruptionMode", "Pod", "PodGroup"),
    ("PodGroup", "spec.disruptionMode.single{}"): _field("spec.disruptionMode", {"all": {}}, {"single": {}}),
    ("PodGroup", "spec.disruptionMode.all{}"): _field("spec.disruptionMode", {"single": {}}, {"all": {}}),
    ("PodGroup", "spec.preemptionPolicy"): _field("spec.preemptionPolicy", "PreemptLowerPriority", "Never"),
    ("PodGroup", "spec.resourceClaims[].name"): field_case(
        **_claims_of_group(), path="spec.resourceClaims[].name", one="e", other="f"
    ),
    ("PodGroup", "spec.resourceClaims[].resourceClaimName"): field_case(
        **_claims_of_group(), path="spec.resourceClaims[].resourceClaimName", one="c", other="d"
    ),
    ("PodGroup", "spec.resourceClaims[].resourceClaimTemplateName"): field_case(
        **_claims_of_group(template=True),
        path="spec.resourceClaims[].resourceClaimTemplateName",
        one="c",
        other="d",
    ),
    ("Pod", "spec.resourceClaims[].name"): field_case(
        _claiming,
        {"spec": {"resourceClaims": [{"resourceClaimTemplateName": "t"}]}},
        "spec.resourceClaims[].name",
        "e",
        "f",
    ),
    ("Pod", "spec.resourceClaims[].resourceClaimName"): field_case(
        _claiming, {"spec": {"resourceClaims": [{"name": "g"}]}}, "spec.resourceClaims[].resourceClaimName", "c", "d"
    ),
    ("Pod", "spec.schedulingGroup.podGroupName"): field_case(
        _pod, {"spec": {}}, "spec.schedulingGroup.podGroupName", "g", "h"
    ),
}
