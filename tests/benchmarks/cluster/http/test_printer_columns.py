"""What `kubectl get` shows of our own kinds: a table that the server makes, by the definitions of the chart."""

from __future__ import annotations

from typing import Any

import yaml

from tests.benchmarks.cluster.conftest import Http
from tests.paths import ROOT

DEFINITIONS = ROOT / "deploy" / "chart" / "definitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def table(http: Http, file: str, path: str, obj: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Cells by column: those that are always shown, and those of -o wide."""
    for definition in yaml.safe_load_all((DEFINITIONS / file).read_text()):
        code, answer = await http("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        assert code == 201, answer
    code, answer = await http("POST", path, obj)
    assert code == 201, answer
    if "status" in obj:
        name = obj["metadata"]["name"]
        patch = {"status": obj["status"]}
        await http("PATCH", f"{path}/{name}/status", patch, kind="application/merge-patch+json")
    code, found = await http("GET", path, Accept=TABLE)
    assert code == 200
    (row,) = found["rows"]
    shown: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for column, cell in zip(found["columnDefinitions"], row["cells"], strict=True):
        shown[bool(column["priority"])][column["name"]] = cell
    return shown


async def test_queues(http: Http) -> None:
    """Active has two conditions to choose from."""
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Active", "status": "False", "reason": "NoParent"}]
    status = {"pending": 3, "running": 5, "share": 0.25, "conditions": conditions}
    spec = {"parent": "all", "weight": 2, "priority": 7, "order": "fifo", "stop": "hold"}
    queue = {"apiVersion": "poseidon.io/v1", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec, "status": status}
    always, wide = await table(http, "queues.yaml", "/apis/poseidon.io/v1/queues", queue)
    age = always.pop("Age")
    assert age.endswith("s")
    assert always == {"Name": "q", "Parent": "all", "Weight": 2, "Pending": 3, "Running": 5, "Active": "False"}
    assert wide == {"Reason": "NoParent", "Share": 0.25, "Priority": 7, "Order": "fifo", "Stop": "hold"}


async def test_jobs(http: Http) -> None:
    status = {"state": {"phase": "Running"}, "minAvailable": 2, "running": 4, "retryCount": 1}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"queue": "q", "tasks": []}, "status": status,
    }  # fmt: skip
    always, wide = await table(http, "jobs.yaml", "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs", job)
    assert always.keys() == {"Name", "Status", "MinAvailable", "Running", "Age"}
    assert (always["Status"], always["MinAvailable"], always["Running"]) == ("Running", 2, 4)
    assert wide == {"Retries": 1, "Queue": "q"}
    group = {"metadata": {"name": "g"}, "spec": {"minMember": 2, "queue": "q"}, "status": {"phase": "Inqueue"}}
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    assert (await http("POST", path, group | kind))[0] == 201
    await http("PATCH", f"{path}/g/status", {"status": group["status"]}, kind="application/merge-patch+json")
    _, found = await http("GET", path, Accept=TABLE)
    assert [each["name"] for each in found["columnDefinitions"]] == [
        "Name", "Status", "MinMember", "Running", "Queue", "Age",
    ]  # fmt: skip
    assert found["rows"][0]["cells"][:5] == ["g", "Inqueue", 2, None, "q"]
    command = {
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"name": "c"}, "action": "AbortJob",
        "target": {"kind": "Job", "name": "j"},
    }  # fmt: skip
    path = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
    assert (await http("POST", path, command))[0] == 201
    _, found = await http("GET", path, Accept=TABLE)
    assert found["rows"][0]["cells"][:3] == ["c", "AbortJob", "j"]
