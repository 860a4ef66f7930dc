"""Whose quota others may use in the next round, for each task that a round leaves."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from firmament_py.model.constraints import PeerDemand, PeerTerm
from firmament_py.sharing.passing_over import pass_over
from firmament_py.sharing.shortage import Cause
from tests.builders import Cluster, make_class, make_cluster, make_gang, make_node, make_tasks, needs, tasks_like

SEEKING = PeerDemand(affinity=(PeerTerm(tasks_like(needs("app", "In", "b")), "zone"),))


@pytest.fixture
def cluster() -> Cluster:
    """1 is alone, 2 seeks a neighbour, 3 and 4 are of one gang; all wait."""
    return make_cluster(
        *(make_node("n", cpu=1), make_class(1, cpu=1), make_class(2, cpu=1, peers=SEEKING), make_gang(7, 1)),
        *(make_tasks([1], 1), make_tasks([2], 2), make_tasks([3, 4], 1, gang=7)),
    )


def rows(cluster: Cluster, *uids: int) -> np.ndarray:
    return cluster.state.task_rows(np.array(uids, np.uint64))


def passed(cluster: Cluster, *, admitted=(), yielding=(), placed=(), delayed=(), short=True) -> bool:
    cause = np.array([Cause.OVER_QUOTA] if short else [], np.int64)
    of = SimpleNamespace(
        admitted=rows(cluster, *admitted), yielding=rows(cluster, *yielding), shortages=SimpleNamespace(cause=cause)
    )
    queues: Any = of
    return pass_over(cluster.state, queues, rows(cluster, *placed), rows(cluster, *delayed))


def flagged(cluster: Cluster) -> tuple[set[int], set[int]]:
    tasks = cluster.state.tasks
    return set(tasks.uid[tasks.passed_over].tolist()), set(tasks.uid[tasks.without_victims].tolist())


def test_what_is_admitted_and_what_looks_for_victims_are_told_apart(cluster):
    assert passed(cluster, admitted=[1, 2], yielding=[3], delayed=[2])
    assert flagged(cluster) == ({1}, {3})
    assert not passed(cluster, admitted=[1], yielding=[3]), "nothing new"
    assert passed(cluster, admitted=[3])
    assert flagged(cluster) == ({1, 3}, {3})


def test_without_tasks_that_lack_quota_no_other_round_follows(cluster):
    assert not passed(cluster, admitted=[1], short=False)
    assert flagged(cluster) == ({1}, set())


@pytest.mark.parametrize(
    ("placed", "admitted", "left"),
    [
        pytest.param([], [], {1, 2, 4}, id="nothing-is-placed"),
        pytest.param([1], [], {4}, id="one-that-may-be-a-neighbour"),
        pytest.param([3], [], {1}, id="a-member-of-the-gang"),
        pytest.param([3], [2, 4], {1, 2, 4}, id="they-were-considered-beside-it"),
    ],
)
def test_what_a_round_left_out_is_forgotten_if_it_may_fit_beside_what_was_placed(cluster, placed, admitted, left):
    passed(cluster, admitted=[1, 2, 4])
    cluster.state.tasks.passed_over[rows(cluster, *placed)] = False
    again = passed(cluster, admitted=admitted, placed=placed)
    assert flagged(cluster)[0] == left
    assert again is (left != {1, 2, 4})
