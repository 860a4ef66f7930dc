"""Rounds with inter-task constraints, against an oracle that places one task at a time."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.explain.reason import ReasonKind
from firmament_py.explain.reasons import reasons_of_task
from firmament_py.model.constraints import PeerDemand, PeerTerm, Spread
from firmament_py.placement import list_scheduling, placer
from firmament_py.placement.placer import CLASSES_AT_ONCE
from policies.colocation import TRAIT
from policies.interference import Interference
from tests.builders import make_class, make_cluster, make_label_set, make_node, make_tasks, needs, tasks_like
from tests.effort import seeds
from tests.firmament_py import peer_oracle
from tests.firmament_py.mixtures import Mixture
from tests.firmament_py.peer_oracle import an_order, may_place

pytestmark = pytest.mark.slow

KINDS = {
    peer_oracle.TAINT: {ReasonKind.UNTOLERATED_TAINT},
    peer_oracle.SELECTOR: {ReasonKind.SELECTOR_MISMATCH},
    peer_oracle.TOKEN: {ReasonKind.TOKEN_TAKEN},
    peer_oracle.AMOUNT: {ReasonKind.INSUFFICIENT_RESOURCE, ReasonKind.TOO_MANY_TASKS},
    peer_oracle.FURTHER: {ReasonKind.FURTHER_AFFINITY},
    peer_oracle.LABEL: {ReasonKind.SPREAD_LABEL_MISSING},
    peer_oracle.SPREAD: {ReasonKind.SPREAD},
    peer_oracle.AFFINITY: {ReasonKind.AFFINITY},
    peer_oracle.ANTI_AFFINITY: {ReasonKind.ANTI_AFFINITY},
    peer_oracle.OTHERS: {ReasonKind.ANTI_AFFINITY_OF_OTHERS},
}


def carry_out(mixture: Mixture) -> None:
    """Runs a round: the oracle accepts each batch in some order, and could place none of the waiting tasks."""
    batches, _ = mixture.round()  # asserts that the independent check dropped nothing
    for batch in batches:
        assert an_order(mixture.world, batch) is not None, f"no order of {batch} is right"
    left = [
        (uid, node)
        for uid in mixture.waiting()
        for node in mixture.world.nodes
        if may_place(mixture.world, mixture.world.tasks[uid], node) is None
    ]
    assert left == [], "these could go there"
    assert mixture.cluster.waiting() == set(mixture.waiting())


def assert_reasons(mixture: Mixture) -> None:
    """Each node that cannot take a task is counted under its first reason; other nodes are not counted."""
    world, state = mixture.world, mixture.cluster.state
    for uid in mixture.waiting():
        row = state.task_row(uid)
        assert row is not None
        expected: dict[str, int] = {}
        for node in world.nodes:
            why = may_place(world, world.tasks[uid], node)
            if why is not None:
                expected[why] = expected.get(why, 0) + 1
        found = reasons_of_task(state, row)
        for why, kinds in KINDS.items():
            reported = [r.nodes for r in found if r.kind in kinds]
            if why == peer_oracle.AMOUNT:  # a node can lack several amounts
                assert max(reported, default=0) <= expected.get(why, 0) <= sum(reported)
            else:
                assert sum(reported) == expected.get(why, 0), why


def rounds_of(one, *, preferences: bool = False) -> None:
    mixture = Mixture(one, preferences=preferences)
    assert_reasons(mixture)
    carry_out(mixture)
    assert_reasons(mixture)
    for _ in range(2):
        for _ in range(one(range(1, 5))):
            mixture.change()
        carry_out(mixture)
    assert_reasons(mixture)


@given(data=st.data(), preferences=st.booleans())
def test_rounds_keep_constraints_leave_no_task_that_fits_and_give_reasons(data, preferences):
    rounds_of(lambda options: data.draw(st.sampled_from(options)), preferences=preferences)


@seeds(40)
def test_rounds_of_full_clusters(seed):
    """The same with choices that are uniform: larger and more entangled than what hypothesis tries first."""
    rounds_of(random.Random(seed).choice, preferences=seed % 2 == 1)


@given(data=st.data(), few=st.integers(0, 1), at_once=st.integers(1, 3))
def test_rounds_with_few_flows_and_stages(data, few, at_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placer, "FLOWS_PER_STAGE", few)
        patch.setattr(placer, "CELLS_AT_ONCE", 0)
        patch.setattr(placer, "CLASSES_AT_ONCE", at_once)
        mixture = Mixture(lambda options: data.draw(st.sampled_from(options)))
        carry_out(mixture)


@pytest.mark.parametrize("classes", [CLASSES_AT_ONCE, CLASSES_AT_ONCE + 44])
def test_a_task_that_depends_on_a_later_stage_is_placed_in_the_same_round(classes, monkeypatch):
    """The first has affinity to the last; with this number of tasks no list is tried."""
    monkeypatch.setattr(placer, "CELLS_AT_ONCE", 0)
    db = PeerDemand(affinity=(PeerTerm(tasks_like(needs("app", "In", "db")), "zone"),))
    cluster = make_cluster(
        *(make_class(1, cpu=1, peers=db), *(make_class(k, cpu=1, memory=k) for k in range(2, classes + 1))),
        make_label_set(1, app="db"),
        *(make_node(f"n{i}", pods=1000, cpu=1000, memory=10**6, labels={"zone": "ab"[i % 2]}) for i in range(4)),
        make_tasks(range(1, 6), 1),
        *(make_tasks(range(10 * k, 10 * k + 3), k, label_set=int(k == classes)) for k in range(2, classes + 1)),
    )
    assert len(cluster.round()) == 5 + 3 * (classes - 1)


def test_a_dependent_task_is_placed_in_the_same_round_without_flows(monkeypatch):
    """A task of class 1 has affinity to one of class 2."""
    monkeypatch.setattr(list_scheduling, "MOST_TASKS", 0)
    monkeypatch.setattr(placer, "FLOWS_PER_STAGE", 0)
    later = PeerDemand(affinity=(PeerTerm(tasks_like(needs("app", "In", "later")), "zone"),))
    cluster = make_cluster(
        *(make_class(1, cpu=1, peers=later), make_class(2, cpu=2), make_label_set(1, app="later")),
        *(make_node("a", cpu=9, labels={"zone": "a"}), make_tasks([1], 1), make_tasks([2], 2, label_set=1)),
    )
    assert set(cluster.round()) == {1, 2}


def test_a_dependent_task_is_placed_in_the_same_round_with_a_staged_policy(monkeypatch):
    """The second devil must be in zone a, which is even only after the turtle of a later stage is in b."""
    monkeypatch.setattr(list_scheduling, "MOST_TASKS", 0)
    even = PeerDemand(spread=(Spread(tasks_like(needs("app", "In", "w")), "zone", 1),))
    cluster = make_cluster(
        *(make_node("a", gpu=2, labels={"zone": "a"}), make_node("b", fpga=1, labels={"zone": "b"})),
        make_class(1, gpu=1, peers=even, traits={TRAIT: "devil"}),
        make_class(2, fpga=1, traits={TRAIT: "turtle"}),
        *(make_label_set(1, app="w"), make_tasks([1, 2], 1, label_set=1), make_tasks([3], 2, label_set=1)),
        policy=Interference(),
    )
    assert cluster.round() == {1: "a", 2: "a", 3: "b"}
