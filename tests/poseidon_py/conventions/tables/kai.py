"""KAI's PodGroups, Queues and SchedulingShard, and its labels."""

from poseidon_py.state.gangs.by_pod_group import KAI, PRIORITY_CLASSES
from tests.poseidon_py.conventions.case import ABSENT, Case, changed, key_case
from tests.poseidon_py.conventions.outcomes import JOB, Json, World, a_job, a_pod, an_object

CONVENTIONS = ("kai",)

MINIMUM = "kai.scheduler/batch-min-member"

GROUP, ROLE, QUEUE = "pod-group-name", "kai.scheduler/subgroup-name", "kai.scheduler/queue"
CLASS = (PRIORITY_CLASSES, an_object("high", namespace="", value=70))
RESOURCES = {
    "cpu": {"quota": 1000, "limit": -1, "overQuotaWeight": 1},
    "memory": {"quota": 100, "limit": -1},
    "gpu": {"quota": 2, "limit": -1},
}
TREE = {
    "subGroups": [
        {"name": "a", "minMember": 1},
        {"name": "b", "minMember": 2, "parent": "a"},
        {"name": "c", "minMember": 1},
    ]
}


def _queues(**bodies: Json) -> tuple[tuple[str, Json], ...]:
    bodies = {"team": {}, "other": {}, "org": {}, "default-queue": {}, **bodies}
    return tuple(
        ("KaiQueue", an_object(name, namespace="", spec={"resources": RESOURCES, **spec}))
        for name, spec in bodies.items()
    )


def _group(body: Json) -> World:
    pods = tuple(
        a_pod(name, annotations={GROUP: "g"}, labels={ROLE: role} if role else {})
        for name, role in (("p", "b"), ("q", "c"), ("r", ""))
    )
    return World("kai", (CLASS, (KAI, an_object("g", **body))), _queues(), pods)


def _queue(spec: Json) -> World:
    """A queue below another, with past use."""
    spec = {"parentQueue": "org", **spec}
    shard = ("SchedulingShard", an_object("default", namespace="", spec={"usageDBConfig": {}}))
    return World("kai", (), (*_queues(team=spec), shard), (a_pod("a", labels={QUEUE: "team"}),))


def _shard(spec: Json) -> World:
    shards = ("default-first", {"partitionLabelValue": "", **spec}), ("z", {"kValue": 5, "usageDBConfig": {}})
    found = tuple(("SchedulingShard", an_object(name, namespace="", spec=each)) for name, each in shards)
    return World("kai", (), (*_queues(), *found), ())


def _labelled(labels: Json) -> World:
    groups = tuple((KAI, an_object(name, spec=TREE)) for name in "gh")
    annotations = {GROUP: "g"} if ROLE in labels else {}
    pods = tuple(a_pod(name, labels=labels, annotations=annotations) for name in "ab")
    return World("kai", (CLASS, *groups), _queues(), pods)


def _annotated(annotations: Json) -> World:
    groups = tuple((KAI, an_object(name, spec={"minMember": 2})) for name in "gh")
    return World("kai", groups, _queues(), tuple(a_pod(name, annotations=annotations) for name in "ab"))


def _of(world, base: Json, path: str, one: object, other: object) -> Case:
    """`world`: of a spec. `base`: a spec."""
    return Case(*(world(changed({"spec": base}, path, value)["spec"]) for value in (one, other)))


def _of_group(path: str, one: object, other: object, **base: object) -> Case:
    return _of(lambda spec: _group({"spec": spec}), {"minMember": 2, **base}, path, one, other)


def _of_queue(path: str, one: object, other: object) -> Case:
    return _of(_queue, {"resources": RESOURCES}, path, one, other)


def _of_shard(path: str, one: object, other: object) -> Case:
    return _of(_shard, {"usageDBConfig": {"usageParams": {"windowSize": "24h"}}}, path, one, other)


_SUB = "spec.subGroups[]"
_TOPOLOGY = "spec.topologyConstraint"
_USAGE = "spec.usageDBConfig.usageParams"
_ONE = {"subGroups": [{"name": "b", "minMember": 1}]}

