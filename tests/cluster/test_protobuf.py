"""Bodies in protobuf, written by hand field by field."""

from __future__ import annotations

import pytest

from poseidon_py.cluster.errors import ApiError
from poseidon_py.cluster.protobuf import decode


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
    for value, wanted in ((part(1, 0) + part(2, 2), 2), (part(1, 1) + part(3, "50%"), "50%")):
        budget = decode(envelope("policy/v1", "PodDisruptionBudget", part(2, part(1, value))))
        assert budget["spec"]["minAvailable"] == wanted


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"k8s\x00",
        b"{}",
        envelope("v9", "Nothing", b""),
        envelope("v1", "Pod", b"\x0a\xff"),
        envelope("v1", "Pod", b"\xff" * 20),
        envelope("v1", "Pod", part(1, 5)),
        envelope("v1", "Pod", part(1, part(1, b"\xff\xfe"))),
    ],
)
def test_what_is_no_protobuf_is_a_400(body):
    with pytest.raises(ApiError) as refused:
        decode(body)
    assert refused.value.code == 400
