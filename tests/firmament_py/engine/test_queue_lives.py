"""Long lives of clusters with queues, for each set of rules: see `queue_lives`."""

import pytest

from firmament_py.model.queues import Division, FairStrategy, ReclaimRules, Sharing
from tests.effort import THOROUGH, seeds
from tests.firmament_py.engine.queue_lives import Life, RuleSet, water_filling

pytestmark = pytest.mark.slow

CHANGES = 240 if THOROUGH else 48
"""In one life: two to three times as many rounds."""

PROPORTIONAL = {"sharing": Sharing.PROPORTIONAL}
STATED = {**PROPORTIONAL, "division": Division.AS_STATED}
RULES = {
    "classical": RuleSet({}, confined=True),
    "fair": RuleSet({"sharing": Sharing.FAIR}, confined=True, fair=True),
    "final share": RuleSet(
        {"sharing": Sharing.FAIR, "strategies": (FairStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,)},
        confined=True,
        fair=True,
        final_share=True,
    ),
    "kai": RuleSet({**PROPORTIONAL, "reclaim_rules": ReclaimRules.FAIR_SHARE}, by_weight=True),
    "deserved": RuleSet({**STATED, "reclaim_rules": ReclaimRules.DESERVED}),
    "weights": RuleSet(
        {**PROPORTIONAL, "division": Division.TOTAL_BY_WEIGHT, "reclaim_rules": ReclaimRules.DESERVED},
        by_weight=True,
        weight_alone=True,
    ),
    "hierarchy": RuleSet(
        {
            "sharing": Sharing.HIERARCHICAL_DRF,
            "division": Division.TOTAL_BY_WEIGHT,
            "reclaim_rules": ReclaimRules.DOMINANT_SHARE,
        },
        weight_alone=True,
        dominant=True,
    ),
    "guarantee": RuleSet({**PROPORTIONAL, "reclaim_rules": ReclaimRules.GUARANTEE}, by_priority=True),
}


LIVES = [(name, small) for name in RULES for small in (True, False) if name != "fair" or small]


@seeds(8)
@pytest.mark.parametrize(
    ("name", "small"), [pytest.param(*life, id=f"{life[0]} {'small' if life[1] else 'any size'}") for life in LIVES]
)
def test_lives(name, small, seed):
    life = Life(RULES[name], seed, small)
    changes = CHANGES if small or name != "final share" or THOROUGH else CHANGES // 2  # its searches take longest
    life.live(changes)
    assert life.counts["rounds"] > 2 * changes
    assert life.counts["rests"] == changes // 12
    if life.counts["victims"] <= changes // 12:  # it had little to contend for: where tasks are decides on what follows
        life.live(changes)
    assert life.counts["victims"] > changes // 12


def test_fair_sharing_with_large_tasks_comes_to_rest():
    """This life does. Others need not: LessThanInitialShare compares with the share before the eviction, as in Kueue,
    so that large tasks may evict each other in turn (docs/queues.md)."""
    Life(RULES["fair"], seed=0, small=False).live(60)


def test_water_filling():
    assert water_filling([2, 0], [1.0, 1.0], [9, 9], 10) == [6.0, 4.0]
    assert water_filling([0, 0, 0], [1.0, 2.0, 1.0], [1, 9, 9], 10) == [1.0, 6.0, 3.0]
    assert water_filling([4, 4], [1.0, 3.0], [2, 5], 9) == [2.0, 5.0]
