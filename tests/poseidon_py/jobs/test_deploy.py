"""deploy/jobs.yaml and deploy/jobs-crds.yaml agree with the code. tests/e2e/jobs/test_rights.py has the rights."""

import itertools
import re
from typing import Any

import pytest
import yaml

from poseidon_py.cli.jobs import HEALTH_PORT, jobs
from poseidon_py.config.settings import Settings
from poseidon_py.jobs.names import LEASE
from poseidon_py.jobs.rules.machines import JobPhase
from tests.paths import ROOT


@pytest.fixture(scope="module")
def manifest():
    return list(yaml.safe_load_all((ROOT / "deploy" / "jobs.yaml").read_text()))


def test_the_container_is_started_with_flags_that_exist(manifest):
    (deployment,) = [each for each in manifest if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    group, command, *flags = container["args"]
    assert (group, command) == ("jobs", "run")
    given = jobs.commands["run"].make_context("run", list(flags)).params
    assert (given["leader_elect"], given["health_port"]) == (True, HEALTH_PORT)
    assert container["ports"][0]["containerPort"] == HEALTH_PORT


def test_the_lease_is_the_one_of_the_election(manifest):
    (role,) = [each for each in manifest if each["kind"] == "Role"]
    assert role["metadata"]["namespace"] == Settings().lease_namespace
    assert [rule.get("resourceNames") for rule in role["rules"]] == [None, [LEASE]]


def test_the_manifest_allows_what_is_documented(manifest):
    rules = [rule for each in manifest if each["kind"] in ("ClusterRole", "Role") for rule in each["rules"]]
    given = [each for r in rules for each in itertools.product(r["apiGroups"], r["resources"], r["verbs"])]
    assert len(given) == len(set(given)), "something is allowed twice"
    section = (ROOT / "docs" / "jobs.md").read_text().split("## Permissions")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    documented: set[Any] = set()
    for group, resources, verbs in rows[2:]:
        api = "" if group == "core" else group
        documented |= set(itertools.product([api], resources.split(", "), verbs.split(" (")[0].split(", ")))
    assert set(given) == documented


def test_the_definitions_have_the_phases_and_the_kinds():
    items = list(yaml.safe_load_all((ROOT / "deploy" / "jobs-crds.yaml").read_text()))
    names = [f"{each['spec']['names']['plural']}.{each['spec']['group']}" for each in items]
    assert names == [each["metadata"]["name"] for each in items]
    assert names == ["jobs.batch.volcano.sh", "commands.bus.volcano.sh", "podgroups.scheduling.volcano.sh"]
    schema = items[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    phases = schema["status"]["properties"]["state"]["properties"]["phase"]["enum"]
    assert set(phases) == set(JobPhase) - {JobPhase.NEW}


def test_hooks_need_the_flag_and_two_objects_alone(manifest):
    """The file and the keys are mounted where deploy/hooks.yaml and the flag in the comment say."""
    text, hooks = ((ROOT / "deploy" / name).read_text() for name in ("jobs.yaml", "hooks.yaml"))
    flag = re.search(r"# - --hooks=(\S+)", text)
    assert flag is not None
    folder, _, file = flag.group(1).rpartition("/")
    (deployment,) = [each for each in manifest if each["kind"] == "Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    mounts = {each["name"]: each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
    volumes = {each["name"]: each for each in spec["volumes"]}
    assert mounts["hooks"] == folder
    configured, keys = volumes["hooks"]["configMap"], volumes["hook-keys"]["secret"]
    assert (configured["optional"], keys["optional"]) == (True, True)
    assert f"create configmap {configured['name']} --from-file={file}" in hooks
    assert f"create secret generic {keys['secretName']} --from-file=billing.key" in hooks
    assert f"{mounts['hook-keys']}/billing.key" in hooks
    binding = next(each for each in yaml.safe_load_all(hooks) if each["kind"] == "RoleBinding")
    account = {"kind": "ServiceAccount", "name": spec["serviceAccountName"], "namespace": "kube-system"}
    assert account in binding["subjects"]
    assert jobs.commands["run"].make_context("run", [f"--hooks={flag.group(1)}"]).params["hooks_file"] is not None
