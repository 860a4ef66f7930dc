"""Poseidon's own annotations and labels."""

from tests.poseidon_py.builders import node_json
from tests.poseidon_py.conventions.case import Case, key_case
from tests.poseidon_py.conventions.outcomes import JOB, Json, World, a_job, a_pod, an_object

CONVENTIONS = ("poseidon",)

PREFIX = "poseidon.io/"
BANDWIDTH = ("ingress-bandwidth", "egress-bandwidth")


def _job(annotations: Json) -> World:
    """Pods of a Job with annotations."""
    return World(objects=(a_job(annotations=annotations),), pods=tuple(a_pod(name, owner=JOB) for name in "ab"))


def _pods(annotations: Json) -> World:
    return World(pods=tuple(a_pod(name, annotations=annotations, owner=JOB) for name in "ab"), objects=(a_job(),))


def _bound(annotations: Json) -> World:
    return World(pods=(a_pod("a", annotations=annotations, owner=JOB, node="n", phase="Running"),), objects=(a_job(),))


def _labelled(labels: Json) -> World:
    return World(pods=(a_pod("a", labels=labels),))


def _queued(labels: Json) -> World:
    queues = tuple(("Queue", an_object(name, namespace="", spec={"weight": 1})) for name in ("q", "r"))
    return World("poseidon", queue_objects=queues, pods=(a_pod("a", labels=labels),))


def _in_namespace(labels: Json) -> World:
    """A pod that runs in a namespace with these labels."""
    return _bound({})._replace(namespaces=(an_object("default", namespace="", labels=labels),))


def _job_annotation(name: str, one: str, other: str, **base: str) -> Case:
    return key_case(_job, PREFIX + name, one, other, **{PREFIX + key: value for key, value in base.items()})


def _annotation(name: str, one: str, other: str) -> Case:
    return key_case(_pods, PREFIX + name, one, other)


def _node(what: str, name: str) -> Case:
    def world(found: Json) -> World:
        node = node_json("n")
        node["metadata"][what] = found
        return World(nodes=(node,))

    return key_case(world, PREFIX + name, "1G", "2G")


def _with_devices(annotations: Json) -> World:
    """A pod whose claim is for two of three devices, which have equal values of one attribute or of another."""
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    values = {"d0": (0, 0), "d1": (1, 0), "d2": (1, 1)}
    devices = [{"name": name, "attributes": {"a": {"int": a}, "b": {"int": b}}} for name, (a, b) in values.items()]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}
    slices = {"driver": "x.example.com", "pool": pool, "nodeName": "n", "devices": devices}
    entry = {"name": "e", "resourceClaimName": "c"}
    return World(
        pods=(a_pod("a", annotations=annotations, spec={"resourceClaims": [entry]}),),
        nodes=(node_json("n"),),
        devices=(
            ("DeviceClass", an_object("gpu", namespace="", spec={})),
            ("ResourceSlice", an_object("s", namespace="", spec=slices)),
            ("ResourceClaim", an_object("c", spec={"devices": {"requests": [request]}})),
        ),
    )


_TRAITS = {"interference-class": ("sheep", "devil"), "program": ("p", "q"), "speed": ("a=1", "a=2")}

ANNOTATIONS = {
    PREFIX + "gang": _job_annotation("gang", "2", "3"),
    PREFIX + "gang-min": _job_annotation("gang-min", "2", "3", gang="all"),
    PREFIX + "gang-max": _job_annotation("gang-max", "4", "5", gang="2"),
    PREFIX + "gang-topology": _job_annotation("gang-topology", "zone", "rack", gang="2"),
    PREFIX + "gang-topology-mode": key_case(
        _job,
        PREFIX + "gang-topology-mode",
        "required",
        "preferred",
        **{PREFIX + "gang": "2", PREFIX + "gang-topology": "zone"},
    ),
    PREFIX + "resume": key_case(_job, PREFIX + "resume", "false", "true"),
    PREFIX + "gang-role": key_case(_pods, PREFIX + "gang-role", "a=1", "a=2", **{PREFIX + "gang": "2"}),
    PREFIX + "gang-match-attribute": key_case(
        _with_devices, PREFIX + "gang-match-attribute", "x.example.com/a", "x.example.com/b"
    ),
    PREFIX + "gang-name": _job_annotation("gang-name", "g", "h", gang="2"),
    PREFIX + "data": _annotation("data", "10Gi@n1", "10Gi@n2"),
    PREFIX + "expected-duration": _annotation("expected-duration", "90s", "10m"),
    PREFIX + "last-checkpoint": key_case(
        _bound, PREFIX + "last-checkpoint", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    ),
    PREFIX + "movable": key_case(_bound, PREFIX + "movable", "true", "false"),
    PREFIX + "preempt": _annotation("preempt", "true", "false"),
    PREFIX + "preemption-notice": _annotation("preemption-notice", "1m", "2m"),
    **{PREFIX + name: _annotation(name, *values) for name, values in _TRAITS.items()},
    **{PREFIX + name: _node("annotations", name) for name in BANDWIDTH},
}

LABELS = {
    PREFIX + "user": key_case(_labelled, PREFIX + "user", "ana", "bob"),
    PREFIX + "queue": key_case(_queued, PREFIX + "queue", "q", "r"),
    **{PREFIX + name: key_case(_labelled, PREFIX + name, *values) for name, values in _TRAITS.items()},
    **{PREFIX + name: _node("labels", name) for name in BANDWIDTH},
    PREFIX + "movable": key_case(_in_namespace, PREFIX + "movable", "true", "false"),
}