FIELDS = {
    ("PodGroup", "spec.minMember"): _of_group("spec.minMember", 2, 3),
    ("PodGroup", "spec.preemptibility"): _of_group("spec.preemptibility", "preemptible", "non-preemptible"),
    ("PodGroup", "spec.priorityClassName"): _of_group("spec.priorityClassName", ABSENT, "high"),
    ("PodGroup", "spec.queue"): _of_group("spec.queue", "team", "other"),
    ("PodGroup", f"{_SUB}.minMember"): _of_group(f"{_SUB}.minMember", 1, 2, **_ONE),
    ("PodGroup", f"{_SUB}.name"): _of_group(f"{_SUB}.name", "b", "c", **_ONE),
    ("PodGroup", f"{_SUB}.parent"): _of_group(
        "spec.subGroups", TREE["subGroups"], [{**each, "parent": None} for each in TREE["subGroups"]]
    ),
    ("PodGroup", f"{_TOPOLOGY}.preferredTopologyLevel"): _of_group(
        f"{_TOPOLOGY}.preferredTopologyLevel", "zone", "rack"
    ),
    ("PodGroup", f"{_TOPOLOGY}.requiredTopologyLevel"): _of_group(f"{_TOPOLOGY}.requiredTopologyLevel", "zone", "rack"),
    ("Queue", "spec.parentQueue"): _of_queue("spec.parentQueue", "org", "other"),
    ("Queue", "spec.preemptMinRuntime"): _of_queue("spec.preemptMinRuntime", "1m", "2m"),
    ("Queue", "spec.priority"): _of_queue("spec.priority", 100, 200),
    ("Queue", "spec.reclaimMinRuntime"): _of_queue("spec.reclaimMinRuntime", "1m", "2m"),
    **{
        ("Queue", f"spec.resources.{resource}.{name}"): _of_queue(f"spec.resources.{resource}.{name}", 3, 4)
        for resource in ("cpu", "gpu", "memory")
        for name in ("limit", "quota")
    },
    ("Queue", "spec.resources.cpu.overQuotaWeight"): _of_queue("spec.resources.cpu.overQuotaWeight", 1, 2),
    **{
        ("Queue", f"spec.resources.{resource}.overQuotaWeight"): _of(
            _queue,
            {"resources": {**RESOURCES, "cpu": {"quota": 1000, "limit": -1}}},
            f"spec.resources.{resource}.overQuotaWeight",
            1,
            2,
        )
        for resource in ("gpu", "memory")
    },
    **{
        ("SchedulingShard", f"spec.minRuntime.{name}"): _of_shard(f"spec.minRuntime.{name}", "1m", "2m")
        for name in ("preemptMinRuntime", "reclaimMinRuntime")
    },
    ("SchedulingShard", "spec.kValue"): _of_shard("spec.kValue", 1, 2),
    ("SchedulingShard", "spec.partitionLabelValue"): _of_shard("spec.partitionLabelValue", "", "pool"),
    ("SchedulingShard", f"{_USAGE}.halfLifePeriod"): _of_shard(f"{_USAGE}.halfLifePeriod", "1h", "2h"),
    ("SchedulingShard", f"{_USAGE}.windowSize"): _of_shard(f"{_USAGE}.windowSize", "24h", "48h"),
}

ANNOTATIONS = {
    GROUP: key_case(_annotated, GROUP, "g", "h"),
    MINIMUM: key_case(
        lambda annotations: World(objects=(a_job(annotations=annotations),), pods=(a_pod("a", owner=JOB),)),
        MINIMUM,
        "2",
        "3",
    ),
}

LABELS = {
    QUEUE: key_case(_labelled, QUEUE, "team", "other"),
    "priorityClassName": key_case(_labelled, "priorityClassName", ABSENT, "high", **{QUEUE: "team"}),
    "kai.scheduler/preemptibility": key_case(
        _labelled, "kai.scheduler/preemptibility", "preemptible", "non-preemptible", **{QUEUE: "team"}
    ),
    "kai.scheduler/node-pool": key_case(_labelled, "kai.scheduler/node-pool", "x", "y"),
    ROLE: key_case(_labelled, ROLE, "b", "c"),
}
