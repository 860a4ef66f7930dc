"""An account with the roles that the chart renders for some values, and the flags with which it runs its programs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.e2e.api import Json
from tests.e2e.real_backend import Real

NAMESPACE = "kube-system"
GROUP = f"system:serviceaccounts:{NAMESPACE}"
RELEASES = {"scheduler": "poseidon", "jobs": "poseidon-jobs"}
"""Account in the table of rights -> name of its objects."""
_COMPONENTS = {"scheduler": "scheduler", "jobs": "jobs-controller"}
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
Right = tuple[str, str, str, str, str]
"""Namespace, API group, resource, verb, and the name of the object; empty: all namespaces, all objects."""


def covers(right: Right, request: Right) -> bool:
    """Whether a right allows a request."""
    namespace, *what, name = right
    return [*what] == [*request[1:4]] and namespace in ("", request[0]) and name in ("", request[4])


@dataclass(frozen=True)
class Requests:
    """What an account has asked for, and what of that the server refused."""

    asked: frozenset[Right]
    refused: frozenset[Right]

    def use(self, right: Right) -> bool:
        return any(covers(right, request) for request in self.asked)


@dataclass(frozen=True)
class ChartAccount:
    """`flags`: of `poseidon run` or `poseidon jobs run`, to run as in the chart's pods."""

    user: str
    kubeconfig: Path
    flags: tuple[str, ...]

    def requests(self, server: Real) -> Requests:
        """As the server has recorded them."""
        found: dict[Right, set[int]] = {}
        for entry in server.audited():
            if entry["user"]["username"] == self.user and (what := entry.get("objectRef")):
                resource = "/".join(filter(None, (what["resource"], what.get("subresource"))))
                namespace, group, name = (what.get(key, "") for key in ("namespace", "apiGroup", "name"))
                found.setdefault((namespace, group, resource, entry["verb"], name), set()).add(
                    entry["responseStatus"]["code"]
                )
        return Requests(frozenset(found), frozenset(each for each, codes in found.items() if codes & {401, 403}))


def rights_in(items: Iterable[Json], account: str) -> frozenset[Right]:
    """Those of the roles that the chart renders for an account of the table."""
    return frozenset(
        (role["metadata"].get("namespace", ""), *each)
        for role in _of_account(items, account)
        for rule in role.get("rules", ())
        for each in itertools.product(
            rule["apiGroups"], rule["resources"], rule["verbs"], rule.get("resourceNames", [""])
        )
    )


def install(server: Real, items: Iterable[Json], account: str, name: str, folder: Path) -> ChartAccount:
    """Creates what the chart renders of an account and its roles, under another name. Writes files to a folder."""
    items = list(items)
    for item in _of_account(items, account):
        about = item["metadata"]
        about["name"] = about["name"].replace(RELEASES[account], name)
        for each in (*item.get("subjects", ()), *([item["roleRef"]] if "roleRef" in item else ())):
            each["name"] = each["name"].replace(RELEASES[account], name)
        space = about.get("namespace", "")
        if item["kind"] == "ServiceAccount":
            server.api("POST", f"/api/v1/namespaces/{space}/serviceaccounts", item)
            continue
        inside = f"namespaces/{space}/" if space else ""
        server.api("POST", f"{_RBAC}/{inside}{item['kind'].lower()}s?fieldValidation=Strict", item)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}/token"
    token: str = server.api("POST", path, request)["status"]["token"]
    return ChartAccount(
        f"system:serviceaccount:{NAMESPACE}:{name}",
        server.kubeconfig_with(token, folder / "kubeconfig"),
        tuple(_flags(items, account, folder)),
    )


def _of_account(items: Iterable[Json], account: str) -> Iterator[Json]:
    kinds = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    for item in items:
        release = RELEASES[account]
        if item["kind"] in kinds and item["metadata"]["name"] in (release, f"{release}-hooks"):
            yield item


def _flags(items: Iterable[Json], account: str, folder: Path) -> Iterator[str]:
    """Those of the container, with files of the ConfigMap in a folder, and ports of this machine."""
    (deployment,) = (
        each
        for each in items
        if each["kind"] == "Deployment"
        and each["metadata"]["labels"]["app.kubernetes.io/component"] == _COMPONENTS[account]
    )
    pod = deployment["spec"]["template"]["spec"]
    names = [each["configMap"]["name"] for each in pod["volumes"] if "configMap" in each]
    for each in items:
        if each["kind"] == "ConfigMap" and each["metadata"]["name"] in names:
            for file, text in each["data"].items():
                (folder / file).write_text(text.replace("/etc/poseidon", str(folder)))
    (container,) = pod["containers"]
    given = [each.replace("/etc/poseidon", str(folder)) for each in container["args"] if each.startswith("--")]
    own = ("--health-address", "--health-port", "--bind-address", "--secure-port")
    yield from (each for each in given if each.partition("=")[0] not in own)
    yield from ("--health-address=127.0.0.1", "--bind-address=127.0.0.1", "--secure-port=0")
    config = folder / "config.yaml"
    if config.exists() and yaml.safe_load(config.read_text())["leaderElection"]["leaderElect"]:
        yield "--leader-elect"
