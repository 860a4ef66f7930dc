"""Gangs of Koordinator by annotations, its ElasticQuotas, and their keys on pods."""

from tests.poseidon_py.builders import node_json
from tests.poseidon_py.conventions.case import ABSENT, Case, field_case, key_case
from tests.poseidon_py.conventions.outcomes import Json, World, a_pod, an_object
from tests.poseidon_py.conventions.tables import coscheduling

CONVENTIONS = ("koordinator",)

GANG, QUOTA = "gang.scheduling.koordinator.sh/", "quota.scheduling.koordinator.sh/"
RESERVATION = "node.koordinator.sh/reservation"
THRESHOLDS = "scheduling.koordinator.sh/usage-thresholds"
PREEMPTIBLE = "scheduling.koordinator.sh/disable-preemptible"
SPEC = {"min": {"cpu": "1"}, "max": {"cpu": "8", "memory": "8Gi"}}


def _gang(annotations: Json) -> World:
    return World(pods=tuple(a_pod(name, annotations=annotations) for name in "ab"))


def _node(annotations: Json) -> World:
    body = node_json("n")
    body["metadata"]["annotations"] = annotations
    return World(nodes=(body,))


def _quotas(labels: Json, annotations: Json, pod: Json | None = None, **spec: Json) -> World:
    """The quotas team and other, and a pod in a namespace that has none."""
    team = an_object("team", spec={**SPEC, **spec}, labels=labels, annotations=annotations)
    others = (an_object(name, spec=SPEC) for name in ("other", "org"))
    return World(
        "koordinator",
        queue_objects=tuple(("KoordinatorQuota", body) for body in (team, *others)),
        pods=(a_pod("a", labels={QUOTA + "name": "team"} if pod is None else pod),),
    )


def _field(path: str, one: Json, other: Json) -> Case:
    return field_case(lambda body: _quotas({}, {}, **body["spec"]), {"spec": {}}, path, one, other)


def _label(name: str, one: object, other: object) -> Case:
    return key_case(lambda labels: _quotas(labels, {}), QUOTA + name, one, other)


def _annotation(name: str, one: object, other: object) -> Case:
    return key_case(lambda annotations: _quotas({}, annotations, {}), QUOTA + name, one, other)


def _of_pod(name: str, one: object, other: object, **base: str) -> Case:
    return key_case(lambda labels: _quotas({}, {}, labels), QUOTA + name, one, other, **base)


FIELDS = {
    ("ElasticQuota", "spec.min{}"): _field("spec.min", {"cpu": "1"}, {"cpu": "2"}),
    ("ElasticQuota", "spec.max{}"): _field("spec.max", {"cpu": "8"}, {"cpu": "9"}),
    **{key: case for key, case in coscheduling.FIELDS.items() if key[0] == "PodGroup"},
}

ANNOTATIONS = {
    GANG + "name": key_case(_gang, GANG + "name", "g", "h", **{GANG + "min-available": "2"}),
    GANG + "min-available": key_case(_gang, GANG + "min-available", "2", "3", **{GANG + "name": "g"}),
    GANG + "waiting-time": key_case(
        _gang, GANG + "waiting-time", "1m", "2m", **{GANG + "name": "g", GANG + "min-available": "2"}
    ),
    RESERVATION: key_case(_node, RESERVATION, '{"reservedCPUs": "0"}', '{"reservedCPUs": "0-1"}'),
    THRESHOLDS: key_case(_node, THRESHOLDS, '{"usageThresholds": {"cpu": 65}}', '{"usageThresholds": {"memory": 95}}'),
    QUOTA + "shared-weight": _annotation("shared-weight", '{"cpu": 1}', '{"cpu": 2}'),
    QUOTA + "namespaces": _annotation("namespaces", '["default"]', '["other"]'),
}

LABELS = {
    QUOTA + "name": _of_pod("name", "team", "other"),
    QUOTA + "preemptible": _of_pod("preemptible", "false", "true", **{QUOTA + "name": "team"}),
    PREEMPTIBLE: key_case(lambda labels: World(pods=(a_pod("a", labels=labels),)), PREEMPTIBLE, "true", "false"),
    QUOTA + "parent": _label("parent", "org", ABSENT),
    QUOTA + "is-parent": _label("is-parent", "true", "false"),
    **{key: case for key, case in coscheduling.LABELS.items() if "sigs" in key},
}
