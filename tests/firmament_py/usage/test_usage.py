"""The used amounts of nodes, against plain Python, while tasks are added, removed and measured."""

import logging
import math

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.events import Event, NodeRemoved
from firmament_py.model.resources import LIMIT
from firmament_py.policy import View
from firmament_py.usage.ring_buffers import METRICS
from firmament_py.usage.usage import Basis, Noted, Usage, UsageOptions
from policies.cpu_memory import CpuMemory
from policies.load_spreading import LoadSpreading
from tests.builders import (
    NOW_US,
    Cluster,
    make_class,
    make_cluster,
    make_gang,
    make_node,
    make_tasks,
    per_node,
    removed,
)
from tests.firmament_py.usage.test_ring_buffers import decayed

SECOND = 1_000_000


def usage(basis=Basis.USED, **fields):
    return Usage(UsageOptions(basis, **fields))


def measure(usage, state, uid, cpu=math.nan, memory=math.nan, rx=math.nan, tx=math.nan, *, at=NOW_US, now=None):
    """A sample of one task."""
    rows = state.task_rows(np.array([uid], np.uint64))
    values = np.array([[cpu, memory, rx, tx]], np.float64)
    return usage.note_tasks(state, rows, np.array([at], np.int64), values, at if now is None else now)


def measure_node(usage, state, name, cpu=math.nan, memory=math.nan, rx=math.nan, tx=math.nan, *, at=NOW_US):
    values = np.array([[cpu, memory, rx, tx]], np.float64)
    return usage.note_nodes(state, state.node_rows([f"id-{name}"]), np.array([at], np.int64), values, at)


def load(usage, state, now=NOW_US):
    """Name of node -> resource -> load."""
    nodes = state.present_nodes()
    reading = usage.read(state, nodes, now)
    names = [state.nodes.observed[row].name for row in nodes.tolist()]
    return {
        name: dict(zip(state.resources.names, row, strict=True))
        for name, row in zip(names, reading.load.tolist(), strict=True)
    }


@pytest.fixture
def cluster():
    """Node a with tasks 1 and 2, b with task 3, each requesting 1000 millicores and 100 bytes."""
    return make_cluster(
        make_node("a", cpu=8000, memory=800),
        make_node("b", cpu=8000, memory=800),
        make_class(1, cpu=1000, memory=100),
        make_tasks([1, 2], 1, on="a"),
        make_tasks([3], 1, on="b"),
    )


def test_measured_tasks_count_by_usage_and_others_by_requests(cluster):
    used, larger = usage(Basis.USED), usage(Basis.LARGER)
    for one in (used, larger):
        measure(one, cluster.state, 1, cpu=300.2, memory=150)
    assert load(used, cluster.state)["a"] == {"pods": 2, "cpu": 1300, "memory": 250}  # 300 + 1000; 150 + 100
    assert load(larger, cluster.state)["a"] == {"pods": 2, "cpu": 2000, "memory": 250}
    assert load(used, cluster.state)["b"] == {"pods": 1, "cpu": 1000, "memory": 100}


def test_requests_are_the_default_and_need_no_samples(cluster):
    measure(plain := Usage(), cluster.state, 1, cpu=300)
    reading = plain.read(cluster.state, cluster.state.present_nodes(), NOW_US)
    assert (reading.load, reading.measured, reading.missing, reading.stale) == (None, 0, 0, 0)


def test_fallbacks_are_counted(cluster):
    one = usage(stale=300)
    measure(one, cluster.state, 1, cpu=1, memory=1, at=NOW_US - 301 * SECOND)
    measure(one, cluster.state, 2, cpu=1, memory=1)
    nodes = cluster.state.present_nodes()
    reading = one.read(cluster.state, nodes, NOW_US)
    assert (reading.measured, reading.missing, reading.stale) == (1, 1, 1)
    measure(one, cluster.state, 3, cpu=1)
    reading = one.read(cluster.state, nodes, NOW_US)
    assert (reading.measured, reading.missing, reading.stale) == (1, 1, 1), "half measured is missing"
    assert load(one, cluster.state)["b"] == {"pods": 1, "cpu": 1, "memory": 100}


def test_a_node_without_cpu_has_a_reading():
    cluster = make_cluster(make_node("a"), make_class(1), make_tasks([1], 1, on="a"))
    one = usage()
    measure(one, cluster.state, 1, cpu=5)
    assert load(one, cluster.state) == {"a": {"pods": 1}}


