"""What is refused keeps pods waiting: each row of the table that says so, wherever it may stand.

A wish that decides where, when or whether pods run, and that cannot be kept, must not be passed over in silence: a pod
that has it waits with the reason, and is never placed against it.
"""

import json
from typing import Any

import pytest

from poseidon_py.conventions.table import CONVENTIONS
from poseidon_py.conventions.verdicts import Effect
from poseidon_py.feed.update_rows import target
from poseidon_py.state.gangs.by_owner import JOB_SETS
from poseidon_py.state.gangs.by_pod_group import GODEL, GROVE, KAI, NATIVE, SIGS, VOLCANO
from tests.poseidon_py.conventions.case import changed
from tests.poseidon_py.conventions.outcomes import JOB, World, a_job, a_pod, an_object, owned_by, rig_of
from tests.poseidon_py.state.queues.kueue_objects import flavor, group

SPECS: dict[str, tuple[Any, dict[str, Any]]] = {
    "scheduling.k8s.io": (NATIVE, {"schedulingPolicy": {"gang": {"minCount": 1}}}),
    "scheduling.volcano.sh": (VOLCANO, {"minMember": 1}),
    "scheduling.run.ai": (KAI, {"minMember": 1}),
    "scheduler.grove.io": (GROVE, {"podgroups": [{"name": "a", "minReplicas": 1}]}),
    "scheduling.godel.kubewharf.io": (GODEL, {"minMember": 1}),
    "scheduling.sigs.k8s.io": (SIGS, {"minMember": 1}),
}
"""By the API group of a kind of PodGroups: what makes a gang of one pod."""

