"""Placing in portions, large tasks first, must not leave out tasks that other policies place."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from firmament_py.policy import COST_MAX, Costs, waiting_cost
from policies.bin_packing import BinPacking
from policies.cpu_memory import CpuMemory
from policies.load_spreading import LoadSpreading
from tests.builders import make_class, make_cluster, make_gang, make_node, make_tasks
from tests.policies.random_clusters import over_capacity, placed
from tests.policies.rig import make_view

SEEDS = range(40)


@cache
def counts(seed: int) -> tuple[int, int, int]:
    """Number of the same tasks that cpu-memory, bin-packing and load-spreading place."""
    events = over_capacity(seed)
    return placed(events, CpuMemory()), placed(events, BinPacking()), placed(events, LoadSpreading())


@pytest.mark.xdist_group("portions")
@pytest.mark.parametrize("seed", SEEDS)
def test_cpu_memory_places_about_as_many_as_others_do(seed):
    mine, *others = counts(seed)
    assert mine >= 0.95 * min(others)


@pytest.mark.xdist_group("portions")
def test_cpu_memory_places_as_many_in_total():
    mine, packing, spreading = np.sum([counts(seed) for seed in SEEDS], axis=0).tolist()
    assert mine >= packing
    assert mine >= spreading


def test_cpu_memory_does_not_use_portions_if_they_leave_tasks_waiting():
    view = make_view(
        resources=("cpu", "memory"), requests=[[2, 0], [1, 0]], allocatable=[[8, 8]] * 2, free=[[8, 8]] * 2
    )
    assert CpuMemory().costs(view).node_limit is not None
    again = CpuMemory().costs(replace(view, at_once=True))
    assert again.node_limit is None
    assert len(set(again.wait.tolist())) == 1, "large ones have no precedence"


class Portions:
    """Sends the class of one task to the first node, where it blocks others; in the next portion, to the last."""

    name = "portions"

    def __init__(self) -> None:
        self.asked: list[bool] = []

    def costs(self, view):
        self.asked.append(view.at_once)
        nodes = len(view.allocatable)
        place = np.linspace(0, COST_MAX, nodes).astype(np.int64)[:: -1 if view.at_once else 1]
        size = view.requests[:, view.resources.index("cpu")][view.task_class]
        return Costs(
            place=np.ascontiguousarray(place)[None],
            slot=np.zeros((1, 1), np.int64),
            wait=waiting_cost(view) + (0 if view.at_once else size),
            node_limit=None if view.at_once else np.ones(nodes, np.int64),
        )


def test_a_round_that_left_out_tasks_is_run_again_and_the_better_one_counts(monkeypatch):
    monkeypatch.setattr("firmament_py.placement.second_opinion.MOST_TASKS", 0)
    policy = Portions()
    cluster = make_cluster(
        *(make_node("a", cpu=4), make_class(1, cpu=4), make_class(2, cpu=1)),
        *(make_tasks([1], 1), make_tasks([2, 3, 4, 5], 2)),
        policy=policy,
    )
    assert set(cluster.round()) == {2, 3, 4, 5}
    assert policy.asked[0] is False
    assert policy.asked[-1] is True


def test_a_round_is_not_run_again_if_no_task_that_fits_was_left(monkeypatch):
    monkeypatch.setattr("firmament_py.placement.second_opinion.MOST_TASKS", 0)
    policy = Portions()
    cluster = make_cluster(
        *(make_node("a", cpu=8), make_class(1, cpu=4), make_class(2, cpu=1), make_class(3, cpu=9)),
        *(make_tasks([1], 1), make_tasks([2, 3, 4, 5], 2), make_tasks([6], 3)),
        *(make_gang(1, 9), make_tasks(range(20, 29), 2, gang=1)),
        policy=policy,
    )
    assert set(cluster.round()) == {1, 2, 3, 4, 5}
    assert not any(policy.asked)
