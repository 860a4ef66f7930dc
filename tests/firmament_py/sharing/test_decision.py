"""What queues decide for a round: ranks that are determined only later are those of then."""

import numpy as np
import pytest
from hypothesis import given

from firmament_py.model.lifecycle import WAITING
from firmament_py.model.queues import Reclaim
from firmament_py.queues import admission
from firmament_py.queues.admission import TIERS
from firmament_py.sharing.decision import decide
from firmament_py.snapshot.term_budget import waiting_tasks
from tests.builders import NOW_US, make_class, make_cluster, make_gang, make_node, make_tasks
from tests.effort import examples
from tests.firmament_py.engine.test_all_at_once import A, B, described, rounds


def ranked_at_once(*arguments, ranked):
    return admission.admit(*arguments, ranked=True)


@examples(100)
@given(rounds(Reclaim.ANY))
def test_later_ranks_are_those_of_an_admission_in_order(events):
    state = make_cluster(*events).state
    decision = decide(state, waiting_tasks(state, NOW_US), NOW_US)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("firmament_py.sharing.decision.admit", ranked_at_once)
        in_order = decide(state, waiting_tasks(state, NOW_US), NOW_US)
    if decision is None or in_order is None:
        assert decision is in_order
        return
    considered = np.concatenate([decision.admitted, np.flatnonzero(decision.unranked.withheld)])
    assert sorted(decision.admitted.tolist()) == sorted(in_order.admitted.tolist())
    assert decision.unranked.withheld.tolist() == in_order.unranked.withheld.tolist()
    assert decision.ranking.rank[considered].tolist() == in_order.ranking.rank[considered].tolist()
    assert decision.ranking.flavor.tolist() == in_order.ranking.flavor.tolist()
    assert decision.shortages.lacking.tolist() == in_order.shortages.lacking.tolist()


def test_a_job_that_is_admitted_in_part_claims_with_the_rank_of_its_first_task():
    """b has no guarantee and a limit of 3."""
    cluster = make_cluster(make_node("n", cpu=9), make_class(1, cpu=1), described(reclaim=Reclaim.ANY, b=3))
    cluster.tell(make_tasks([1], 1, queue=A), make_tasks([2, 3, 4, 5], 1, queue=B))
    decision = decide(cluster.state, waiting_tasks(cluster.state, NOW_US), NOW_US)
    assert decision is not None
    withheld, rank = decision.unranked.withheld, decision.ranking.rank
    uid = cluster.state.tasks.uid
    assert uid[withheld].tolist() == [5]
    assert rank[withheld] == rank[decision.admitted[np.isin(uid[decision.admitted], [2, 3, 4])]].max()
    assert 0 < rank[withheld] < TIERS - 1


def test_nominal_amounts_cover_some_single_tasks_but_only_whole_gangs():
    """a is guaranteed 2; b uses all."""
    cluster = make_cluster(make_node("n", cpu=4), make_class(1, cpu=1), described(reclaim=Reclaim.ANY))
    cluster.tell(make_tasks(range(1, 5), 1, on="n", queue=B))
    cluster.tell(make_tasks([11, 12, 13], 1, queue=A, created_us=NOW_US))
    for gang, uids in ((1, [21, 22]), (2, [31, 32, 33])):
        members = make_tasks(uids, 1, queue=A, gang=gang, created_us=NOW_US + gang)
        cluster.tell(make_gang(gang, len(uids), whole=True), members)
    decision = decide(cluster.state, waiting_tasks(cluster.state, NOW_US), NOW_US)
    assert decision is not None
    waits = cluster.state.tasks.state == WAITING
    covered = [
        (cluster.state.tasks.uid[claim.rows].min(), decision.standing.within_nominal(claim, len(claim.rows)))
        for claim in decision.claims.of(waits)
    ]
    assert sorted(covered) == [(11, 2), (21, 2), (31, 0)]
