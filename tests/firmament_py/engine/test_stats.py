"""The statistics of a round."""

import logging
import re

import numpy as np
import pytest

from firmament_py.flow.network import Solution, Status
from firmament_py.network import cheapest_slots
from tests.builders import make_class, make_cluster, make_gang, make_node, make_tasks
from tests.paths import ROOT


def test_trials_are_counted_separately(monkeypatch):
    """A gang of two classes waits for task 2 to go: whether it would fit then, and when, is tried."""
    monkeypatch.setattr(cheapest_slots, "FEW", 0)  # each takes a network
    seen = []
    cluster = make_cluster(
        *(make_node("a", cpu=10), make_node("b", cpu=10)),
        *(make_class(1, cpu=6), make_class(2, cpu=5), make_class(3, cpu=7), make_class(4, cpu=1)),
        *(make_tasks([1], 1, on="a", lasting=True), make_tasks([2], 1, on="b")),
        *(make_gang(1, 2, created_us=0), make_tasks([11], 2, gang=1), make_tasks([12], 2, gang=1)),
        *(make_gang(2, 2, created_us=0), make_tasks([21], 2, gang=2), make_tasks([22], 3, gang=2)),
        make_tasks([30], 4),
        observer=lambda network, solution: seen.append(solution),
    )
    stats = cluster.run().stats
    assert stats.placed == 1
    assert stats.trials > 0
    assert stats.solves > 0
    assert stats.trials + stats.solves == len(seen)


@pytest.mark.parametrize("status", [Status.INFEASIBLE, Status.BAD_COST_RANGE])
def test_networks_without_a_flow_are_counted_and_logged(status, caplog):
    """All tasks are placed all the same, one by one, which nothing else tells from a flow of least cost."""

    class Failing:
        name = "failing"

        def solve(self, network):
            return Solution(status, np.zeros(len(network.tail), np.int64), 0)

    nodes = (make_node(name, cpu=8) for name in "abcdefgh")
    tasks = make_tasks(range(1, 11), 1), make_tasks(range(11, 21), 2)
    cluster = make_cluster(*nodes, make_class(1, cpu=1), make_class(2, cpu=2), *tasks, solver=Failing())
    with caplog.at_level(logging.ERROR):
        stats = cluster.run().stats
    assert stats.placed == 20
    assert stats.unsolved == {status: stats.solves + stats.trials}
    assert stats.solves > 0
    assert (stats.vertices, stats.arcs, stats.objective) == (0, 0, 0)
    assert re.search(
        f"the solver failing finds no flow: {status}; \\d+ vertices, \\d+ arcs, supply 20, costs up", caplog.text
    )


def test_the_contract_names_every_stage():
    used: set[str] = set()
    for module in (ROOT / "firmament_py").rglob("*.py"):
        used |= set(re.findall(r'(?:lap\(|stage_seconds\[)"([a-z ]+)"(?:\)|\] =)', module.read_text()))
    declared = re.search(r"stage_seconds = 2;((?:\s*// .*\n)+)", (ROOT / "protos" / "flow.proto").read_text())
    assert declared is not None
    named = re.sub(r"\s*//\s*", " ", declared[1]).strip()
    assert {stage.strip() for stage in named.split(",")} == used
