"""The same objects in v1beta1 and v1beta2."""

from __future__ import annotations

from tests.e2e.api import MERGE
from tests.e2e.device_answers.device_requests import (
    BETA1,
    BETA2,
    STRATEGIC,
    Exchange,
    allocation,
    alternative,
    claim,
    consumer,
    device,
    resource_slice,
    several,
)

FLAT = {"name": "gpu", "deviceClassName": "gpu"}
OLD_CLAIMS = f"{BETA1}/namespaces/default/resourceclaims"
OLDER = [
    Exchange("flat", "POST", OLD_CLAIMS, claim("x", FLAT, version="v1beta1"), 201),
    Exchange("alternatives", "POST", OLD_CLAIMS, claim("x", several(alternative("a")), version="v1beta1"), 201),
    Exchange(
        "neither",
        "POST",
        OLD_CLAIMS,
        claim("x", {"name": "gpu"}, version="v1beta1"),
        422,
        "exactly one of `exactly` or `firstAvailable`",
    ),
    Exchange(
        "both",
        "POST",
        OLD_CLAIMS,
        claim("x", FLAT | several(alternative("a")), version="v1beta1"),
        422,
        "but multiple fields are set",
    ),
    Exchange(
        "count",
        "POST",
        OLD_CLAIMS,
        claim("x", FLAT | {"count": -1}, version="v1beta1"),
        422,
        "requests[0].exactly.count: Invalid value: -1",
    ),
    Exchange("another version", "POST", OLD_CLAIMS, claim("x"), 400, "does not match the expected API version"),
    Exchange(
        "change",
        "PATCH",
        f"{OLD_CLAIMS}/free",
        {"spec": {"devices": {"requests": [FLAT | {"count": 2}]}}},
        422,
        "field is immutable",
        MERGE,
    ),
    Exchange(
        "no change",
        "PATCH",
        f"{OLD_CLAIMS}/free",
        {"spec": {"devices": {"requests": [FLAT | {"allocationMode": "ExactCount", "count": 1}]}}},
        200,
        "",
        MERGE,
    ),
    Exchange(
        "no change, without the defaults",
        "PATCH",
        f"{OLD_CLAIMS}/free",
        {"spec": {"devices": {"requests": [FLAT]}}},
        200,
        "",
        MERGE,
    ),
    Exchange(
        "allocate",
        "PATCH",
        f"{OLD_CLAIMS}/free/status",
        {"status": {"allocation": allocation(), "reservedFor": [consumer()]}},
        200,
        "",
        STRATEGIC,
    ),
    Exchange(
        "release",
        "PATCH",
        f"{OLD_CLAIMS}/taken/status",
        {"status": {"reservedFor": [{"$patch": "delete", "uid": "u1"}]}},
        200,
        "",
        STRATEGIC,
    ),
    Exchange(
        "basic",
        "POST",
        f"{BETA1}/resourceslices",
        resource_slice("x", device(basic={"attributes": {"a": {"int": 1}}}))
        | {"apiVersion": "resource.k8s.io/v1beta1"},
        201,
    ),
    Exchange(
        "basic with a mistake",
        "POST",
        f"{BETA1}/resourceslices",
        resource_slice("x", device(basic={"attributes": {"a": {}}})) | {"apiVersion": "resource.k8s.io/v1beta1"},
        422,
        "exactly one value must be specified",
    ),
    Exchange("rules", "GET", f"{BETA1}/devicetaintrules", None, 404),
    Exchange("exactly", "POST", f"{BETA2}/namespaces/default/resourceclaims", claim("x", version="v1beta2"), 201),
    Exchange(
        "allocate in v1beta2",
        "PATCH",
        f"{BETA2}/namespaces/default/resourceclaims/free/status",
        {"status": {"allocation": allocation()}},
        200,
        "",
        MERGE,
    ),
]
