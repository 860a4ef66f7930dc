"""Costs of policies by measured usage."""

from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.events import Event
from firmament_py.policy import View
from policies.cpu_memory import CpuMemory
from policies.load_spreading import LoadSpreading
from tests.builders import Cluster, make_class, make_cluster, make_gang, make_node, make_tasks, per_node
from tests.firmament_py.usage.measuring import measure, usage


def scheduler(cluster, policy, usage):
    return Cluster(cluster.state, Scheduler(cluster.state, policy, OrToolsSolver(), usage=usage))


def test_costs_depend_on_usage_and_capacity_on_requests():
    """Requests fill node a except for one slot, but it is idle; b has lower requests and is busy."""
    reported: list[Event] = [
        make_node("a", cpu=10_000, memory=1000),
        make_node("b", cpu=10_000, memory=1000),
        make_class(1, cpu=9_000),
        make_class(2, cpu=1_000),
        make_tasks([1], 1, on="a"),
        make_tasks([2], 2, on="b"),
        make_tasks([11, 12], 2),
    ]
    cluster = make_cluster(*reported)
    one = usage()
    measure(one, cluster.state, 1, cpu=100, memory=1)
    measure(one, cluster.state, 2, cpu=6_000, memory=600)
    placed = scheduler(cluster, CpuMemory(), one).round()
    assert per_node(placed) == {"a": 1, "b": 1}, "a has room for one only, whatever it uses"
    assert per_node(make_cluster(*reported, policy=CpuMemory()).round()) == {"b": 2}


def test_placements_of_a_round_count_by_their_requests():
    """Seen by a policy in a round of several solves."""
    seen = []

    class Watching(LoadSpreading):
        def costs(self, view: View):
            seen.append((view.load.copy(), view.free.copy(), view.allocatable))
            return super().costs(view)

    # two large ones fit on a each alone, and b has many already; while one of them is turned away no task of lower
    # priority is placed
    cluster = make_cluster(
        *(make_node("a", cpu=1000, memory=1000), make_node("b", cpu=1000)),
        *(make_class(5), make_tasks(range(100, 140), 5, on="b")),
        make_class(1, cpu=600, priority=1),
        make_class(2, cpu=601, priority=1),
        make_class(3, cpu=50),
        make_class(4, cpu=100),
        make_tasks([1], 4, on="a"),
        make_tasks([11], 1),
        make_tasks([12], 2),
        make_tasks([13], 3),
    )
    one = usage()
    measure(one, cluster.state, 1, cpu=40, memory=7)
    scheduler(cluster, Watching(), one).round()
    first_load, first_free, _ = seen[0]
    assert first_load[0].tolist() == [1, 40, 7]
    assert first_free[0].tolist() == [109, 900, 1000]
    assert any((free != first_free).any() for _, free, _ in seen), "there was a second solve"
    for loaded, free, _ in seen:
        assert (loaded - first_load == first_free - free).all()


def test_trials_without_other_tasks_have_costs_by_usage_too():
    """The trial whether a gang could fit in future removes task 2, whose usage is not known separately."""
    seen = []

    class Watching(LoadSpreading):
        def costs(self, view: View):
            cpu = view.resources.index("cpu")
            seen.append((view.load[:, cpu].tolist(), view.free[:, cpu].tolist()))
            return super().costs(view)

    cluster = make_cluster(
        *(make_node("a", cpu=1000), make_node("b", cpu=1000)),
        *(make_class(1, cpu=400), make_class(2, cpu=600), make_class(3, cpu=550), make_class(4, cpu=551)),
        *(make_tasks([1], 1, on="a", lasting=True), make_tasks([2], 2, on="b")),
        *(make_gang(1, 2, created_us=0), make_tasks([11], 3, gang=1), make_tasks([12], 4, gang=1)),
    )
    one = usage()
    measure(one, cluster.state, 1, cpu=100)
    measure(one, cluster.state, 2, cpu=50)
    assert scheduler(cluster, Watching(), one).round() == {}
    assert ([100, 0], [600, 1000]) in seen
    for loaded, free in seen:
        assert loaded == [max(100 + 600 - free[0], 0), max(50 + 400 - free[1], 0)]


def test_the_tie_breaker_of_load_spreading_depends_on_usage():
    cluster = make_cluster(
        make_node("a", cpu=1000),
        make_node("b", cpu=1000),
        make_class(1, cpu=400),
        make_class(2, cpu=100),
        make_tasks([1], 1, on="a"),
        make_tasks([2], 2, on="b"),
        make_tasks([3], 2),
    )
    one = usage()
    measure(one, cluster.state, 1, cpu=10)
    measure(one, cluster.state, 2, cpu=300)
    assert per_node(scheduler(cluster, LoadSpreading(), one).round()) == {"a": 1}
