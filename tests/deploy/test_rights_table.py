"""The table of rights: the chart grants what it says for any settings, the code asks for nothing else.

tests/e2e/test_rights.py has the proof on an API server.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import poseidon_py
from deploy import rights
from deploy.rights import LEASE_NAME, Feature, Grant, features
from firmament_py.policy import registry
from poseidon_py.config.document import shown
from poseidon_py.config.fields import FIELDS
from poseidon_py.config.layout import PLACES
from poseidon_py.config.settings import Settings
from poseidon_py.jobs.names import LEASE
from poseidon_py.kube.informers.resource import Resource
from poseidon_py.report import past_use, queue_ownership
from poseidon_py.state.gangs.owner_kinds import SUSPENDABLE
from poseidon_py.state.queues.others import KUEUE_LEASE
from tests.deploy.conftest import Json, Render, of_kind
from tests.paths import ROOT

Asked = tuple[str, str]
FEATURES = features()


def of(account: str) -> list[Feature]:
    return [feature for feature in FEATURES if feature.account == account]


def defaults() -> Json:
    """Path -> default, of all settings."""
    found: Json = {"policy.name": "load-spreading"}
    for name, path in PLACES.items():
        value = shown(FIELDS[name], FIELDS[name].default)
        found[".".join(path)] = "" if value is None else value
    return found | {"usage.basis": "requests"}


def test_the_settings_are_those_of_the_scheduler():
    known = defaults()
    assert {path: known[path] for path in rights.settings()} == rights.settings()
    assert rights.settings().keys() == {key for each in FEATURES for way in each.when for key in way}


def test_conditions_name_values_that_exist():
    names = {".".join(path): name for name, path in PLACES.items()}
    for feature in FEATURES:
        for way in feature.when:
            for path, values in way.items():
                words = FIELDS[names[path]].words if path in names else [each.name for each in registry.available()]
                assert all(value in (*words, rights.ANY, True) for value in values), (feature.name, path)


def test_usage_is_read_for_each_policy_that_wants_it():
    (feature,) = (each for each in FEATURES if each.name == "measured usage")
    (named,) = (way["policy.name"] for way in feature.when if "policy.name" in way)
    policies = {each.name: registry.load(each.name, {}) for each in registry.available()}
    assert [name for name, policy in policies.items() if getattr(policy, "wants_usage", False)] == named


def test_nothing_is_granted_twice():
    for account in ("scheduler", "jobs"):
        given = [(each.namespace, grant) for each in of(account) for grant in each.grants()]
        twice = {grant for grant in given if given.count(grant) > 1}
        assert twice <= {("lease", Grant("coordination.k8s.io", "leases", "create"))}


def test_names_are_those_of_the_code():
    names = {
        (each.account, grant.resource, name) for each in FEATURES for grant in each.grants() for name in grant.names
    }
    assert names == {
        ("scheduler", "leases", LEASE_NAME),
        *(("scheduler", "leases", lease) for lease in queue_ownership.LEASES),
        ("scheduler", "leases", KUEUE_LEASE),
        ("scheduler", "configmaps", past_use.NAME),
        ("scheduler", "configmaps", "yunikorn-configs"),
        ("scheduler", "configmaps", "kueue-manager-config"),
        ("jobs", "leases", LEASE_NAME),
    }


def test_what_can_be_suspended_may_be_suspended():
    (feature,) = (each for each in FEATURES if each.name == "suspension")
    assert {(grant.group, grant.resource) for grant in feature.grants()} == {
        (each.group, each.plural) for each in SUSPENDABLE
    }


# -- what the chart grants -------------------------------------------------------------------------------------------


ROLES = "--show-only=templates/rbac.yaml"


def granted(items: list[Json], name: str) -> dict[tuple[str, str], set[Grant]]:
    """(kind, namespace) of roles of that name -> rights."""
    found: dict[tuple[str, str], set[Grant]] = {}
    for role in (*of_kind(items, "ClusterRole"), *of_kind(items, "Role")):
        if role["metadata"]["name"] in (name, f"{name}-hooks"):
            grants = {
                Grant(*each, tuple(rule.get("resourceNames", ())))
                for rule in role["rules"]
                for each in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])
            }
            found[role["kind"], role["metadata"].get("namespace", "")] = grants
    return found


def expected(account: str, settings: Json, lease: str) -> dict[tuple[str, str], set[Grant]]:
    """By the table, read by other code than the chart's."""
    places = {"": ("ClusterRole", ""), "lease": ("Role", "kube-system"), "hooks": ("Role", "poseidon-hooks")}
    found: dict[tuple[str, str], set[Grant]] = {}
    for feature in of(account):
        given = {path: value for path, value in settings.items() if value is not None}
        if feature.holds(rights.settings() | given):
            for grant in feature.grants():
                names = tuple(lease if name == LEASE_NAME else name for name in grant.names)
                found.setdefault(places[feature.namespace], set()).add(grant._replace(names=names))
    return found


LEAST = {
    "preemption.enabled": False, "queues.suspendWorkloads": False, "moves.when": "never", "gangs.unwind": "keep",
    "queues.kind": "off", "placement.defaultSpreading": "none", "devices.claims": "off",
}  # fmt: skip
KINDS = [kind for kind in FIELDS["queues"].words if kind != "auto"]


def configuration(settings: Json) -> Json:
    """As values of the chart."""
    return {f"config.{path}": value for path, value in settings.items()}


def case(settings: Json, name: str) -> Any:
    return pytest.param(configuration(settings), settings, "poseidon", id=name)


