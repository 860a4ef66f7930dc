"""Permissions to preempt. In Kueue's cases the published victims are permitted; where there are none, no set is. For
all rules: a victim does not take back what it lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.queues import Division, FairStrategy, Reclaim, ReclaimRules, Sharing, Within
from firmament_py.queues.judgement import Verdict
from firmament_py.queues.permissions import ANY_PRIORITY, NO_PRIORITY, Why, permissions
from tests.effort import examples
from tests.firmament_py.queues.kueue_classical import CLASSICAL
from tests.firmament_py.queues.kueue_fair import FAIR
from tests.firmament_py.queues.kueue_hierarchical import HIERARCHICAL
from tests.firmament_py.queues.scene import Scene, scene
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree

REASONS = {
    Why.IN_QUEUE: "InClusterQueue",
    Why.RECLAIM: "InCohortReclamation",
    Why.HIERARCHICAL_RECLAIM: "InCohortReclamation",
    Why.RECLAIM_WHILE_BORROWING: "InCohortReclaimWhileBorrowing",
    Why.FAIR_SHARING: "InCohortFairSharing",
}


EVERY = [
    *(pytest.param(case, Sharing.CLASSICAL, id=case.name) for case in [*CLASSICAL, *HIERARCHICAL]),
    *(pytest.param(case, Sharing.FAIR, id=case.name) for case in FAIR),
]


@pytest.mark.parametrize(("case", "sharing"), EVERY)
def test_kueue_preemption(case, sharing):
    shown = scene(case, sharing)
    expected = dict(victim.split(":") for victim in case.victims.split())
    if not expected:
        assert shown.permitted(0) in ([], [set()])  # the latter: it fits without victims
        return
    verdict = shown.judge(*expected)
    assert verdict, verdict
    granted = permissions(shown.situation)
    chosen = [task for task in shown.running if task.name in expected]
    why = granted.reasons(np.array([t.row for t in chosen]), np.array([t.priority for t in chosen]))
    for task, reason in zip(chosen, why, strict=True):
        if granted.equal_if_newer[task.row] and task.priority == shown.situation.priority:
            assert reason == Why.NOT  # of its priority alone
        else:
            assert REASONS[reason] == expected[task.name]


def test_permissions_name_priorities_and_floors():
    """b exceeds its quota by 4, c does not; p stays within a's if z leaves, too."""
    described = tree(
        queue("all"),
        queue("a", "all", quota(5), within=Within.LOWER_PRIORITY, reclaim=Reclaim.LOWER_PRIORITY),
        queue("b", "all", quota(3)),
        queue("c", "all", quota(3)),
        flavors=["red"],
    )
    shown = Scene(described, "x b red/cpu=7; y c red/cpu=3; z a red/cpu=1", "p a red/cpu=5 5")
    granted = permissions(shown.situation)
    a, b, c = (shown.queues.row[queue_id(name)] for name in "abc")
    assert granted.why[[a, b, c]].tolist() == [Why.IN_QUEUE, Why.RECLAIM, Why.NOT]
    assert granted.highest[[a, b, c]].tolist() == [4, 4, NO_PRIORITY]
    assert granted.highest_borrowing[[a, b]].tolist() == [4, NO_PRIORITY]
    assert granted.floor[b, 0] == 3
    assert shown.judge("x", "z")
    assert "priority" in shown.judge("x").reason  # p would borrow
    assert shown.judge("x", "y", "z") == Verdict("the victim's queue owes the preemptor nothing", 1)
    assert "fit" in shown.judge().reason


def test_victims_use_what_is_needed():
    described = tree(queue("a", "", quota(5), quota(5, on="red/gpu"), within=Within.LOWER_PRIORITY), flavors=["red"])
    shown = Scene(described, "x a red/cpu=4; y a red/gpu=4", "p a red/cpu=4 5")
    assert shown.judge("x")
    assert "uses nothing" in shown.judge("x", "y").reason


single = st.integers(0, 6)


