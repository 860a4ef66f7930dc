"""Create, update, patch, delete: defaults, checks, conflicts."""

from __future__ import annotations

import pytest

from benchmarks.cluster.api.binding import evict
from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.patches import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import CONFIGMAPS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES
from tests.benchmarks.cluster.builders import Still, pod


@pytest.fixture
def still() -> Still:
    return Still(nodes=2)


def refusal(call, *args, **kwargs) -> ApiError:
    with pytest.raises(ApiError) as refused:
        call(*args, **kwargs)
    return refused.value


def test_a_pod_gets_the_defaults_that_a_scheduler_sees(still):
    manifest = pod("p", resources={"limits": {"cpu": "2", "memory": "1Gi"}})
    obj = still.api.create(PODS, "default", manifest).parse()
    spec = obj["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["priority"] == 0
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "1Gi"}
    assert [(t["key"], t["tolerationSeconds"]) for t in spec["tolerations"]] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]
    assert obj["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}
    assert obj["metadata"]["generation"] == 1


def test_label_keys_become_part_of_selectors_with_the_labels_of_creation(still):
    """pkg/registry/core/pod/strategy.go, applyMatchLabelKeysAndMismatchLabelKeys and applyMatchLabelKeys, since 1.34
    also of spread constraints. Not without a selector, which matches no pod, and not at later changes."""

    def term(**selector):
        return {"topologyKey": "z", **selector, "matchLabelKeys": ["app", "absent"], "mismatchLabelKeys": ["tier"]}

    manifest = pod("p")
    manifest["metadata"]["labels"] = {"app": "a", "tier": "t"}
    far = {"requiredDuringSchedulingIgnoredDuringExecution": [term(labelSelector={}), term()]}
    near = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term(labelSelector={})}]
    }
    spread = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
    keyed = {**spread, "labelSelector": {"matchLabels": {"x": "y"}}, "matchLabelKeys": ["app"]}
    manifest["spec"] |= {
        "affinity": {"podAntiAffinity": far, "podAffinity": near},
        "topologySpreadConstraints": [keyed],
    }
    still.api.create(PODS, "default", manifest)
    still.api.patch(PODS, "default", "p", {"metadata": {"labels": {"app": "b"}}}, MERGE_PATCH)
    spec = still.api.get(PODS, "default", "p").parse()["spec"]
    app = {"key": "app", "operator": "In", "values": ["a"]}
    both = {"matchExpressions": [app, {"key": "tier", "operator": "NotIn", "values": ["t"]}]}
    required = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    [preferred] = spec["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert [each.get("labelSelector") for each in required] == [both, None]
    assert preferred["podAffinityTerm"]["labelSelector"] == both
    assert spec["topologySpreadConstraints"][0]["labelSelector"] == {
        "matchLabels": {"x": "y"},
        "matchExpressions": [app],
    }


def test_priority_classes_become_numbers(still):
    still.api.create(PRIORITY_CLASSES, "", {"metadata": {"name": "high"}, "value": 7})
    record = still.api.create(PODS, "default", pod("p", priorityClassName="high"))
    assert record.parse()["spec"]["priority"] == 7
    critical = still.api.create(PODS, "default", pod("q", priorityClassName="system-node-critical"))
    assert critical.parse()["spec"]["priority"] == 2_000_001_000
    assert refusal(still.api.create, PODS, "default", pod("r", priorityClassName="none")).code == 403
    default = {"metadata": {"name": "usual"}, "value": 3, "globalDefault": True}
    still.api.create(PRIORITY_CLASSES, "", default)
    assert still.api.create(PODS, "default", pod("s")).parse()["spec"]["priority"] == 3


@pytest.mark.parametrize(
    ("manifest", "code", "message"),
    [
        (pod("Bad_Name"), 422, "RFC 1123"),
        (pod("p", cpu="-1"), 422, "must be greater than or equal to 0"),
        (pod("p", cpu="lots"), 422, "quantities must match"),
        (pod("p", containers=[]), 422, "spec.containers: Required value"),
        (pod("p", restartPolicy="Sometimes"), 422, "Unsupported value"),
        (pod("p", labels={"a": "b c"}), 422, "a valid label"),
        (pod("p", namespace="other"), 400, "namespace of the provided object"),
        (pod("p", resources={"requests": {"nvidia.com/gpu": "1"}}), 422, "non overcommitable"),
        (pod("p", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}), 422, "less than or equal to"),
        (pod("p", resources={"requests": {"gpu": "1"}}), 422, "must be a standard resource for containers"),
        (pod("p", resources={"limits": {"pods": "1"}}), 422, "must be a standard resource for containers"),
        ({"metadata": {"name": "p"}, "spec": []}, 400, "cannot be handled"),
        ({"kind": "Node", "metadata": {"name": "p"}}, 400, "does not match the resource"),
        ({"metadata": {}}, 422, "name or generateName is required"),
    ],
)
def test_bad_pods_are_refused_with_the_field(still, manifest, code, message):
    error = refusal(still.api.create, PODS, "default", manifest)
    assert error.code == code
    assert message in error.message
    assert not still.pods()


