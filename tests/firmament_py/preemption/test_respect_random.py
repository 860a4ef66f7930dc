"""Random clusters in which evicted tasks are created again: a task preempts once, and then it runs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.constraints import PeerDemand, PeerTerm, Spread
from firmament_py.model.events import Event
from tests.builders import make_class, make_label_set, make_node, make_tasks, needs, preempting_cluster, tasks_like
from tests.effort import examples
from tests.firmament_py.preemption.recreating import Recreating

pytestmark = pytest.mark.slow  # compiles once, not in every worker

HOST, ZONE = "kubernetes.io/hostname", "zone"
APPS = ["a", "b"]
HIGH, PREEMPTOR = 90, 900

selectors = st.sampled_from([tasks_like(needs("app", "In", *apps)) for apps in (("a",), ("b",), ("a", "b"))])
keys = st.sampled_from([HOST, ZONE])
terms = st.lists(st.builds(PeerTerm, selectors, keys), max_size=1).map(tuple)
spreads = st.lists(st.builds(Spread, selectors, keys, st.integers(1, 2)), max_size=1).map(tuple)
peers = st.builds(PeerDemand, terms, terms, spreads)


@st.composite
def worlds(draw):
    nodes = [
        make_node(f"n{i}", cpu=draw(st.integers(2, 4)), labels={HOST: f"n{i}", ZONE: draw(st.sampled_from("xy"))})
        for i in range(draw(st.integers(2, 4)))
    ]
    classes = [make_class(i, cpu=1, peers=draw(peers)) for i in (1, 2)]
    high = make_class(HIGH, cpu=draw(st.integers(1, 3)), priority=10, peers=draw(peers))
    kinds: dict[int, dict[str, Any]] = {}
    running: list[Event] = []
    for node in nodes:
        for _ in range(draw(st.integers(0, node.allocatable["cpu"]))):
            uid = 1 + len(kinds)
            kinds[uid] = {"cls": draw(st.sampled_from([1, 2])), "label_set": draw(st.sampled_from([1, 2]))}
            running.append(make_tasks([uid], **kinds[uid], on=node.name))
    cluster = preempting_cluster(
        *(make_label_set(i, app=app) for i, app in enumerate(APPS, 1)),
        *(*classes, high, *nodes, *running),
        make_tasks([PREEMPTOR], HIGH, label_set=draw(st.sampled_from([1, 2]))),
    )
    return Recreating(cluster, kinds, draw(st.integers(0, 3)))


def test_a_task_preempts_once_and_then_it_runs():
    reached = 0

    @examples(150)
    @given(world=worlds())
    def run(world):
        nonlocal reached
        preempted = 0
        for _ in range(7):
            before = len(world.evicted)
            world.round()
            preempted += len(world.evicted) > before
        assert preempted <= 1
        assert not preempted or PREEMPTOR in world.where
        reached += preempted

    run()
    assert reached >= 5
