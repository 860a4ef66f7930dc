"""The cases that Kueue publishes for its choice of flavors (pkg/scheduler/flavorassigner).

What its assigner finds by a stand-in for preemption is found here by tasks that may, or may not, be evicted. A workload
that it would preempt for waits here for the victims that are named; one that nothing can be evicted for waits.
"""

from typing import Any

from firmament_py.model.queues import BorrowWithin, Fungibility, QueueDefinition, Reclaim, Sharing, Within
from tests.firmament_py.sharing.flavored import Choice, cq, terms

STOP = Fungibility(try_next_to_avoid_borrowing=False, try_next_to_avoid_preemption=False)
NEXT = Fungibility(try_next_to_avoid_borrowing=True, try_next_to_avoid_preemption=True)
STOP_TO_PREEMPT = Fungibility(try_next_to_avoid_borrowing=True, try_next_to_avoid_preemption=False)
PREEMPT_FIRST = Fungibility(True, True, prefer_preemption_to_borrowing=True)
LOWER = {"within": Within.LOWER_PRIORITY}
BORROWING = {"reclaim": Reclaim.LOWER_PRIORITY, "borrow_within": BorrowWithin(lower_priority=True)}
BOTH = {"within": Within.LOWER_PRIORITY, "reclaim": Reclaim.LOWER_PRIORITY}
ANY = {"within": Within.LOWER_PRIORITY, "reclaim": Reclaim.ANY}

GROUPS = "one cpu=2; two cpu=4 | b_one memory=1024; b_two memory=5120"
COMBINED = "one+b_one one+b_two two+b_one two+b_two"
DIFFERENT = "pods of one gang take one flavor of each group"

BOUND = {"fungibility": NEXT}
LENDER = cq("b", "c", "one cpu=1")
BORROWED = (cq("c"), cq("b", "c", "one cpu=2"), cq("d", "c", "one cpu=10"))
TAKEN = "v b one cpu=10 !-1"

OTHER = cq("b", "c", "uno cpu=0 gpu=0; due cpu=0 gpu=0; tre cpu=0 gpu=0")
COHORTS = (
    cq("third", "", "three cpu=4"),
    cq("second", "third", "two cpu=4"),
    cq("first", "second", "one cpu=4"),
    cq("b", "second", "one cpu=0; two cpu=0; three cpu=0"),
)


def three(**fields: Any) -> tuple[QueueDefinition, ...]:
    return cq("c"), cq("a", "c", "uno cpu=10 gpu=10; due cpu=10 gpu=10; tre cpu=10 gpu=10", **BOTH, **fields)


THREE = (*three(), OTHER)

