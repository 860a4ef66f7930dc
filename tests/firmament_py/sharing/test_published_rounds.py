"""Whole rounds with queues: the cases that KAI publishes end as there, or as the table says."""

import pytest

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Division, Flavor, QueueTree, ReclaimRules, Sharing, Within
from tests.firmament_py.sharing.kai_reclaim import RECLAIM
from tests.firmament_py.sharing.kai_rounds import ALLOCATE, CONSOLIDATE, PREEMPT
from tests.firmament_py.sharing.published import World, described

pytestmark = pytest.mark.xdist_group("numba")

KAI = [*RECLAIM, *ALLOCATE, *PREEMPT, *CONSOLIDATE]


@pytest.mark.parametrize("played", [pytest.param(played, id=played.name) for played in KAI])
def test_kai(played):
    queues = QueueTree(
        tuple(described(played.queues, within=Within.LOWER_PRIORITY)),
        (Flavor("all"),),
        sharing=Sharing.PROPORTIONAL,
        division=Division.SURPLUS_BY_WEIGHT,
        reclaim_rules=ReclaimRules.FAIR_SHARE,
    )
    assert World(QueuesObserved(queues), played).play() == (played.differs or played.runs)


def test_differences_have_reasons():
    for played in KAI:
        assert bool(played.differs) == bool(played.why)
        assert played.differs != played.runs
