"""An unreliable API server: histories are compacted, watches break, answers are errors or get lost."""

import time
from collections.abc import Callable

import pytest

from tests.e2e.api import PATIENCE, Json
from tests.e2e.backends import PODS, Backend, Synthetic, bound
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.objects import node, pod
from tests.e2e.processes import Scheduler

Schedule = Callable[..., Scheduler]


def capacities(backend: Backend, nodes: int = 4) -> None:
    backend.create(*(node(f"n{at}", cpu="4", pods=40) for at in range(nodes)))  # 160 pods of 100m


def test_an_outage_of_the_api_server(backend: Backend, scheduler: Scheduler) -> None:
    capacities(backend)
    backend.create(*(pod(f"a{at}") for at in range(60)))
    backend.until_bound(20)
    with backend.outage():
        scheduler.until_says("the watch of (pods|nodes) broke")
        assert scheduler.get("/livez")[0] == 200
    backend.create(*(pod(f"b{at}") for at in range(60)))
    backend.all_bound_once(120)
    for name in ("a59", "b59"):
        backend.until_event("Scheduled", name)


def test_the_watches_continue_after_an_outage(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a", cpu="1"), node("b", cpu="1"))
    backend.create(pod("first", cpu="1"), pod("second", cpu="1"), pod("third", cpu="1"))
    bound_before = backend.until_bound(2)
    with backend.outage():
        scheduler.until_says("the watch of pods broke")
        scheduler.until_says("the watch of nodes broke")
    name, where = next(iter(bound_before.items()))
    backend.delete(PODS, name)
    backend.patch_node(where, {"metadata": {"labels": {"again": "yes"}}})
    (third,) = {"first", "second", "third"} - set(bound_before)
    assert backend.until_bound(1, third) == {third: where}


@SYNTHETIC
def test_an_outage_during_which_pods_are_deleted_and_nodes_added(synthetic: Synthetic, scheduler: Scheduler) -> None:
    """The history is compacted during the outage: only a list shows what was deleted."""
    synthetic.create(node("a", cpu="2"), node("b", cpu="2"))
    synthetic.create(*(pod(f"p{at}", cpu="1") for at in range(6)))
    before = synthetic.until_bound(4)
    broken = [{"verbs": ["list", "watch"], "resources": [kind], "rate_503": 1.0} for kind in ("nodes", "pods")]
    synthetic.faults({"rules": broken, "drop_watches": True})
    scheduler.until_says("the watch of pods broke")
    scheduler.until_says("the watch of nodes broke")
    gone = sorted(before)[0]
    synthetic.delete(PODS, gone)
    synthetic.delete("/api/v1/nodes", "b")
    synthetic.create(node("c", cpu="1"), node("d", cpu="0"))
    synthetic.faults({"compact": True, "rules": broken[1:]})
    # nodes first: until then the scheduler cannot know that b is full
    while scheduler.metric("scheduler_cache_size", type="nodes") != 3:
        time.sleep(0.05)
    synthetic.faults({"rules": []})
    waiting = {f"p{at}" for at in range(6)} - set(before)
    places = 1 + (before[gone] == "a")  # on c, and where the pod was that went

    def placed(pods: list[Json]) -> list[str]:
        nodes = [node for name, node in bound(pods).items() if name in waiting]
        return sorted(nodes) if len(nodes) >= places else []

    # what else is there is no measure: the test's own list of pods was out of reach too, and may be old
    assert synthetic.pods.until(placed, "the pods that waited") == ["a", "c"][2 - places :]
    assert scheduler.metric("scheduler_cache_size", type="nodes") == 3


@SYNTHETIC
def test_histories_that_are_compacted_again_and_again(synthetic: Synthetic, schedule: Schedule) -> None:
    capacities(synthetic)
    scheduler = schedule()
    for batch in range(6):
        synthetic.faults({"drop_watches": True})
        synthetic.create(*(pod(f"b{batch}-{at}") for at in range(20)))
        synthetic.faults({"compact": True, "drop_watches": True})
        synthetic.until_bound(10 * batch)
    synthetic.all_bound_once(120)
    scheduler.until_says("the history of (pods|nodes) was compacted")


@SYNTHETIC
@pytest.mark.parametrize("as_status", [False, True], ids=["in the stream", "as HTTP status"])
def test_a_compacted_version(synthetic: Synthetic, schedule: Schedule, as_status: bool) -> None:
    capacities(synthetic)
    scheduler = schedule()
    synthetic.create(pod("before"))
    synthetic.until_bound(1)
    block = [{"verbs": ["watch"], "resources": ["pods"], "rate_503": 1.0, "retry_after_s": 0}]
    synthetic.faults({"watch": {"gone_as_status": as_status}, "rules": block, "drop_watches": True})
    scheduler.until_says("the watch of pods broke: the server closed the connection")
    synthetic.delete(PODS, "before")
    synthetic.create(pod("after"))
    synthetic.faults({"compact": True, "rules": []})
    synthetic.until_bound(1, "after")
    scheduler.until_says("the history of pods was compacted")
    code, body = scheduler.get("/explain?pod=default/before")
    assert code == 404, body


BIND: Json = {"verbs": ["create"], "resources": ["pods/binding"], "retry_after_s": 0}
READ: Json = {"verbs": ["list", "watch"], "resources": ["pods", "nodes"], "retry_after_s": 0}
REPORT: Json = {"resources": ["events", "pods/status"], "retry_after_s": 0}
EVERY: Json = {"rate_429": 0.1, "rate_500": 0.1, "rate_503": 0.05, "rate_reset": 0.1, "rate_lost": 0.1}


@SYNTHETIC
@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([BIND | {"rate_429": 0.3}], id="binds 429"),
        pytest.param([BIND | {"rate_500": 0.3}], id="binds 500"),
        pytest.param([BIND | {"rate_reset": 0.3}], id="binds not sent"),
        pytest.param([BIND | {"rate_lost": 0.5}], id="answers of binds lost"),
        pytest.param([BIND | EVERY, {"verbs": ["get"], "resources": ["pods"]} | EVERY], id="binds and reads, all"),
        pytest.param([REPORT | {"rate_500": 0.3, "rate_lost": 0.3, "verbs": ["create", "patch"]}], id="reports"),
        pytest.param([BIND | {"latency_ms": 20.0, "latency_p99_ms": 400.0}], id="slow binds"),
    ],
)
def test_errors_of_the_api_server(synthetic: Synthetic, scheduler: Scheduler, rules: list[Json]) -> None:
    place_in_spite_of(synthetic, rules)


