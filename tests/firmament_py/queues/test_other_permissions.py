"""Permissions to preempt by rules other than Kueue's, whatever the kind of queues that has them."""

import numpy as np
import pytest

from firmament_py.model.queues import Division, ReclaimRules, Sharing
from firmament_py.queues.tree import build
from tests.firmament_py.queues.scene import Scene
from tests.firmament_py.queues.trees import queue, quota, tree


def rules(reclaim_rules, *queues, **fields):
    if reclaim_rules is ReclaimRules.DESERVED:
        fields.setdefault("division", Division.AS_STATED)
    return tree(*queues, sharing=Sharing.PROPORTIONAL, reclaim_rules=reclaim_rules, flavors=["red"], **fields)


def kai(*queues, **fields):
    return rules(ReclaimRules.FAIR_SHARE, *queues, **fields)


def drf(weight=1.0, *, limit=None, kept_back=0):
    """Queues a, b, and c and d below e; kept_back: what b does not lend."""
    return tree(
        queue("a", "", quota(limit=limit), weight=weight),
        queue("b", "", quota(kept_back, lending_limit=0)),
        *(queue("e"), queue("c", "e", quota()), queue("d", "e", quota())),
        sharing=Sharing.HIERARCHICAL_DRF,
        division=Division.TOTAL_BY_WEIGHT,
        reclaim_rules=ReclaimRules.DOMINANT_SHARE,
        flavors=["red"],
    )


PAIR = (queue("a", "", quota(4)), queue("b", "", quota(4)))


