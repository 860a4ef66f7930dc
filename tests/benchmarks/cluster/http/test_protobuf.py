"""Bodies in protobuf, encoded by hand field by field."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cluster.api.schema import Type, fields_of, model_of
from benchmarks.cluster.http.protobuf import MEDIA_TYPE, _field, decode
from benchmarks.cluster.http.protobuf_fields import MESSAGES
from benchmarks.cluster.store.errors import ApiError
from tests.benchmarks.cluster.builders import pod
from tests.effort import examples

KINDS = [
    ("authentication.k8s.io/v1", "SelfSubjectReview"),
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"),
    ("v1", "Binding"),
    ("policy/v1", "Eviction"),
    ("coordination.k8s.io/v1", "Lease"),
    ("v1", "Event"),
    ("events.k8s.io/v1", "Event"),
    ("v1", "Namespace"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "ServiceAccount"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("v1", "ResourceQuota"),
    ("policy/v1", "PodDisruptionBudget"),
    ("v1", "Service"),
    ("autoscaling/v1", "Scale"),
    ("apps/v1", "Deployment"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("v1", "DeleteOptions"),
]


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def part(number: int, value: int | str | bytes) -> bytes:
    """One field: a varint, or something with a length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value % 2**64)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    return b"k8s\x00" + part(1, part(1, api_version) + part(2, kind)) + part(2, message)


def test_a_pod():
    quantity = part(1, "100m")
    requests = part(2, part(1, "cpu") + part(2, quantity))
    port = part(1, "") + part(2, 0) + part(3, 80) + part(4, "TCP")
    container = part(1, "main") + part(2, "app:1") + part(6, port) + part(8, requests)
    volume = part(1, "v") + part(2, part(2, b""))  # VolumeSource.emptyDir is embedded
    metadata = part(1, "p") + part(2, "") + part(8, b"") + part(11, part(1, "app") + part(2, "x"))
    toleration = part(1, "k") + part(5, -1)
    spec = part(1, volume) + part(2, container) + part(22, toleration)
    assert decode(envelope("v1", "Pod", part(1, metadata) + part(2, spec))) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"app": "x"}},
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [
                {
                    "name": "main",
                    "image": "app:1",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "resources": {"requests": {"cpu": "100m"}},
                }
            ],
            "tolerations": [{"key": "k", "tolerationSeconds": -1}],
        },
    }


def test_times_and_numbers_or_strings():
    spec = part(1, "me") + part(2, 15) + part(4, part(1, 1_700_000_000) + part(2, 5000))
    lease = decode(envelope("coordination.k8s.io/v1", "Lease", part(2, spec)))
    assert lease["spec"]["renewTime"] == "2023-11-14T22:13:20.000005Z"
    for value, expected in ((part(1, 0) + part(2, 2), 2), (part(1, 1) + part(3, "50%"), "50%")):
        budget = decode(envelope("policy/v1", "PodDisruptionBudget", part(2, part(1, value))))
        assert budget["spec"]["minAvailable"] == expected


def test_inlined_messages():
    variable = part(1, "A") + part(3, part(4, part(1, part(1, "s")) + part(2, "k")))
    source = part(3, part(1, part(1, "s")))
    probe = part(1, part(2, part(1, "/") + part(2, part(1, 0) + part(2, 80)))) + part(3, 1)
    container = part(7, variable) + part(19, source) + part(10, probe)
    assert decode(envelope("v1", "Pod", part(2, part(2, container))))["spec"]["containers"] == [
        {
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            "envFrom": [{"secretRef": {"name": "s"}}],
            "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "timeoutSeconds": 1},
        }
    ]


def test_bytes_are_base64_and_strings_are_not():
    entry = part(1, "k") + part(2, "v")
    secret = decode(envelope("v1", "Secret", part(2, entry) + part(3, "Opaque") + part(4, entry)))
    assert (secret["data"], secret["stringData"], secret["type"]) == ({"k": "dg=="}, {"k": "v"}, "Opaque")


def test_zeros_that_mean_unset_are_dropped_and_others_kept():
    metadata = part(1, "s") + part(7, 0) + part(15, "") + part(17, part(1, "kubectl"))
    service = decode(envelope("v1", "Service", part(1, metadata) + part(2, part(12, 0) + part(13, 0)) + part(3, b"")))
    assert service["metadata"] == {"name": "s"}
    assert service["spec"] == {"publishNotReadyAddresses": False}
    assert "status" not in service
    deployment = decode(envelope("apps/v1", "Deployment", part(2, part(1, 0))))
    assert deployment["spec"] == {"replicas": 0}


