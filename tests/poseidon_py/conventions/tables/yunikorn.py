"""YuniKorn's file of queues, and its annotations and labels."""

import json

from tests.poseidon_py.conventions.case import Case, changed, key_case
from tests.poseidon_py.conventions.outcomes import Json, World, a_pod, an_object

CONVENTIONS = ("yunikorn",)

PREFIX = "yunikorn.apache.org/"
QUEUES = [
    {"name": "root", "queues": [{"name": name, "resources": {"max": {"vcore": 8}}} for name in ("a", "b", "default")]}
]
PARTITION = {"partitions": [{"name": "default", "queues": QUEUES}]}
OF_NAMESPACES = {
    "partitions": [
        {
            "name": "default",
            "queues": [{"name": "root", "queues": [{"name": "p", "childtemplate": {"resources": {}}}, {"name": "q"}]}],
            "placementrules": [
                {"name": "tag", "value": "namespace", "create": True, "parent": {"name": "fixed", "value": "root.p"}}
            ],
        }
    ]
}
GROUPS = json.dumps([{"name": "w", "minMember": 2}, {"name": "x", "minMember": 3}])


def _file(
    content: Json, labels: Json | None = None, annotations: Json | None = None, namespace: Json | None = None
) -> World:
    config = an_object("yunikorn-configs", data={"queues.yaml": json.dumps(content)})
    pods = tuple(a_pod(name, labels=labels or {}, annotations=annotations or {}) for name in "ab")
    there = an_object("default", namespace="", annotations=namespace or {})
    return World("yunikorn", (), (("ConfigMap", config),), pods, namespaces=(there,))


def _of(path: str, one: object, other: object, base: Json = PARTITION) -> Case:
    labels = {PREFIX + "queue": "root.a"} if base is PARTITION else {}
    return Case(*(_file(changed(base, path, value), labels) for value in (one, other)))


def _in_queue(path: str, one: object, other: object) -> Case:
    """A field of the first queue."""
    return _of(f"partitions[].queues[].{path}", one, other)


def _property(name: str, one: str, other: str) -> Case:
    return Case(
        *(
            _file(changed(PARTITION, "partitions[].queues[].properties", {name: value}), {PREFIX + "queue": "root.a"})
            for value in (one, other)
        )
    )


def _labelled(labels: Json) -> World:
    annotations = {PREFIX + "task-group-name": "w", PREFIX + "task-groups": GROUPS}
    in_gang = any(key in labels for key in (PREFIX + "app-id", "applicationId", "spark-app-selector"))
    return _file(PARTITION, labels, annotations if in_gang else {})


def _annotated(annotations: Json) -> World:
    return _file(PARTITION, {}, annotations)


def _in_application(annotations: Json) -> World:
    return _file(PARTITION, {"applicationId": "app"}, annotations)


def _namespace(annotations: Json) -> World:
    return _file(OF_NAMESPACES, namespace=annotations)


_RULES = "partitions[].placementrules[]"
_FIXED = {"name": "fixed", "value": "root.a"}
_RULED = {"partitions": [{**PARTITION["partitions"][0], "placementrules": [_FIXED]}]}

