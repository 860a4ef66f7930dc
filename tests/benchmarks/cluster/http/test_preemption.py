"""What a scheduler that preempts asks of the API server: statuses, a deletion with preconditions, budgets, events."""

from __future__ import annotations

from datetime import datetime

import pytest

from benchmarks.cluster.store.kinds import BUDGETS, PODS
from tests.benchmarks.cluster.builders import budget, pod, replicated, until

PODS_PATH = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"
CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": "poseidon: preempting to accommodate a higher priority pod",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


@pytest.fixture
async def victim(cluster, http):
    """A running pod."""
    _, made = await http("POST", PODS_PATH, pod(terminationGracePeriodSeconds=7))
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "node-00000"}}
    await http("POST", f"{PODS_PATH}/p/binding", body)
    await until(lambda: cluster.get(PODS, "p")["status"]["phase"] == "Running")
    return made


def condition_types(obj):
    return [each["type"] for each in obj["status"]["conditions"]]


async def test_a_condition_of_a_victim_leaves_the_others(http, victim):
    _, before = await http("GET", f"{PODS_PATH}/p")
    patch = {"metadata": {"uid": victim["metadata"]["uid"]}, "status": {"conditions": [CONDITION]}}
    code, after = await http("PATCH", f"{PODS_PATH}/p/status", patch, kind=STRATEGIC)
    assert code == 200
    assert condition_types(after) == [*condition_types(before), "DisruptionTarget"]
    assert after["status"]["conditions"][-1] == CONDITION
    code, again = await http("PATCH", f"{PODS_PATH}/p/status", patch, kind=STRATEGIC)
    assert (code, again["metadata"]["resourceVersion"]) == (200, after["metadata"]["resourceVersion"])


async def test_a_nomination_is_set_and_removed_for_the_right_pod_only(http):
    _, made = await http("POST", PODS_PATH, pod())
    uid = made["metadata"]["uid"]

    async def nominate(uid, node):
        patch = {"metadata": {"uid": uid}, "status": {"nominatedNodeName": node}}
        return await http("PATCH", f"{PODS_PATH}/p/status", patch, kind=STRATEGIC)

    code, after = await nominate(uid, "node-00001")
    assert (code, after["status"]["nominatedNodeName"], after["status"]["phase"]) == (200, "node-00001", "Pending")
    assert int(after["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    code, status = await nominate("another", None)
    assert (code, status["reason"]) == (422, "Invalid")
    code, after = await nominate(uid, None)
    assert code == 200
    assert "nominatedNodeName" not in after["status"]


async def test_a_victim_is_deleted_with_its_grace_period_and_only_by_its_uid(http, victim):
    def options(uid):
        return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}

    code, status = await http("DELETE", f"{PODS_PATH}/p", options("another"))
    assert (code, status["reason"]) == (409, "Conflict")
    asked = datetime.now().timestamp()
    code, marked = await http("DELETE", f"{PODS_PATH}/p", options(victim["metadata"]["uid"]))
    metadata = marked["metadata"]
    assert (code, metadata["deletionGracePeriodSeconds"]) == (200, 7)
    assert datetime.fromisoformat(metadata["deletionTimestamp"]).timestamp() == pytest.approx(asked + 7, abs=2)


async def test_a_budget_allows_less_while_a_victim_leaves(cluster, http):
    cluster.create(replicated("ReplicaSet", replicas=3))
    cluster.create(budget("b", "web", minAvailable=1))

    async def allows(count):
        await until(lambda: cluster.get(BUDGETS, "b").get("status", {}).get("disruptionsAllowed") == count)

    _, listed = await http("GET", PODS_PATH)
    await allows(0)
    for at, each in enumerate(listed["items"]):
        name = each["metadata"]["name"]
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"name": "node-00000"}}
        assert (await http("POST", f"{PODS_PATH}/{name}/binding", body))[0] == 201
        await allows(at)
    _, budgets = await http("GET", "/apis/policy/v1/poddisruptionbudgets")
    assert [each["status"]["disruptionsAllowed"] for each in budgets["items"]] == [2]
    await http("DELETE", f"{PODS_PATH}/{listed['items'][0]['metadata']['name']}")  # is not asked
    await allows(1)


async def test_the_event_of_a_victim_names_its_preemptor(http, victim):
    events = "/api/v1/namespaces/default/events"
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "p", "uid": victim["metadata"]["uid"]}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "p.1", "namespace": "default"},
        "involvedObject": about,
        "related": {**about, "name": "q", "uid": "u"},
        "reason": "Preempted",
        "action": "Preempting",
        "type": "Normal",
        "message": "Preempted by pod u on node node-00000",
        "source": {"component": "poseidon"},
        "reportingComponent": "poseidon",
        "reportingInstance": "poseidon-0",
    }
    code, _ = await http("POST", events, event)
    assert code == 201
    _, found = await http("GET", f"{events}/p.1")
    assert {key: found[key] for key in event if key != "metadata"} == {
        k: v for k, v in event.items() if k != "metadata"
    }