@pytest.mark.parametrize(
    ("values", "settings", "lease"),
    [
        case({}, "defaults"),
        *(case({"queues.kind": kind}, f"queues {kind}") for kind in KINDS),
        case(LEAST, "little"),
        case({"usage.basis": "used"}, "usage"),
        case({"usage.interval": "30s"}, "polling"),
        case({"usage.interval": "off"}, "no polling"),
        case({"usage.interval": None}, "nothing"),
        pytest.param({"policy.name": "whare-map"}, {"policy.name": "whare-map"}, "poseidon", id="a policy"),
        pytest.param(
            {"leaderElection.enabled": False}, {"leaderElection.leaderElect": False}, "poseidon", id="no election"
        ),
        pytest.param({"schedulerName": "default-scheduler"}, {}, "kube-scheduler", id="default scheduler"),
        pytest.param({"hooks.enabled": True}, {"jobs.hooksFile": "x"}, "poseidon", id="hooks"),
    ],
)
def test_the_chart_grants_what_is_switched_on(render: Render, values: Json, settings: Json, lease: str):
    assert granted(render(values, ROLES), "poseidon") == expected("scheduler", settings, lease)


@pytest.mark.parametrize("hooks", [False, True])
def test_the_controller_of_jobs_has_an_account_of_its_own(render: Render, hooks: bool):
    items = render({"jobsController.enabled": True, "jobsController.hooks.enabled": hooks}, ROLES)
    assert granted(items, "poseidon") == expected("scheduler", {}, "poseidon")
    assert granted(items, "poseidon-jobs") == expected("jobs", {"jobs.hooksFile": "x" if hooks else ""}, LEASE)


def test_further_rules_and_other_namespaces(render: Render):
    rule = {"apiGroups": ["example.com"], "resources": ["trains"], "verbs": ["get"]}
    values = {"rbac.extraRules": [rule], "leaderElection.leaseNamespace": "x", "leaderElection.leaseName": "y"}
    found = granted(render(values, ROLES), "poseidon")
    assert Grant("example.com", "trains", "get") in found["ClusterRole", ""]
    assert Grant("coordination.k8s.io", "leases", "update", ("y",)) in found["Role", "x"]
    assert not of_kind(render({"rbac.create": False}), "ClusterRole")


# -- what the code asks for ------------------------------------------------------------------------------------------

_PATH = re.compile(r"^/(?:api/v1|apis/(?P<group>[^/{]+)/[^/]+)/(?:namespaces/\{\}/)*(?:\{\})?(?P<plural>[a-z]+)(?:/|$)")


def modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(poseidon_py.__path__, "poseidon_py."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def resources_in(value: object) -> Iterator[Resource]:
    if isinstance(value, Resource):
        yield value
    elif isinstance(value, (tuple, list, set, frozenset)):
        for each in value:
            yield from resources_in(each)
    elif isinstance(value, dict):
        yield from resources_in([*value, *value.values()])
    elif isinstance(resource := getattr(value, "resource", None), Resource):
        yield resource


def paths_in(module: Any) -> Iterator[str]:
    """The texts in a module: constants are inserted, and {} for other values."""
    for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(inserted(part, module) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def inserted(part: ast.expr, module: Any) -> str:
    if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
        value = getattr(module, part.value.id, "{}")
        return value if isinstance(value, str) else "{}"
    return str(part.value) if isinstance(part, ast.Constant) else "{}"


@cache
def asked() -> dict[Asked, set[str]]:
    """(group, resource) -> modules that name it, in a path or as a Resource."""
    found: dict[Asked, set[str]] = {}
    for module in modules():
        for value in vars(module).values():
            for resource in resources_in(value):
                if resource.plural:
                    found.setdefault((resource.group, resource.plural), set()).add(module.__name__)
        for text in paths_in(module):
            if not text.endswith("/") and (match := _PATH.match(text)):
                found.setdefault((match["group"] or "", match["plural"]), set()).add(module.__name__)
    return found


OF_PROMETHEUS = {("", "query")}
"""/api/v1/query is Prometheus' own path."""


def test_the_code_asks_for_nothing_that_no_rule_allows():
    allowed = {
        account: {(grant.group, grant.resource.partition("/")[0]) for each in of(account) for grant in each.grants()}
        for account in ("scheduler", "jobs")
    }
    found = asked()
    assert len(found) > 50
    for (group, plural), names in found.items():
        if (group, plural) in OF_PROMETHEUS:
            continue
        for name in names:
            account = "jobs" if name.startswith("poseidon_py.jobs.") else "scheduler"
            known = any(each == group and resource.endswith(plural) for each, resource in allowed[account])
            assert known, f"{name} asks for {plural} of {group or 'core'}"


ONLY_FROM_OWNERS = {
    ("batch", "cronjobs"), ("ray.io", "rayservices"), ("sparkoperator.k8s.io", "scheduledsparkapplications"),
    ("disaggregatedset.x-k8s.io", "disaggregatedsets"),
    ("metrics.k8s.io", "nodes"), ("metrics.k8s.io", "pods"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
}  # fmt: skip
"""Whose names are found in objects, or put together."""


def test_no_rule_is_for_something_that_the_code_does_not_name():
    named = asked()
    for feature in FEATURES:
        for grant in feature.grants():
            resource = grant.group, grant.resource.partition("/")[0]
            assert resource in named or resource in ONLY_FROM_OWNERS, (feature.name, *resource)


@pytest.mark.parametrize("page", ["bridge.md", "jobs.md"])
def test_the_documentation_refers_to_the_table(page):
    assert "rbac.md" in (ROOT / "docs" / page).read_text()


def test_the_lease_of_the_settings_is_the_default_one():
    assert (Settings().lease_name, Settings().lease_namespace) == ("poseidon", "kube-system")
