"""Loads are the same for the same seed, and their check finds violations."""

import numpy as np
import pytest

from benchmarks.loads.engine import EngineLoad, LoadSpec
from benchmarks.suites.solver import first_network

SPEC = LoadSpec(nodes=20, pods=60, classes=4, running=40, uneven=True, shapes="mixed", seed=5)


def placed(load, *pairs):
    """(pending task number, node number) -> arguments of the judge."""
    uids = np.array([load.running + task + 1 for task, _ in pairs], np.uint64)
    return uids, [f"node-{node:05d}" for _, node in pairs]


def test_the_seed_decides_everything():
    one, same, other = EngineLoad(SPEC), EngineLoad(SPEC), EngineLoad(LoadSpec(nodes=20, pods=60, classes=4, seed=6))
    assert one.classes == same.classes
    assert one.nodes == same.nodes
    for field in ("uid", "class_id", "node"):
        assert (getattr(one.tasks(), field) == getattr(same.tasks(), field)).all()
    assert one.classes != other.classes
    network, again = first_network(SPEC), first_network(SPEC)
    assert (network.unit_cost == again.unit_cost).all()
    assert (network.head == again.head).all()


def test_running_tasks_fit_where_they_are():
    load = EngineLoad(LoadSpec(nodes=10, pods=5, classes=3, running=500, fill=0.9))
    assert 0 < load.running <= 500
    assert load.violations(np.zeros(0, np.uint64), []) == []


def test_a_loaded_cluster_is_loaded_unevenly():
    load = EngineLoad(LoadSpec(nodes=50, pods=100, classes=5, running=500, uneven=True))
    counts = np.bincount(load.tasks(slice(load.running)).node, minlength=51)[1:]
    assert counts.max() > 2 * max(counts.min(), 1)


@pytest.mark.parametrize(
    ("spec", "pairs", "text"),
    [
        pytest.param(SPEC, [(0, 0), (0, 1)], "twice", id="twice"),
        pytest.param(SPEC, [(-1, 0)], "is not pending", id="running"),
        pytest.param(SPEC, [(60, 0)], "is not pending", id="unknown task"),
        pytest.param(SPEC, [(0, 99)], "does not exist", id="unknown node"),
        pytest.param(SPEC, [(0, 9)], "do not tolerate", id="tainted node"),
        pytest.param(LoadSpec(2, 40, 1, fill=1.0), [(i, 0) for i in range(40)], "over-committed in cpu", id="cpu"),
        pytest.param(LoadSpec(2, 300, 1, fill=0.1), [(i, 0) for i in range(111)], "over-committed in pods", id="pods"),
    ],
)
def test_the_check_finds_a_bad_placement(spec, pairs, text):
    load = EngineLoad(spec)
    assert any(text in violation for violation in load.violations(*placed(load, *pairs)))


def test_natures_are_generated_and_checked():
    """One of five classes sends 400 Mbit/s: 26 such tasks exceed the capacity of the link."""
    load = EngineLoad(LoadSpec(nodes=2, pods=130, classes=5, fill=0.01, natures=True))
    kinds = [cls.traits["interference-class"] for cls in load.classes]
    assert kinds == ["sheep", "rabbit", "devil", "turtle", "sheep"]
    assert len({node.labels["node.kubernetes.io/instance-type"] for node in load.nodes}) == 2
    sends = [load.classes[cls - 1].requests["bandwidth.egress"] for cls in load.tasks().class_id.tolist()]
    largest = [task for task, amount in enumerate(sends) if amount == 400_000_000]
    assert len(largest) == 26
    assert load.violations(*placed(load, *((task, 0) for task in largest[:25]))) == []
    found = load.violations(*placed(load, *((task, 0) for task in largest)))
    assert found == ["1 nodes are over-committed in bandwidth.egress"]


def test_the_check_finds_unused_capacity():
    load = EngineLoad(LoadSpec(nodes=2, pods=4, classes=1, fill=0.5))
    assert load.violations(*placed(load, (0, 0), (1, 1))) == []
    assert "2 tasks of sort-000 wait, and 2 nodes have capacity" in load.unused(*placed(load, (0, 0), (1, 1)))
    assert load.unused(*placed(load, (0, 0), (1, 1), (2, 0), (3, 1))) == ""
    # 8 pods of 8 cpu each on 2 nodes of 32: all capacity is used, 2 wait, none of them fits
    full = EngineLoad(LoadSpec(nodes=2, pods=10, classes=1, fill=1.25))
    assert full.unused(*placed(full, *((i, i % 2) for i in range(8)))) == ""
