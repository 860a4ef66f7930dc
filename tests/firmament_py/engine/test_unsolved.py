"""Whatever a solver answers, a round ends, places what fits, and says what has happened."""

import logging
import re

import numpy as np
import pytest

from firmament_py.flow.network import Solution, Status
from firmament_py.flow.solver import OrToolsSolver, unsolved
from firmament_py.model.events import Event
from tests.builders import (
    make_class,
    make_cluster,
    make_gang,
    make_node,
    make_tasks,
    migrating_cluster,
    per_node,
    preempting_cluster,
)
from tests.effort import seeds


class Answering(OrToolsSolver):
    """A solver whose answers are what a function makes of them: of a network and its solution."""

    name = "answering"

    def __init__(self, answer):
        self.answer, self.seen = answer, []

    def solve(self, network):
        self.seen.append(network)
        return self.answer(network, super().solve(network))


def says(status):
    return lambda network, solution: unsolved(network, status)


def raises(network, solution):
    raise RuntimeError("the solver is broken")


def of_flow(change):
    return lambda network, solution: Solution(Status.OPTIMAL, change(solution.flow), solution.cost)


def one_more(flow):
    flow = flow.copy()
    flow[np.argmax(flow)] += 1
    return flow


FAULTS = {
    "infeasible": (says(Status.INFEASIBLE), Status.INFEASIBLE),
    "bad-cost-range": (says(Status.BAD_COST_RANGE), Status.BAD_COST_RANGE),
    "failed": (says(Status.FAILED), Status.FAILED),
    "raises": (raises, Status.FAILED),
    "none": (lambda network, solution: None, Status.FAILED),
    "no-flow": (of_flow(np.zeros_like), Status.WRONG),
    "too-much": (of_flow(one_more), Status.WRONG),
    "fractions": (of_flow(lambda flow: flow + 0.25), Status.WRONG),
    "too-short": (of_flow(lambda flow: flow[1:]), Status.WRONG),
    "another-cost": (lambda n, s: Solution(s.status, s.flow, s.cost + 1), Status.WRONG),
}


@pytest.mark.parametrize(("answer", "status"), FAULTS.values(), ids=FAULTS)
def test_a_round_without_flows_places_all_the_same_and_says_so(answer, status, caplog):
    """One by one, which nothing else tells from a flow of least cost."""
    nodes = (make_node(name, cpu=8) for name in "abcdefgh")
    tasks = make_tasks(range(1, 11), 1), make_tasks(range(11, 21), 2)
    cluster = make_cluster(*nodes, make_class(1, cpu=1), make_class(2, cpu=2), *tasks, solver=Answering(answer))
    with caplog.at_level(logging.ERROR):
        stats = cluster.run().stats
    assert (stats.placed, stats.placed_by) == (20, {"greedy": 20})
    assert stats.unsolved == {status: stats.solves + stats.trials}
    assert stats.solves > 0
    assert (stats.vertices, stats.arcs, stats.objective, stats.compressed) == (0, 0, 0, 0)
    assert re.search(
        f"the solver answering finds no flow: {status}; \\d+ vertices, \\d+ arcs, supply 20, costs up", caplog.text
    )


def of_priorities(solver):
    """Nodes of 4 cpu in all, and two tasks of 1 cpu for each of four priorities, one class each."""
    classes = [make_class(number, cpu=1, priority=1000 * number) for number in range(1, 5)]
    tasks = [make_tasks([10 * number, 10 * number + 1], number) for number in range(1, 5)]
    return make_cluster(make_node("a", cpu=2), make_node("b", cpu=2), *classes, *tasks, solver=solver)


@pytest.mark.parametrize("status", [Status.BAD_COST_RANGE, Status.FAILED])
def test_a_network_with_too_large_costs_is_solved_with_smaller_ones(status):
    """The priorities of this policy are two steps of WAIT_MIN apart; the solver takes no four of these. As with its own
    costs, the highest priorities get the four cpus, spread over the nodes."""
    largest = max(network.unit_cost.max() for network in seen_by(of_priorities))
    solver = Answering(lambda n, s: unsolved(n, status) if n.unit_cost.max() > largest * 2 // 3 else s)
    cluster = of_priorities(solver)
    result = cluster.run()
    names = cluster.names(result)
    assert set(names) == {30, 31, 40, 41}
    assert per_node(names) == {"a": 2, "b": 2}
    assert (result.stats.placed_by, result.stats.unsolved) == ({"flow": 4}, {})
    assert result.stats.compressed == result.stats.solves + result.stats.trials > 0
    assert len(solver.seen) == 2 * result.stats.compressed


def seen_by(world):
    """The networks of a round, all of which are solved."""
    solver = Answering(lambda network, solution: solution)
    world(solver).run()
    return solver.seen


def test_a_network_that_has_no_flow_is_not_solved_again():
    """Whether there is a flow does not depend on costs."""
    solver = Answering(says(Status.INFEASIBLE))
    stats = of_priorities(solver).run().stats
    assert len(solver.seen) == stats.unsolved["infeasible"] == stats.solves + stats.trials


def mixed(make, seed, solver):
    """Gangs, single tasks of priorities, and what runs and may leave or move."""
    rng = np.random.default_rng(seed)
    events: list[Event] = [make_node(f"n{i}", cpu=int(rng.integers(4, 9))) for i in range(6)]
    events += [make_class(c, cpu=int(rng.integers(1, 4)), priority=c % 3) for c in range(1, 7)]
    events += [make_gang(1, 3, created_us=0), make_gang(2, 2, created_us=1)]
    events += [make_tasks([101, 102], 1, gang=1), make_tasks([103], 2, gang=1), make_tasks([104, 105], 3, gang=2)]
    events += [make_tasks([200 + i], int(rng.integers(1, 7))) for i in range(12)]
    events += [make_tasks([300 + i], 1, on=f"n{i}", movable=True, job=1) for i in range(3)]
    return make(*events, solver=solver)


@seeds(12)
@pytest.mark.parametrize("make", [make_cluster, preempting_cluster, migrating_cluster])
def test_solvers_that_fail_now_and_then_cost_no_round(make, seed):
    """The independent check refuses nothing, and what is left fits nowhere: a working solver places no more of it."""
    rng, faults = np.random.default_rng(seed), [answer for answer, _ in FAULTS.values()]

    def answer(network, solution):
        return solution if rng.random() < 0.5 else faults[rng.integers(len(faults))](network, solution)

    cluster = mixed(make, seed, Answering(answer))
    result = cluster.run()
    cluster.state.validate()
    assert result.stats.dropped == 0
    if make is make_cluster:
        cluster.scheduler.solver = OrToolsSolver()
        assert not cluster.round()
