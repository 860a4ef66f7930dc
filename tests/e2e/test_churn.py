"""Pods and nodes are created, changed, deleted and recreated with the same name."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.e2e.api import ApiError, Json
from tests.e2e.backends import NODES, PODS, Backend
from tests.e2e.conftest import REAL, SYNTHETIC
from tests.e2e.objects import container, node, overcommitted, pod
from tests.e2e.processes import Scheduler

Schedule = Callable[..., Scheduler]


def test_pods_that_are_deleted_and_recreated_with_the_same_name(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a", cpu="2"), node("b", cpu="2"))
    backend.until_seen_by(scheduler)
    names = [f"p{at}" for at in range(8)]
    for _ in range(6):
        backend.create(*(pod(name, cpu="1") for name in names))
        backend.until_bound(1)
        backend.delete(PODS, *names)
    fresh = {item["metadata"]["uid"] for item in backend.create(*(pod(name, cpu="1") for name in names))}
    backend.pods.until(lambda pods: {p["metadata"]["uid"] for p in pods} == fresh)
    backend.until_bound(4)
    backend.delete(PODS, *list(backend.bound()))
    backend.pods.until(lambda pods: len(pods) == 4 and all(p["spec"].get("nodeName") for p in pods))
    assert scheduler.status()["pods"].get("waiting", 0) == 0


def test_pods_that_are_deleted_while_they_are_bound(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(*(node(f"n{at}", cpu="2") for at in range(3)))
    backend.until_seen_by(scheduler)
    for step in range(4):
        names = [f"t{step}-{at}" for at in range(30)]
        with ThreadPoolExecutor(2) as pool:
            creating = pool.submit(backend.create, *(pod(name, cpu="1") for name in names))
            backend.until_bound(1, f"t{step}-")
            backend.delete(PODS, *names)
            creating.result()
        backend.delete(PODS, *names)
    backend.create(*(pod(f"last{at}", cpu="1") for at in range(6)))
    backend.until_bound(6, "last")  # all the room there is: nothing is held for those that went
    assert scheduler.metric("poseidon_placements_dropped_total") == 0


@REAL
def test_a_terminating_pod_occupies_its_capacity_until_it_is_removed(backend: Backend, scheduler: Scheduler) -> None:
    """The synthetic cluster's kubelets would end it at once."""
    backend.create(node("a", cpu="1"))
    backend.until_seen_by(scheduler)
    backend.create(pod("old", cpu="1", metadata={"finalizers": ["example.com/hold"]}))
    backend.until_bound(1, "old")
    backend.create(pod("new", cpu="900m"))
    backend.until_unschedulable("new")
    backend.delete(PODS, "old")
    backend.pods.until(lambda pods: [p for p in pods if p["metadata"].get("deletionTimestamp")])
    backend.create(pod("small", cpu="1m"))
    assert backend.until_unschedulable("small") == "0/1 nodes are available: 1 Insufficient cpu."
    backend.patch(f"{PODS}/old", {"metadata": {"finalizers": None}})
    backend.until_bound(1, "new")


