"""The content of kubectl's columns."""

from __future__ import annotations

import time
from typing import Any

import pytest

from benchmarks.cluster.store.clock import rfc3339
from benchmarks.cluster.store.kinds import BUILT_IN
from benchmarks.cluster.views.columns import duration
from benchmarks.cluster.views.custom_columns import custom_columns, find
from benchmarks.cluster.views.pod_columns import job_state, pod_status, selector_text
from benchmarks.cluster.views.tables import columns_of


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (599, "9m59s"),
        (3600, "60m"),
        (10800, "3h"),
        (11000, "3h3m"),
        (30000, "8h"),
        (172800, "2d"),
        (180000, "2d2h"),
        (864000, "10d"),
        (86400 * 800, "2y70d"),
    ],
)
def test_durations(seconds, message):
    assert duration(seconds) == message


def pod(phase: str, *, reason: str = "", deleted: bool = False, node: str = "", **container):
    status: dict[str, Any] = {"phase": phase, **({"reason": reason} if reason else {})}
    if container:
        status["containerStatuses"] = [container]
    metadata = {"name": "p", **({"deletionTimestamp": "x"} if deleted else {})}
    return {"metadata": metadata, "spec": {"containers": [{}], "nodeName": node}, "status": status}


@pytest.mark.parametrize(
    ("obj", "word"),
    [
        (pod("Pending"), "Pending"),
        (pod("Pending", node="n"), "ContainerCreating"),
        (pod("Running", ready=True, state={"running": {}}), "Running"),
        (pod("Succeeded", state={"terminated": {"reason": "Completed", "exitCode": 0}}), "Completed"),
        (pod("Failed", state={"terminated": {"exitCode": 2}}), "ExitCode:2"),
        (pod("Failed", reason="OutOfcpu"), "OutOfcpu"),
        (pod("Running", state={"waiting": {"reason": "CrashLoopBackOff"}}), "CrashLoopBackOff"),
        (pod("Running", deleted=True), "Terminating"),
        ({**pod("Pending"), "spec": {"containers": [], "schedulingGates": [{"name": "g"}]}}, "SchedulingGated"),
    ],
)
def test_the_status_of_a_pod(obj, word):
    assert pod_status(obj) == word


def test_states_of_jobs_and_selectors():
    def job(*types: str):
        return {"metadata": {}, "status": {"conditions": [{"type": t, "status": "True"} for t in types]}}

    assert job_state(job()) == "Running"
    assert job_state(job("SuccessCriteriaMet", "Complete")) == "Complete"
    assert job_state(job("FailureTarget", "Failed")) == "Failed"
    assert job_state(job("Suspended")) == "Suspended"
    expressions = [{"key": "a", "operator": "In", "values": ["b", "c"]}, {"key": "d", "operator": "DoesNotExist"}]
    assert selector_text({"matchLabels": {"x": "y"}, "matchExpressions": expressions}) == "x=y,a in (b,c),!d"
    assert selector_text(None) == "<none>"


@pytest.mark.parametrize("kind", [k for k in BUILT_IN if "list" in k.verbs], ids=lambda k: f"{k.plural}.{k.group}")
def test_every_kind_has_a_table_for_a_minimal_object(kind):
    """An object with only a name must not break a table."""
    obj = {"metadata": {"name": "x", "creationTimestamp": rfc3339(time.time())}, "spec": {}}
    for column in columns_of(kind):
        column.cell(obj)
        assert column.definition()["name"]


def test_columns_of_custom_resources():
    stated = [{"name": "Min", "type": "integer", "jsonPath": ".spec.min"}, {"name": "P", "jsonPath": ".a[0]['b.c']"}]
    columns = custom_columns(stated)
    obj = {"metadata": {"name": "g"}, "spec": {"min": 3}, "a": [{"b.c": "d"}]}
    assert [column.cell(obj) for column in columns] == ["g", 3, "d"]
    assert find(obj, ".x.y[3]") is None
    assert [column.name for column in custom_columns([])] == ["Name", "Age"]
