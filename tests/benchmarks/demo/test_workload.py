import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cluster import NodeShape
from benchmarks.demo.apps import budget_manifest, card_templates, demo_apps, demo_budgets, priority_class
from benchmarks.demo.stack import shape_argument
from benchmarks.demo.workload import (
    GPU,
    MIXED,
    UNIFORM,
    WITH_CARDS,
    allocatable,
    open_capacity,
    pod_sorts,
    shape_of_each,
)


def test_sorts_request_the_stated_part_of_what_is_offered():
    offered = open_capacity(UNIFORM, 100)
    sorts = pod_sorts(20, 1300, 0.7, offered, seed=3)
    cpu = sum(sort.cpu_milli * 65 for sort in sorts)
    memory = sum(sort.memory_bytes * 65 for sort in sorts)
    assert cpu == pytest.approx(0.7 * offered["cpu"], rel=0.02)
    assert memory == pytest.approx(0.56 * offered["memory"], rel=0.02)
    assert len({(sort.cpu_milli, sort.memory_bytes) for sort in sorts}) == 20


def test_the_seed_decides_everything():
    offered = open_capacity(UNIFORM, 10)
    assert pod_sorts(5, 50, 0.5, offered, 1) == pod_sorts(5, 50, 0.5, offered, 1)
    assert pod_sorts(5, 50, 0.5, offered, 1) != pod_sorts(5, 50, 0.5, offered, 2)
    assert demo_apps(20, 200, "x", 1) == demo_apps(20, 200, "x", 1)
    assert demo_apps(20, 200, "x", 1) != demo_apps(20, 200, "x", 2)


@given(nodes=st.integers(1, 60), pods=st.integers(1, 600), seed=st.integers(0, 5))
def test_the_demo_submits_exactly_as_many_pods_as_asked_for(nodes, pods, seed):
    apps = demo_apps(nodes, pods, "mine", seed)
    assert sum(app.pods for app in apps) == pods
    assert all(app.pods > 0 for app in apps)
    names = [(app.path, app.manifest["metadata"]["name"]) for app in apps]
    assert len(set(names)) == len(names)
    for app in apps:
        spec = app.manifest["spec"]
        assert spec.get("template", {"spec": spec})["spec"]["schedulerName"] == "mine"
        assert spec.get("replicas", spec.get("completions", 1)) == app.pods


def test_the_demo_has_every_kind_and_requests_more_gpus_than_exist():
    apps = demo_apps(100, 1000, "poseidon", 0)
    kinds = {"service", "batch", "gpu", "bare", "large", "impossible", "gang", "device", "urgent"}
    assert {app.kind for app in apps} == kinds
    gpus = sum(
        app.pods * int(app.manifest["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"][GPU])
        for app in apps
        if app.kind == "gpu"
    )
    there = sum(allocatable(shape).get(GPU, 0) for shape in shape_of_each(MIXED, 100))
    assert there == 80
    assert gpus > there


def test_one_pod_in_twenty_has_a_claim_of_a_template_that_is_there():
    apps = demo_apps(100, 1000, "poseidon", 0)
    devices = [app for app in apps if app.kind == "device"]
    assert sum(app.pods for app in devices) == 50
    templates = {each.manifest["metadata"]["name"] for each in card_templates()}
    named = {
        app.manifest["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] for app in devices
    }
    assert named == templates == {"cards-1", "cards-2"}


def test_urgent_pods_come_last_have_the_priority_class_and_are_as_large_as_the_large_ones():
    *_, large, urgent = demo_apps(100, 1000, "poseidon", 0)
    assert (large.kind, urgent.kind) == ("large", "urgent")
    specs = [app.manifest["spec"]["template"]["spec"] for app in (large, urgent)]
    assert specs[0]["containers"] == specs[1]["containers"]
    assert specs[1]["priorityClassName"] == priority_class().manifest["metadata"]["name"]


def test_each_service_may_lack_an_eighth_of_its_pods():
    apps = demo_apps(100, 1000, "poseidon", 0)
    services = {app.manifest["metadata"]["name"]: app for app in apps if app.kind == "service"}
    budgets = demo_budgets(apps)
    assert {budget.name: budget.available for budget in budgets} == {
        name: app.pods - max(app.pods // 8, 1) for name, app in services.items()
    }
    for budget in budgets:
        template = services[budget.name].manifest["spec"]["template"]["metadata"]["labels"]
        assert budget.counts(template)
        assert sum(budget.counts(other.manifest["metadata"].get("labels", {})) for other in services.values()) == 0
        spec = budget_manifest(budget).manifest["spec"]
        assert spec == {"minAvailable": budget.available, "selector": {"matchLabels": budget.labels}}


def test_shapes_survive_the_command_line_except_for_taints():
    for shape in (*MIXED, *WITH_CARDS):
        parsed = NodeShape.parse(shape_argument(shape))
        assert allocatable(parsed) == allocatable(shape)
        assert (parsed.labels, parsed.weight) == (shape.labels, shape.weight)
        assert dict(parsed.devices) == dict(shape.devices)