ASSIGNED = [
    Choice("one flavor", (cq("a", "", "one cpu=1 memory=2"),), "", "w a cpu=1 memory=1", "w@one"),
    Choice("a taint that is tolerated", (cq("a", "", "tainted cpu=4"),), "", "w a cpu=1 ~", "w@tainted"),
    Choice(
        "a taint that the flavor tolerates",
        (cq("a", "", "tainted cpu=4"),),
        "",
        "w a cpu=1",
        "w@tainted",
        why="tolerations of flavors have no effect: a pod has to tolerate the nodes itself",
    ),
    Choice("in use", (cq("a", "", "one cpu=4", **LOWER),), "v a one cpu=3 !-1", "w a cpu=2", "w>one -v"),
    Choice("a flavor of each group", (cq("a", "", GROUPS),), "", "w a cpu=3 memory=10", "w@two+b_one", COMBINED),
    Choice(
        "leader and workers request the same",
        (cq("a", "", "one cpu=4; two cpu=9"),),
        "",
        "w a cpu=2 *4; w a cpu=1",
        "w@two",
    ),
    Choice(
        "only workers request devices, on the flavors of their own group",
        (cq("a", "", "one cpu=10 memory=10; two cpu=5 memory=5 gpu=4"),),
        "",
        "w a cpu=1 memory=1 gpu=1 *4; w a cpu=1 memory=1",
        "w@two",
    ),
    Choice(
        "only workers request devices, and no flavor has enough of all",
        (cq("a", "", "one cpu=4 gpu=4; two cpu=5 gpu=0"),),
        "",
        "w a cpu=1 gpu=1 *4; w a cpu=1",
        "",
    ),
    Choice(
        "one group by preemption, another one not at all",
        (cq("a", "", "one cpu=3 | b_one memory=1", **LOWER),),
        "v a one cpu=1 !-1",
        "w a cpu=3 memory=10",
        "",
        "one+b_one",
    ),
    Choice(
        "a flavor of each group of several resources",
        (cq("a", "", "one cpu=2 memory=1024; two cpu=4 memory=15 | b_one gpu=4; b_two gpu=2"),),
        "",
        "w a cpu=3 memory=10 gpu=3",
        "w@two+b_one",
        COMBINED,
    ),
    Choice(
        "groups in different ways",
        (
            cq("c"),
            cq("a", "c", "one cpu=2 memory=1024; two cpu=4 memory=15 | b_one gpu=4", **ANY),
            cq("b", "c", "b_one gpu=0"),
        ),
        "v a two memory=10 !-1; u b b_one gpu=2",
        "w a cpu=3 memory=10 gpu=3",
        "w>two+b_one -u -v",
        "one+b_one two+b_one",
    ),
    Choice(
        "no flavor has enough of all resources of a group",
        (cq("a", "", "one cpu=2 memory=1024; two cpu=4 memory=5"),),
        "",
        "w a cpu=3 memory=10",
        "",
    ),
    Choice("a taint that is not tolerated", (cq("a", "", "tainted cpu=4; two cpu=4"),), "", "w a cpu=3", "w@two"),
    Choice("a node selector", (cq("a", "", "one cpu=4; two cpu=4"),), "", "w a cpu=1 type:two", "w@two"),
    Choice(
        "a node selector with labels that no flavor has",
        (cq("a", "", "one cpu=4; two cpu=4"),),
        "",
        "w a cpu=1 type:two ignored:foo",
        "w@two",
        why="no node of the flavor has this label, and a flavor without nodes for a pod is none for it",
    ),
    Choice(
        "node affinity",
        (cq("a", "", "one cpu=4 memory=1; two cpu=4 memory=1"),),
        "",
        "w a cpu=1 memory=1",
        "w@two",
        demand=terms("type:two"),
    ),
    Choice(
        "node affinity, one term of which no flavor has the label of",
        (cq("a", "", "one cpu=4; two cpu=4"),),
        "",
        "w a cpu=1",
        "w@one",
        demand=terms("ignored:bar", "type:two"),
        differs="w@two",
        why="no node has the label of the first term, so only the other one selects nodes",
    ),
    Choice(
        "flavors with labels of different keys",
        (cq("a", "", "x cpu=4; xy cpu=4"),),
        "",
        "w a cpu=1 x:a",
        "w@x",
    ),
    Choice(
        "a flavor without labels",
        (cq("a", "", "everywhere cpu=4; two cpu=4"),),
        "",
        "w a cpu=1 type:two",
        "w@two",
        nodes="everywhere two",
    ),
    Choice("no flavor has the label", (cq("a", "", "one cpu=4; two cpu=4"),), "", "w a cpu=1 type:three", ""),
    Choice(
        "pod sets that suit different flavors",
        (cq("a", "", "one cpu=4; two cpu=10"),),
        "",
        "w a cpu=5; w a cpu=3",
        "w@one w@two",
        differs="w@two",
        why=DIFFERENT,
    ),
    Choice(
        "pod sets that borrow",
        (
            cq("c"),
            cq("a", "c", "one cpu=2+98 memory=2"),
            cq("b", "c", "one cpu=198 memory=198"),
        ),
        "",
        "w a cpu=4 memory=1; w a cpu=6 memory=4",
        "w@one",
    ),
    Choice(
        "nothing is lent",
        (cq("c"), cq("a", "c", "one cpu=1"), cq("b", "c", "one cpu=10-0")),
        "v b one cpu=9",
        "w a cpu=2",
        "",
    ),
    Choice(
        "above the borrowing limit, by preemption in the queue",
        (cq("c"), cq("a", "c", "one cpu=2+8", **LOWER, borrow_within=BorrowWithin(True)), cq("b", "c", "one cpu=98")),
        "v a one cpu=9 !-1; u b one cpu=9",
        "w a cpu=2",
        "w>one -v",
    ),
    Choice(
        "by preemption in the queue", (cq("a", "", "one cpu=2", **LOWER),), "v a one cpu=1 !-1", "w a cpu=2", "w>one -v"
    ),
    Choice(
        "by preemption in the queue and in others",
        (cq("c"), cq("a", "c", "one cpu=3", **ANY), cq("b", "c", "one cpu=7")),
        "v a one cpu=2 !-1; u b one cpu=8",
        "w a cpu=2",
        "w>one -v",
    ),
    Choice(
        "preemption on the flavor that is selected",
        (cq("a", "", "one cpu=4; two cpu=4", **LOWER),),
        "v a one cpu=3 !-1; u a two cpu=3 !-1",
        "w a cpu=2 type:two",
        "w>two -u",
    ),
    Choice(
        "pod sets that preempt on different flavors",
        (cq("a", "", "one cpu=4; tainted cpu=10", **LOWER),),
        "v a one cpu=3 !-1; u a tainted cpu=3 !-1",
        "w a cpu=2; w a cpu=1 *10 ~",
        "w>one w>tainted -u -v",
        why=DIFFERENT,
    ),
    Choice("a resource without quota", (cq("a", "", "one cpu=4"),), "", "w a gpu=2", ""),
    Choice("nothing of a resource without quota", (cq("a", "", "one cpu=4"),), "", "w a cpu=1 gpu=0", "w@one"),
    Choice("nothing of a resource with quota", (cq("a", "", "one cpu=4 gpu=4"),), "", "w a cpu=1 gpu=0", "w@one"),
    Choice("pods are counted", (cq("a", "", "one pods=3 cpu=10"),), "", "w a cpu=1 *3", "w@one"),
    Choice("too many pods", (cq("a", "", "one pods=2 cpu=10"),), "", "w a cpu=1 *3", ""),
    Choice(
        "preemption before the next flavor",
        (cq("a", "", "one pods=10 cpu=10; two pods=10 cpu=10", fungibility=STOP, **LOWER),),
        "v a one cpu=2 !-1",
        "w a cpu=9",
        "w>one -v",
    ),
    Choice(
        "the next flavor before preemption",
        (cq("a", "", "one pods=10 cpu=10; two pods=10 cpu=10", **LOWER),),
        "v a one cpu=2 !-1",
        "w a cpu=9",
        "w@two",
    ),
    Choice(
        "borrowing where the next flavor is too small",
        (cq("c"), cq("a", "c", "one pods=10 cpu=10+1; two pods=10 cpu=1", **BOUND), LENDER),
        "v a one cpu=2",
        "w a cpu=9",
        "w@one",
    ),
    Choice(
        "the next flavor before borrowing",
        (cq("c"), cq("a", "c", "one pods=10 cpu=10+1; two pods=10 cpu=10", **BOUND), LENDER),
        "v a one cpu=2",
        "w a cpu=9",
        "w@two",
    ),
    Choice(
        "borrowing before the next flavor",
        (cq("c"), cq("a", "c", "one pods=10 cpu=10+1; two pods=10 cpu=10"), LENDER),
        "v a one cpu=2",
        "w a cpu=9",
        "w@one",
    ),
    Choice(
        "borrowing by preemption before the next flavor, within a limit",
        (*BORROWED, cq("a", "c", "one cpu=0+12; two cpu=12", fungibility=STOP, **BORROWING)),
        TAKEN,
        "w a cpu=12",
        "w>one -v",
    ),
    Choice(
        "borrowing by preemption before the next flavor, without a limit",
        (*BORROWED, cq("a", "c", "one cpu=0; two cpu=12", fungibility=STOP, **BORROWING)),
        TAKEN,
        "w a cpu=12",
        "w>one -v",
    ),
    Choice(
        "the next flavor before borrowing by preemption",
        (*BORROWED, cq("a", "c", "one cpu=0+12; two cpu=12", fungibility=STOP_TO_PREEMPT, **BORROWING)),
        "",
        "w a cpu=12",
        "w@two",
    ),
    Choice(
        "the cohort has less than the borrowing limit",
        (cq("c"), cq("b", "c", "one cpu=11"), cq("a", "c", "one cpu=0+12", **BORROWING)),
        "v b one cpu=10 !-1",
        "w a cpu=12",
        "",
    ),
    Choice(
        "the next flavor, of which nothing is lent, before borrowing",
        (cq("c"), cq("a", "c", "one pods=10 cpu=10-1; two pods=10 cpu=10-0", **BOUND), LENDER),
        "v a one cpu=2",
        "w a cpu=9",
        "w@two",
    ),
    Choice(
        "borrowing where the next flavor, of which nothing is lent, is too small",
        (cq("c"), cq("a", "c", "one pods=10 cpu=10-1; two pods=10 cpu=1-0", **BOUND), LENDER),
        "v a one cpu=2",
        "w a cpu=9",
        "w@one",
    ),
    Choice(
        "the next flavor, as no task may be preempted on the first one",
        (
            cq("c"),
            cq("a", "c", "one cpu=0+2; two cpu=0+2", fungibility=STOP, **BORROWING),
            cq("b", "c", "one cpu=2; two cpu=2"),
        ),
        "v b one cpu=2",
        "w a cpu=2",
        "w@two",
    ),
    Choice(
        "within what is not lent, by preemption",
        (cq("c"), cq("a", "c", "one pods=10 cpu=10-0", **LOWER), cq("b", "c", "one pods=0 cpu=0")),
        "v a one cpu=2 !-1",
        "w a cpu=9",
        "w>one -v",
    ),
    Choice(
        "fair sharing: borrowing by reclaim before the next flavor",
        (
            *BORROWED,
            cq("a", "c", "one cpu=0; two cpu=12", fungibility=STOP, reclaim=Reclaim.ANY, weight=10.0),
        ),
        "v b one cpu=10",
        "w a cpu=12",
        "w>one -v",
        sharing=Sharing.FAIR,
    ),
    Choice(
        "fair sharing: no reclaim",
        (*BORROWED, cq("a", "c", "one cpu=0; two cpu=12", fungibility=STOP)),
        "v b one cpu=10",
        "w a cpu=12",
        "w@two",
        sharing=Sharing.FAIR,
    ),
    Choice(
        "one pod set fits, another one does not",
        (cq("a", "", "one cpu=2; two cpu=2"),),
        "",
        "w a cpu=1 type:one; w a cpu=5",
        "",
    ),
    Choice("the first flavor that is free", THREE, "v a uno gpu=1 !-1; u b due gpu=1 !-1", "w a gpu=10", "w@tre"),
    Choice(
        "reclaim before preemption in the queue",
        THREE,
        "v a uno gpu=1 !-1; u b due gpu=1 !-1; t b tre gpu=1 !-1",
        "w a gpu=10",
        "w>due -u",
    ),
    Choice(
        "preemption before the next flavor, of which others borrow",
        (*three(fungibility=STOP), OTHER),
        "v a uno gpu=1 !-1; u b due gpu=1 !-1; t b tre gpu=1 !-1",
        "w a gpu=10",
        "w>uno -v",
    ),
    Choice(
        "preemption in the queue on any flavor",
        THREE,
        "v a uno gpu=1 !-1; u a due gpu=1 !-1; t a tre gpu=1 !-1",
        "w a gpu=10",
        "w>uno -v",
    ),
    Choice(
        "reclaim where all other resources are free",
        THREE,
        "v a uno gpu=1 cpu=1 !-1; u a due cpu=1 !-1; s b due gpu=1 !-1; t b tre gpu=1 !-1",
        "w a gpu=10 cpu=10",
        "w>tre -t",
    ),
    Choice(
        "the flavor of the top cohort",
        (*COHORTS, cq("a", "first", "one cpu=0; two cpu=0; three cpu=0", **BOTH)),
        "v a one cpu=4 !-1; u b two cpu=4 !-1",
        "w a cpu=4",
        "w@three",
    ),
    Choice(
        "the flavor of the nearest cohort",
        (*COHORTS, cq("a", "first", "one cpu=0; two cpu=0; three cpu=0", **BOTH)),
        "v a one cpu=4 !-1",
        "w a cpu=4",
        "w@two",
    ),
    Choice(
        "borrowing from further up rather than a flavor without victims",
        (*COHORTS, cq("a", "first", "one cpu=4+0; two cpu=0; three cpu=0", fungibility=PREEMPT_FIRST, **BOTH)),
        "v a one cpu=4",
        "w a cpu=4",
        "w@two",
    ),
    Choice(
        "preemption, of what borrows less, preferred to borrowing from further up",
        (*COHORTS, cq("a", "first", "one cpu=0; two cpu=0", fungibility=PREEMPT_FIRST, **LOWER, **BORROWING)),
        "v a one cpu=4 !-1",
        "w a cpu=4",
        "w>one -v",
    ),
    Choice(
        "borrowing from further up preferred to preemption",
        (*COHORTS, cq("a", "first", "one cpu=0; two cpu=0", fungibility=NEXT, **LOWER, **BORROWING)),
        "v a one cpu=4 !-1",
        "w a cpu=4",
        "w@two",
    ),
    Choice(
        "reclaim of what a cohort lends, before the next flavor",
        (*COHORTS, cq("a", "first", "one cpu=0; two cpu=0", fungibility=STOP, **BOTH)),
        "v b one cpu=4 !-1",
        "w a cpu=4",
        "w>one -v",
    ),
    Choice(
        "no reclaim of what the top cohort has, before the next flavor",
        (*COHORTS, cq("a", "first", "three cpu=0; two cpu=0", fungibility=STOP, **BOTH)),
        "v b three cpu=4 !-1",
        "w a cpu=4",
        "w@two",
    ),
]
"""pkg/scheduler/flavorassigner; whether preemption is possible is up to a stand-in there."""