@pytest.mark.slow
@examples(150)
@given(st.data(), st.sampled_from(["classical", "fair", "guarantee"]))
def test_a_victim_does_not_take_back_what_it_lost(data, kind):
    """After a permitted preemption of one task by another, the same rules refuse the exchange the other way round."""
    weights = st.sampled_from([0.0, 1.0, 2.0])
    queues = [
        queue("all", "", quota(data.draw(single))),
        *(
            queue(name, "all", quota(data.draw(single)), weight=data.draw(weights), reclaim=Reclaim.ANY)
            for name in ("a", "b", "c")
        ),
    ]
    described = {
        "classical": tree(*queues, flavors=["red"]),
        "fair": tree(*queues, flavors=["red"], sharing=Sharing.FAIR, strategies=(FairStrategy(0),)),
        "guarantee": tree(*queues, flavors=["red"], sharing=Sharing.PROPORTIONAL, reclaim_rules=ReclaimRules.GUARANTEE),
    }[kind]
    amounts = [data.draw(st.integers(1, 6)) for _ in range(4)]
    tasks = [f"t{i} {name} red/cpu={amount}" for i, (name, amount) in enumerate(zip("abbc", amounts, strict=True))]
    shown = Scene(described, "; ".join(tasks), f"p a red/cpu={data.draw(st.integers(1, 6))}")
    for victim in ("t1", "t2", "t3"):
        if shown.judge(victim) and not shown.judge():
            others = [task for task in tasks if not task.startswith(victim)]
            again = next(task for task in tasks if task.startswith(victim))
            taken = "p a red/cpu=" + str(int(shown.situation.request[0]))
            back = Scene(described, "; ".join([*others, taken]), again)
            assert not back.judge("p")


def part_of_total(side, tasks, weights, needed):
    """The weighted dominant share, in plain Python: (queue, cpu, gpu) of tasks; of 12 cpu and 6 gpu."""
    used: dict[str, list[int]] = {}
    for name, *amounts in tasks:
        used[name] = [x + y for x, y in zip(used.get(name, [0, 0]), amounts, strict=True)]
    below = [name for name in used if side in (name, "e" if name in "cd" else name)]
    counted = [used[name] for name in below if any(used[name][r] for r in needed)]
    return max(sum(amounts[r] for amounts in counted) / total for r, total in enumerate((12, 6))) / weights[side]


@given(st.data())
def test_dominant_shares_of_the_sides_decide(data):
    """Queues a and b, and c and d below e. No victim takes back what it lost."""
    weights = {name: data.draw(st.sampled_from([1.0, 2.0, 3.0])) for name in "abcde"}
    described = tree(
        queue("e", weight=weights["e"]),
        *(
            queue(name, "e" if name in "cd" else "", quota(), quota(on="red/gpu"), weight=weights[name])
            for name in "abcd"
        ),
        sharing=Sharing.HIERARCHICAL_DRF,
        division=Division.TOTAL_BY_WEIGHT,
        reclaim_rules=ReclaimRules.DOMINANT_SHARE,
        flavors=["red"],
    )
    task = st.tuples(st.sampled_from("abcd"), st.integers(0, 4), st.integers(0, 2))
    *tasks, preemptor = data.draw(st.lists(task.filter(lambda one: one[1] + one[2] > 0), min_size=2, max_size=7))

    def scene_of(tasks, preemptor):
        named = [f"t{i} {q} red/cpu={cpu},red/gpu={gpu}" for i, (q, cpu, gpu) in enumerate([*tasks, preemptor])]
        return Scene(described, "; ".join(named[:-1]), named[-1], total=[12, 6])

    shown, needed = scene_of(tasks, preemptor), [r for r in (0, 1) if preemptor[1 + r]]
    for i, victim in enumerate(tasks):
        if victim[0] == preemptor[0]:
            continue
        after = [*tasks[:i], *tasks[i + 1 :], preemptor]
        both = preemptor[0] in "cd" and victim[0] in "cd"
        mine, theirs = (q if both or q not in "cd" else "e" for q in (preemptor[0], victim[0]))
        parts = [part_of_total(side, after, weights, needed) for side in (mine, theirs)]
        permitted = any(victim[1 + r] for r in needed) and parts[0] < parts[1]
        assert bool(shown.judge(f"t{i}")) == permitted
        if permitted:
            assert not scene_of(after, victim).judge(f"t{len(after) - 1}")


def test_any_priority_is_above_all_priorities():
    assert NO_PRIORITY < -(2**31) < 2**31 < ANY_PRIORITY
