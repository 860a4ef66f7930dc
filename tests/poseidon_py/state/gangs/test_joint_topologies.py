"""One convention says which pods belong together, another where: what is required holds, or the pods wait."""

from typing import Any

import pytest

from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS, REPLICA_SETS
from poseidon_py.state.gangs.by_pod_group import COSCHEDULING, KAI, NATIVE, VOLCANO
from poseidon_py.state.gangs.model import Owner
from poseidon_py.state.gangs.owner_kinds import OWNER_KINDS
from tests.poseidon_py.state.gangs.builders import JOB, owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig

REQUIRED, PREFERRED = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"
OWN, TOPOLOGY, MODE = "poseidon.io/gang", "poseidon.io/gang-topology", "poseidon.io/gang-topology-mode"
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": 4}}}
BASIC: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
IN_GROUP: dict[str, Any] = {"spec": {"schedulingGroup": {"podGroupName": "g"}}}
PODS: dict[str, dict[str, Any]] = {
    "native": IN_GROUP,
    "coscheduling": {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
    "volcano": {"annotations": {"scheduling.k8s.io/group-name": "g"}},
    "kai": {"annotations": {"pod-group-name": "g"}},
    "labels": {
        "labels": {
            "pod-group.scheduling.x-k8s.io/name": "g",
            "pod-group.scheduling.x-k8s.io/min-available": "4",
        }
    },
}


def rig_of(**specs):
    """A Job of four pods, and the PodGroup g with a spec by kind."""
    kinds = {"native": NATIVE, "coscheduling": COSCHEDULING, "volcano": VOLCANO, "kai": KAI}
    rig = Rig((JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 4, "completions": 4})))
    for kind, spec in specs.items():
        resource = kinds[kind]
        rig.objects.by_name[resource, "ns", "g"] = owner_or_group(resource, spec=spec, uid=f"uid-{kind}")
    return rig


def pod(rig, of, **annotations):
    rig.pod("a", owner=JOB, **{**of, "annotations": {**of.get("annotations", {}), **annotations}})
    return rig.gang("a")


def topology(rig):
    found = rig.message("a")
    return found.topology_key, found.topology_required


@pytest.mark.parametrize("kind", PODS)
def test_a_group_keeps_the_topology_that_kueues_annotation_requires(kind):
    """The Job controller makes a PodGroup for an Indexed Job: its pods ran in two racks, and nothing was said."""
    spec = GANG if kind == "native" else {"minMember": 4}
    rig = rig_of(**({} if kind == "labels" else {kind: spec}))
    assert pod(rig, PODS[kind], **{REQUIRED: "rack"}) == (4, "ns/g")
    assert topology(rig) == ("rack", True)


def test_a_preferred_topology_holds_where_the_group_has_none():
    rig = rig_of(native=GANG)
    assert pod(rig, IN_GROUP, **{PREFERRED: "rack"}) == (4, "ns/g")
    assert topology(rig) == ("rack", False)
    in_zone = rig_of(native={**GANG, "schedulingConstraints": {"topology": [{"key": "zone"}]}})
    assert pod(in_zone, IN_GROUP, **{PREFERRED: "rack"}) == (4, "ns/g")
    assert topology(in_zone) == ("zone", True)


def test_what_is_required_comes_before_what_is_preferred():
    rig = rig_of(kai={"minMember": 4, "topologyConstraint": {"preferredTopologyLevel": "rack"}})
    pod(rig, PODS["kai"], **{REQUIRED: "zone"})
    assert topology(rig) == ("zone", True)
    assert list(rig.message("a").narrower_keys) == ["rack"]


def test_pods_of_a_basic_group_are_the_gang_whose_topology_is_required():
    rig = rig_of(native={**BASIC, "priorityClassName": "high", "priority": 70})
    assert pod(rig, IN_GROUP | {"priority": 70}, **{REQUIRED: "rack"}) == (4, "ns/j")
    assert (topology(rig), rig.known("a").gang.priority, rig.invalid) == (("rack", True), 70, [])


def test_a_topology_of_a_basic_group_is_not_passed_over():
    """Kubernetes: "All pods within the PodGroup must be colocated within the same domain instance" (KEP 5732)."""
    rig = rig_of(native={**BASIC, "schedulingConstraints": {"topology": [{"key": "rack"}]}})
    assert pod(rig, IN_GROUP) == (
        "ns/g requires topology rack, but its pods are placed one by one, so they cannot be kept in one domain; make "
        "it a gang"
    )