def test_delete_options_come_in_any_group():
    for version in ("v1", "apps/v1", "meta.k8s.io/v1"):
        options = decode(envelope(version, "DeleteOptions", part(1, 0) + part(2, part(1, "u")) + part(5, "All")))
        assert options["gracePeriodSeconds"] == 0
        assert options["preconditions"] == {"uid": "u"}
        assert options["dryRun"] == ["All"]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (envelope("v9", "Nothing", b""), "Nothing of v9"),
        (envelope("v1", "Node", b""), "Node of v1"),
        (envelope("v1", "Pod", part(2, part(39, b""))), "field 39 of PodSpec"),
        (envelope("v1", "Pod", part(2, part(1, part(2, part(28, b"") + part(13, b""))))), "field 13 of Volume"),
        (envelope("v1", "Pod", part(77, "x")), "field 77 of Pod"),
        (envelope("v1", "Pod", part(2, part(2, part(99, 1)))), "field 99 of Container"),
    ],
)
def test_unsupported_fields_are_rejected(body, what):
    with pytest.raises(ApiError) as refused:
        decode(body)
    assert (refused.value.code, refused.value.reason) == (415, "UnsupportedMediaType")
    assert refused.value.message.startswith(f"{what} is not read from")
    assert "application/json" in refused.value.message


def test_empty_fields_of_newer_clients_are_ignored():
    newer = part(90, "") + part(91, 0) + part(92, b"")
    assert decode(envelope("v1", "Pod", newer + part(2, newer + part(10, "n"))))["spec"] == {"nodeName": "n"}


def test_a_status_message_is_rejected():
    body = envelope("v1", "Pod", part(1, part(1, "p")) + part(3, part(1, "Running")))
    assert "status" not in decode(body)
    with pytest.raises(ApiError) as refused:
        decode(body, "status")
    assert refused.value.code == 415


async def test_errors_reach_the_client(cluster, http):
    cluster.create(pod("p"))
    where = http.url + "/api/v1/namespaces/default/pods"
    status = envelope("v1", "Pod", part(1, part(1, "p")) + part(3, part(1, "Running")))
    for method, url, body in (("PUT", f"{where}/p/status", status), ("POST", where, envelope("v1", "Node", b""))):
        async with http.session.request(method, url, data=body, headers={"Content-Type": MEDIA_TYPE}) as answer:
            assert answer.status == 415
            assert (await answer.json())["reason"] == "UnsupportedMediaType"


def test_fields_that_an_older_client_library_does_not_know_are_refused():
    types = fields_of("V1PodSpec")
    assert _field("nodeName", types) == ("nodeName", "", types["nodeName"])
    for token in ("newName", "affinity"):
        known = {name: type_ for name, type_ in types.items() if name != token}
        assert _field(token, {**known, "affinity": Type("V1NewAffinity", (dict,))}).mark == "-"


def test_the_table_names_fields_that_exist():
    for message, tokens in MESSAGES.items():
        model, _, inner = message.partition("/")
        assert fields_of(model), message
        for token in tokens.split():
            name = token.partition(":")[0]
            if name[0] == "/":
                assert not inner
                assert message + name in MESSAGES
            elif name[0] not in "-~":
                assert name in fields_of(model), (message, name)


def test_the_table_has_exactly_the_messages_of_its_kinds():
    todo = {model_of(*kind) or "" for kind in KINDS}
    found: set[str] = set()
    while todo:
        message = todo.pop()
        found.add(message)
        for token in MESSAGES[message].split():
            if token[0] == "/":
                todo.add(message + token)
            elif token[0] not in "-~":
                inner = fields_of(message.partition("/")[0])[token.partition(":")[0]]
                inner = inner.of or inner
                if inner.accepts == (dict,):
                    todo.add(inner.name)
        todo -= found
    assert found == set(MESSAGES)


