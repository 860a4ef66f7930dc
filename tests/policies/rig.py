"""Rounds under a policy, each network of which is checked against the reference solver."""

from collections.abc import Sequence

import numpy as np

from firmament_py.flow.network import Solution, Status
from firmament_py.flow.solver import NetworkxSolver
from firmament_py.model.events import Event
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.policy import Policy, View
from tests.builders import NOW_US, Cluster, make_cluster


def is_optimal(network: PlacementNetwork, solution: Solution) -> None:
    assert solution.status is Status.OPTIMAL
    assert solution.cost == NetworkxSolver().solve(network.flow).cost


def cluster_under(policy: Policy, *events: Event) -> Cluster:
    """A cluster without reservations: only the policy affects waiting tasks."""
    return make_cluster(*events, policy=policy, observer=is_optimal, reserve_after_us=None)


def places(policy: Policy, *events: Event, now_us: int = NOW_US) -> dict[int, str]:
    """uid -> node of what one round places."""
    cluster = cluster_under(policy, *events)
    result = cluster.run(now_us)
    assert result.stats.fallback == ""
    return cluster.names(result)


def make_view(
    *,
    resources: tuple[str, ...] = ("pods", "cpu"),
    requests: Sequence[Sequence[int]] = ((1, 1),),
    allocatable: Sequence[Sequence[int]],
    free: Sequence[Sequence[int]] | None = None,
    running: Sequence[int] | None = None,
    offsets: Sequence[int] = (0, 1, 2),
    priority: Sequence[int] | None = None,
    age_us: Sequence[int] | None = None,
    expected_us: Sequence[int] | None = None,
) -> View:
    """One waiting task of each class."""
    classes, nodes = len(requests), len(allocatable)

    def column(values: Sequence[int] | None, length: int) -> np.ndarray:
        return np.zeros(length, np.int64) if values is None else np.array(values, np.int64)

    offered = np.array(allocatable, np.int64).reshape(nodes, len(resources))
    return View(
        resources=resources,
        requests=np.array(requests, np.int64).reshape(classes, len(resources)),
        priority=column(priority, classes),
        waiting=np.ones(classes, np.int64),
        allocatable=offered,
        free=offered if free is None else np.array(free, np.int64).reshape(offered.shape),
        running=column(running, nodes),
        slot_offsets=np.array(offsets, np.int64),
        task_class=np.arange(classes),
        task_age_us=column(age_us, classes),
        expected_us=column(expected_us, classes),
    )
