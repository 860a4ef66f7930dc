"""The table of Kubernetes versions in docs/install.md, against what these serve and what the scheduler asks for."""

from __future__ import annotations

import re

import pytest
import yaml

from deploy.generate import CHART
from poseidon_py.state.gangs.by_pod_group import NATIVE
from tests.deploy.conftest import Json
from tests.paths import ROOT

SERVED: Json = yaml.safe_load((ROOT / "tests" / "deploy" / "kubernetes_versions.yaml").read_text())
ALWAYS = {(api.rpartition("/")[0], resource) for api, resources in SERVED["always"].items() for resource in resources}
GROUPS = {group for group, _ in ALWAYS} | {"metrics.k8s.io", "resource.k8s.io"}
NATIVE_GROUPS = {"events.k8s.io", "node.k8s.io", "autoscaling"}
"""Further ones of Kubernetes, which nothing asks for yet."""
DEVICES = ("deviceclasses", "resourceslices", "resourceclaims", "resourceclaimtemplates", "devicetaintrules")
OPTIONAL = {("scheduling.k8s.io", "podgroups"), ("metrics.k8s.io", "nodes"), ("metrics.k8s.io", "pods")} | {
    ("resource.k8s.io", each) for each in DEVICES
}
"""Of groups that are not served everywhere: the scheduler runs without them."""


def rows() -> dict[str, list[str]]:
    """Version -> the other cells of its row."""
    section = (ROOT / "docs" / "install.md").read_text().split("\n## Versions of Kubernetes\n")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("| 1.")
    ]
    return {first: others for first, *others in cells}


def test_the_table_has_every_version():
    assert list(rows()) == list(SERVED["versions"])


def test_what_the_scheduler_asks_kubernetes_for_is_in_every_version_or_optional():
    """Kinds of other projects are discovered while the scheduler runs."""
    asked: set[tuple[str, str]] = set()
    for part in yaml.safe_load((CHART / "rights.yaml").read_text()).values():
        for feature in part if isinstance(part, list) else part.values() if isinstance(part, dict) else ():
            for rule in feature.get("rules", ()) if isinstance(feature, dict) else ():
                for group in rule["apiGroups"]:
                    asked |= {(group, resource.partition("/")[0]) for resource in rule["resources"]}
    of_kubernetes = {each for each in asked if each[0] in GROUPS}
    assert len(of_kubernetes) > 20
    assert of_kubernetes - ALWAYS - OPTIONAL == set()
    assert {group for group, _ in asked - of_kubernetes if "." not in group or group in NATIVE_GROUPS} == set()


@pytest.mark.parametrize("version", SERVED["versions"])
def test_pod_groups_are_read_in_the_version_that_the_table_names(version: str):
    served = SERVED["versions"][version]["podgroups"]
    preferred = next((each for each in NATIVE.versions if each in served), "")
    (cell,) = (each for each in rows()[version] if "PodGroups" in each)
    named = re.findall(r"PodGroups of (\w+)", cell)
    assert named == ([preferred] if preferred else []), cell
    assert bool(preferred) == ("no PodGroups" not in cell)
