"""Migration by what policies say: costs of moving, and classes that cost the same."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.placement import migration
from firmament_py.policy import AnywherePolicy
from policies.bin_packing import BinPacking
from policies.load_spreading import LoadSpreading
from tests.builders import NOW_US, make_class, make_node, make_tasks, migrating_cluster
from tests.firmament_py.placement.migrations import SMALL, uneven


class WithoutKinds:
    """Load-spreading, which does not say which classes cost the same."""

    name = "without-kinds"

    def __init__(self, **options: Any) -> None:
        policy = LoadSpreading(**options)
        self.costs, self.moving_costs = policy.costs, policy.moving_costs


@pytest.mark.parametrize(("policy", "rounds"), [(LoadSpreading(), 1), (WithoutKinds(), 3)], ids=["known", "unknown"])
def test_classes_that_cost_the_same_are_considered_together(monkeypatch, policy, rounds):
    """Each class has one movable task; only that of the last one has something to gain."""
    monkeypatch.setattr(migration, "CLASSES_AT_ONCE", 1)
    cluster = migrating_cluster(
        *(make_node(name, cpu=100) for name in "abc"),
        *(make_class(number, cpu=number) for number in (1, 2, 3)),
        make_tasks(range(1, 21), 1, on="a"),
        *(make_tasks([100 + c], c, on="b", movable=True) for c in (1, 2)),
        make_tasks([103], 3, on="a", movable=True),
        policy=policy,
    )
    found = [cluster.migrating(cluster.run()) for _ in range(rounds)]
    assert found == [{}] * (rounds - 1) + [{103: "c"}]


@given(st.data())
def test_what_a_policy_says_about_kinds_changes_nothing(data):
    """The same tasks migrate as if each class were asked for by itself."""
    classes = [make_class(c, cpu=data.draw(st.integers(1, 4)), gpu=data.draw(st.integers(0, 1))) for c in range(1, 5)]
    nodes = [make_node(f"n{i}", cpu=60, gpu=data.draw(st.sampled_from([0, 30]))) for i in range(4)]
    on = [data.draw(st.integers(0, 3)) for _ in range(30)]
    tasks = [
        make_tasks([uid], 1 + uid % 4, on=f"n{n}", movable=True, started_us=NOW_US - 60_000_000 * (uid % 7))
        for uid, n in enumerate(on, 1)
    ]
    merged, separate = (
        migrating_cluster(*nodes, *classes, *tasks, policy=policy)
        for policy in (LoadSpreading(move_cost=100), WithoutKinds(move_cost=100))
    )
    for _ in range(3):
        assert merged.migrating(merged.run()) == separate.migrating(separate.run())


def test_all_classes_are_considered_in_turn(monkeypatch):
    monkeypatch.setattr(migration, "CLASSES_AT_ONCE", 1)
    cluster = migrating_cluster(
        *(make_node(name, cpu=100) for name in "ab"),
        *(make_class(number, cpu=1) for number in (1, 2, 3)),
        *(make_tasks(range(100 * c, 100 * c + 10), c, on="a") for c in (1, 2)),
        *(make_tasks([10 + c], c, on="b", movable=True) for c in (1, 2)),
        make_tasks([13], 3, on="a", movable=True),
        policy=WithoutKinds(),
    )
    assert not cluster.migrating(cluster.run())
    found = [uid for _ in range(2) for uid in cluster.migrating(cluster.run())]
    assert found == [13]


class Stubborn(AnywherePolicy):
    name = "stubborn"


class Failing(LoadSpreading):
    def moving_costs(self, victims):
        raise ZeroDivisionError


class Free(LoadSpreading):
    def moving_costs(self, victims):
        return np.zeros(len(victims.task_class), np.int64)


def test_a_policy_without_costs_of_moving_moves_nothing():
    result = (cluster := uneven(policy=Stubborn())).run()
    assert not cluster.migrating(result)
    assert not result.stats.fallback


@pytest.mark.parametrize(
    ("policy", "why"), [(Failing(), "moving_costs() raised ZeroDivisionError"), (Free(), "leaves the range 1 ..")]
)
def test_a_policy_that_breaks_its_contract_moves_nothing(policy, why):
    result = (cluster := uneven(policy=policy)).run()
    assert not cluster.migrating(result)
    assert why in result.stats.fallback


def test_bin_packing_empties_a_node():
    cluster = migrating_cluster(
        *(make_node(name, cpu=10) for name in "ab"),
        SMALL,
        make_tasks(range(1, 7), 1, on="a"),
        make_tasks([7, 8], 1, on="b", movable=True),
        policy=BinPacking(),
    )
    [(uid, node)] = cluster.migrating(cluster.run()).items()
    assert uid in (7, 8)
    assert node == "a"


def test_work_that_would_be_lost_costs_more_to_move():
    young, old = (
        uneven(make_tasks([12], 1, on="a", movable=True, started_us=NOW_US - run_us), tasks=11)
        for run_us in (0, 3_600_000_000)
    )
    for cluster in (young, old):
        cluster.tell(make_tasks(range(1, 12), 1, on="a"))
    assert young.migrating(young.run()) == {12: "b"}
    assert not old.migrating(old.run())