def test_two_topologies_that_are_required_are_one_too_many():
    rig = rig_of(native={**GANG, "schedulingConstraints": {"topology": [{"key": "zone"}]}})
    assert pod(rig, IN_GROUP, **{REQUIRED: "rack"}) == (
        "topology rack is required by Kueue, but ns/g has topology zone by scheduling.k8s.io PodGroup; remove one of "
        "the two"
    )
    rig = rig_of(native={**GANG, "schedulingConstraints": {"topology": [{"key": "rack"}]}})
    assert pod(rig, IN_GROUP, **{REQUIRED: "rack"}) == (4, "ns/g")


def test_a_group_of_other_pods_than_those_that_must_be_together():
    """A group of three of the four: the fourth could be elsewhere."""
    rig = rig_of(volcano={"minMember": 3})
    assert pod(rig, PODS["volcano"], **{REQUIRED: "rack"}) == (
        "topology rack is required by Kueue, but Volcano declares another gang, ns/g (minimum 3); remove one of the two"
    )


def test_a_wish_that_cannot_be_kept_is_refused_whichever_group_has_it():
    rig = rig_of(native=GANG, volcano={"minMember": 4, "networkTopology": {"mode": "hard"}})
    found = pod(rig, IN_GROUP | PODS["volcano"])
    assert str(found).startswith('pod group "ns/g": spec.networkTopology.mode: tiers of HyperNodes are not read')


def test_it_is_looked_up_before_the_pod_is_placed():
    rig = rig_of(native=GANG)
    rig.objects.unknown.add("uid-j")
    assert "uid-j" in str(pod(rig, IN_GROUP, **{REQUIRED: "rack"}))
    rig.objects.unknown.clear()
    rig.registry.resolved("owner/uid-j")
    rig.work()
    assert topology(rig) == ("rack", True)


UNKNOWN = f"annotation {REQUIRED}: the pods that have to be together are not known, since "
SET = Owner("JobSet", "s", "uid-s", "jobset.x-k8s.io")