FIELDS = {
    ("queues.yaml", "partitions[].name"): Case(
        *(
            _file({"partitions": [{"name": "first", "queues": QUEUES}, {"name": name, "queues": [{"name": "root"}]}]})
            for name in ("default", "second")
        )
    ),
    ("queues.yaml", "partitions[].queues[].name"): _of("partitions[].queues", QUEUES, [{**QUEUES[0], "name": "other"}]),
    ("queues.yaml", "partitions[].queues[].resources.guaranteed{}"): _in_queue(
        "resources.guaranteed", {"vcore": 1}, {"vcore": 2}
    ),
    ("queues.yaml", "partitions[].queues[].resources.max{}"): _in_queue("resources.max", {"vcore": 8}, {"vcore": 9}),
    ("queues.yaml", "partitions[].queues[].properties.priority.policy"): _property(
        "priority.policy", "default", "fence"
    ),
    ("queues.yaml", "partitions[].queues[].properties.priority.offset"): _property("priority.offset", "1", "2"),
    ("queues.yaml", "partitions[].queues[].properties.preemption.policy"): _property(
        "preemption.policy", "default", "fence"
    ),
    ("queues.yaml", "partitions[].queues[].properties.preemption.delay"): _property("preemption.delay", "1m", "2m"),
    **{
        ("queues.yaml", f"partitions[].queues[].childtemplate.resources.{name}{{}}"): _of(
            "partitions[].queues",
            [{"name": "root", "queues": [{"name": "p", "childtemplate": {"resources": {name: {"vcore": 1}}}}]}],
            [{"name": "root", "queues": [{"name": "p", "childtemplate": {"resources": {name: {"vcore": 2}}}}]}],
            OF_NAMESPACES,
        )
        for name in ("guaranteed", "max")
    },
    ("queues.yaml", "partitions[].preemption.enabled"): _of("partitions[].preemption.enabled", True, False),
    ("queues.yaml", "partitions[].queues[].childtemplate.properties{}"): _of(
        "partitions[].queues[].childtemplate.properties",
        {"preemption.policy": "default"},
        {"preemption.policy": "disabled"},
        OF_NAMESPACES,
    ),
    ("queues.yaml", "partitions[].queues[].queues[]"): _in_queue("queues", [{"name": "a"}], [{"name": "b"}]),
    ("queues.yaml", f"{_RULES}.name"): _of(_RULES[:-2], [_FIXED], [{**_FIXED, "name": "provided"}], _RULED),
    ("queues.yaml", f"{_RULES}.value"): _of(f"{_RULES}.value", "root.a", "root.b", _RULED),
    ("queues.yaml", f"{_RULES}.create"): _of(f"{_RULES}.create", True, False, OF_NAMESPACES),
    ("queues.yaml", f"{_RULES}.parent"): _of(f"{_RULES}.parent.value", "root.p", "root.q", OF_NAMESPACES),
}

ANNOTATIONS = {
    PREFIX + "app-id": key_case(
        _annotated,
        PREFIX + "app-id",
        "app",
        "other",
        **{PREFIX + "task-group-name": "w", PREFIX + "task-groups": GROUPS},
    ),
    PREFIX + "queue": key_case(_annotated, PREFIX + "queue", "root.a", "root.b"),
    PREFIX + "task-group-name": key_case(
        _in_application, PREFIX + "task-group-name", "w", "x", **{PREFIX + "task-groups": GROUPS}
    ),
    PREFIX + "task-groups": key_case(
        _in_application,
        PREFIX + "task-groups",
        GROUPS,
        GROUPS.replace("2", "4"),
        **{PREFIX + "task-group-name": "w"},
    ),
    PREFIX + "allow-preemption": key_case(
        _annotated, PREFIX + "allow-preemption", "true", "false", **{PREFIX + "queue": "root.a"}
    ),
    PREFIX + "parentqueue": key_case(_namespace, PREFIX + "parentqueue", "root.p", "root.q"),
    PREFIX + "namespace.quota": key_case(_namespace, PREFIX + "namespace.quota", '{"cpu": "1"}', '{"cpu": "2"}'),
    PREFIX + "namespace.guaranteed": key_case(
        _namespace, PREFIX + "namespace.guaranteed", '{"cpu": "1"}', '{"cpu": "2"}'
    ),
    PREFIX + "namespace.max.cpu": key_case(_namespace, PREFIX + "namespace.max.cpu", "1", "2"),
    PREFIX + "namespace.max.memory": key_case(_namespace, PREFIX + "namespace.max.memory", "1Gi", "2Gi"),
}

LABELS = {
    PREFIX + "app-id": key_case(_labelled, PREFIX + "app-id", "app", "other"),
    "applicationId": key_case(_labelled, "applicationId", "app", "other"),
    "spark-app-selector": key_case(_labelled, "spark-app-selector", "app", "other"),
    PREFIX + "queue": key_case(_labelled, PREFIX + "queue", "root.a", "root.b"),
    "queue": key_case(_labelled, "queue", "root.a", "root.b"),
}