@SYNTHETIC
def test_errors_of_the_api_server_at_the_start(synthetic: Synthetic, schedule: Schedule) -> None:
    synthetic.faults({"rules": [READ | EVERY]})
    scheduler = schedule(ready=False)
    place_in_spite_of(synthetic, [READ | EVERY])
    scheduler.ready()


def place_in_spite_of(synthetic: Synthetic, rules: list[Json]) -> None:
    capacities(synthetic)
    synthetic.faults({"rules": rules, "watch": {"drop_every_s": 1.0, "delay_ms": 30.0}})
    synthetic.create(*(pod(f"p{at}") for at in range(60)))
    synthetic.all_bound_once(60)
    until_faulty(synthetic)
    synthetic.faults({"clear": True})
    synthetic.create(pod("last"))
    synthetic.all_bound_once(61)


def until_faulty(synthetic: Synthetic) -> None:
    """Waits until a request has failed: reports may come after the last bind."""
    end = time.monotonic() + PATIENCE
    while not sum(synthetic.faults({})["counts"].values()):
        assert time.monotonic() < end, "no request has failed"
        time.sleep(0.02)


@SYNTHETIC
def test_lost_answers_do_not_occupy_capacity_twice(synthetic: Synthetic, scheduler: Scheduler) -> None:
    synthetic.create(node("a", cpu="2"), node("b", cpu="2"))
    synthetic.faults({"rules": [BIND | {"rate_lost": 1.0, "first": 3}, BIND | {"rate_reset": 1.0, "first": 3}]})
    synthetic.create(*(pod(f"p{at}", cpu="1") for at in range(4)))
    synthetic.all_bound_once(4)


@SYNTHETIC
def test_a_pod_that_cannot_be_bound_delays_no_other(synthetic: Synthetic, scheduler: Scheduler) -> None:
    """Its capacity is released while its retry is delayed."""
    synthetic.create(node("a", cpu="1"))
    synthetic.faults({"rules": [BIND | {"rate_429": 1.0, "retry_after_s": 3600, "first": 1}]})
    synthetic.create(pod("unlucky", cpu="500m"))
    synthetic.create(*(pod(f"p{at}", cpu="100m") for at in range(5)))
    synthetic.until_bound(5, "p")