MEMBER: dict[str, dict[str, Any]] = {
    "scheduling.k8s.io": {"spec": {"schedulingGroup": {"podGroupName": "g"}}},
    "scheduling.volcano.sh": {"annotations": {"scheduling.k8s.io/group-name": "g"}},
    "scheduling.run.ai": {"annotations": {"pod-group-name": "g"}},
    "scheduler.grove.io": {"labels": {"grove.io/podgang": "g", "grove.io/podclique": "a"}},
    "scheduling.godel.kubewharf.io": {"annotations": {"godel.bytedance.com/pod-group-name": "g"}},
    "scheduling.sigs.k8s.io": {"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}},
}
"""By the same: a pod of the group g."""


def reason(world):
    """Why the pod p waits; empty: it may be placed."""
    rig = rig_of(world)
    known = rig.store.pods["uid-p"]
    sent = target(rig.store, known)
    found = known.described.problem or known.gang.blocked or rig.queues.problem_of(known)
    stopped = {queue.id for queue in rig.queues.tree.queues if queue.stop}
    known_queues = {queue.id for queue in rig.queues.tree.queues}
    if sent is not None and found:  # it is sent, in a queue that takes no pods, or is none
        assert sent.queue in stopped or (sent.queue and sent.queue not in known_queues), found
    return found


def in_group(name, spec=None, **metadata):
    """A pod of a PodGroup of an API group."""
    resource, base = SPECS[name]
    made = an_object("g", spec=base if spec is None else spec, **metadata)
    return World(objects=((resource, made),), pods=(a_pod("p", **MEMBER[name]),))


def in_kueue(queue=None, config=None):
    fields = {"resourceGroups": [group(flavor("f", cpu={"nominalQuota": 9}), covered=["cpu"])], "namespaceSelector": {}}
    objects = [
        ("ResourceFlavor", an_object("f", namespace="")),
        ("ClusterQueue", an_object("q", namespace="", spec={**fields, **(queue or {})})),
        ("LocalQueue", an_object("lq", spec={"clusterQueue": "q"})),
    ]
    if config:
        text = json.dumps(config)
        objects.append(("ConfigMap", an_object("kueue-manager-config", data={"controller_manager_config.yaml": text})))
    pod = a_pod("p", labels={"kueue.x-k8s.io/queue-name": "lq"})
    return World("kueue", queue_objects=tuple(objects), pods=(pod,))


def in_yunikorn(content, namespace=None):
    config = ("ConfigMap", an_object("yunikorn-configs", data={"queues.yaml": json.dumps(content)}))
    there = an_object("default", namespace="", annotations=namespace or {})
    pod = a_pod("p", labels={} if "placementrules" in str(content) else {"queue": "root.a"})
    return World("yunikorn", queue_objects=(config,), pods=(pod,), namespaces=(there,))


YUNIKORN = {"name": "default", "queues": [{"name": "root", "queues": [{"name": "a"}]}]}
OF_NAMESPACES = {
    "name": "default",
    "queues": [{"name": "root", "queues": [{"name": "p", "childtemplate": {}}]}],
    "placementrules": [
        {"name": "tag", "value": "namespace", "create": True, "parent": {"name": "fixed", "value": "root.p"}}
    ],
}


def in_volcano(spec, **metadata):
    queues = tuple(
        ("VolcanoQueue", an_object(name, namespace="", **fields))
        for name, fields in (("root", {}), ("q", {"spec": {"weight": 1, **spec}, **metadata}))
    )
    return World(
        "volcano", queue_objects=queues, pods=(a_pod("p", annotations={"scheduling.volcano.sh/queue-name": "q"}),)
    )


def world_of_field(kind, path, value):
    if kind.kind == "Pod":
        return World(pods=(a_pod("p", spec=changed({}, path, value)["spec"]),))
    if kind.kind == "ClusterQueue":
        return in_kueue(changed({}, path, value)["spec"])
    if kind.kind == "Configuration":
        return in_kueue(config=changed({}, path, value))
    if kind.kind == "queues.yaml":
        base = OF_NAMESPACES if "childtemplate" in path or "placementrules" in path else YUNIKORN
        return in_yunikorn(changed({"partitions": [base]}, path, value))
    if kind.kind == "Queue":
        return in_volcano(changed({}, path, value)["spec"])
    return in_group(kind.group, changed({"spec": SPECS[kind.group][1]}, path, value)["spec"])


VALUES = {"partitions[].queues[].submitacl": "eve", "resources.transformations[].multiplyBy": "cpu"}
FIELDS = [
    pytest.param(kind, path, id=f"{kind.kind} {kind.group} {kind.versions[0]} {path}")
    for each in CONVENTIONS
    for kind in each.kinds
    for path, verdict in kind.fields.items()
    if verdict.effect is Effect.REFUSED and kind.group != "resource.k8s.io"
]
"""Those of slices, of which no pod gets devices, are in test_declarations.py of devices."""


def some_value(path):
    number = path.endswith(("applications", "minSubGroup", "minSubGroups", "subGroupSize"))
    if number or path.endswith("enabled"):
        return 2 if number else True
    return {"x": "y"} if path.endswith("{}") else ["x"] if path.endswith("[]") else VALUES.get(path, "x")


@pytest.mark.parametrize(("kind", "path"), FIELDS)
def test_a_field_that_is_refused_keeps_pods_waiting(kind, path):
    name = path.rpartition(".")[2].removesuffix("{}").removesuffix("[]")
    assert name in reason(world_of_field(kind, path, some_value(path)))


KEYS = [
    pytest.param(what, place, key.replace("*", "x"), id=f"{what} {key}")
    for each in CONVENTIONS
    for place, table in (("pods", each.pods), ("objects", each.objects))
    for what, rows in (("labels", table.labels), ("annotations", table.annotations))
    for key, verdict in rows.items()
    if verdict.effect is Effect.REFUSED
]
OF_PODS = [each for each in KEYS if each.values[1] == "pods"]


def pod_of(**fields):
    return a_pod("p", **fields)


@pytest.mark.parametrize(("what", "place", "key"), OF_PODS)
def test_a_key_that_is_refused_keeps_the_pod_waiting(what, place, key):
    assert key in reason(World(pods=(pod_of(**{what: {key: "x"}}),)))


@pytest.mark.parametrize(("at", "what", "key"), [(at, *each.values[::2]) for at, each in enumerate(OF_PODS)])
def test_it_does_so_where_the_owner_or_the_group_of_the_pod_has_it(at, what, key):
    """Controllers copy what owners have to PodGroups, or to pods, or read it there."""
    refused: dict[str, Any] = {what: {key: "x"}}
    set_of_jobs = owned_by("JobSet", "s", "jobset.x-k8s.io")
    of_job, of_set = (a_job(**refused), an_object("s")), (a_job(owner=set_of_jobs), an_object("s", **refused))
    for job, above in (of_job, of_set):
        assert key in reason(World(objects=(job, (JOB_SETS, above)), pods=(pod_of(owner=JOB),)))
    assert key in reason(in_group([*SPECS][at % len(SPECS)], **refused))


OF_OBJECTS = {
    "volcano.sh/nodegroup-resource-limits": lambda of: in_volcano({}, annotations=of),
    "kueue.x-k8s.io/admission-gated-by": lambda of: World(objects=(a_job(annotations=of),), pods=(pod_of(owner=JOB),)),
    "yunikorn.apache.org/namespace.maxApps": lambda of: in_yunikorn({"partitions": [OF_NAMESPACES]}, of),
    "gang.scheduling.koordinator.sh/network-topology-spec": lambda of: in_group(
        "scheduling.sigs.k8s.io", annotations=of
    ),
    "quota.scheduling.koordinator.sh/allow-lent-resource": lambda of: World(
        "koordinator",
        queue_objects=(("KoordinatorQuota", an_object("q", labels=of, spec={"max": {"cpu": 8}})),),
        pods=(pod_of(labels={"quota.scheduling.koordinator.sh/name": "q"}),),
    ),
}


def test_each_key_of_other_objects_is_tried():
    assert OF_OBJECTS.keys() == {each.values[2] for each in KEYS if each.values[1] == "objects"}


@pytest.mark.parametrize("key", OF_OBJECTS)
def test_a_key_of_other_objects_keeps_their_pods_waiting(key):
    world = OF_OBJECTS[key]
    assert reason(world({})) == ""
    assert reason(world({key: "false" if key.endswith("allow-lent-resource") else "2"}))


def test_the_worlds_place_their_pod_without_what_is_refused():
    assert reason(World(pods=(pod_of(),))) == ""
    for name in SPECS:
        assert reason(in_group(name)) == ""
    of_yunikorn = [in_yunikorn({"partitions": [each]}) for each in (YUNIKORN, OF_NAMESPACES)]
    for world in (in_kueue(), in_volcano({}), *of_yunikorn):
        assert reason(world) == ""
