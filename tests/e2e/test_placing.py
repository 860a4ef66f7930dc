"""Which pods are placed."""

from collections.abc import Callable

from tests.e2e.backends import PODS, Backend
from tests.e2e.objects import container, node, pod
from tests.e2e.processes import Scheduler

Schedule = Callable[..., Scheduler]


def test_our_pods_are_placed_and_spread(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(*(node(f"n{at}") for at in range(3)))
    backend.until_seen_by(scheduler)
    backend.create(*(pod(f"p{at}") for at in range(9)))
    where = backend.until_bound(9)
    assert sorted(where.values()) == ["n0"] * 3 + ["n1"] * 3 + ["n2"] * 3
    message = backend.until_event("Scheduled", "p0")
    assert message["message"] == f"Successfully assigned default/p0 to {where['p0']}"
    assert (message["type"], message["source"]["component"]) == ("Normal", "poseidon")


def test_pods_created_before_the_scheduler_starts_are_placed(backend: Backend, schedule: Schedule) -> None:
    backend.create(*(pod(f"p{at}") for at in range(5)), node("n"))
    schedule()
    backend.until_bound(5)


def test_pods_of_other_schedulers_are_counted_but_not_placed(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("n", cpu="2"))
    backend.create(pod("theirs", scheduler="somebody", cpu="1500m"), pod("waits", scheduler=None, cpu="100m"))
    backend.bind("theirs", "n")
    backend.until_seen_by(scheduler)
    backend.create(pod("large", cpu="1"), pod("small", cpu="500m"))
    backend.until_bound(1, "small")
    assert backend.until_unschedulable("large") == "0/1 nodes are available: 1 Insufficient cpu."
    backend.delete(PODS, "theirs")
    backend.until_bound(1, "large")
    assert "waits" not in backend.bound()


def test_a_bind_by_another_scheduler_uses_capacity(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("n", cpu="2"))
    backend.until_seen_by(scheduler)
    backend.create(pod("theirs", scheduler="somebody", cpu="1500m"))
    backend.bind("theirs", "n")
    backend.until_bound(1)
    backend.create(pod("ours", cpu="1"))
    assert "1 Insufficient cpu" in backend.until_unschedulable("ours")
    assert scheduler.status()["pods"]["waiting"] == 1


def test_several_scheduler_names_of_which_one_is_the_default(backend: Backend, schedule: Schedule) -> None:
    backend.create(node("n"))
    schedule("--scheduler-name", "batch", "--scheduler-name", "default-scheduler")
    backend.create(pod("a", scheduler="batch"), pod("b", scheduler=None), pod("c", scheduler="poseidon"), pod("z"))
    backend.create(pod("last", scheduler="batch"))
    backend.until_bound(3)
    backend.until_event("Scheduled", "last")
    assert set(backend.bound()) == {"a", "b", "last"}


def test_gated_pods_wait_for_their_gates(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("n"))
    backend.until_seen_by(scheduler)
    backend.create(pod("gated", schedulingGates=[{"name": "example.com/quota"}]), pod("free"))
    backend.until_bound(1, "free")
    assert set(backend.bound()) == {"free"}
    backend.patch(f"{PODS}/gated", {"spec": {"schedulingGates": []}})
    backend.until_bound(1, "gated")


def test_extended_resources_to_the_last_one(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a", cpu="10", gpu=4), node("b", cpu="10", gpu=2), node("c", cpu="10"))
    backend.until_seen_by(scheduler)
    backend.create(*(pod(f"g{at}", containers=[container(cpu="1", gpu=1)]) for at in range(8)))
    where = backend.until_bound(6)
    assert sorted(where.values()) == ["a"] * 4 + ["b"] * 2
    left = ({f"g{at}" for at in range(8)} - set(where)).pop()
    assert backend.until_unschedulable(left) == "0/3 nodes are available: 3 Insufficient example.com/gpu."