@pytest.mark.parametrize("kind", ["Job", "JobSet"])
def test_without_the_right_to_read_the_owner_nothing_is_placed_anywhere(kind):
    rig = Rig()
    rig.objects.forbidden[kind] = "403 Forbidden: no"
    job = owner_or_group(JOBS, "j", spec={"parallelism": 4}, owner=SET if kind == "JobSet" else None)
    if kind == "JobSet":
        rig.objects.put(JOBS, job)
    name = {"Job": "j", "JobSet": "s"}[kind]
    assert pod(rig, {}, **{REQUIRED: "rack"}) == (
        f"{UNKNOWN}{kind} ns/{name} cannot be read: 403 Forbidden: no; correct that, or give {OWN} and {TOPOLOGY}"
    )
    assert pod(rig, {}, **{PREFERRED: "rack"}) == (None if kind == "Job" else (4, "ns/j"))
    pod(rig, {}, **{REQUIRED: "rack"})
    rig.objects.forbidden.clear()
    resource = JOBS if kind == "Job" else JOB_SETS
    jobs = {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": {"parallelism": 4}}}]}
    rig.put(resource, job if kind == "Job" else owner_or_group(JOB_SETS, "s", spec=jobs))
    assert (rig.gang("a"), topology(rig)) == ((4, "ns/j"), ("rack", True))


def test_an_owner_whose_number_of_pods_is_invalid_and_one_that_is_a_pod():
    kind, resource, replicas = OWNER_KINDS["pytorchjobs"]
    rig = Rig((resource, owner_or_group(resource, "t", spec={replicas: {"Worker": {"replicas": -1}}})))
    rig.pod("a", owner=Owner(kind, "t", "uid-t", resource.group), annotations={REQUIRED: "rack"})
    assert str(rig.gang("a")).startswith(f"{UNKNOWN}PyTorchJob ns/t is invalid: spec.{replicas}")
    rig.pod("b", owner=Owner("Pod", "driver", "uid-d", ""), annotations={REQUIRED: "rack"})
    assert rig.gang("b") == f"{UNKNOWN}a pod owns them; correct that, or give {OWN} and {TOPOLOGY}"
    executors = {OWN: "3", "poseidon.io/gang-name": "e", TOPOLOGY: "rack", REQUIRED: "rack"}
    rig.pod("c", owner=Owner("Pod", "driver", "uid-d", ""), annotations=executors)
    assert rig.gang("c") == (3, "ns/e")
    assert [name for name, _ in rig.invalid] == ["a", "b"]


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_pod_that_requires_another_topology_than_its_gang_waits(order):
    """Kueue's pod groups may have pods of several pod sets. One of the topologies was passed over, with an event."""
    rig = Rig()
    labels = {"kueue.x-k8s.io/pod-group-name": "g"}
    count = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    for name in order:
        required = {REQUIRED: "rack" if name == "a" else "zone"}
        rig.pod(name, labels=labels, annotations=count | required)
    assert (rig.gang("a"), topology(rig)) == ((2, "ns/g"), ("rack", True))
    assert rig.gang("b") == (
        "the pod requires topology zone, and others of ns/g require rack: a gang has one topology; give all its pods "
        "the same"
    )
    rig.pod("b", labels=labels, annotations=count | {REQUIRED: "rack"})
    assert rig.gang("b") == (2, "ns/g")
    rig.pod("b", labels=labels, annotations=count | {REQUIRED: "zone"})
    rig.gone("a")
    assert rig.gang("b") == (2, "ns/g")
    assert rig.message("b").topology_key == "zone"
    rig.pod("c", labels=labels, annotations=count | {PREFERRED: "block"})  # what is required comes first
    assert (rig.gang("c"), rig.message("c").topology_key) == ((2, "ns/g"), "zone")


# -- poseidon.io/gang-topology beside other declarations --------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in PODS if kind != "labels"])
@pytest.mark.parametrize("mode", ["required", "preferred"])
def test_our_own_topology_is_that_of_whatever_gang_the_pod_is_in(kind, mode):
    """As messages about topologies of Volcano and KAI advise: it had no effect, and nothing was said."""
    rig = rig_of(**{kind: GANG if kind == "native" else {"minMember": 2}})
    minimum = 4 if kind == "native" else 2
    assert pod(rig, PODS[kind], **{TOPOLOGY: "rack", MODE: mode}) == (minimum, "ns/g")
    assert topology(rig) == ("rack", mode == "required")


def test_on_the_owner_of_a_gang_without_marks():
    rig = Rig((JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}, annotations={TOPOLOGY: "rack"})))
    rig.registry.form_gangs_from(("jobs",), lambda: False)
    assert (pod(rig, {}), topology(rig)) == ((3, "ns/j"), ("rack", True))
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}))
    assert (rig.gang("a"), topology(rig)) == ((3, "ns/j"), ("", False))


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (TOPOLOGY, "rack", "the pod is in no gang"),
        ("poseidon.io/gang-min", "2", "declares no gang"),
        ("poseidon.io/gang-max", "2", "declares no gang"),
        ("poseidon.io/gang-role", "a=2", "declares no gang"),
    ],
)
@pytest.mark.parametrize("on", ["pod", "owner"])
def test_what_belongs_to_a_gang_is_not_passed_over_without_one(key, value, problem, on):
    annotations, message = {key: value}, f"annotation {key}: {problem}; give {OWN}, too, or remove it"
    rig = Rig((JOBS, owner_or_group(JOBS, "j", annotations=annotations if on == "owner" else {})))
    assert pod(rig, {}, **(annotations if on == "pod" else {})) == message
    assert rig.invalid == [("a", message)]
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 2}, annotations={OWN: "all"}))
    assert isinstance(rig.gang("a"), tuple)


def test_names_of_gangs_and_roles_are_those_of_jobs_too():
    rig = Rig((REPLICA_SETS, owner_or_group(REPLICA_SETS, "j")))
    assert pod(rig, {}, **{"poseidon.io/gang-name": "x", "poseidon.io/gang-role": "worker"}) is None
    assert rig.invalid == []


def test_who_is_kept_out_of_gangs_has_no_topology():
    assert pod(rig_of(native=GANG), IN_GROUP, **{OWN: "none", TOPOLOGY: "rack", REQUIRED: "rack"}) is None
