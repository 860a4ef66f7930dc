"""Published cases of single decisions: KAI's reclaimable (plugins/proportion/reclaimable), YuniKorn's seven laws.

KAI: queues are "name parent deserved/share/used", in half GPUs; the preemptor requests, victims use, so many of them.
"""

import numpy as np
import pytest

from firmament_py.model.queues import Division, ReclaimRules, Sharing
from firmament_py.queues.tree import build
from tests.firmament_py.queues.scene import Scene
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree

ONE = "p1 d 6/6/{a}; p2 d 4/{share}/{b}; d - 10/10/0"
DEPARTMENTS = "p1 d1 6/6/{a}; d1 - 6/6/0; p2 d2 4/{share}/{b}; d2 - 4/{share}/0"
LEVELS = "lt - 2/2/0; lm lt 2/2/0; leaf lm 2/2/0; rt - 2/2/0; rm rt 2/2/0; right rm 2/2/4; extra lt 0/0/{extra}"
BRANCH = "top - 4/4/0; m1 top 2/2/0; m2 top 2/2/0; l1 m1 2/2/0; l2 m1 0/0/1; right m2 2/2/3"


@pytest.mark.parametrize(
    ("queues", "preemptor", "victims", "fields", "permitted"),
    [
        pytest.param(ONE.format(a=4, share=4, b=6), "p1 2", "p2 2", {}, True, id="below its share"),
        pytest.param(ONE.format(a=4, share=4, b=4), "p1 2", "p2 2", {}, False, id="the victim's queue is at its share"),
        pytest.param(ONE.format(a=4, share=4, b=2), "p1 2", "p2 2", {}, False, id="both are below their shares"),
        pytest.param(ONE.format(a=4, share=6, b=6), "p1 2", "p2 2", {}, True, id="within its share, above deserved"),
        pytest.param(ONE.format(a=6, share=4, b=6), "p1 2", "p2 2", {}, False, id="at its share"),
        pytest.param(
            ONE.replace("6/6", "4/6").format(a=4, share=4, b=6),
            "p1 2",
            "p2 2",
            {"preemptible": False, "firm": {}},
            True,
            id="not preemptible, as the first of its queue",
        ),
        pytest.param(
            ONE.replace("6/6", "4/6").replace("10/10", "6/10").format(a=4, share=4, b=6),
            "p1 2",
            "p2 2",
            {"preemptible": False, "firm": {}},
            True,
            id="not preemptible, the department is above deserved with others",
        ),
        pytest.param(
            ONE.replace("6/6", "4/6").replace("10/10", "6/10").format(a=4, share=4, b=6),
            "p1 2",
            "p2 2",
            {"preemptible": False, "firm": {"d": 6}},
            False,
            id="not preemptible, the department is at deserved with the like",
        ),
        pytest.param(
            ONE.replace("6/6", "4/6").replace("10/10", "2/2").format(a=4, share=4, b=6),
            "p1 2",
            "p2 2",
            {},
            True,
            id="within a department above its share",
        ),
        pytest.param(DEPARTMENTS.format(a=4, share=4, b=6), "p1 2", "p2 2", {}, True, id="between departments"),
        pytest.param(DEPARTMENTS.format(a=4, share=4, b=4), "p1 2", "p2 2", {}, False, id="a department at its share"),
        pytest.param(
            DEPARTMENTS.format(a=2, share=8, b=6), "p1 2", "p2 2", {}, True, id="a department above what it deserves"
        ),
        pytest.param(LEVELS.format(extra=0), "leaf 2", "right 4", {}, True, id="three levels"),
        pytest.param(LEVELS.format(extra=2), "leaf 2", "right 4", {}, False, id="its top queue would exceed its share"),
        pytest.param(BRANCH, "l1 2", "right 3", {}, False, id="its branch would exceed its share"),
        pytest.param(BRANCH, "l1 2", "right 3; l2 1", {}, True, id="its branch, and a sibling there, lose"),
        pytest.param(
            "d1 - 8/8/0; a1 d1 6/2/0; a2 d1 2/6/8; d2 - 6/6/0; b1 d2 6/6/14",
            "a1 2",
            "b1 2",
            {},
            True,
            id="above its share, but less so than the other department",
        ),
    ],
)
def test_kai(queues, preemptor, victims, fields, permitted):
    described = [entry.split() for entry in queues.split("; ")]
    amounts = {name: [int(part) for part in numbers.split("/")] for name, _, numbers in described}
    made = tree(
        *(queue(name, "" if parent == "-" else parent, quota(amounts[name][0])) for name, parent, _ in described),
        flavors=["red"],
        sharing=Sharing.PROPORTIONAL,
        reclaim_rules=ReclaimRules.FAIR_SHARE,
    )
    built, losing = build(made), dict(entry.split() for entry in victims.split("; "))
    share = np.zeros_like(built.nominal)
    firm = np.zeros_like(built.nominal)
    for name, (_, of_name, _) in amounts.items():
        share[built.row[queue_id(name)], built.column("red", "cpu")] = of_name
    for name, amount in fields.get("firm", {}).items():
        firm[built.row[queue_id(name)], built.column("red", "cpu")] = amount
    others = {name: used - int(losing.get(name, 0)) for name, (_, _, used) in amounts.items()}
    running = [f"v-{name} {name} red/cpu={amount}" for name, amount in losing.items()]
    running += [f"w-{name} {name} red/cpu={amount}" for name, amount in others.items() if amount]
    name, amount = preemptor.split()
    shown = Scene(
        made,
        "; ".join(running),
        f"p {name} red/cpu={amount}",
        share=share,
        **({**fields, "firm": firm} if fields else {}),
    )
    assert bool(shown.judge(*(f"v-{name}" for name in losing))) == permitted


