"""Bandwidth that pods request: counted under the policy that needs it, and under others only on request."""

import random

import pytest

from tests.e2e.api import Json
from tests.e2e.backends import PODS, Backend
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.objects import node, pod
from tests.e2e.processes import Scheduler

EGRESS = "kubernetes.io/egress-bandwidth"
G = 10**9


def linked(name: str, egress: str | None = None, *, by: str = "annotations") -> Json:
    """A node whose annotation or label states the capacity of its link."""
    item = node(name, cpu="100", pods="110")
    if egress is not None:
        item["metadata"].setdefault(by, {})["poseidon.io/egress-bandwidth"] = egress
    return item


def sender(name: str, egress: str) -> Json:
    return pod(name, cpu="10m", metadata={"annotations": {EGRESS: egress}})


def sent(item: Json) -> int:
    """Gbit/s that a pod requests."""
    return int(item["metadata"]["annotations"][EGRESS].removesuffix("G"))


def judge_history(backend: Backend, links: dict[str, int]) -> None:
    """Asserts that after every observed bind a node's pods request at most the Gbit/s of its link."""
    bound: dict[str, Json] = {}
    judged = 0
    for what, item in backend.pods.history:
        uid, where = item["metadata"]["uid"], item["spec"].get("nodeName")
        if what == "DELETED" or not where:
            bound.pop(uid, None)
            continue
        new, bound[uid] = uid not in bound, item
        if new:
            asked = sum(sent(p) for p in bound.values() if p["spec"]["nodeName"] == where)
            assert asked <= links[where], f"binding {item['metadata']['name']} to {where}"
            judged += 1
    assert judged


@SYNTHETIC
@pytest.mark.flags("--policy", "network-aware", "--link-bandwidth", "7G")
def test_links_are_never_over_committed(backend: Backend, scheduler: Scheduler) -> None:
    """Four links, declared in all supported ways, and pods that are created and end and request all of the capacity."""
    links = {"a": 10, "b": 12, "c": 7, "d": 7}
    backend.create(linked("a", "10G"), linked("b", "12G", by="labels"), linked("c"), linked("d"))
    chance = random.Random(3)
    for step in range(4):
        backend.create(*(sender(f"t{step}-{at}", f"{chance.choice((1, 2, 4))}G") for at in range(15)))
        bound = backend.until_bound(8)
        backend.delete(PODS, *chance.sample(sorted(bound), 6))
    backend.create(sender("last", "11G"))
    message = backend.until_unschedulable("last")
    assert message == "0/4 nodes are available: 4 Insufficient bandwidth.egress."
    judge_history(backend, links)
    assert scheduler.status()["resources"]["bandwidth.egress"]["allocatable"] == sum(links.values()) * G
    assert scheduler.metric("poseidon_placements_dropped_total") == 0


@pytest.mark.parametrize(
    "placed",
    [
        pytest.param(4, id="other-policies-ignore-it"),
        pytest.param(4, marks=pytest.mark.flags("--policy", "network-aware", "--bandwidth", "off"), id="off"),
        pytest.param(2, marks=pytest.mark.flags("--bandwidth", "on"), id="on"),
    ],
)
def test_whether_bandwidth_counts(backend: Backend, scheduler: Scheduler, placed: int) -> None:
    backend.create(linked("a", "5G"))
    backend.create(*(sender(f"p{at}", "2G") for at in range(4)))
    backend.until_bound(placed)
    backend.create(pod("quiet", cpu="10m"))  # one that comes after them, so that they have all been tried
    backend.until_bound(1, "quiet")
    assert len(backend.bound("p")) == placed


@pytest.mark.flags("--policy", "network-aware", "--link-bandwidth", "7G")
def test_an_invalid_annotation_is_named_and_delays_no_other_pod(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(linked("a", "5G"), linked("b", "plenty"))
    backend.create(sender("wrong", "12"), sender("right", "2G"))
    assert backend.until_bound(1) == {"right": "a"}
    event = backend.until_event("FailedScheduling", "wrong")
    assert (
        f"metadata.annotations[{EGRESS}]: '12' is not within bounds; give 1k to 1P bits per second" in event["message"]
    )


@pytest.mark.flags("--policy", "interference")
def test_an_invalid_interference_class_is_named_and_ignored(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a"), pod("p", metadata={"annotations": {"poseidon.io/interference-class": "wolf"}}))
    backend.until_bound(1)
    event = backend.until_event("InvalidAnnotation", "p")
    assert "'wolf' is not valid; give one of sheep, rabbit, devil, turtle; it is ignored" in event["message"]
