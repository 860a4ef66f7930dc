"""Tasks that are placed beside a reservation do not delay its gang: random clusters."""

import heapq
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, assume, event, given
from hypothesis import strategies as st

from firmament_py.model.events import ClassDefined
from tests.builders import (
    NOW_US,
    SECOND_US,
    ended,
    make_class,
    make_cluster,
    make_tasks,
)
from tests.effort import examples
from tests.firmament_py.admission.reservations import gang_of, running
from tests.firmament_py.gang_builders import gpu_nodes


@dataclass
class Trial:
    """A cluster whose tasks end when they are expected to, or, if they do not say, after `unsaid` seconds."""

    nodes: list
    classes: dict[int, ClassDefined]
    in_use: list[tuple[int, int, str, int]]  # uid, class, node, seconds since it began
    gang: list
    arrivals: list[tuple[int, int, int]]  # second, uid, class
    unsaid: int
    _ends: list[tuple[int, int]] = field(default_factory=list)

    def start(self, *, with_others: bool) -> int | None:
        """The second in which the gang starts, None if it never does."""
        arrivals = sorted(self.arrivals) if with_others else []
        cluster = make_cluster(*self.nodes, *self.classes.values())
        cluster.tell(*(running(uid, cls, node, ago) for uid, cls, node, ago in self.in_use), *self.gang)
        ends = [(self._length(cls) - ago, uid) for uid, cls, _, ago in self.in_use]
        heapq.heapify(ends)
        now = 0
        while True:
            while arrivals and arrivals[0][0] <= now:
                _, uid, cls = arrivals.pop(0)
                cluster.tell(make_tasks([uid], cls, created_us=NOW_US + now * SECOND_US))
            at_us = NOW_US + now * SECOND_US
            placed = cluster.round(at_us)
            if any(100 < uid < 200 for uid in placed):
                return now
            for uid, node in placed.items():
                cls = next(c for _, other, c in self.arrivals if other == uid)
                cluster.tell(make_tasks([uid], cls, on=node, created_us=at_us, started_us=at_us))
                heapq.heappush(ends, (now + self._length(cls), uid))
            times = [when for when, *_ in (*ends[:1], *arrivals[:1])]
            if not times:
                return None
            now = max(min(times), now)
            while ends and ends[0][0] <= now:
                cluster.tell(ended(heapq.heappop(ends)[1]))

    def _length(self, cls: int) -> int:
        return self.classes[cls].expected_us // SECOND_US or self.unsaid


@st.composite
def trials(draw) -> Trial:
    nodes = gpu_nodes(*draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)), n0="a", n1="b", n2="b")
    lengths = [0, 10, 20, 30, 40, 50]
    classes = {
        10 * size + k: make_class(10 * size + k, gpu=size, expected_us=length * SECOND_US)
        for size in (1, 2)
        for k, length in enumerate(lengths)
    }
    known = [cls for cls, defined in classes.items() if defined.expected_us]
    in_use: list[tuple[int, int, str, int]] = []
    for node in nodes:
        left = node.allocatable["gpu"]
        while left and draw(st.sampled_from([True, True, False])):
            cls = draw(st.sampled_from([c for c in known if classes[c].requests["gpu"] <= left]))
            left -= classes[cls].requests["gpu"]
            ago = draw(st.integers(0, classes[cls].expected_us // SECOND_US // 10 - 1)) * 10
            in_use.append((len(in_use) + 1, cls, node.name, ago))
    size = draw(st.sampled_from([10, 20]))
    topology = draw(st.sampled_from([{}, {}, {"topology": "rack", "required": True}]))
    arrivals = [
        (draw(st.sampled_from([0, 0, 5, 10, 15, 25])), 900 + i, draw(st.sampled_from(sorted(classes))))
        for i in range(draw(st.integers(1, 8)))
    ]
    gang = gang_of(draw(st.integers(1, 5)), cls=size, **topology)
    return Trial(nodes, classes, in_use, gang, arrivals, draw(st.sampled_from([5, 1000])))


@pytest.mark.slow
@examples(25)
@given(trial=trials())
def test_backfilled_tasks_do_not_delay_the_gang(trial):
    """All tasks that run when the reservation begins have an expected end, and meet it."""
    alone = trial.start(with_others=False)
    assume(alone)
    beside = trial.start(with_others=True)
    event(f"in the way: {len(trial.in_use)}")
    assert beside is not None
    assert beside <= alone


@st.composite
def streams(draw) -> Trial:
    """No task has an expected end, every task runs for 40 s, and there is a stream of small tasks."""
    trial = draw(trials())
    unsaid = {d.requests["gpu"]: c for c, d in trial.classes.items() if not d.expected_us}
    in_use = [
        (uid, unsaid[trial.classes[cls].requests["gpu"]], node, draw(st.sampled_from([0, 10, 20, 30])))
        for uid, cls, node, _ in trial.in_use
    ]
    size = draw(st.integers(1, 4))
    trial.classes[99] = make_class(99, gpu=size)
    gang = gang_of(draw(st.integers(1, 5)), cls=99)
    arrivals = [(3 * k, 900 + k, unsaid[1]) for k in range(20)]
    return Trial(trial.nodes, trial.classes, in_use, gang, arrivals, 40)


@pytest.mark.slow
@examples(
    15, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)  # few gangs have capacity for a start alone
@given(trial=streams())
def test_a_stream_of_small_tasks_does_not_starve_the_gang(trial):
    alone = trial.start(with_others=False)
    assume(alone)
    beside = trial.start(with_others=True)
    assert beside is not None
    assert beside <= 40, "the tasks that ran when capacity was first reserved have ended by then"
