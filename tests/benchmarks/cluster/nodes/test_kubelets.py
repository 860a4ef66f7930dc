"""Pods on nodes: admission, running, ending, failing nodes. Time is virtual."""

from __future__ import annotations

import pytest

from benchmarks.cluster import NodeShape, RunTime
from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.patches import MERGE_PATCH, STRATEGIC_PATCH
from benchmarks.cluster.nodes.resources import pod_amounts
from benchmarks.cluster.store.kinds import NODES, PODS
from tests.benchmarks.cluster.builders import Still, pod


def test_a_bound_pod_starts_runs_and_succeeds():
    still = Still(nodes=1)
    run = {"cluster.poseidon.io/run-seconds": "10"}
    still.api.create(PODS, "default", pod(restartPolicy="Never", annotations=run))
    still.bind("p", "node-00000")
    still.pass_time(0.9)
    assert still.phases() == {"Pending": 1}
    still.pass_time(0.2)
    running = still.pods()[0]
    assert running["status"]["phase"] == "Running"
    assert running["status"]["containerStatuses"][0]["ready"]
    still.pass_time(9.7)
    assert still.phases() == {"Running": 1}
    still.pass_time(0.3)
    assert still.phases() == {"Succeeded": 1}
    assert still.cluster.kubelets is not None
    assert still.cluster.kubelets.used("node-00000") == {"pods": 0}


def test_exit_codes_fail_pods_and_restart_policies_restart_them():
    still = Still(nodes=1)
    annotations = {"cluster.poseidon.io/run-seconds": "1", "cluster.poseidon.io/exit-code": "3"}
    for name, policy in (("never", "Never"), ("on", "OnFailure"), ("always", "Always")):
        still.api.create(PODS, "default", pod(name, restartPolicy=policy, annotations=annotations))
    still.bind_all()
    still.pass_time(3.5)
    states = {obj["metadata"]["name"]: obj["status"] for obj in still.pods()}
    assert states["never"]["phase"] == "Failed"
    assert states["never"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert states["on"]["phase"] == "Running"
    assert states["on"]["containerStatuses"][0]["restartCount"] > 0
    assert states["always"]["containerStatuses"][0]["restartCount"] > 0


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ({"cpu": "3"}, {"cpu": "2"}, "OutOfcpu"),
        ({"memory": "3Gi"}, {"memory": "1025Mi"}, "OutOfmemory"),
        ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "2"}, "OutOfnvidia.com/gpu"),
        ({"ephemeral-storage": "5Gi"}, {"ephemeral-storage": "6Gi"}, "OutOfephemeral-storage"),
        ({}, {"example.com/dongle": "1"}, "OutOfexample.com/dongle"),
    ],
)
def test_a_kubelet_rejects_what_does_not_fit(first, second, reason):
    shape = NodeShape("4", "4Gi", "10Gi", 10, {"nvidia.com/gpu": "2"})
    still = Still(nodes=1, shapes=(shape,))
    still.api.create(PODS, "default", pod("a", resources={"requests": first, "limits": first}))
    still.api.create(PODS, "default", pod("b", resources={"requests": second, "limits": second}))
    still.bind("a", "node-00000")
    still.bind("b", "node-00000")
    still.pass_time(2)
    states = {obj["metadata"]["name"]: obj["status"] for obj in still.pods()}
    assert states["a"]["phase"] == "Running"
    assert (states["b"]["phase"], states["b"]["reason"]) == ("Failed", reason)
    assert "Pod was rejected" in states["b"]["message"]
    assert still.cluster.rejected == {reason: 1}
    assert [entry.detail for entry in still.cluster.audit.of("reject")] == [reason]


def test_the_number_of_pods_and_node_selection_are_checked_too():
    still = Still(nodes=1, shapes=(NodeShape(pods=1),))
    for name in ("a", "b"):
        still.api.create(PODS, "default", pod(name))
        still.bind(name, "node-00000")
        still.pass_time(0)
    assert still.cluster.rejected == {"OutOfpods": 1}
    other = Still(nodes=1)
    other.api.create(PODS, "default", pod(nodeSelector={"disk": "ssd"}))
    other.bind("p", "node-00000")
    other.pass_time(0)
    assert other.cluster.rejected == {"NodeAffinity": 1}


def test_an_ended_pod_releases_its_capacity():
    still = Still(nodes=1, shapes=(NodeShape(cpu="1"),), run_time=RunTime("fixed", 5))
    still.api.create(PODS, "default", pod("a", cpu="1", restartPolicy="Never"))
    still.bind("a", "node-00000")
    still.pass_time(7)
    still.api.create(PODS, "default", pod("b", cpu="1"))
    still.bind("b", "node-00000")
    still.pass_time(2)
    assert still.phases() == {"Succeeded": 1, "Running": 1}
    assert not still.cluster.rejected


