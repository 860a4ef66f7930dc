"""Alerts and dashboards name metrics and labels that the code exports; each alert has a paragraph."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache

import pytest
import yaml

from deploy.generate import CHART
from poseidon_py.kube.list_watch import LONGEST
from poseidon_py.metrics.declarations import Stability
from poseidon_py.metrics.table import TABLE
from tests.deploy.conftest import Json, Render, of_kind, the
from tests.paths import ROOT

TARGET = {"namespace", "pod", "service", "le"}
"""Labels of a target, as the Prometheus operator sets them, and that of buckets."""
_METRIC = re.compile(r"\b((?:poseidon|scheduler|kueue|leader_election|process|python)_[a-z0-9_]+)(?:\{([^}]*)\})?")


@cache
def exported() -> dict[str, set[str]]:
    """Metric -> its labels, of all that stay with the next version."""
    return {
        sample: set(declared.label_names)
        for declared in TABLE.values()
        if declared.stability is not Stability.DEPRECATED
        for sample in declared.sample_names
    }


def check(expression: str) -> None:
    known: set[str] = set(TARGET)
    named = _METRIC.findall(expression)
    assert named, expression
    for metric, selector in named:
        assert metric in exported(), f"{metric} in {expression}"
        labels = exported()[metric]
        known |= labels
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector):
            assert label in labels | TARGET, f"{label} of {metric} in {expression}"
    for group in re.findall(r"\bby \(([^)]*)\)", expression):
        assert set(group.replace(" ", "").split(",")) <= known, expression
    for opened, closed in ("()", "{}", "[]"):
        assert expression.count(opened) == expression.count(closed), expression


@pytest.mark.parametrize(
    "expression",
    [
        "rate(poseidon_round_total[5m])",
        'poseidon_rounds_total{results="failed"}',
        "sum by (queue) (poseidon_rounds_total)",
        "max(scheduler_cache_size",
        "max(poseidon_nodes)",
        "up == 0",
    ],
)
def test_a_wrong_expression_is_found(expression):
    with pytest.raises(AssertionError):
        check(expression)


# -- alerts ----------------------------------------------------------------------------------------------------------


def alerts() -> list[Json]:
    groups = yaml.safe_load((CHART / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_an_alert(rule):
    check(rule["expr"])
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description"}
    by = re.findall(r"\bby \(([^)]*)\)", rule["expr"])
    metrics = [exported()[metric] for metric, _ in _METRIC.findall(rule["expr"])]
    left = set(by[-1].replace(" ", "").split(",")) if by else {*TARGET, *(label for each in metrics for label in each)}
    assert set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"]))) <= left


def test_each_alert_has_a_paragraph_and_no_other_thing_has():
    text = (ROOT / "docs" / "operations.md").read_text()
    section = text.split("## Alerts")[1].split("\n## ")[0]
    titles = re.findall(r"^### (\w+)$", section, re.M)
    assert titles == [rule["alert"] for rule in alerts()]
    paragraphs = re.split(r"^### \w+$", section, flags=re.M)[1:]
    assert all(len(paragraph.split()) > 20 for paragraph in paragraphs)


def test_the_rule_names_the_paragraphs(render: Render):
    values: Json = {"prometheusRule.enabled": True, "prometheusRule.disabled": ["PoseidonUsageOld"]}
    values |= {"prometheusRule.labels": {"release": "prometheus"}, "prometheusRule.runbookUrl": "https://a/b.md"}
    found = the(render(values), "PrometheusRule")
    assert found["metadata"]["labels"]["release"] == "prometheus"
    rules = [rule for group in found["spec"]["groups"] for rule in group["rules"]]
    assert [rule["alert"] for rule in rules] == [
        each["alert"] for each in alerts() if each["alert"] != "PoseidonUsageOld"
    ]
    assert all(rule["annotations"].pop("runbook_url") == f"https://a/b.md#{rule['alert'].lower()}" for rule in rules)
    assert rules == [rule for rule in alerts() if rule["alert"] != "PoseidonUsageOld"]


def test_a_watch_that_always_fails_is_an_alert():
    """However slowly it is retried."""
    (rule,) = (each for each in alerts() if each["alert"] == "PoseidonWatchesFail")
    slowest = 1 / max(LONGEST.values())
    assert slowest / 2 < float(rule["expr"].rpartition("> ")[2]) < slowest


# -- dashboards ------------------------------------------------------------------------------------------------------

DASHBOARDS = sorted((CHART / "dashboards").glob("*.json"))


def expressions(board: Json) -> Iterator[str]:
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"].replace("$__rate_interval", "5m")


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard(path):
    board = json.loads(path.read_text())
    asked = list(expressions(board))
    assert len(asked) > 10
    for expression in asked:
        check(expression)
    variables = {each["name"]: each for each in board["templating"]["list"]}
    text = json.dumps([each.get("targets") for each in board["panels"]])
    assert set(re.findall(r"\$(?!__)\{?(\w+)", text)) <= set(variables)
    for each in variables.values():
        if each["type"] == "query":
            found: list[tuple[str, str]] = re.findall(r"^label_values\((\w+), (\w+)\)$", each["query"]["query"])
            assert [label in exported()[metric] | TARGET for metric, label in found] == [True]
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))


def test_dashboards_are_config_maps_with_grafanas_label(render: Render):
    found = [
        item
        for item in of_kind(render({"grafanaDashboards.enabled": True}), "ConfigMap")
        if "dashboard" in item["metadata"]["name"]
    ]
    assert [each["metadata"]["labels"]["grafana_dashboard"] for each in found] == ["1"] * len(DASHBOARDS)
    contents = {name: text for each in found for name, text in each["data"].items()}
    assert contents == {f"poseidon-{path.name}": path.read_text() for path in DASHBOARDS}
    uids = {json.loads(text)["uid"] for text in contents.values()}
    assert len(uids) == len(DASHBOARDS)


def test_the_service_monitor_selects_the_service(render: Render):
    items = render({"serviceMonitor.enabled": True, "jobsController.enabled": True})
    monitor = the(items, "ServiceMonitor")["spec"]
    assert monitor["namespaceSelector"]["matchNames"] == ["kube-system"]
    selected = monitor["selector"]["matchLabels"].items()
    services = [item for item in of_kind(items, "Service") if selected <= item["metadata"]["labels"].items()]
    assert {item["metadata"]["name"] for item in services} == {"poseidon", "poseidon-jobs"}
    (endpoint,) = monitor["endpoints"]
    assert (endpoint["port"], endpoint["scheme"]) == ("metrics", "https")
    assert all(endpoint["port"] in [port["name"] for port in item["spec"]["ports"]] for item in services)
