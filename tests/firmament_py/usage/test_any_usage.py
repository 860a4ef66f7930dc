"""The used amounts of nodes, against plain Python, while tasks are added, removed and measured."""

import math

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from firmament_py.model.events import NodeRemoved
from firmament_py.usage.ring_buffers import METRICS
from firmament_py.usage.usage import Basis
from tests.builders import NOW_US, make_class, make_cluster, make_node, make_tasks, removed
from tests.firmament_py.usage.measuring import SECOND, load, usage
from tests.firmament_py.usage.test_ring_buffers import decayed

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