def test_raw_usage_of_nodes(cluster):
    one = Usage()
    nodes = cluster.state.present_nodes()
    assert one.read(cluster.state, nodes, NOW_US).usage is None
    measure_node(one, cluster.state, "b", cpu=600, memory=50, rx=7, at=NOW_US - 60 * SECOND)
    measure_node(one, cluster.state, "b", cpu=300, memory=50)
    read = one.read(cluster.state, nodes, NOW_US + SECOND).usage
    assert read is not None
    np.testing.assert_allclose(read.cpu, [math.nan, 400])
    np.testing.assert_allclose(read.memory, [math.nan, 50])
    np.testing.assert_allclose(read.rx, [math.nan, 7])
    np.testing.assert_allclose(read.tx, [math.nan, math.nan])
    np.testing.assert_allclose(read.age_seconds, [math.nan, 1])
    with pytest.raises(ValueError, match="read-only"):
        read.cpu[0] = 1


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param({"cpu": -1.0}, id="negative"),
        pytest.param({"cpu": 100.0, "tx": -0.1}, id="one-negative"),
        pytest.param({"cpu": math.inf}, id="infinite"),
        pytest.param({"rx": float(LIMIT)}, id="beyond-all-measure"),
        pytest.param({"cpu": 32_001.0}, id="over-four-times-its-node"),
        pytest.param({"memory": 3_201.0}, id="memory-in-another-unit"),
        pytest.param({}, id="nothing-measured"),
        pytest.param({"cpu": 1.0, "at": NOW_US + 301 * SECOND, "now": NOW_US}, id="from-the-future"),
        pytest.param({"cpu": 1.0, "at": 0, "now": NOW_US}, id="without-a-time"),
    ],
)
def test_a_bad_sample_is_refused_alone(cluster, sample, caplog):
    one = usage()
    state = cluster.state
    with caplog.at_level(logging.WARNING):
        assert measure(one, state, 1, **sample) == Noted(refused=1)
    assert "task-1" in caplog.text
    assert measure(one, state, 2, cpu=32_000, memory=3_200) == Noted(taken=1)
    assert one.total == Noted(taken=1, refused=1)
    assert load(one, state)["a"]["cpu"] == 33_000


def test_a_slightly_fast_clock_counts_as_now(cluster):
    one = usage()
    assert measure(one, cluster.state, 1, cpu=5, at=NOW_US + 10 * SECOND, now=NOW_US) == Noted(taken=1)
    assert measure(one, cluster.state, 1, cpu=7, at=NOW_US + SECOND, now=NOW_US + SECOND) == Noted(taken=1)


def test_samples_that_are_not_newer_are_skipped(cluster):
    one = usage()
    measure(one, cluster.state, 1, cpu=5)
    assert measure(one, cluster.state, 1, cpu=6) == Noted(old=1)
    assert measure(one, cluster.state, 99, cpu=6) == Noted(unknown=1)
    assert load(one, cluster.state)["a"]["cpu"] == 1005


def test_samples_survive_a_resync(cluster):
    one = usage()
    measure(one, cluster.state, 3, cpu=5, memory=5)
    measure(one, cluster.state, 1, cpu=7, memory=7)
    measure_node(one, cluster.state, "a", cpu=9)
    after = make_cluster(
        make_class(9, cpu=1),
        make_node("b", cpu=8000, memory=800),
        make_class(1, cpu=1000, memory=100),
        make_tasks([7, 3], 1, on="b"),
        make_node("a", cpu=8000, memory=800),
        make_tasks([2], 1, on="a"),
    ).state
    one.carry(cluster.state, after)
    assert load(one, after)["b"]["cpu"] == 1005, "task 3 by use, task 7 by request"
    assert load(one, after)["a"]["cpu"] == 1000
    read = one.read(after, after.present_nodes(), NOW_US).usage
    assert read is not None
    np.testing.assert_allclose(read.cpu, [math.nan, 9])


def test_a_reused_uid_inherits_no_samples(cluster):
    one = usage()
    measure(one, cluster.state, 3, cpu=5, memory=5)
    cluster.tell(removed(3), make_tasks([3], 1, on="b"))
    assert load(one, cluster.state)["b"]["cpu"] == 1000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"samples": 0}, "usage-samples"),
        ({"samples": 10_001}, "usage-samples"),
        ({"stale": 0.0}, "usage-stale"),
        ({"half_life": 0.0}, "usage-half-life"),
        ({"half_life": math.nan}, "usage-half-life"),
        ({"stale": math.inf}, "usage-stale"),
    ],
)
def test_invalid_options(options, says):
    with pytest.raises(ValueError, match=says):
        UsageOptions(**options)


# -- in rounds ----------------------------------------------------------------------------------------------------


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