def leaf(type_: Type, mark: str) -> st.SearchStrategy[tuple[Any, Any]]:
    """Wire value and JSON value of a scalar; never one that means unset."""
    text = st.text(min_size=1, max_size=4)
    seconds = st.integers(0, 2**31)
    match mark or type_.name:
        case "string":
            return text.map(lambda value: (value.encode(), value))
        case "bytes":
            return st.binary(max_size=5).map(lambda value: (value, base64.b64encode(value).decode()))
        case "integer":
            return st.integers(-(2**63), 2**63 - 1).filter(bool).map(lambda value: (value, value))
        case "boolean":
            return st.booleans().map(lambda value: (int(value), value))
        case "quantity":
            return text.map(lambda value: (part(1, value), value))
        case "number or string":
            numbers = st.integers(-(2**31), 2**31 - 1).map(lambda value: (part(1, 0) + part(2, value), value))
            return numbers | text.map(lambda value: (part(1, 1) + part(3, value), value))
        case "time":
            return seconds.map(lambda at: (part(1, at), f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"))
        case "micro":
            return st.tuples(seconds, st.integers(0, 999_999)).map(
                lambda at: (
                    part(1, at[0]) + part(2, at[1] * 1000),
                    f"{datetime.fromtimestamp(at[0], UTC):%Y-%m-%dT%H:%M:%S}.{at[1]:06}Z",
                )
            )
    raise AssertionError(type_)


@st.composite
def encoded(draw: st.DrawFn, message: str, depth: int = 0) -> tuple[bytes, dict[str, Any]]:
    """A message and its JSON, with some of the fields that it may have."""
    tokens = [(number, token) for number, token in enumerate(MESSAGES[message].split(), 1) if token[0] not in "-~"]
    chosen = draw(st.lists(st.sampled_from(tokens), unique=True, max_size=3 if depth < 5 else 1))
    wire = b""
    obj: dict[str, Any] = {}
    for number, token in chosen:
        if token[0] == "/":
            raw, inner = draw(encoded(message + token, depth + 1))
            wire += part(number, raw)
            obj |= inner
            continue
        name, _, mark = token.partition(":")
        type_ = fields_of(message.partition("/")[0])[name]
        one = type_.of or type_
        values: st.SearchStrategy[tuple[Any, Any]]
        values = encoded(one.name, depth + 1) if one.accepts == (dict,) else leaf(one, mark)
        if type_.name == "map":
            entries = draw(st.dictionaries(st.text(max_size=3), values, min_size=1, max_size=2))
            wire += b"".join(part(number, part(1, key) + part(2, raw)) for key, (raw, _) in entries.items())
            obj[name] = {key: value for key, (_, value) in entries.items()}
        elif type_.name == "list":
            items = draw(st.lists(values, min_size=1, max_size=2))
            wire += b"".join(part(number, raw) for raw, _ in items)
            obj[name] = [value for _, value in items]
        else:
            one_wire, obj[name] = draw(values)
            wire += part(number, one_wire)
    return wire, obj


@examples(75)
@given(st.data())
def test_every_kind_survives_a_round_trip(data):
    api_version, kind = data.draw(st.sampled_from(KINDS))
    model = model_of(api_version, kind)
    assert model is not None
    wire, obj = data.draw(encoded(model))
    assert decode(envelope(api_version, kind, wire)) == {"apiVersion": api_version, "kind": kind, **obj}


@examples(100)
@given(st.data())
def test_damaged_bodies_are_refused_or_read(data):
    wire, _ = data.draw(encoded("V1Pod"))
    body = bytearray(envelope("v1", "Pod", wire))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    refusal: ApiError | None = None
    try:
        decode(bytes(body))
    except ApiError as error:
        refusal = error
    assert refusal is None or refusal.code in (400, 415)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"k8s\x00",
        b"{}",
        envelope("v1", "Pod", b"\x0a\xff"),
        envelope("v1", "Pod", b"\xff" * 20),
        envelope("v1", "Pod", part(1, 5)),
        envelope("v1", "Pod", part(1, part(1, 2**40))),
        envelope("v1", "Pod", part(2, part(11, "yes"))),
        envelope("v1", "Pod", part(2, part(4, "x"))),
        envelope("v1", "Pod", b"\x0d\x00"),
        envelope("v1", "Pod", part(1, part(1, b"\xff\xfe"))),
    ],
)
def test_a_body_that_is_not_protobuf_is_a_400(body):
    with pytest.raises(ApiError) as refused:
        decode(body)
    assert refused.value.code == 400
