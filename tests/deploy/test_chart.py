"""The chart: what it renders is valid, fits together, and follows the values; misspelt values are refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from deploy.generate import CHART
from deploy.kustomize_files import key_of, template
from deploy.values_schema import ELSEWHERE, config_schema
from poseidon_py import __version__
from poseidon_py.cli.jobs import HEALTH_PORT, jobs
from poseidon_py.cli.run import run
from poseidon_py.config import loading
from poseidon_py.config.configuration_file import read_file
from poseidon_py.config.fields import FIELDS
from poseidon_py.config.layout import PLACES
from poseidon_py.config.settings import Settings
from poseidon_py.hooks.config.loading import load_hooks
from poseidon_py.jobs.names import LEASE
from tests.deploy.conftest import Json, Render, of_kind, the
from tests.deploy.strict import problems_of
from tests.paths import ROOT

EVERYTHING: dict[str, object] = {
    "jobsController.enabled": True,
    "jobsController.namespace": "team-a",
    "jobsController.hooks.enabled": True,
    "jobsController.hooks.keysSecret": "keys",
    "serviceMonitor.enabled": True,
    "prometheusRule.enabled": True,
    "grafanaDashboards.enabled": True,
    "hooks.enabled": True,
    "hooks.keysSecret": "keys",
    "hooks.config": {"hooks": [{"name": "billing", "url": "https://billing.example.com"}]},
    "schedulerName": ["poseidon", "default-scheduler"],
    "image": {"registry": "registry.example.com", "digest": "sha256:" + "0" * 64, "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "pull"}],
    "commonLabels": {"team": "infra"},
    "podLabels": {"a": "b"},
    "podAnnotations": {"a": "b"},
    "deploymentAnnotations": {"a": "b"},
    "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ],
    "updateStrategy": {"type": "Recreate"},
    "hostNetwork": True,
    "startupProbe": {"httpGet": {"path": "/livez", "port": "health"}},
    "extraArgs": ["--log-format=json"],
    "extraEnv": [{"name": "A", "value": "1"}],
    "extraVolumes": [{"name": "queues", "configMap": {"name": "queues"}}],
    "extraVolumeMounts": [{"name": "queues", "mountPath": "/queues"}],
    "serviceAccount": {"create": True, "name": "custom", "annotations": {"a": "b"}},
    "service.annotations": {"a": "b"},
    "metrics.tlsSecret": "tls",
    "metrics.readers": [{"name": "prometheus-k8s", "namespace": "monitoring"}],
    "access.kubectl": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "ml-platform"}],
    "access.viewers": [{"kind": "ServiceAccount", "name": "dashboard", "namespace": "monitoring"}],
    "dashboard": {"enabled": True, "users": [{"kind": "ServiceAccount", "name": "people", "namespace": "monitoring"}]},
    "networkPolicy.egress": [{}],
    "policy": {"name": "load-spreading", "options": {"by": "requested"}},
    "config": {
        "queues": {"kind": "kueue"},
        "gangs": {"from": ["jobs"]},
        "leaderElection": {"leaseDuration": "20s"},
        "jobs": {"ended": 5},
    },
}
"""Every value that adds something."""
OF_OTHERS = ("-metrics-reader", "-viewer", "-kubectl", "-dashboard")
"""Ends of the names of roles that are not the scheduler's own."""
SETS: dict[str, dict[str, object]] = {
    "defaults": {},
    "everything": EVERYTHING,
    "one replica": {"replicaCount": 1, "leaderElection.enabled": False},
    "little": {
        "serviceAccount.create": False, "rbac.create": False, "crds.install": False, "networkPolicy.enabled": False,
        "service.enabled": False, "podDisruptionBudget.enabled": False, "priorityClassName": "", "tests.enabled": False,
    },
}  # fmt: skip


def test_lint_finds_nothing(both: Path):
    for values in SETS.values():
        sets = [f"--set-json={key}={json.dumps(value)}" for key, value in values.items()]
        command = [str(both / "helm"), "lint", "--strict", str(CHART), *sets]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "WARNING" not in ran.stdout


@pytest.mark.parametrize("name", SETS)
def test_what_is_rendered_is_valid(both: Path, name: str):
    items = template(both / "helm", CHART, SETS[name])
    keys = [key_of(item) for item in items]
    assert len(keys) == len(set(keys))
    assert [problem for item in items for problem in problems_of(item)] == []