# -- against plain Python, at random ------------------------------------------------------------------------------

amounts = st.one_of(st.just(math.nan), st.integers(0, 2000).map(float), st.floats(1e-3, 2000))


class UsageMachine(RuleBasedStateMachine):
    """Tasks are added, moved, removed and added again under the same uid; nodes too; samples arrive late."""

    NODES = ("a", "b", "c")

    def __init__(self) -> None:
        super().__init__()
        self.cluster = make_cluster(
            *(make_node(n, cpu=1000, memory=1000) for n in self.NODES),
            make_class(1, cpu=300, memory=200),
            make_class(2, cpu=100),
        )
        self.usage = {basis: usage(basis, samples=3) for basis in Basis}
        self.now = NOW_US
        self.tasks: dict[int, tuple[int, str]] = {}
        self.samples: dict[int, list[tuple[int, list[float]]]] = {}
        self.nodes = set(self.NODES)

    @rule(uid=st.integers(1, 8), cls=st.integers(1, 2), node=st.sampled_from(NODES))
    def put(self, uid, cls, node):
        self.cluster.tell(make_tasks([uid], cls, on=node))
        self.tasks[uid] = (cls, node)
        self.samples.setdefault(uid, [])

    @rule(uid=st.integers(1, 8))
    def remove(self, uid):
        self.cluster.tell(removed(uid))
        self.tasks.pop(uid, None)
        self.samples.pop(uid, None)

    @rule(node=st.sampled_from(NODES))
    def flap(self, node):
        if node in self.nodes:
            self.cluster.tell(NodeRemoved(f"id-{node}"))
            self.nodes.discard(node)
        else:
            self.cluster.tell(make_node(node, cpu=1000, memory=1000))
            self.nodes.add(node)

    @rule(seconds=st.integers(0, 200))
    def wait(self, seconds):
        self.now += seconds * SECOND

    @rule(
        batch=st.lists(
            st.tuples(st.integers(1, 9), st.integers(0, 100), st.lists(amounts, min_size=4, max_size=4)), max_size=6
        )
    )
    def measure(self, batch):
        uids = np.array([uid for uid, *_ in batch], np.uint64)
        at = np.array([self.now - age * SECOND for _, age, _ in batch], np.int64)
        values = np.array([values for *_, values in batch], np.float64).reshape(-1, len(METRICS))
        rows = self.cluster.state.task_rows(uids)
        for one in self.usage.values():
            one.note_tasks(self.cluster.state, rows, at, values, self.now)
        for uid in {uid for uid, *_ in batch} & set(self.tasks):
            known = self.samples[uid]
            newest = max((at for at, _ in known), default=0)
            mine = {self.now - age * SECOND: v for u, age, v in batch if u == uid and not all(map(math.isnan, v))}
            known.extend(sorted((at, v) for at, v in mine.items() if at > newest))
            del known[:-3]

    @invariant()
    def load_is_what_the_definition_says(self):
        state = self.cluster.state
        state.validate()
        requests = {1: (300, 200), 2: (100, 0)}
        for basis in (Basis.USED, Basis.LARGER):
            counts = {"measured": 0, "missing": 0, "stale": 0}
            # a mean between two whole numbers can be a hair off in one of the two ways to add up
            least, maximum = ({node: {"pods": 0, "cpu": 0, "memory": 0} for node in self.nodes} for _ in range(2))
            for uid, (cls, node) in self.tasks.items():
                means = decayed(self.samples[uid], self.now)
                newest = max((at for at, _ in self.samples[uid]), default=0)
                if not math.isnan(means[0]) and not math.isnan(means[1]):
                    counts["measured"] += 1
                else:
                    counts["stale" if 0 < newest < self.now - 300 * SECOND else "missing"] += 1
                if node not in self.nodes:
                    continue
                for total, hair in ((least[node], -1e-6), (maximum[node], 1e-6)):
                    total["pods"] += 1
                    for metric, name in enumerate(("cpu", "memory")):
                        request, mean = requests[cls][metric], means[metric]
                        amount = request if math.isnan(mean) else max(round(mean + hair), 0)
                        total[name] += max(amount, request) if basis is Basis.LARGER else amount
            found = load(self.usage[basis], state, self.now)
            assert set(found) == self.nodes
            for node, amounts in found.items():
                for name, amount in amounts.items():
                    assert least[node][name] <= amount <= maximum[node][name]
            reading = self.usage[basis].read(state, state.present_nodes(), self.now)
            assert {key: getattr(reading, key) for key in counts} == counts


TestUsage = UsageMachine.TestCase
