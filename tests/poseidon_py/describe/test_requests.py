"""A pod's requests, as kube-scheduler counts them. The arithmetic is above each case."""

import pytest

from poseidon_py.describe.requests import requests
from poseidon_py.kube.objects import InvalidField
from tests.poseidon_py.builders import pod


def box(name="c", restart=None, **amounts):
    body = {"name": name, "resources": {"requests": {k.replace("_", "-"): v for k, v in amounts.items()}}}
    if restart:
        body["restartPolicy"] = restart
    return body


def of(containers, init=(), **spec):
    status = spec.pop("status", None)
    return requests(pod(spec={"containers": list(containers), "initContainers": list(init), **spec}, status=status))


SIDECAR = "Always"


@pytest.mark.parametrize(
    ("containers", "init", "cpu"),
    [
        pytest.param([box(cpu="100m"), box(cpu="200m")], [], 300, id="containers add up"),
        # max(300, 500)
        pytest.param([box(cpu="100m"), box(cpu="200m")], [box(cpu="500m")], 500, id="a large init container"),
        # max(300, 200)
        pytest.param([box(cpu="100m"), box(cpu="200m")], [box(cpu="200m")], 300, id="a small init container"),
        # max(100 + 200, 500, 300)
        pytest.param([box(cpu="100m")], [box(cpu="500m"), box(cpu="300m")], 500, id="init containers run in turn"),
        # containers and sidecar: 100 + 200
        pytest.param([box(cpu="100m")], [box("s", SIDECAR, cpu="200m")], 300, id="a sidecar adds"),
        # the init container runs beside the sidecar before it: 200 + 500 > 100 + 200
        pytest.param([box(cpu="100m")], [box("s", SIDECAR, cpu="200m"), box(cpu="500m")], 700, id="sidecar, then init"),
        # the init container runs before the sidecar starts: max(500, 100 + 200)
        pytest.param([box(cpu="100m")], [box(cpu="500m"), box("s", SIDECAR, cpu="200m")], 500, id="init, then sidecar"),
        # sidecars 200 + 300 beside init 400: 900; all: 100 + 500
        pytest.param(
            [box(cpu="100m")],
            [box("s", SIDECAR, cpu="200m"), box("t", SIDECAR, cpu="300m"), box(cpu="400m")],
            900,
            id="two sidecars, then init",
        ),
        pytest.param(
            [box(cpu="100m")], [box("r", "OnFailure", cpu="50m")], 100, id="another restart policy is no sidecar"
        ),
        # 0.1 + 0.2 millicores are one third of what rounding each would give
        pytest.param([box(cpu="100u"), box(cpu="200u")], [], 1, id="the sum is rounded, not its parts"),
    ],
)
def test_cpu(containers, init, cpu):
    assert of(containers, init)["cpu"] == cpu


def test_resources_are_maximised_one_by_one():
    # cpu: max(100, 50); memory: max(1, 5)
    got = of([box(cpu="100m", memory="1")], [box(cpu="50m", memory="5")])
    assert (got["cpu"], got["memory"]) == (100, 5)


def test_overhead_comes_on_top_of_the_larger():
    assert of([box(cpu="100m")], [box(cpu="500m")], overhead={"cpu": "50m", "memory": "7"})["cpu"] == 550


def test_every_pod_takes_one_slot_even_without_requests():
    assert of([box()]) == {"pods": 1}
    assert of([{"name": "c"}]) == {"pods": 1}
    assert of([{"name": "c", "resources": None}]) == {"pods": 1}


def test_a_request_for_pods_does_not_count():
    assert of([box(pods="7")])["pods"] == 1


def test_extended_resources_are_whole_and_foreign_names_are_ignored():
    got = requests(pod(requests={"nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi", "oddity": "3", "cpu": 1}))
    assert got == {"nvidia.com/gpu": 2, "hugepages-2Mi": 4 * 2**20, "cpu": 1000, "pods": 1}


def test_pod_level_requests_replace_those_of_containers_for_cpu_memory_and_huge_pages_only():
    got = of(
        [box(cpu="100m", memory="10", **{"example.com/x": "1"})],
        resources={"requests": {"cpu": "2", "hugepages-2Mi": "2Mi", "example.com/x": "9"}},
        overhead={"cpu": "100m"},
    )
    # cpu: 2000 + overhead; memory: not stated at pod level, so the containers'; example.com/x: not a pod-level resource
    assert got == {"cpu": 2100, "memory": 10, "hugepages-2Mi": 2 * 2**20, "example.com/x": 1, "pods": 1}


def resized(spec="100m", actual="300m", allocated="200m", infeasible=False):
    conditions = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}] if infeasible else []
    status = {
        "conditions": conditions,
        "containerStatuses": [
            {"name": "c", "resources": {"requests": {"cpu": actual}}, "allocatedResources": {"cpu": allocated}}
        ],
    }
    return of([box(cpu=spec)], status=status)["cpu"]


@pytest.mark.parametrize(
    ("case", "cpu"),
    [
        pytest.param({}, 300, id="shrinking: what is in force counts until it is released"),
        pytest.param({"spec": "500m"}, 500, id="growing: the wish counts at once"),
        pytest.param({"allocated": "400m"}, 400, id="allocated and not yet in force"),
        pytest.param({"spec": "500m", "infeasible": True}, 300, id="infeasible: the wish does not count"),
    ],
)
def test_resize_in_place(case, cpu):
    assert resized(**case) == cpu


def test_a_status_without_resources_does_not_count():
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "9"}}]}
    assert of([box(cpu="100m")], status=status)["cpu"] == 100


def test_a_sidecar_can_be_resized_and_an_init_container_cannot():
    statuses = {
        "initContainerStatuses": [
            {"name": "s", "resources": {"requests": {"cpu": "700m"}}},
            {"name": "i", "resources": {"requests": {"cpu": "9"}}},
        ]
    }
    # 100 + 700 beside init 50 + 700
    assert of([box(cpu="100m")], [box("s", SIDECAR, cpu="200m"), box("i", cpu="50m")], status=statuses)["cpu"] == 800


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        ({"requests": {"cpu": "ten"}}, "spec.containers[0].resources.requests[cpu]"),
        ({"requests": {"memory": "-1"}}, "spec.containers[0].resources.requests[memory]"),
        ({"spec": {"containers": []}}, "spec.containers"),
        ({"spec": {"overhead": {"cpu": "x"}}}, "spec.overhead[cpu]"),
        ({"spec": {"overhead": "much"}}, "spec.overhead"),
        ({"spec": {"containers": [{"name": "c", "resources": {"requests": [1]}}]}}, "spec.containers[0].resources"),
        ({"spec": {"initContainers": [box(cpu="1z")]}}, "spec.initContainers[0].resources.requests[cpu]"),
        ({"spec": {"resources": {"requests": {"cpu": "?"}}}}, "spec.resources.requests[cpu]"),
    ],
)
def test_an_invalid_field_is_named(broken, field):
    with pytest.raises(InvalidField) as caught:
        requests(pod(**broken))
    assert caught.value.field == field