def test_names_are_generated_and_taken_names_refused(still):
    manifest = pod("")
    manifest["metadata"] = {"generateName": "web-"}
    name = still.api.create(PODS, "default", manifest).name
    assert name.startswith("web-")
    assert len(name) == 9
    error = refusal(still.api.create, PODS, "default", pod(name))
    assert (error.code, error.reason) == (409, "AlreadyExists")
    assert refusal(still.api.create, PODS, "nowhere", pod()).code == 404


def test_updates_of_an_old_version_conflict(still):
    obj = still.api.create(CONFIGMAPS, "default", {"metadata": {"name": "c"}, "data": {"a": "1"}}).parse()
    newer = {**obj, "data": {"a": "2"}}
    assert still.api.update(CONFIGMAPS, "default", "c", newer).parse()["data"] == {"a": "2"}
    error = refusal(still.api.update, CONFIGMAPS, "default", "c", {**obj, "data": {"a": "3"}})
    assert (error.code, error.reason) == (409, "Conflict")
    assert "the object has been modified" in error.message


def test_a_change_of_nothing_writes_nothing(still):
    record = still.api.create(CONFIGMAPS, "default", {"metadata": {"name": "c"}, "data": {"a": "1"}})
    version = still.store.version
    patched, _ = still.api.patch(CONFIGMAPS, "default", "c", {"data": {"a": "1"}}, MERGE_PATCH)
    assert still.api.update(CONFIGMAPS, "default", "c", record.parse()).version == patched.version == record.version
    assert still.store.version == version


def test_status_and_spec_are_written_separately(still):
    node = still.api.get(NODES, "", "node-00000").parse()
    node["status"]["allocatable"] = {"cpu": "1"}
    node["spec"]["unschedulable"] = True
    changed = still.api.update(NODES, "", "node-00000", node).parse()
    assert changed["spec"]["unschedulable"]
    assert changed["status"]["allocatable"]["cpu"] == "32"
    patch = {"status": {"allocatable": {"cpu": "1"}}, "spec": {"unschedulable": False}}
    changed, _ = still.api.patch(NODES, "", "node-00000", patch, STRATEGIC_PATCH, "status")
    assert changed.parse()["status"]["allocatable"]["cpu"] == "1"
    assert changed.parse()["spec"]["unschedulable"]


def test_most_of_a_pods_spec_is_fixed(still):
    still.api.create(PODS, "default", pod())
    path = [{"op": "add", "path": "/spec/nodeName", "value": "node-00000"}]
    error = refusal(still.api.patch, PODS, "default", "p", path, JSON_PATCH)
    assert error.code == 422
    assert "pod updates may not change fields other than" in error.message
    image = {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}
    changed, _ = still.api.patch(PODS, "default", "p", image, STRATEGIC_PATCH)
    assert changed.parse()["metadata"]["generation"] == 2