@pytest.mark.parametrize(
    ("described", "running", "preemptor", "fields", "permitted"),
    [
        pytest.param(kai(*PAIR), "x b red/cpu=4; y b red/cpu=4", "p a red/cpu=4", {}, True, id="below its share"),
        pytest.param(kai(*PAIR), "w a red/cpu=4; x b red/cpu=4", "p a red/cpu=4", {}, False, id="above its share"),
        pytest.param(kai(*PAIR), "x b red/cpu=4", "p a red/cpu=4", {}, False, id="the victim is not above its share"),
        pytest.param(
            kai(queue("a", "", quota(2)), queue("b", "", quota(2))),
            "x b red/cpu=8",
            "p a red/cpu=4",
            {"preemptible": False},
            False,
            id="not preemptible and above what is deserved",
        ),
        pytest.param(
            kai(queue("a", "", quota(2)), queue("b", "", quota(2))),
            "x b red/cpu=8",
            "p a red/cpu=2",
            {"preemptible": False},
            True,
            id="not preemptible and within what is deserved",
        ),
        pytest.param(
            kai(queue("a", "", quota(2)), queue("b", "", quota(2), reclaimable=False)),
            "x b red/cpu=8",
            "p a red/cpu=2",
            {},
            False,
            id="a queue that is not reclaimable",
        ),
        pytest.param(
            kai(
                queue("d", "", quota(6)),
                queue("e", "", quota(2)),
                queue("a", "d", quota(0), weight=1.0),
                queue("c", "d", quota(0), weight=1.0),
                queue("b", "e", quota(2)),
            ),
            "v b red/cpu=8",
            "p a red/cpu=3",
            {},
            True,
            id="a department below its deserved takes from another one",
        ),
        pytest.param(
            kai(
                queue("d", "", quota(2)),
                queue("e", "", quota(6)),
                queue("b", "d", quota(4)),
                queue("c", "d", quota(4)),
                queue("a", "e", quota(6)),
            ),
            "v b red/cpu=4; x c red/cpu=4",
            "p a red/cpu=4",
            {},
            True,
            id="a department above its deserved whose queues are within theirs",
        ),
        pytest.param(
            rules(ReclaimRules.DESERVED, *PAIR), "x b red/cpu=6", "p a red/cpu=2", {}, True, id="below what it deserves"
        ),
        pytest.param(
            rules(ReclaimRules.DESERVED, *PAIR),
            "w a red/cpu=4; x b red/cpu=4",
            "p a red/cpu=2",
            {},
            False,
            id="at what it deserves",
        ),
        pytest.param(
            rules(ReclaimRules.DESERVED, queue("a", "", quota(4)), queue("b", "", quota(4, None, 1))),
            "x b red/cpu=6",
            "p a red/cpu=2",
            {},
            False,
            id="the victim's guarantee of 3 would be broken",
        ),
        pytest.param(
            rules(ReclaimRules.DESERVED, queue("a", "", quota(4)), queue("b", "", quota(4, None, 1))),
            "x b red/cpu=3; y b red/cpu=3",
            "p a red/cpu=2",
            {},
            True,
            id="its guarantee of 3 is left",
        ),
        pytest.param(
            rules(ReclaimRules.DESERVED, queue("a", "", quota(4, limit=5)), queue("b", "", quota(4))),
            "w a red/cpu=4; x b red/cpu=6",
            "p a red/cpu=2",
            {},
            False,
            id="above a limit",
        ),
        pytest.param(
            rules(
                ReclaimRules.DESERVED,
                queue("top", "", quota(8, limit=8)),
                queue("a", "top", quota(4)),
                queue("b", "top", quota(4)),
            ),
            "x b red/cpu=4; y b red/cpu=4",
            "p a red/cpu=4",
            {},
            True,
            id="a limit that the victims use",
        ),
        pytest.param(
            rules(
                ReclaimRules.DESERVED,
                queue("a", "", quota()),
                queue("b", "", quota()),
                division=Division.TOTAL_BY_WEIGHT,
            ),
            "x b red/cpu=4; y b red/cpu=4",
            "p a red/cpu=4",
            {},
            True,
            id="half of what there is, by weight",
        ),
        pytest.param(
            rules(
                ReclaimRules.DESERVED,
                queue("a", "", quota()),
                queue("b", "", quota()),
                division=Division.TOTAL_BY_WEIGHT,
            ),
            "w a red/cpu=4; x b red/cpu=2; y b red/cpu=2",
            "p a red/cpu=2",
            {},
            False,
            id="more than half of what there is",
        ),
        pytest.param(drf(), "x b red/cpu=4; y b red/cpu=4", "p a red/cpu=2", {}, True, id="the lower dominant share"),
        pytest.param(drf(), "x b red/cpu=4; y b red/cpu=4", "p a red/cpu=4", {}, False, id="equal dominant shares"),
        pytest.param(drf(3.0), "x b red/cpu=4; y b red/cpu=4", "p a red/cpu=4", {}, True, id="for its weight"),
        pytest.param(
            drf(limit=1), "x b red/cpu=4; y b red/cpu=4", "p a red/cpu=2", {}, False, id="dominant shares, and a limit"
        ),
        pytest.param(
            drf(kept_back=6),
            "x b red/cpu=4; y b red/cpu=4",
            "p a red/cpu=2",
            {},
            False,
            id="what a queue does not lend",
        ),
        pytest.param(
            drf(), "v a red/cpu=3; w c red/cpu=2; x b red/cpu=3", "p d red/cpu=1", {}, False, id="no branch uses more"
        ),
        pytest.param(
            drf(),
            "v a red/cpu=1; w c red/cpu=3; x b red/cpu=4",
            "p d red/cpu=1",
            {},
            False,
            id="as much as its sibling",
        ),
        pytest.param(
            drf(),
            "v a red/cpu=1; w c red/cpu=2; u c red/cpu=1; x b red/cpu=4",
            "p d red/cpu=1",
            {},
            True,
            id="a sibling",
        ),
        pytest.param(
            drf(),
            "w c red/cpu=2; u c red/cpu=1; v d red/cpu=3; x b red/cpu=2",
            "p b red/cpu=1",
            {},
            True,
            id="a branch",
        ),
        pytest.param(
            drf(), "w c red/cpu=2; v d red/cpu=2; x b red/cpu=4", "p c red/cpu=1", {}, False, id="the branch has enough"
        ),
        pytest.param(
            rules(ReclaimRules.GUARANTEE, *PAIR),
            "x b red/cpu=2; y b red/cpu=4",
            "p a red/cpu=2",
            {},
            True,
            id="guaranteed",
        ),
        pytest.param(
            rules(ReclaimRules.GUARANTEE, *PAIR),
            "x b red/cpu=6",
            "p a red/cpu=2",
            {},
            False,
            id="never below guaranteed",
        ),
        pytest.param(
            rules(ReclaimRules.GUARANTEE, *PAIR),
            "x b red/cpu=2 1; y b red/cpu=4 1",
            "p a red/cpu=2",
            {},
            False,
            id="never of a higher priority",
        ),
        pytest.param(
            rules(ReclaimRules.GUARANTEE, *PAIR),
            "w a red/cpu=4; x b red/cpu=2; y b red/cpu=4",
            "p a red/cpu=2",
            {},
            False,
            id="the preemptor is not below its guarantee",
        ),
        pytest.param(
            rules(
                ReclaimRules.GUARANTEE, queue("f", "", quota(4), fence=True), queue("a", "f"), queue("b", "", quota(4))
            ),
            "x b red/cpu=2; y b red/cpu=4",
            "p a red/cpu=2",
            {},
            False,
            id="a fence confines the preemptor",
        ),
        pytest.param(
            rules(
                ReclaimRules.GUARANTEE, queue("f", "", quota(2), fence=True), queue("b", "f"), queue("a", "", quota(4))
            ),
            "x b red/cpu=2; y b red/cpu=4",
            "p a red/cpu=2",
            {},
            True,
            id="a fence does not protect from outside",
        ),
    ],
)
def test_reclaim_by_other_rules(described, running, preemptor, fields, permitted):
    assert bool(Scene(described, running, preemptor, total=[8], **fields).permitted()) == permitted


