"""Whole rounds with queues: the cases that KAI and Volcano publish end as there, or as the tables say."""

import pytest

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Division, Flavor, QueueTree, Reclaim, ReclaimRules, Sharing, Within
from tests.firmament_py.sharing.kai_reclaim import RECLAIM
from tests.firmament_py.sharing.kai_rounds import ALLOCATE, CONSOLIDATE, PREEMPT
from tests.firmament_py.sharing.published import World, described
from tests.firmament_py.sharing.volcano_rounds import CAPACITY, HDRF, HDRF_RECLAIM, PROPORTION
from tests.firmament_py.sharing.volcano_rounds import PREEMPT as IN_QUEUE

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


@pytest.mark.parametrize(
    ("played", "division"),
    [
        *(pytest.param(played, Division.AS_STATED, id=played.name) for played in CAPACITY),
        *(pytest.param(played, Division.TOTAL_BY_WEIGHT, id=played.name) for played in [*PROPORTION, *IN_QUEUE]),
    ],
)
def test_volcano(played, division):
    queues = QueueTree(
        tuple(described(played.queues, unlimited=False, within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY)),
        (Flavor("all"),),
        sharing=Sharing.PROPORTIONAL,
        division=division,
        reclaim_rules=ReclaimRules.DESERVED,
    )
    assert World(QueuesObserved(queues), played).decision() == (played.differs if played.why else played.runs)


def hierarchy(played, **fields):
    return QueuesObserved(
        QueueTree(
            tuple(described(played.queues, unlimited=False, within=Within.LOWER_PRIORITY, **fields)),
            (Flavor("all"),),
            sharing=Sharing.HIERARCHICAL_DRF,
            division=Division.TOTAL_BY_WEIGHT,
            reclaim_rules=ReclaimRules.DOMINANT_SHARE,
        )
    )


@pytest.mark.parametrize("played", [pytest.param(played, id=played.name) for played in HDRF])
def test_hdrf(played):
    """Allocation alone: queues do not reclaim."""
    assert World(hierarchy(played, reclaimable=False), played).play() == (played.differs or played.runs)


@pytest.mark.parametrize("played", [pytest.param(played, id=played.name) for played in HDRF_RECLAIM])
def test_hdrf_reclaim(played):
    assert World(hierarchy(played), played).play() == played.runs


def test_differences_have_reasons():
    for played in [*CAPACITY, *PROPORTION, *IN_QUEUE, *HDRF]:
        assert not played.differs or played.why
    for played in KAI:
        assert bool(played.differs) == bool(played.why)
        assert played.differs != played.runs
