"""Classes with many inter-task terms share rounds in turns, and delay no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.explain.reason import ReasonKind
from firmament_py.model.constraints import PeerDemand
from firmament_py.snapshot import term_budget
from firmament_py.snapshot.term_budget import FEW_TERMS, TERMS_PER_ROUND
from firmament_py.state.class_bounds import MAX_TERMS
from tests.builders import (
    NOW_US,
    SECOND_US,
    Cluster,
    make_class,
    make_cluster,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
)
from tests.firmament_py.hostile import many_labels, of_itself, of_others, spread_over
from tests.work import calls

PER_ROUND = TERMS_PER_ROUND // MAX_TERMS
NODE = make_node("n", cpu=1000, labels={f"key{i}": "x" for i in range(MAX_TERMS)})


def with_terms(count: int, number: int, **fields):
    return make_class(number, expected_us=number, peers=PeerDemand(anti_affinity=of_others(count)), **fields)


def cluster_with(classes: int, *, terms: int = MAX_TERMS) -> Cluster:
    """So many classes with one task each, the first the oldest."""
    events = []
    for number in range(1, classes + 1):
        created = NOW_US - (classes + 1 - number) * SECOND_US
        events += [with_terms(terms, number), make_tasks([number], number, created_us=created)]
    return make_cluster(NODE, *events)


def test_tasks_with_few_terms_are_never_deferred():
    cluster = cluster_with(TERMS_PER_ROUND // FEW_TERMS + 9, terms=FEW_TERMS)
    assert len(cluster.round()) == TERMS_PER_ROUND // FEW_TERMS + 9


def test_the_oldest_come_first_and_the_others_in_the_rounds_that_are_due_at_once():
    cluster = cluster_with(3 * PER_ROUND - 1)
    cluster.tell(make_class(99), make_tasks([99], 99))
    rounds: list[set[int]] = []
    while cluster.scheduler.due(NOW_US + len(rounds)):
        rounds.append(set(cluster.round(NOW_US + len(rounds))))
    oldest = [set(range(1 + k * PER_ROUND, min(3 * PER_ROUND, 1 + (k + 1) * PER_ROUND))) for k in range(3)]
    assert rounds == [oldest[0] | {99}, *oldest[1:]]


def test_the_reason_is_reported_once():
    cluster = cluster_with(2 * PER_ROUND)
    first = {w.cls: w for w in cluster.run().waiting}
    assert [reason.kind for w in first.values() for reason in w.reasons] == [ReasonKind.DEFERRED] * PER_ROUND
    assert all(len(w.unreported) == w.count == 1 for w in first.values())
    cluster.tell(
        *(with_terms(MAX_TERMS, k) for k in (90, 91, 92)), make_tasks([90, 91, 92], [90, 91, 92], created_us=1)
    )
    again = {w.cls: w for w in cluster.run(NOW_US + 1).waiting}
    assert first.keys() <= again.keys(), "older ones came"
    assert [len(again[cls].unreported) for cls in first] == [0] * PER_ROUND


def test_those_that_do_not_fit_are_considered_in_turns_and_then_no_more():
    cluster = make_cluster(
        make_node("n", cpu=1),
        *(with_terms(MAX_TERMS, number, cpu=2) for number in range(1, 2 * PER_ROUND + 1)),
        make_tasks(range(1, 2 * PER_ROUND + 1), range(1, 2 * PER_ROUND + 1), created_us=NOW_US - SECOND_US),
    )
    considered = []
    now_us = NOW_US
    while cluster.scheduler.due(now_us):
        assert cluster.scheduler.wake_us(now_us) in (0, now_us)
        waiting = cluster.run(now_us).waiting
        considered.append({w.cls for w in waiting if w.reasons[0].kind is not ReasonKind.DEFERRED})
        now_us += SECOND_US
    assert [len(classes) for classes in considered] == [PER_ROUND, PER_ROUND]
    assert considered[0].isdisjoint(considered[1])
    cluster.tell(make_tasks([100], 1, created_us=now_us))  # a change: all of them, those of the longest ago first
    assert {w.cls for w in cluster.run(now_us).waiting if w.reasons[0].kind is not ReasonKind.DEFERRED} == considered[0]


def test_a_gang_is_deferred_as_a_whole():
    plain, rich = 50, PER_ROUND + 1
    cluster = cluster_with(PER_ROUND)
    cluster.tell(
        make_class(plain),
        with_terms(MAX_TERMS, rich),
        make_gang(1, 2),
        make_tasks([50, 51], [plain, rich], gang=1, created_us=NOW_US),
    )
    assert set(cluster.round()) == set(range(1, PER_ROUND + 1))
    assert set(cluster.round(NOW_US + 1)) == {50, 51}


@pytest.mark.parametrize("roles", [2, PER_ROUND + 2])
def test_a_gang_with_more_terms_than_a_round_takes_is_considered_on_its_own(roles):
    """Beside as many other classes; then no round is due, although members without terms were deferred with it."""
    members = list(range(100, 100 + roles))
    cluster = cluster_with(PER_ROUND)
    cluster.tell(
        *(with_terms(MAX_TERMS, number) for number in members),
        make_class(99, cpu=5000),
        make_gang(1, roles + 1),
        make_tasks([*members, 99], [*members, 99], gang=1),
    )
    rounds = 0
    kinds = set()
    while cluster.scheduler.due(NOW_US + rounds):
        waiting = cluster.run(NOW_US + rounds).waiting
        kinds = {reason.kind for w in waiting for reason in w.reasons}
        rounds += 1
        assert rounds < 9
    assert rounds == 2
    assert ReasonKind.GANG_DOES_NOT_FIT in kinds, "it was considered as a whole"


def test_the_work_of_a_round_is_bounded():
    def work(classes: int) -> int:
        cluster = cluster_with(classes)
        return calls(lambda: cluster.scheduler.run(NOW_US))

    assert work(10 * PER_ROUND) <= 1.5 * work(2 * PER_ROUND)


def test_tasks_that_differ_in_labels_that_count_are_classes_of_their_own():
    cluster = make_cluster(
        NODE,
        make_class(1, peers=PeerDemand(spread=spread_over(of_itself(MAX_TERMS)))),
        *(make_label_set(k, **{**many_labels(MAX_TERMS), f"label{k}": "y"}) for k in range(1, 2 * PER_ROUND + 1)),
        *(make_tasks([k], 1, label_set=k) for k in range(1, 2 * PER_ROUND + 1)),
    )
    assert [len(cluster.round(NOW_US + k)) for k in range(2)] == [PER_ROUND, PER_ROUND]


@given(
    terms=st.lists(st.sampled_from([0, 3, FEW_TERMS, FEW_TERMS + 1, 100, MAX_TERMS]), min_size=1, max_size=12),
    budget=st.integers(1, 600),
    copies=st.integers(1, 2),
)
def test_every_task_is_considered_within_the_rounds_that_the_terms_take(terms, budget, copies):
    """Nothing fits, so that rounds only differ in what they consider."""
    numbers = [number for number in range(1, len(terms) + 1) for _ in range(copies)]
    cluster = make_cluster(
        make_node("n", cpu=1),
        *(with_terms(count, number, cpu=2) for number, count in enumerate(terms, 1)),
        make_tasks(range(len(numbers)), numbers),
    )
    many = [count for count in terms if count > FEW_TERMS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_budget, "TERMS_PER_ROUND", budget)
        seen: set[int] = set()
        rounds = 0
        while cluster.scheduler.due(NOW_US + rounds):
            result = cluster.run(NOW_US + rounds)
            considered = {w.cls for w in result.waiting if w.reasons[0].kind is not ReasonKind.DEFERRED}
            of_classes = [int(cluster.state.classes.terms[c]) for c in considered]
            assert len([count for count in of_classes if count <= FEW_TERMS]) == len(terms) - len(many)
            assert sum(count for count in of_classes if count > FEW_TERMS) <= max([budget, *of_classes])
            seen |= considered
            rounds += 1
        assert len(seen) == len(terms)
        # two rounds together exceed the budget, or there is no second
        assert rounds <= max(1, 2 * sum(many) // budget + 1, len(many))