def test_by_weight_a_share_limits_each_resource():
    """A half of each resource is a's: nothing is evicted for a task that could not run then."""
    described = rules(
        ReclaimRules.DESERVED,
        *(queue(name, "", quota(), quota(on="red/gpu")) for name in "ab"),
        division=Division.TOTAL_BY_WEIGHT,
    )
    running = "w a red/cpu=4; x b red/cpu=4,red/gpu=4; y b red/gpu=4"
    assert Scene(described, running, "p a red/gpu=4", total=[8, 8]).permitted()
    shown = Scene(described, running, "p a red/cpu=1,red/gpu=4", total=[8, 8])
    assert not shown.permitted()
    assert "does not fit into its quota" in shown.judge("x").reason


BOTH = rules(
    ReclaimRules.DESERVED,
    queue("a", "", quota(0), quota(3, on="red/gpu")),
    queue("b", "", quota(4), quota(0, on="red/gpu")),
)


@pytest.mark.parametrize(
    ("running", "preemptor", "permitted"),
    [
        pytest.param("x a red/cpu=2,red/gpu=2", "p b red/cpu=2", True, id="within what it deserves of all"),
        pytest.param("x b red/cpu=2,red/gpu=2", "p a red/gpu=2", True, id="the same, of the other resource"),
        pytest.param("x a red/cpu=2,red/gpu=2", "p b red/cpu=2,red/gpu=2", True, id="the lower part of the other one"),
        pytest.param("x b red/cpu=2,red/gpu=2", "p a red/cpu=2,red/gpu=2", False, id="the same, vice versa"),
        pytest.param("x b red/cpu=4,red/gpu=3", "p a red/cpu=4,red/gpu=3", False, id="equal parts"),
    ],
)
def test_what_each_deserves_one_resource_of(running, preemptor, permitted):
    """a deserves 3 GPUs and no CPU, b 4 CPUs and no GPU: none claims back what the other one may claim."""
    assert bool(Scene(BOTH, running, preemptor, total=[4, 4]).permitted()) == permitted


@pytest.mark.parametrize(("preemptor", "permitted"), [("a", True), ("b", False)])
def test_of_queues_above_what_they_deserve_in_one_resource_the_lower_part_counts(preemptor, permitted):
    """Each deserves 4 CPUs and 4 GPUs; a would use 6 CPUs in the end, b 8 GPUs."""
    described = rules(ReclaimRules.DESERVED, *(queue(name, "", quota(4), quota(4, on="red/gpu")) for name in "ab"))
    running = {"a": "x b red/cpu=1,red/gpu=8", "b": "x a red/cpu=6,red/gpu=1"}[preemptor]
    request = {"a": "red/cpu=6,red/gpu=1", "b": "red/cpu=1,red/gpu=8"}[preemptor]
    assert bool(Scene(described, running, f"p {preemptor} {request}", total=[6, 8]).permitted()) == permitted


def test_kai_does_not_take_from_a_queue_that_is_left_with_less_of_its_share():
    """Shares are 5 and 5. a would have 6 of 5 and is refused at once; up to 5 it may take what b has above its 5."""
    pair = queue("a", "", quota(1)), queue("b", "", quota(1))
    running = "w a red/cpu=3; x b red/cpu=3; y b red/cpu=4"
    assert Scene(kai(*pair), running, "p a red/cpu=2", total=[10]).permitted() == [{"x"}, {"y"}]
    assert Scene(kai(*pair), running, "p a red/cpu=3", total=[10]).permitted() == []


@pytest.mark.parametrize(("gpus", "permitted"), [(0, True), (1, False)])
def test_kai_a_queue_above_what_it_deserves_of_anything_takes_from_no_queue_within_its_share(gpus, permitted):
    """b is within its share of 6, but has more than the 4 CPUs that it deserves; a deserves no GPU."""
    described = kai(queue("a", "", quota(4), quota(0, on="red/gpu")), queue("b", "", quota(4), quota(0, on="red/gpu")))
    shares = {"red/cpu": (4, 6), "red/gpu": (1, 0)}
    built = build(described)
    share = np.zeros_like(built.nominal)
    for on, amounts in shares.items():
        share[:, built.column(*on.split("/"))] = amounts
    running = f"w a red/gpu={gpus}; x b red/cpu=6"
    assert bool(Scene(described, running, "p a red/cpu=2", share=share).judge("x")) == permitted


@pytest.mark.parametrize(("ratio", "permitted"), [(1.0, [{"x"}]), (2.0, [])])
def test_kai_utilisation_multiplier_between_departments(ratio, permitted):
    """Department d has 6 of its 4 with p and e 7 of its 4 without x: 1.5 < 1.75, but not 2 x 1.5."""
    described = kai(
        queue("d", "", quota(4), weight=0.0),
        queue("e", "", quota(4), weight=0.0),
        queue("a", "d", quota(4)),
        queue("c", "d", quota(0)),
        queue("b", "e", quota(4)),
        reclaim_ratio=ratio,
    )
    shown = Scene(described, "v c red/cpu=5; x b red/cpu=1; y b red/cpu=7", "p a red/cpu=1", total=[20])
    found = [names for names in shown.permitted() if names == {"x"}]
    assert found == permitted
