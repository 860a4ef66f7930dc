"""While the searches are being compiled, rounds place tasks without them, and try the others again later."""

import numpy as np
import pytest

from firmament_py.engine.scheduler import DELAY_STEP_US
from firmament_py.eviction import tables
from firmament_py.packing import pack
from tests.builders import NOW_US, Cluster, make_class, make_node, make_tasks, preempting_cluster

LOW, HIGH = 1, 2
"""Classes of 4 cpu, of priorities 0 and 100."""


class Compiler:
    """Compiles until the test says otherwise."""

    done = False

    def __call__(self) -> bool:
        return self.done


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """No search may be called while it compiles."""
    compiler = Compiler()
    for module, name in ((tables, "search"), (pack, "fill"), (pack, "ruin_and_recreate")):
        search = getattr(module, name)

        def guarded(*args, search=search):
            assert compiler.done
            return search(*args)

        monkeypatch.setattr(module, name, guarded)
    return compiler


def full(compiler: Compiler) -> Cluster:
    """A node `full` with a task of low priority, and one of high priority that only fits there."""
    return preempting_cluster(
        make_node("full", cpu=4),
        make_class(LOW, cpu=4),
        make_class(HIGH, cpu=4, priority=100),
        make_tasks([1], LOW, on="full"),
        make_tasks([2], HIGH),
        searchable=compiler,
    )


def test_tasks_are_placed_but_none_is_preempted(compiler: Compiler):
    cluster = full(compiler)
    cluster.tell(make_node("empty", cpu=8), make_tasks([3, 4], LOW))
    result = cluster.run()
    assert len(cluster.names(result)) == 2
    assert not cluster.preempted(result)


def test_a_round_is_due_until_they_are_compiled(compiler: Compiler):
    cluster = full(compiler)
    assert not cluster.preempted(cluster.run())
    scheduler = cluster.scheduler
    assert scheduler.wake_us(NOW_US) == NOW_US + DELAY_STEP_US
    assert not scheduler.due(NOW_US)
    assert not scheduler.quiet
    compiler.done = True
    now_us = NOW_US + DELAY_STEP_US
    assert scheduler.due(now_us)
    assert cluster.preempted(scheduler.run(now_us)) == {1: 2}
    assert not scheduler.wake_us(now_us)


def test_no_round_is_due_if_nothing_waits(compiler: Compiler):
    cluster = full(compiler)
    cluster.tell(make_node("empty", cpu=4))
    assert cluster.round() == {2: "empty"}
    assert cluster.scheduler.quiet


def test_nominations_are_kept(compiler: Compiler):
    cluster = full(compiler)
    compiler.done = True
    assert cluster.preempted(cluster.run()) == {1: 2}
    compiler.done = False
    result = cluster.run()
    assert not len(result.preemption.unnominated)
    assert cluster.nominated() == {2: "full"}


def test_capacity_of_the_wrong_shape_is_left_until_then(compiler: Compiler):
    sizes = np.random.default_rng(1).integers(2, 9, 40)
    cluster = preempting_cluster(
        *(make_node(f"n{at}", cpu=10) for at in range(8)),
        *(make_class(int(size), cpu=int(size)) for size in np.unique(sizes)),
        *(make_tasks([at], int(size)) for at, size in enumerate(sizes)),
        searchable=compiler,
    )
    assert cluster.run().stats.waiting
    assert cluster.scheduler.wake_us(NOW_US)