def test_requests_count_as_the_scheduler_counts_them():
    # containers 100 + 200; sidecar 50; the init container needs 600 beside the sidecar: 650 > 350; overhead 10
    spec = {
        "containers": [{"resources": {"requests": {"cpu": "100m"}}}, {"resources": {"requests": {"cpu": "200m"}}}],
        "initContainers": [
            {"restartPolicy": "Always", "resources": {"requests": {"cpu": "50m", "memory": "1Ki"}}},
            {"resources": {"requests": {"cpu": "600m"}}},
        ],
        "overhead": {"cpu": "10m"},
    }
    assert pod_amounts(spec) == {"cpu": 660, "memory": 1024}
    assert pod_amounts({**spec, "resources": {"requests": {"cpu": "2"}}})["cpu"] == 2010


@pytest.mark.parametrize(
    ("annotations", "grace", "seconds"),
    [
        pytest.param({}, 30, 1, id="as set for all"),
        pytest.param({"cluster.poseidon.io/stop-seconds": "20"}, 30, 20, id="as annotated"),
        pytest.param({"cluster.poseidon.io/stop-seconds": "20"}, 5, 5, id="within its grace period"),
    ],
)
def test_a_deleted_pod_takes_a_while_to_stop(annotations, grace, seconds):
    still = Still(nodes=1)
    spec = pod(annotations=annotations, terminationGracePeriodSeconds=grace)
    still.api.create(PODS, "default", spec)
    still.bind_all()
    still.pass_time(2)
    delete(still.api, PODS, "default", "p")
    still.pass_time(seconds - 0.1)
    assert [("deletionTimestamp" in found["metadata"]) for found in still.pods()] == [True]
    still.pass_time(0.2)
    assert still.pods() == []


def test_a_silent_node_becomes_unknown_tainted_and_loses_its_pods():
    still = Still(nodes=2, node_grace_seconds=40.0)
    answer_soon = [
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    ]
    still.api.create(PODS, "default", pod("patient"))
    still.api.create(PODS, "default", pod("hasty", tolerations=answer_soon))
    still.bind_all("node-00000")
    still.pass_time(2)
    still.cluster.fail_node("node-00000")
    still.pass_time(41)
    node = still.api.get(NODES, "", "node-00000").parse()
    assert {c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"} == {"Unknown"}
    assert [(t["key"], t["effect"]) for t in node["spec"]["taints"]] == [
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    ]
    still.pass_time(5)
    assert {o["metadata"]["name"] for o in still.pods() if "deletionTimestamp" in o["metadata"]} == {"hasty"}
    still.cluster.restore_node("node-00000")
    still.pass_time(400)
    assert {o["metadata"]["name"] for o in still.pods()} == {"patient"}
    assert "taints" not in still.api.get(NODES, "", "node-00000").parse()["spec"]


def test_cordon_and_not_ready_set_taints():
    still = Still(nodes=1)
    still.api.patch(NODES, "", "node-00000", {"spec": {"unschedulable": True}}, MERGE_PATCH)
    not_ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    still.api.patch(NODES, "", "node-00000", not_ready, STRATEGIC_PATCH, "status")
    still.pass_time(0)
    taints = still.api.get(NODES, "", "node-00000").parse()["spec"]["taints"]
    assert [(t["key"].rpartition("/")[2], t["effect"]) for t in taints] == [
        ("unschedulable", "NoSchedule"),
        ("not-ready", "NoSchedule"),
        ("not-ready", "NoExecute"),
    ]


def test_a_pod_bound_to_a_node_that_is_added_later_starts_then():
    still = Still()
    still.api.create(PODS, "default", pod())
    still.bind("p", "node-00000")
    still.pass_time(10)
    assert still.phases() == {"Pending": 1}
    still.cluster.add_nodes(1)
    still.pass_time(2)
    assert still.phases() == {"Running": 1}


def test_a_deleted_node_deletes_its_pods():
    still = Still(nodes=1)
    still.api.create(PODS, "default", pod())
    still.bind("p", "node-00000")
    still.pass_time(2)
    delete(still.api, NODES, "", "node-00000")
    still.pass_time(60)
    assert not still.pods()


def test_a_pod_bound_after_the_deletion_of_a_node_waits_as_long_for_its_return():
    still = Still(nodes=1)
    delete(still.api, NODES, "", "node-00000")
    still.pass_time(19)
    still.api.create(PODS, "default", pod())
    still.bind("p", "node-00000")
    still.pass_time(2)
    assert still.phases() == {"Pending": 1}, "the check after the deletion is not about it"
    still.pass_time(18)
    assert still.phases() == {"Pending": 1}
    still.pass_time(3)
    assert not still.pods()
