"""docs/threat-model.md has what listens, and nothing else."""

import re
from typing import Any

import yaml

from poseidon_py.cli.jobs import HEALTH_PORT
from poseidon_py.config.settings import Settings
from tests.paths import DOCS, ROOT

LISTENERS = re.findall(
    r"^\| `([^`]+)`", (DOCS / "threat-model.md").read_text().split("## What listens")[1].split("##")[0], re.M
)


def ports_of_the_chart() -> set[str]:
    """Those of all containers and services that deploy/kustomize has, which is the rendered chart."""
    found: set[str] = set()
    for file in sorted((ROOT / "deploy" / "kustomize").rglob("*.yaml")):
        for item in yaml.safe_load_all(file.read_text()):
            for each in (item or {}).get("items", [item]):
                found |= _ports(each)
    return found


def _ports(item: Any) -> set[str]:
    if isinstance(item, list):
        return set().union(*map(_ports, item)) if item else set()
    if not isinstance(item, dict):
        return set()
    found = {str(item[key]) for key in ("containerPort", "hostPort", "nodePort") if key in item}
    return found.union(*map(_ports, item.values()))


def test_every_port_of_the_chart_is_named():
    named = {each for each in LISTENERS if each.isdigit()}
    assert ports_of_the_chart() == named == {"10271", "10272", "10273", "10274"}


def test_the_defaults_are_named_and_on_loopback():
    default = Settings()
    assert f"{default.health_address}:{default.health_port}" == "127.0.0.1:10271"
    assert "127.0.0.1:10271" in LISTENERS
    assert default.secure_port == -1
    assert default.stats_address == default.firmament_address == ""
    assert HEALTH_PORT == 10272


def test_readers_find_it():
    for page in ("README.md", "SECURITY.md"):
        assert "(docs/threat-model.md)" in (ROOT / page).read_text()