def test_scheduling_gates_can_only_be_removed(still):
    still.api.create(PODS, "default", pod(schedulingGates=[{"name": "wait"}]))
    assert "non-empty .spec.schedulingGates" in refusal(still.bind, "p", "node-00000").message
    patch = {"spec": {"schedulingGates": None, "nodeSelector": {"a": "b"}}}
    still.api.patch(PODS, "default", "p", patch, MERGE_PATCH)
    again = {"spec": {"schedulingGates": [{"name": "more"}]}}
    assert refusal(still.api.patch, PODS, "default", "p", again, MERGE_PATCH).code == 422


def test_dry_runs_change_nothing(still):
    version = still.store.version
    assert still.api.create(PODS, "default", pod(), dry_run=True).parse()["spec"]["priority"] == 0
    assert still.store.version == version


def test_binding_happens_once_and_to_the_right_pod(still):
    record = still.api.create(PODS, "default", pod())
    assert refusal(still.bind, "none", "node-00000").code == 404
    error = refusal(still.bind, "p", "node-00000", uid="other")
    assert (error.code, error.reason) == (409, "Conflict")
    assert f"UID in object meta: {record.uid}" in error.message
    still.bind("p", "node-00001", uid=record.uid, annotations={"a": "b"}, labels={"c": "d"})
    bound = still.pods()[0]
    assert bound["spec"]["nodeName"] == "node-00001"
    assert bound["metadata"]["annotations"] == {"a": "b"}
    assert bound["metadata"]["labels"] == {"c": "d"}
    assert [(c["type"], c["status"]) for c in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    error = refusal(still.bind, "p", "node-00000")
    assert error.code == 409
    assert 'pod p is already assigned to node "node-00001"' in error.message
    assert [(entry.what, entry.uid, entry.node) for entry in still.cluster.audit.entries] == [
        ("bind", record.uid, "node-00001")
    ]


def test_pods_without_a_node_are_deleted_at_once_and_others_gracefully(still):
    still.api.create(PODS, "default", pod("free"))
    still.api.create(PODS, "default", pod("bound"))
    still.bind("bound", "node-00000")
    assert delete(still.api, PODS, "default", "free")[1]
    record, gone = delete(still.api, PODS, "default", "bound")
    assert not gone
    assert record.parse()["metadata"]["deletionGracePeriodSeconds"] == 30
    assert "is being deleted" in refusal(still.bind, "bound", "node-00000").message
    still.pass_time(1)
    assert not still.pods()


def test_force_deletes_a_pod_of_a_failed_node(still):
    still.api.create(PODS, "default", pod())
    still.bind("p", "node-00000")
    still.pass_time(2)
    still.cluster.fail_node("node-00000")
    delete(still.api, PODS, "default", "p")
    still.pass_time(60)
    assert still.pods()
    assert delete(still.api, PODS, "default", "p", {"gracePeriodSeconds": 0})[1]
    assert not still.pods()


def test_finalizers_delay_the_removal_of_objects(still):
    still.api.create(CONFIGMAPS, "default", {"metadata": {"name": "c", "finalizers": ["a/b"]}})
    record, gone = delete(still.api, CONFIGMAPS, "default", "c")
    assert not gone
    assert record.deleting
    still.api.patch(CONFIGMAPS, "default", "c", {"metadata": {"finalizers": None}}, MERGE_PATCH)
    assert still.store.get(CONFIGMAPS, "default", "c") is None


def test_preconditions_of_deletes_and_evictions(still):
    still.api.create(PODS, "default", pod())
    other = {"preconditions": {"uid": "other"}}
    assert refusal(delete, still.api, PODS, "default", "p", other).code == 409
    assert refusal(evict, still.api, "default", "p", {"deleteOptions": other}).code == 409
    assert refusal(delete, still.api, NAMESPACES, "", "default").code == 403


def test_creating_many_is_like_creating_each(still):
    records = still.cluster.add_pods(50, pod(), prefix="w-")
    objects = [record.parse() for record in records]
    assert len({obj["metadata"]["uid"] for obj in objects}) == 50
    assert objects[0]["metadata"]["name"] == "w-0000"
    assert objects[49]["spec"] == objects[0]["spec"]
    assert len({obj["metadata"]["resourceVersion"] for obj in objects}) == 50
