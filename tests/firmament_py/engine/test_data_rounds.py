"""Rounds of tasks with data, combined with inter-task constraints, gangs, many classes and failures."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.network import column_generation
from firmament_py.network.placement_network import PlacementNetwork
from firmament_py.placement import placer
from policies.quincy import Quincy
from tests.builders import NOW_US, make_class, make_cluster, make_inputs, make_node, make_tasks, per_node
from tests.effort import seeds
from tests.firmament_py.engine.test_gang_rounds import task, worlds
from tests.firmament_py.engine.test_intertask_rounds import carry_out
from tests.firmament_py.gang_oracle import CLASSES, LABEL_SETS, RACK
from tests.firmament_py.mixtures import Mixture

pytestmark = pytest.mark.slow


class DataMixture(Mixture):
    """Tasks of a mixture read data that is on its nodes, or was, or will be."""

    def __init__(self, one, **options) -> None:
        self._sets = 0
        super().__init__(one, policy=Quincy(threshold=one([0.0, 0.14]), rack_label=one(["", "zone"])), **options)

    def inputs(self) -> int:
        one = self.one
        number: int = one([0, *range(1, self._sets + 1), -1, -1])
        if number < 0:
            self._sets += 1
            number = self._sets
            blocks = [
                (
                    one([0, 1, 50, 400]),
                    " ".join(self.few(lambda: one(["n0", "n1", "n2", "n3"]), (1, 1, 2))),
                    one(["", "a"]),
                )
                for _ in range(one([1, 2, 3]))
            ]
            self.cluster.tell(make_inputs(number, *blocks))
        return number


def rounds_of(one, **options) -> None:
    mixture = DataMixture(one, **options)
    carry_out(mixture)
    for _ in range(one([0, 1, 2])):
        for _ in range(one([1, 2, 3])):
            mixture.change()
        carry_out(mixture)


@given(data=st.data(), preferences=st.booleans())
def test_rounds_keep_constraints_and_leave_no_task_that_fits(data, preferences):
    rounds_of(lambda options: data.draw(st.sampled_from(options)), preferences=preferences)


@given(data=st.data(), flows=st.sampled_from([0, 1]), step=st.sampled_from([1, 2, 256]))
def test_rounds_with_a_limited_number_of_flows(data, flows, step):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placer, "FLOWS_PER_STAGE", flows)
        patch.setattr(placer, "CELLS_AT_ONCE", 0)
        patch.setattr(placer, "CLASSES_AT_ONCE", step)
        patch.setattr(column_generation, "REBUILD_LIMIT", 1)
        rounds_of(lambda options: data.draw(st.sampled_from(options)))


@given(world=worlds(), data=st.data())
def test_gangs_are_placed_whole_and_no_task_that_fits_is_left(world, data):
    """Every task reads data, which the oracle of gangs ignores."""
    uids = sorted(world.tasks)
    sets = {uid: data.draw(st.integers(0, 3)) for uid in uids}
    reported = [replace(task(uid, world.tasks[uid]), inputs_id=np.array([sets[uid]], np.uint64)) for uid in uids]
    cluster = make_cluster(
        *(*CLASSES.values(), *LABEL_SETS.values(), *world.nodes.values(), *world.gangs.values()),
        *(make_inputs(1, (100, "n0")), make_inputs(2, (50, "n1 n2"), (9, "", "b")), make_inputs(3)),
        *reported,
        policy=Quincy(rack_label=RACK),
    )
    world.carry_out(cluster.round(), NOW_US)
    assert world.left_over(NOW_US) == []


def racked(name: str, rack: str, pods: int = 110, cpu: int = 0):
    return make_node(name, labels={"topology.kubernetes.io/rack": rack}, pods=pods, cpu=cpu)


def test_without_flows_the_largest_savings_go_first(monkeypatch):
    """a has room for two, b (same rack) for plenty. 900 and 500 go to a, 100 bids for its second best, b."""
    monkeypatch.setattr(placer, "FLOWS_PER_STAGE", 0)
    cluster = make_cluster(
        *(racked("a", "r", pods=2), racked("b", "s"), racked("c", "t"), make_class(1)),
        *(make_inputs(1, (100, "a"), (99, "b")), make_inputs(2, (500, "a")), make_inputs(3, (900, "a"))),
        make_tasks([1, 2, 3, 4], 1, inputs=[1, 2, 3, 0]),
        policy=Quincy(),
    )
    placed = cluster.round()
    assert [placed[uid] for uid in (1, 2, 3)] == ["b", "a", "a"]
    assert 4 in placed


def test_a_class_over_its_slots_near_its_data_is_bounded_at_least_cost():
    """a and b take 1 large task each, or 100 small ones, so more small than large ones may come. Both large tasks are
    drawn to a: 1 would save 300 there and 295 on b, 2 saves 290 there and nothing on b. Together they save most if 1
    goes to b; turning 2 away from a, and no more than that, would leave it nothing.
    """
    networks: list[PlacementNetwork] = []
    cluster = make_cluster(
        *(racked("a", "r", cpu=100), racked("b", "s", cpu=100), racked("c", "t", cpu=300)),
        *(
            make_class(1, cpu=90),
            make_class(2, cpu=1),
            make_inputs(1, (300, "a"), (295, "b")),
            make_inputs(2, (290, "a")),
        ),
        *(make_tasks([1, 2], 1, inputs=[1, 2]), make_tasks(range(10, 15), 2)),
        policy=Quincy(),
        observer=lambda network, _: networks.append(network),
    )
    placed = cluster.round()
    assert (placed[1], placed[2]) == ("b", "a")
    assert len(placed) == 7
    assert len(networks) == 2, "solved without bounds for either, then with one"


def test_many_classes_of_few_tasks_can_all_be_placed_near_their_data():
    """Each class alone has one task for node a, together they are ten."""
    cluster = make_cluster(
        *(racked("a", "r", cpu=100), racked("b", "s", cpu=100), make_inputs(1, (1000, "a"))),
        *(make_class(c, cpu=c) for c in range(1, 11)),
        *(make_tasks([c], c, inputs=1) for c in range(1, 11)),
        policy=Quincy(),
    )
    assert per_node(cluster.round()) == {"a": 10}


@seeds(20)
def test_rounds_of_full_clusters(seed):
    """With choices that are uniform: larger and more entangled than what hypothesis tries first."""
    rounds_of(random.Random(seed).choice, preferences=seed % 2 == 1, most_waiting=30)