def test_what_is_not_valid_is_found():
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"image": 1, "prots": []}]}}
    assert problems_of(pod) == [
        "Pod.spec.containers[0].image: 1 is not str",
        "Pod.spec.containers[0].prots: unknown field",
    ]


@pytest.mark.parametrize("name", SETS)
def test_objects_fit_together(render: Render, name: str):
    """Selectors select, accounts exist and have the roles, mounts have volumes, and these their objects."""
    items = render(SETS[name])
    assert {item["metadata"].get("labels", {}).get("app.kubernetes.io/name") for item in items} == {"poseidon"}
    assert {item["metadata"]["labels"]["app.kubernetes.io/part-of"] for item in items} == {"poseidon"}
    config_maps = {item["metadata"]["name"] for item in of_kind(items, "ConfigMap")}
    accounts = {item["metadata"]["name"] for item in of_kind(items, "ServiceAccount")} or {"default"}
    for deployment in of_kind(items, "Deployment"):
        pod = deployment["spec"]["template"]
        labels = pod["metadata"]["labels"].items()
        assert deployment["spec"]["selector"]["matchLabels"].items() <= labels
        assert pod["spec"]["serviceAccountName"] in accounts
        (container,) = pod["spec"]["containers"]
        volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
        assert {each["name"] for each in container["volumeMounts"]} == set(volumes)
        for each in volumes.values():
            if each["name"] == "config":
                assert each["configMap"]["name"] in config_maps
        name = deployment["metadata"]["name"]
        for kind, where in (
            ("PodDisruptionBudget", "selector"),
            ("Service", "selector"),
            ("NetworkPolicy", "podSelector"),
        ):
            for item in of_kind(items, kind):
                selector = item["spec"][where]
                selected = selector.get("matchLabels", selector).items()
                assert (selected <= labels) == (kind == "NetworkPolicy" or item["metadata"]["name"] == name)
    roles = {
        (item["kind"], item["metadata"]["name"])
        for item in items
        if item["kind"] in ("Role", "ClusterRole") and not item["metadata"]["name"].endswith(OF_OTHERS)
    }
    bindings = [
        item
        for item in items
        if item["kind"].endswith("RoleBinding") and not item["metadata"]["name"].endswith(OF_OTHERS)
    ]
    assert {(item["roleRef"]["kind"], item["roleRef"]["name"]) for item in bindings} == roles
    assert {subject["name"] for item in bindings for subject in item["subjects"]} <= accounts


def container_of(items: list[Json], component: str = "scheduler") -> Json:
    (found,) = (
        item["spec"]["template"]["spec"]["containers"][0]
        for item in of_kind(items, "Deployment")
        if item["metadata"]["labels"]["app.kubernetes.io/component"] == component
    )
    return dict(found)


def configured(items: list[Json], tmp_path: Path) -> Settings:
    """What the container is configured to do: its arguments and the mounted file, read as the command reads them."""
    (config_map,) = (item for item in of_kind(items, "ConfigMap") if "config.yaml" in item["data"])
    file = tmp_path / "config.yaml"
    file.write_text(config_map["data"]["config.yaml"])
    command, flag, *further = container_of(items)["args"]
    assert (command, flag) == ("run", "--config=/etc/poseidon/config.yaml")
    flags = run.make_context("run", further, help_option_names=["-h", "--help"]).params
    flags.pop("config")
    return loading.settings(read_file(file), flags, file)


def test_the_scheduler_is_configured_by_the_values(render: Render, tmp_path: Path):
    found = configured(render(), tmp_path)
    differ = {name for name in FIELDS if getattr(found, name) != FIELDS[name].default}
    assert differ == {"policy", "health_address", "secure_port"}
    found = configured(
        render(EVERYTHING | {"leaderElection.enabled": False, "health.port": 1234, "metrics.tlsSecret": ""}), tmp_path
    )
    assert found.scheduler_name == ("poseidon", "default-scheduler")
    assert (found.leader_elect, found.lease_name, found.health_port) == (False, "kube-scheduler", 1234)
    assert (found.policy, found.queues, found.policy_option) == ("load-spreading", "kueue", ("by=requested",))
    assert (found.lease_duration, found.ended_jobs) == (20.0, 5)
    assert (found.gangs_from, found.log_format) == (("jobs",), "json")
    assert str(found.hooks) == "/etc/poseidon/hooks.yaml"