def test_a_pod_that_ends_releases_its_capacity(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a", cpu="1"))
    backend.until_seen_by(scheduler)
    backend.create(pod("first", cpu="1", restartPolicy="Never"))
    backend.until_bound(1, "first")
    backend.create(pod("second", cpu="1", restartPolicy="Never"))
    backend.until_unschedulable("second")
    backend.finish_pod("first", "Succeeded")
    backend.until_bound(1, "second")
    backend.create(pod("third", cpu="1"))
    backend.until_unschedulable("third")
    backend.finish_pod("second", "Failed")
    backend.until_bound(1, "third")


def test_nodes_that_are_removed_and_added_again(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a", cpu="2"), node("b", cpu="2"))
    backend.until_seen_by(scheduler)
    backend.create(*(pod(f"p{at}", cpu="1") for at in range(4)))
    where = backend.until_bound(4)
    backend.delete(NODES, "a")
    backend.create(pod("q0", cpu="1"), pod("q1", cpu="1"))
    backend.until_event("FailedScheduling", "q0", "0/1 nodes are available: 1 Insufficient cpu.")
    # pods that were bound to it are still there, in the API server's eyes, and hold their room when it is back
    backend.create(node("a", cpu="3"))
    assert set(backend.until_bound(1, "q").values()) == {"a"}
    backend.delete(PODS, *(name for name, at in where.items() if at == "a"))
    assert set(backend.until_bound(2, "q").values()) == {"a"}
    assert scheduler.metric("scheduler_cache_size", type="nodes") == 2


def test_nodes_added_and_removed_during_a_burst(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("stays", cpu="8", pods=100))
    backend.until_seen_by(scheduler)
    with ThreadPoolExecutor(1) as pool:
        creating = pool.submit(lambda: backend.create(*(pod(f"p{at}", cpu="50m") for at in range(120))))
        for _ in range(5):
            backend.create(node("comes", cpu="8", pods=100))
            backend.delete(NODES, "comes")
        creating.result()
    backend.create(node("comes", cpu="8", pods=100))
    backend.until_bound(120)
    backend.until_seen_by(scheduler)
    assert scheduler.metric("scheduler_cache_size", type="nodes") == 2


def test_a_node_that_shrinks_takes_no_more_than_it_has(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a", cpu="4"))
    backend.until_seen_by(scheduler)
    backend.create(pod("first", cpu="1"))
    backend.until_bound(1)
    backend.resize_node("a", cpu="1500m")
    # a pod that can only be placed by who knows the new size, which came with this label
    backend.patch_node("a", {"metadata": {"labels": {"size": "small"}}})
    backend.create(pod("seen", cpu="1m", nodeSelector={"size": "small"}))
    backend.until_bound(1, "seen")
    backend.create(pod("second", cpu="1"))
    assert backend.until_unschedulable("second") == "0/1 nodes are available: 1 Insufficient cpu."
    backend.resize_node("a", cpu="500m")  # less than what runs there
    backend.patch_node("a", {"metadata": {"labels": {"size": "tiny"}}})
    backend.create(pod("third", cpu="1m", nodeSelector={"size": "tiny"}))
    backend.until_unschedulable("third")
    backend.resize_node("a", cpu="4")
    backend.until_bound(4)


def test_a_resource_that_appears(backend: Backend, scheduler: Scheduler) -> None:
    """A device plug-in registers after the node."""
    backend.create(node("a"), node("b"))
    backend.until_seen_by(scheduler)
    backend.create(*(pod(f"p{at}", containers=[container(cpu="100m", gpu=1)]) for at in range(3)))
    for at in range(3):
        assert "Insufficient example.com/gpu" in backend.until_unschedulable(f"p{at}")
    backend.resize_node("b", gpu="2")
    assert set(backend.until_bound(2).values()) == {"b"}
    backend.resize_node("a", gpu="1")
    assert sorted(backend.until_bound(3).values()) == ["a", "b", "b"]


def test_our_pods_bound_by_another_client(backend: Backend, scheduler: Scheduler) -> None:
    """Another client binds our pods concurrently: each is bound once, and ours over-commit no node."""
    backend.create(*(node(f"n{at}", cpu="4", pods=100) for at in range(3)))
    backend.until_seen_by(scheduler)
    names = [f"p{at}" for at in range(60)]
    backend.create(*(pod(name, cpu="50m") for name in names))
    for name in reversed(names):
        try:
            backend.bind(name, "n0")
        except ApiError as error:  # ours was quicker
            if error.code != 409:
                raise
    backend.until_bound(60)
    backend.create(pod("last"))
    backend.until_bound(1, "last")


def test_everything_at_once(backend: Backend, scheduler: Scheduler) -> None:
    """Afterwards the scheduler's state agrees with the API server's."""
    backend.create(*(node(f"n{at}", cpu="3", pods=12) for at in range(4)))
    backend.shrinking = {"n3"}
    backend.until_seen_by(scheduler)
    for step in range(5):
        backend.create(*(pod(f"t{step}-{at}", cpu=f"{100 + 50 * (at % 7)}m") for at in range(16)))
        backend.delete(PODS, *(f"t{step - 1}-{at}" for at in range(0, 16, 2)))
        backend.resize_node("n3", cpu=("2", "3", "1", "4", "3")[step])
        if step % 2:
            backend.delete(NODES, "n2")
            backend.create(node("n2", cpu="3", pods=12))
    backend.create(*(node(f"more{at}", cpu="8", pods=40) for at in range(2)))

    def all_bound(pods: list[Json]) -> bool:
        return bool(pods) and all(p["spec"].get("nodeName") for p in pods)

    backend.pods.until(all_bound)
    pods = backend.api("GET", PODS)["items"]
    nodes = {n["metadata"]["name"]: n["status"]["allocatable"] for n in backend.api("GET", NODES)["items"]}
    nodes.pop("n3")  # it shrank under its pods
    nodes.pop("n2")  # it was removed under its pods
    assert overcommitted(pods, nodes) == []
    backend.create(pod("last"))
    backend.until_bound(1, "last")
    # a pod that was on its way to n3 when it shrank may have been refused there
    alive = [p for p in backend.api("GET", PODS)["items"] if p["status"]["phase"] not in ("Failed", "Succeeded")]
    scheduler.until_knows(6, len(alive))
    assert sum(scheduler.status()["pods"].values()) == len(alive)


@SYNTHETIC
def test_a_node_that_fails_and_recovers(synthetic: Backend, scheduler: Scheduler) -> None:
    """Its pods are evicted; the replacements run on other nodes, and on it once it is ready again."""
    synthetic.create(node("a", cpu="1"), node("b", cpu="1"))
    synthetic.until_seen_by(scheduler)
    synthetic.create(pod("p", cpu="1", tolerations=_impatient()))
    (where,) = synthetic.until_bound(1).values()
    synthetic.api("POST", "/_nodes", {"fail": [where]})
    synthetic.pods.until(lambda pods: not pods)
    synthetic.create(pod("q", cpu="1"), pod("r", cpu="1"))
    (other,) = {"a", "b"} - {where}
    assert set(synthetic.until_bound(1).values()) == {other}
    synthetic.api("POST", "/_nodes", {"restore": [where]})
    assert set(synthetic.until_bound(2).values()) == {"a", "b"}


def _impatient() -> list[Json]:
    keys = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    return [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0} for key in keys]
