"""What Kueue's configuration says of all queues, and of pods that name none."""

import pytest

from poseidon_py.describe.queues.model import Sharing
from poseidon_py.devices.objects import ClassSpec, DeviceClass
from poseidon_py.kube.objects import Metadata
from tests.poseidon_py.state.queues.kueue_objects import flavor, group, simple
from tests.poseidon_py.state.queues.rig import Rig
from tests.poseidon_py.state.queues.test_kueue_past_use import configure

LABEL = "kueue.x-k8s.io/queue-name"
MANAGED = "manageJobsWithoutQueueName: true"


@pytest.fixture
def rig():
    found = Rig("kueue")
    found.put("ResourceFlavor", "on-demand", {})
    simple(found)
    found.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")
    for namespace in ("default", "kube-system", "kueue-system"):
        found.namespace(namespace, {"kubernetes.io/metadata.name": namespace, "team": namespace})
    return found


def owned(rig, namespace="default", **labels):
    rig.job("j", labels, namespace=namespace)
    rig.pod("p", namespace=namespace, owner="uid-j")
    return rig.problem("p")


@pytest.mark.parametrize(
    ("text", "namespace", "waits"),
    [
        ("", "default", False),
        ("manageJobsWithoutQueueName: false", "default", False),
        (MANAGED, "default", True),
        (MANAGED, "kube-system", False),
        (MANAGED, "kueue-system", False),
        (MANAGED + "\nmanagedJobsNamespaceSelector: {}", "kube-system", True),
        (MANAGED + "\nmanagedJobsNamespaceSelector: {matchLabels: {team: default}}", "default", True),
        (MANAGED + "\nmanagedJobsNamespaceSelector: {matchLabels: {team: x}}", "default", False),
    ],
)
def test_workloads_that_name_no_queue_wait_where_they_are_managed(rig, text, namespace, waits):
    problem = owned(rig, namespace)
    assert problem == ""
    configure(rig, text)  # afterwards: what is chosen already changes
    problem = rig.problem("p")
    assert problem.startswith("names no queue, which manageJobsWithoutQueueName of Kueue requires") is waits


def test_those_that_name_one_and_pods_without_a_workload_do_not(rig):
    configure(rig, MANAGED)
    assert owned(rig, **{LABEL: "lq"}) == ""
    rig.pod("alone")
    assert (rig.problem("alone"), rig.key("alone")) == ("", "")


@pytest.mark.parametrize(
    ("text", "weight", "sharing"),
    [
        ("", None, Sharing.CLASSICAL),
        ("", "2", Sharing.FAIR),
        ("fairSharing: {enable: true}", None, Sharing.FAIR),
        ("fairSharing: {enable: false}", "2", Sharing.CLASSICAL),
        ("fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare]}", None, Sharing.FAIR),
    ],
)
def test_shares_are_fair_if_the_configuration_says_so_else_if_a_queue_has_a_weight(rig, text, weight, sharing):
    configure(rig, text)
    if weight is not None:
        simple(rig, fairSharing={"weight": weight})
    rig.work()
    assert rig.queues.tree.rules.sharing is sharing


def test_amounts_that_are_transformed_close_all_queues(rig):
    configure(rig, "resources: {transformations: [{input: cpu, strategy: Retain, outputs: {credits: 1}}]}")
    rig.pod("q", labels={LABEL: "lq"})
    assert "quota counts what the pods request, as it is" in rig.problem("q")
    configure(rig, "")
    assert rig.problem("q") == ""


def test_resources_that_are_excluded_need_no_quota_and_count_in_none(rig):
    configure(rig, "resources: {excludeResourcePrefixes: [example.com/, cp]}")
    assert rig.queues.tree.rules.exempt_prefixes == ("cp", "example.com/")
    (queue,) = (each for each in rig.message().queues if each.name == "team-a")
    assert "cpu" not in {each.resource for each in queue.quotas}
    configure(rig, "")
    (queue,) = (each for each in rig.message().queues if each.name == "team-a")
    assert "cpu" in {each.resource for each in queue.quotas}


@pytest.mark.parametrize(
    ("text", "unlimited"),
    [("", False), ("BlockUndeclared", False), ("IgnoreUndeclared", True), ("Whatever", False)],
)
def test_resources_of_which_a_cluster_queue_has_no_quota(rig, text, unlimited):
    configure(rig, f"resources: {{quotaCheckStrategy: '{text}'}}")
    assert {each.unlimited for each in rig.message().queues} == {unlimited}


def test_classes_of_devices_count_as_the_configuration_maps_them(rig):
    """The first mapping counts; one with sources is none."""
    mappings = (
        "{name: gpus, deviceClassNames: [large, small]}",
        "{name: others, deviceClassNames: [small]}",
        "{name: parts, deviceClassNames: [part], sources: [{counter: {name: memory}}]}",
    )
    configure(rig, f"resources: {{deviceClassMappings: [{', '.join(mappings)}]}}")
    quotas = rig.queues.device_quotas()
    assert quotas.resource_of == {"large": "gpus", "small": "gpus", "part": "parts"}
    assert (quotas.uncounted.keys(), quotas.exclusive) == ({"part"}, True)
    configure(rig, "")
    assert rig.queues.device_quotas().resource_of == {}


def test_an_extended_resource_of_a_mapped_class_needs_no_quota_of_its_own(rig):
    """It counts as the class does (Kueue's ResolveExtendedResourceQuota), also where a queue has quota of it."""
    configure(rig, "resources: {deviceClassMappings: [{name: gpus, deviceClassNames: [gpu]}]}")
    simple(rig, resourceGroups=[group(flavor("f", **{"example.com/gpu": {"nominalQuota": 2}}))])
    rig.work()
    assert list(rig.message().exempt_resources) == []
    named = DeviceClass(Metadata(name="gpu"), ClassSpec(extended="example.com/gpu"))
    rig.store.devices.put_class(named)
    assert list(rig.message().exempt_resources) == ["example.com/gpu"]
    assert not any(quota.resource == "example.com/gpu" for queue in rig.message().queues for quota in queue.quotas)
    newer = DeviceClass(Metadata(name="other", created="2026-01-01T00:00:00Z"), ClassSpec(extended="example.com/gpu"))
    rig.store.devices.put_class(newer)
    assert list(rig.message().exempt_resources) == []