def test_hooks_are_read_from_the_values(render: Render, tmp_path: Path):
    items = render(EVERYTHING)
    (text,) = (
        item["data"]["hooks.yaml"] for item in of_kind(items, "ConfigMap") if item["metadata"]["name"] == "poseidon"
    )
    (tmp_path / "hooks.yaml").write_text(text)
    found = load_hooks(tmp_path / "hooks.yaml")
    assert (found.namespace, [hook.name for hook in found.hooks]) == ("poseidon-hooks", ["billing"])


def test_the_controller_of_jobs_is_started_with_flags_that_exist(render: Render):
    args = container_of(render(EVERYTHING), "jobs-controller")["args"]
    assert args[:2] == ["jobs", "run"]
    given = jobs.commands["run"].make_context("run", args[2:], help_option_names=["-h", "--help"]).params
    assert (given["leader_elect"], given["lease_name"], given["health_port"]) == (None, LEASE, HEALTH_PORT)
    assert (given["namespace"], str(given["hooks_file"])) == ("team-a", "/etc/poseidon/hooks.yaml")


def test_the_versions_agree():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__
    assert container_of(list(yaml.safe_load_all((ROOT / "deploy/kustomize/base/poseidon.yaml").read_text())))[
        "image"
    ] == (f"poseidon:{__version__}")


def test_definitions_stay_unless_that_is_not_wanted(render: Render):
    for values, policy in (({}, "keep"), ({"crds.keep": False}, None)):
        items = of_kind(render({"jobsController.enabled": True, **values}), "CustomResourceDefinition")
        assert {item["metadata"].get("annotations", {}).get("helm.sh/resource-policy") for item in items} == {policy}
        files = [path.read_text() for path in sorted((CHART / "definitions").glob("*.yaml"))]
        sources = [item for text in files for item in yaml.safe_load_all(text)]
        assert sorted((i["metadata"]["name"], i["spec"]) for i in items) == sorted(
            (i["metadata"]["name"], i["spec"]) for i in sources
        )


def test_the_restricted_profile(render: Render):
    for name in SETS:
        for deployment in of_kind(render(SETS[name]), "Deployment"):
            pod = deployment["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            inside = container["securityContext"]
            assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["seccompProfile"]["type"]) == (
                True,
                "RuntimeDefault",
            )
            assert inside == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_the_pods_start_anew_when_the_configuration_changes(render: Render):
    sums = [
        the(render(values), "Deployment")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        for values in ({}, {"config.queues.kind": "off"}, {"replicaCount": 3})
    ]
    assert sums[0] == sums[2] != sums[1]


def test_of_one_replica_no_budget_hinders_a_drain(render: Render):
    assert the(render(), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert not of_kind(render({"replicaCount": 1}), "PodDisruptionBudget")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"replicas": 2}, "additional properties 'replicas' not allowed"),
        ({"image.name": "x"}, "additional properties 'name' not allowed"),
        ({"config.leaderElection.resourceName": "x"}, "additional properties 'resourceName' not allowed"),
        ({"config.queus": {}}, "additional properties 'queus' not allowed"),
        ({"config.queues.kind": "slurm"}, "/config/queues/kind"),
        ({"config.queues.kind": False}, "/config/queues/kind"),
        ({"config.binding.concurrency": 0}, "/config/binding/concurrency"),
        ({"config.binding.timeout": 5}, "/config/binding/timeout"),
        ({"replicaCount": 0}, "/replicaCount"),
        ({"schedulerName": []}, "/schedulerName"),
        ({"serviceMonitor.enabled": True, "service.enabled": False}, "serviceMonitor.enabled needs service.enabled"),
    ],
)
def test_wrong_values_are_refused(refusal: Callable[[Json], str], values: Json, message: str):
    assert message in refusal(values)


