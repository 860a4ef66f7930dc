"""Tokens of ServiceAccounts are judged by RBAC; all other requests are those of an administrator."""

from __future__ import annotations

import datetime
import ssl

import aiohttp
import pytest

from benchmarks.cluster import Cluster, ClusterSettings
from poseidon_py.app.serving.certificate import _self_signed

RBAC = "rbac.authorization.k8s.io/v1"
ACCOUNT = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}


@pytest.fixture
async def token(cluster, http):
    cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    code, answer = await http("POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", request)
    assert (code, answer["kind"]) == (201, "TokenRequest")
    return answer["status"]["token"]


def grant(cluster, *rules, namespace=""):
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": "r", **({"namespace": namespace} if namespace else {})}
    cluster.create({"apiVersion": RBAC, "kind": kind, "metadata": metadata, "rules": list(rules)})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"}
    about = {"apiVersion": RBAC, "kind": f"{kind}Binding", "metadata": metadata}
    cluster.create(about | {"roleRef": reference, "subjects": [ACCOUNT]})


def rule(resources, verbs, group="", names=()):
    return {"apiGroups": [group], "resources": resources, "verbs": verbs} | ({"resourceNames": names} if names else {})


async def test_nothing_is_allowed_without_a_rule(http, token):
    code, answer = await http("GET", "/api/v1/pods", Authorization=f"Bearer {token}")
    assert (code, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == (
        'pods is forbidden: User "system:serviceaccount:default:robot" cannot list resource "pods" in API group "" '
        "at the cluster scope"
    )
    assert (await http("GET", "/api/v1/pods"))[0] == 200
    assert (await http("GET", "/api/v1/pods", Authorization="Bearer account.made-up"))[0] == 401


async def test_a_field_selector_can_name_the_object_of_a_rule(cluster, http, token):
    grant(cluster, rule(["configmaps"], ["list", "watch"], names=["own"]))
    for selector, code in (
        ("metadata.name=own", 200),
        ("metadata.name==own", 200),
        ("metadata.namespace=default,metadata.name=own", 200),
        ("metadata.name=other", 403),
        ("metadata.name!=own", 403),
        ("metadata.namespace=own", 403),
        ("", 403),
    ):
        path = f"/api/v1/configmaps?fieldSelector={selector}"
        assert (await http("GET", path, Authorization=f"Bearer {token}"))[0] == code, selector


async def test_a_rule_is_for_its_verbs_resources_groups_and_names(cluster, http, token):
    grant(cluster, rule(["pods"], ["list"]), rule(["leases"], ["get"], "coordination.k8s.io", ["own"]))
    asked = {
        ("GET", "/api/v1/pods"): 200,
        ("GET", "/api/v1/namespaces/default/pods"): 200,
        ("GET", "/api/v1/pods?watch=1"): 403,
        ("GET", "/api/v1/nodes"): 403,
        ("PATCH", "/api/v1/namespaces/default/pods/p/status"): 403,
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/own"): 404,
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/other"): 403,
    }
    for (method, path), expected in asked.items():
        assert (await http(method, path, Authorization=f"Bearer {token}"))[0] == expected, path


async def test_a_role_is_for_its_namespace_and_a_change_counts_at_once(cluster, http, token):
    grant(cluster, rule(["pods"], ["list"]), namespace="default")
    assert (await http("GET", "/api/v1/namespaces/default/pods", Authorization=f"Bearer {token}"))[0] == 200
    assert (await http("GET", "/api/v1/namespaces/kube-system/pods", Authorization=f"Bearer {token}"))[0] == 403
    assert (await http("GET", "/api/v1/pods", Authorization=f"Bearer {token}"))[0] == 403
    code, _ = await http("DELETE", f"/apis/{RBAC}/namespaces/default/rolebindings/r")
    assert code == 200
    assert (await http("GET", "/api/v1/namespaces/default/pods", Authorization=f"Bearer {token}"))[0] == 403


async def test_reviews_know_tokens_paths_and_namespaces(cluster, http, token):
    async def review(group, kind, spec):
        body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        return (await http("POST", f"/apis/{group}/v1/{kind.lower()}s", body))[1]["status"]

    found = await review("authentication.k8s.io", "TokenReview", {"token": token})
    assert (found["authenticated"], found["user"]["username"]) == (True, "system:serviceaccount:default:robot")
    assert await review("authentication.k8s.io", "TokenReview", {"token": "x"}) == {"authenticated": False}
    grant(cluster, {"nonResourceURLs": ["/metrics", "/page/*"], "verbs": ["get"]})
    for path, allowed in (("/metrics", True), ("/metrics/x", False), ("/status", False), ("/page/x/y", True)):
        spec = {"user": found["user"]["username"], "nonResourceAttributes": {"path": path, "verb": "get"}}
        answer = await review("authorization.k8s.io", "SubjectAccessReview", spec)
        assert answer == {"allowed": allowed}
    grant(cluster, rule(["pods"], ["list"]), namespace="default")
    for namespace, verb, allowed in (("default", "list", True), ("default", "get", False), ("", "list", False)):
        asked = {"namespace": namespace, "verb": verb, "resource": "pods", "version": "v1"}
        spec = {"user": found["user"]["username"], "resourceAttributes": asked}
        answer = await review("authorization.k8s.io", "SubjectAccessReview", spec)
        assert answer == {"allowed": allowed}


async def test_https_with_the_certificate_that_the_kubeconfig_names(tmp_path):
    file = tmp_path / "server.pem"
    file.write_bytes(_self_signed(datetime.datetime.now(datetime.UTC)))
    async with Cluster(ClusterSettings(tls=(file, file))) as running, aiohttp.ClientSession() as session:
        assert running.url.startswith("https://")
        assert f"certificate-authority: {file}" in running.kubeconfig()
        trusted = ssl.create_default_context(cafile=str(file))
        async with session.get(f"{running.url}/readyz", ssl=trusted) as response:
            assert await response.text() == "ok"
