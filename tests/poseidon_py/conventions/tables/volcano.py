"""Volcano's PodGroups and Queues."""

from poseidon_py.state.gangs.by_pod_group import PRIORITY_CLASSES, VOLCANO
from tests.poseidon_py.builders import node_json
from tests.poseidon_py.conventions.case import ABSENT, Case, field_case, key_case
from tests.poseidon_py.conventions.outcomes import JOB, Json, World, a_job, a_pod, an_object

CONVENTIONS = ("volcano",)

GROUP, TASK, QUEUE = "scheduling.k8s.io/group-name", "volcano.sh/task-spec", "scheduling.volcano.sh/queue-name"
COOLDOWN, ZONE = "volcano.sh/cooldown-time", "volcano.sh/revocable-zone"
CLASS = (PRIORITY_CLASSES, an_object("high", namespace="", value=70))
QUEUES = tuple(("VolcanoQueue", an_object(name, namespace="", spec={"weight": 1})) for name in ("default", "q", "root"))


def _group(body: Json) -> World:
    pods = tuple(
        a_pod(name, annotations={GROUP: "g", TASK: task})
        for name, task in (("a", "ps"), ("b", "worker"), ("c", "worker"))
    )
    return World("volcano", (CLASS, (VOLCANO, an_object("g", **body))), QUEUES, pods)


def _queue(body: Json) -> World:
    """A queue below another, with a sibling."""
    spec = {"weight": 1, "parent": "p", "deserved": {"cpu": "2"}, **body.get("spec", {})}
    queue = an_object("team", namespace="", **{**body, "spec": spec})
    others = tuple(("VolcanoQueue", an_object(name, namespace="")) for name in ("p", "r"))
    return World("volcano", (), (*QUEUES, *others, ("VolcanoQueue", queue)), (a_pod("a", annotations={QUEUE: "team"}),))


def _annotated_queue(annotations: Json) -> World:
    queue = an_object("team", namespace="", annotations=annotations, spec={"weight": 1})
    return World("volcano", (), (*QUEUES, ("VolcanoQueue", queue)), (a_pod("a", annotations={QUEUE: "team"}),))


def _annotated(annotations: Json) -> World:
    groups = tuple(
        (VOLCANO, an_object(name, spec={"minMember": 2, "minTaskMember": {"ps": 1, "worker": 1}})) for name in "gh"
    )
    return World("volcano", groups, QUEUES, tuple(a_pod(name, annotations=annotations) for name in "ab"))


def _labelled(labels: Json) -> World:
    groups = ((VOLCANO, an_object("g", spec={"minMember": 2, "minTaskMember": {"ps": 1, "worker": 1}})),)
    annotations = {GROUP: "g"} if TASK in labels else {}
    return World("volcano", groups, QUEUES, tuple(a_pod(n, labels=labels, annotations=annotations) for n in "ab"))


def _node(labels: Json) -> World:
    return World(nodes=(node_json("n", labels=labels),))


def _owner(annotations: Json) -> World:
    return World("volcano", (a_job(annotations=annotations),), QUEUES, tuple(a_pod(n, owner=JOB) for n in "ab"))


def _of_group(path: str, one: object, other: object) -> Case:
    return field_case(_group, {"spec": {"minMember": 3}}, path, one, other)


def _of_queue(path: str, one: object, other: object) -> Case:
    return field_case(_queue, {"spec": {}}, path, one, other)


FIELDS = {
    ("PodGroup", "spec.minResources{}"): _of_group("spec.minResources", {"cpu": "2"}, {"cpu": "900"}),
    ("PodGroup", "spec.minMember"): _of_group("spec.minMember", 2, 3),
    ("PodGroup", "spec.minTaskMember{}"): _of_group("spec.minTaskMember", {"ps": 1}, {"ps": 1, "worker": 2}),
    ("PodGroup", "spec.priorityClassName"): _of_group("spec.priorityClassName", ABSENT, "high"),
    ("PodGroup", "spec.queue"): _of_group("spec.queue", "default", "q"),
    ("Queue", "spec.capability{}"): _of_queue("spec.capability", {"cpu": "8"}, {"cpu": "9"}),
    ("Queue", "spec.dequeueStrategy"): _of_queue("spec.dequeueStrategy", "traverse", "fifo"),
    ("Queue", "spec.deserved{}"): _of_queue("spec.deserved", {"cpu": "2"}, {"cpu": "3"}),
    ("Queue", "spec.guarantee.resource{}"): _of_queue("spec.guarantee.resource", {"cpu": "1"}, {"cpu": "2"}),
    ("Queue", "spec.parent"): _of_queue("spec.parent", "p", "r"),
    ("Queue", "spec.priority"): _of_queue("spec.priority", 1, 2),
    ("Queue", "spec.reclaimable"): _of_queue("spec.reclaimable", True, False),
    ("Queue", "spec.weight"): _of_queue("spec.weight", 1, 2),
}

ANNOTATIONS = {
    GROUP: key_case(_annotated, GROUP, "g", "h"),
    "scheduling.k8s.io/group-pod-num": key_case(
        _annotated, "scheduling.k8s.io/group-pod-num", "2", "3", **{GROUP: "g"}
    ),
    QUEUE: key_case(_annotated, QUEUE, "default", "q"),
    "volcano.sh/preemptable": key_case(_annotated, "volcano.sh/preemptable", "true", "false"),
    COOLDOWN: key_case(_annotated, COOLDOWN, "1m", "2m"),
    TASK: key_case(_annotated, TASK, "ps", "worker", **{GROUP: "g"}),
    "scheduling.volcano.sh/group-min-member": key_case(_owner, "scheduling.volcano.sh/group-min-member", "2", "3"),
    "volcano.sh/hierarchy": key_case(
        _annotated_queue,
        "volcano.sh/hierarchy",
        "root/a/team",
        "root/b/team",
        **{"volcano.sh/hierarchy-weights": "1/2/3"},
    ),
    "volcano.sh/hierarchy-weights": key_case(
        _annotated_queue, "volcano.sh/hierarchy-weights", "1/2/3", "1/2/4", **{"volcano.sh/hierarchy": "root/a/team"}
    ),
}

LABELS = {
    QUEUE: key_case(_labelled, QUEUE, "default", "q"),
    "volcano.sh/preemptable": key_case(_labelled, "volcano.sh/preemptable", "true", "false"),
    COOLDOWN: key_case(_labelled, COOLDOWN, "1m", "2m"),
    ZONE: key_case(_node, ZONE, ABSENT, "rz1"),
    TASK: key_case(_labelled, TASK, "ps", "worker"),
}