def test_the_schema_has_every_value_and_every_setting():
    values, schema = (
        yaml.safe_load((CHART / "values.yaml").read_text()),
        yaml.safe_load((CHART / "values.schema.json").read_text()),
    )
    compare(values, schema, "values")
    settings = {f"{key}.{name}" for key, each in config_schema()["properties"].items() for name in each["properties"]}
    assert settings == {".".join(path[:2]) for path in PLACES.values()} - {
        *ELSEWHERE,
        *(path for path in (".".join(each[:2]) for each in PLACES.values()) if path.startswith("serving.")),
    }


def compare(values: Json, schema: Json, path: str) -> None:
    """Each value has a schema, each key of the schema a default, and no object takes unknown keys by accident."""
    if "properties" not in schema or path == "values.config":
        return
    assert schema["additionalProperties"] is False
    assert set(values) == set(schema["properties"]) - {"global"}, path
    for key, value in values.items():
        compare(value, schema["properties"][key], f"{path}.{key}")


def test_the_notes_say_what_follows(newest: Path):
    def notes(**values: str) -> str:
        sets = [f"--set={key}={value}" for key, value in values.items()]
        command = [str(newest / "helm"), "install", "poseidon", str(CHART), "--dry-run=client", *sets]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        return ran.stdout.partition("NOTES:")[2]

    assert "`schedulerName: poseidon`" in notes()
    assert "stands by as long as a" in notes(schedulerName="default-scheduler")
    assert "Stop kube-scheduler" in notes(schedulerName="default-scheduler", **{"leaderElection.leaseName": "x"})
    assert "WARNING: without leader election" in notes(**{"leaderElection.enabled": "false"})


def test_the_page_is_served_and_opened_by_its_users_where_it_is_wanted(render: Render):
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "g"}

    def role(items: list[Json]) -> list[list[Json]]:
        return [
            each["rules"] for each in of_kind(items, "ClusterRole") if each["metadata"]["name"] == "poseidon-dashboard"
        ]

    assert role(render({})) == []
    items = render({"dashboard": {"enabled": True, "users": [subject]}})
    assert role(items) == [[{"nonResourceURLs": ["/dashboard/*"], "verbs": ["get"]}]]
    bound = [
        each["subjects"]
        for each in of_kind(items, "ClusterRoleBinding")
        if each["roleRef"]["name"] == "poseidon-dashboard"
    ]
    assert bound == [[subject]]
    (config,) = (
        each["data"]["config.yaml"] for each in of_kind(items, "ConfigMap") if "config.yaml" in each.get("data", {})
    )
    assert yaml.safe_load(config)["serving"]["dashboard"] is True


def test_those_who_ask_get_a_role_each_and_no_more(render: Render):
    """Users of the plug-in: the lease by name, and port-forward, which RBAC cannot limit to a Deployment's pods; where
    the lease is elsewhere, in two namespaces. Viewers: paths alone."""
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "g"}
    access = {"kubectl": [subject], "viewers": [subject]}
    items = render({"access": access, "leaderElection": {"leaseNamespace": "l"}})
    forward = {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["get", "create"]}
    lease = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "resourceNames": ["poseidon"],
        "verbs": ["get"],
    }
    roles = {
        item["metadata"]["namespace"]: item["rules"]
        for item in of_kind(items, "Role")
        if item["metadata"]["name"] == "poseidon-kubectl"
    }
    assert roles == {"kube-system": [forward], "l": [lease]}
    (viewer,) = (each for each in of_kind(items, "ClusterRole") if each["metadata"]["name"] == "poseidon-viewer")
    assert {verb for rule in viewer["rules"] for verb in rule["verbs"] if rule["nonResourceURLs"] != ["/fits"]} == {
        "get"
    }
    assert all(set(rule) == {"nonResourceURLs", "verbs"} for rule in viewer["rules"])
    bound = [item for item in items if item["kind"].endswith("RoleBinding") and item["subjects"] == [subject]]
    assert sorted(item["roleRef"]["name"] for item in bound) == [
        "poseidon-kubectl",
        "poseidon-kubectl",
        "poseidon-viewer",
    ]
    unbound = render()
    assert not [
        item for item in unbound if item["kind"].endswith("RoleBinding") and item["metadata"]["name"] != "poseidon"
    ]


def test_a_pod_knows_its_name(render: Render):
    """With the network of its node its host name is another."""
    variables = container_of(render({"hostNetwork": True}))["env"]
    fields = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in variables}
    assert fields == {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}
