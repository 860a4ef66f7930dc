"""The table of deploy/chart/rights.yaml on a real API server: an account with all rights of the scheduler, or of the
controller of jobs."""

from __future__ import annotations

from deploy.rights import LEASE_NAME, features
from tests.e2e.api import Json
from tests.e2e.real_backend import Real

REVIEWS = {
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
}
"""Of the secure port; tests/poseidon_py/app/serving has it."""
_NAMESPACE = "kube-system"
_RBAC = "rbac.authorization.k8s.io"


def granted_to(account: str) -> set[tuple[str, str, str]]:
    """Group, resource and verb of all rights, those to store deliveries of hooks aside."""
    return {
        (grant.group, grant.resource, grant.verb)
        for feature in features()
        if feature.account == account and feature.namespace != "hooks"
        for grant in feature.grants()
    }


def account_with_rights(server: Real, account: str, name: str) -> str:
    """Creates a ServiceAccount of that name, with the rights of all features. Returns a token."""
    home = f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts"
    server.api("POST", home, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": _NAMESPACE}
    for place, kind, namespace in (("", "ClusterRole", ""), ("lease", "Role", _NAMESPACE)):
        rules = [
            rule for each in features() if (each.account, each.namespace) == (account, place) for rule in each.rules
        ]
        root = f"/apis/{_RBAC}/v1/{f'namespaces/{namespace}/' if namespace else ''}{kind.lower()}"
        about: Json = {"apiVersion": f"{_RBAC}/v1", "metadata": {"name": name}}
        server.api("POST", f"{root}s?fieldValidation=Strict", about | {"kind": kind, "rules": _named(rules, name)})
        binding = {
            "kind": f"{kind}Binding",
            "subjects": [subject],
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        }
        server.api("POST", f"{root}bindings?fieldValidation=Strict", about | binding)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = server.api("POST", f"{home}/{name}/token", request)["status"]["token"]
    return token


def _named(rules: list[Json], lease: str) -> list[Json]:
    return [
        rule | {"resourceNames": [lease if name == LEASE_NAME else name for name in rule["resourceNames"]]}
        if "resourceNames" in rule
        else rule
        for rule in rules
    ]