def yunikorn(*queues):
    return tree(
        *queues,
        flavors=["red"],
        sharing=Sharing.PROPORTIONAL,
        division=Division.SURPLUS_BY_WEIGHT,
        reclaim_rules=ReclaimRules.GUARANTEE,
    )


PARENT = (queue("top", "", quota(0, limit=18)), queue("parent", "top", quota(0, limit=18)))
PAIR = (*PARENT, queue("a", "parent", quota(10)), queue("b", "parent", quota(5)))


@pytest.mark.parametrize(
    ("queues", "running", "preemptor", "permitted"),
    [
        pytest.param(PAIR, "v b red/cpu=5; w b red/cpu=5", "p a red/cpu=5", [{"v"}, {"w"}], id="guaranteed"),
        pytest.param(PAIR, "v b red/cpu=5; w b red/cpu=4", "p a red/cpu=5", [{"w"}], id="never below guaranteed"),
        pytest.param(PAIR, "v b red/cpu=5 1; w b red/cpu=5 1", "p a red/cpu=5", [], id="no higher priority"),
        pytest.param(PAIR, "u a red/cpu=9; v b red/cpu=9", "p a red/cpu=5", [], id="only below guaranteed"),
        pytest.param(
            (*PARENT, queue("a", "parent", quota(10)), queue("b", "parent")),
            "v b red/cpu=9; w b red/cpu=9",
            "p a red/cpu=5",
            [{"v"}, {"w"}],
            id="of a queue without a guarantee",
        ),
        pytest.param(
            (*PARENT, queue("a", "parent"), queue("b", "parent", quota(5))),
            "v b red/cpu=9; w b red/cpu=9",
            "p a red/cpu=5",
            [],
            id="for a queue without a guarantee",
        ),
        pytest.param(
            (*PARENT[:1], queue("parent", "top", quota(0, limit=18), fence=True), *PAIR[2:], queue("c", "top")),
            "v c red/cpu=9",
            "p a red/cpu=5",
            [],
            id="out of a fence",
        ),
        pytest.param(
            (
                *PARENT[:1],
                queue("parent", "top", quota(0, limit=18), fence=True),
                *PAIR[2:],
                queue("c", "top", quota(9)),
            ),
            "v b red/cpu=9; w b red/cpu=9",
            "p c red/cpu=9",
            [{"v"}, {"w"}],
            id="into a fence",
        ),
        pytest.param(
            (*PARENT, queue("a", "parent", quota(10)), queue("b", "parent", quota(5), reclaimable=False)),
            "v b red/cpu=9; w b red/cpu=9",
            "p a red/cpu=5",
            [],
            id="of a queue where preemption is disabled",
        ),
        pytest.param(
            (*PARENT, queue("a", "parent", quota(10)), queue("b", "parent", quota(5)), queue("c", "parent", quota(5))),
            "v b red/cpu=4; w c red/cpu=6; x c red/cpu=3",
            "p a red/cpu=6",
            [{"x"}],
            id="of the queue that is above its guarantee",
        ),
    ],
)
def test_yunikorn(queues, running, preemptor, permitted):
    found = Scene(yunikorn(*queues), running, preemptor, total=[18]).permitted()
    assert sorted(map(sorted, found)) == sorted(map(sorted, permitted))
