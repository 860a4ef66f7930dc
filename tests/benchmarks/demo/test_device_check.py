"""The check of devices finds what is wrong with them."""

import pytest

from benchmarks.demo.device_check import check_devices
from tests.benchmarks.demo.builders import make_evidence, make_pod


def claim(name, *devices, count=1, pool="n1", of=None):
    results = [{"request": "r", "driver": "d", "pool": pool, "device": each} for each in devices]
    users = [{"resource": "pods", "name": of or name, "uid": make_pod(of or name)["metadata"]["uid"]}]
    return {
        "metadata": {"name": f"c-{name}", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "k", "count": count}}]}},
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": users} if devices else {},
    }


def user(name, node="n1", phase="Running"):
    entry = {"name": "e", "resourceClaimTemplateName": "t"}
    pod = make_pod(name, node, phase=phase if node else "", resourceClaims=[entry])
    pod["status"]["resourceClaimStatuses"] = [{"name": "e", "resourceClaimName": f"c-{name}"}]
    return pod


def checked(pods, *claims):
    return check_devices(make_evidence(pods, claims=claims), pods)


def test_devices_of_their_own_pass():
    pods = [user("a"), user("b"), user("waits", node=""), user("ended", phase="Succeeded"), make_pod("plain", "n1")]
    found = checked(pods, claim("a", "x", "y", count=2), claim("b", "z"), claim("waits"))
    assert found == (True, "4 pods with claims; 3 devices are in use")


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ([claim("a", "x"), claim("b", "x")], "b and a have d/n1/x"),
        ([claim("a", "x"), claim("b", "y", pool="n2")], "b is on n1, and has a device of n2"),
        ([claim("a", "x"), claim("b", "y", count=2)], "b has 1 of 2 devices"),
        ([claim("a", "x"), claim("b", "y", of="a")], "b uses a claim that is not reserved for it"),
        ([claim("a", "x")], "b lacks a claim"),
        ([claim("a", "x"), claim("b")], "b has 0 of 1 devices; b uses a claim that is not reserved for it"),
    ],
)
def test_what_is_wrong_is_found(claims, why):
    assert checked([user("a"), user("b")], *claims) == (False, why)
