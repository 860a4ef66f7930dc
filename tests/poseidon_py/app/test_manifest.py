"""The manifest grants exactly the rights that the documentation lists.

tests/e2e/test_rights.py checks on an API server that the scheduler needs exactly these.
"""

import itertools
import re

import pytest
import yaml

from poseidon_py.config.settings import Settings
from poseidon_py.report import past_use, queue_ownership
from tests.paths import ROOT

Grant = tuple[str, str, str]


@pytest.fixture(scope="module")
def manifest():
    return list(yaml.safe_load_all((ROOT / "deploy" / "poseidon.yaml").read_text()))


def rules(manifest, kind):
    return [rule for each in manifest if each["kind"] == kind for rule in each["rules"]]


def grants(rule: dict[str, list[str]]) -> list[Grant]:
    return list(itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"]))


def documented() -> set[Grant]:
    """The table of docs/bridge.md; equally many lists of resources and groups are paired."""
    section = (ROOT / "docs" / "bridge.md").read_text().split("## Permissions")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    found: set[Grant] = set()
    for groups, resources, verbs in rows[2:]:
        message = [
            verb for verb in ("get", "list", "watch", "create", "update", "patch", "delete") if verb in words(verbs)
        ]
        pairs = zip(groups.split(";"), resources.split(";"), strict=True)
        for some, values in pairs:
            names = ["" if name == "core" else name for name in words(some)]
            found |= set(itertools.product(names, words(values), message))
    return found


def words(text: str) -> list[str]:
    return text.split(" (")[0].replace(",", " ").split()


def test_the_manifest_allows_what_is_documented(manifest):
    given = [grant for kind in ("ClusterRole", "Role") for rule in rules(manifest, kind) for grant in grants(rule)]
    assert set(given) == documented()
    assert len(given) == len(set(given)), "something is allowed twice"


def test_what_is_written_in_the_namespace_is_the_lease_and_past_use(manifest):
    (role,) = [each for each in manifest if each["kind"] == "Role"]
    assert role["metadata"]["namespace"] == Settings().lease_namespace
    granted = {
        (resource, verb): rule.get("resourceNames")
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    lease = [Settings().lease_name, queue_ownership.LEASE]
    assert granted == {
        ("leases", "create"): None,
        ("leases", "get"): lease,
        ("leases", "update"): lease,
        ("configmaps", "create"): None,
        ("configmaps", "get"): [past_use.NAME],
        ("configmaps", "patch"): [past_use.NAME],
    }


def test_the_roles_are_bound_to_the_account_that_the_pods_run_as(manifest):
    (deployment,) = [each for each in manifest if each["kind"] == "Deployment"]
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    subject = {"kind": "ServiceAccount", "name": account, "namespace": deployment["metadata"]["namespace"]}
    roles = [each for each in manifest if each["kind"] in ("Role", "ClusterRole")]
    bindings = [each for each in manifest if each["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    of = {(each["roleRef"]["kind"], each["roleRef"]["name"]): each for each in bindings}
    assert len(of) == len(bindings) == len(roles)
    for role in roles:
        kind, binding = role["kind"], of[role["kind"], role["metadata"]["name"]]
        assert binding["metadata"].get("namespace") == role["metadata"].get("namespace")
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (kind, role["metadata"]["name"])
        assert binding["subjects"] == [subject]


def test_replicas_run_on_different_nodes_and_are_disrupted_one_at_a_time(manifest):
    (deployment,) = [each for each in manifest if each["kind"] == "Deployment"]
    (budget,) = [each for each in manifest if each["kind"] == "PodDisruptionBudget"]
    pod = deployment["spec"]["template"]
    ((term,),) = (each.values() for each in pod["spec"]["affinity"].values())
    selectors = [deployment["spec"], term[0]["podAffinityTerm"], budget["spec"]]
    selected = [each.get("selector") or each["labelSelector"] for each in selectors]
    assert all(each == {"matchLabels": pod["metadata"]["labels"]} for each in selected)
    assert budget["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    assert budget["spec"]["maxUnavailable"] < deployment["spec"]["replicas"]


def test_hooks_need_the_flag_and_two_objects_alone(manifest):
    """The file and the keys are mounted where deploy/hooks.yaml and the flag in the comment say."""
    text, hooks = ((ROOT / "deploy" / name).read_text() for name in ("poseidon.yaml", "hooks.yaml"))
    flag = re.search(r"# - --hooks=(\S+)", text)
    assert flag is not None
    (deployment,) = (each for each in manifest if each["kind"] == "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    volumes = {each["name"]: each for each in spec["volumes"]}
    mounts = {each["name"]: each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
    folder, _, file = flag.group(1).rpartition("/")
    assert mounts["hooks"] == folder
    configured, keys = volumes["hooks"]["configMap"], volumes["hook-keys"]["secret"]
    assert configured["optional"]
    assert keys["optional"]
    assert f"create configmap {configured['name']} --from-file={file}" in hooks
    assert f"create secret generic {keys['secretName']} --from-file=billing.key" in hooks
    assert f"{mounts['hook-keys']}/billing.key" in hooks
    (binding,) = (each for each in yaml.safe_load_all(hooks) if each["kind"] == "RoleBinding")
    accounts = [(each["name"], each["namespace"]) for each in binding["subjects"]]
    assert (spec["serviceAccountName"], deployment["metadata"]["namespace"]) in accounts
