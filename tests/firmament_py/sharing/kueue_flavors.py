"""The cases that Kueue publishes for flavors (pkg/scheduler/flavorassigner and pkg/scheduler).

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

SAME_ROUND = "what another queue takes is known at once, and the next flavor is tried in the same round"
ONE_CYCLE = "Kueue keeps quota for a workload without victims in one cycle alone; the next one lends it"
ALPHA = cq("alpha", "eng", "demand cpu=50+50; spot cpu=100+0", strict_fifo=True)
BETA = cq("beta", "eng", "demand cpu=50+10; spot cpu=0+100 | model gpu=20+0", strict_fifo=True, **ANY)
ENG = (cq("eng"), ALPHA, BETA)
ENG_NODES = "demand+model spot+model"
PAIR = "r1=10+10 r2=10+10"
TRIO = (cq("co"), *(cq(name, "co", f"one {PAIR}", **ANY) for name in ("a", "b", "d")))
GPUS = "demand gpu=10; spot gpu=10"
NO_GPUS = "demand gpu=0; spot gpu=0"


def lending(reclaim: Reclaim) -> tuple[QueueDefinition, ...]:
    return cq("root"), cq("a", "root", "one gpu=2", reclaim=reclaim), cq("b", "root", "one gpu=0")


def preferring(fungibility: Fungibility) -> tuple[QueueDefinition, ...]:
    return (
        cq("c"),
        cq("a", "c", "demand cpu=5+0; spot cpu=0+5", fungibility=fungibility, **LOWER),
        cq("b", "c", "demand cpu=0; spot cpu=5"),
    )


SCHEDULED = [
    Choice(
        "no victims on the first flavor",
        (cq("a", "", "demand cpu=50; spot cpu=100", fungibility=STOP, **LOWER),),
        "v a demand cpu=50",
        "w a cpu=20",
        "w@spot",
    ),
    Choice(
        "a taint, and a flavor in use",
        (cq("a", "", "tainted cpu=20; demand cpu=15", strict_fifo=True),),
        "v a demand cpu=10",
        "w a cpu=10",
        "",
    ),
    Choice(
        "a taint, and a flavor that is too small",
        (cq("a", "", "tainted cpu=20; demand cpu=5", strict_fifo=True),),
        "",
        "w a cpu=10",
        "",
    ),
    Choice("taints on all flavors", (cq("a", "", "tainted cpu=20; tainted2 cpu=5"),), "", "w a cpu=1", ""),
    Choice(
        "several resources and flavors",
        ENG,
        "",
        "w beta cpu=6 gpu=1 *10; w beta cpu=1 *40",
        "w@demand+model w@spot+model",
        ENG_NODES,
        differs="w@spot+model",
        why=DIFFERENT,
    ),
    Choice(
        "the cohort does not suffice for both",
        ENG,
        "",
        "w alpha cpu=1 *45; x beta cpu=1 *56",
        "w@demand+model",
        ENG_NODES,
        differs="w@demand+model x@spot+model",
        why=SAME_ROUND,
    ),
    Choice(
        "the cohort suffices for both",
        ENG,
        "",
        "w alpha cpu=1 *45; x beta cpu=1 *55",
        "w@demand+model x@demand+model",
        ENG_NODES,
    ),
    Choice(
        "borrowing of one flavor while another queue reclaims another one",
        ENG,
        "v beta demand cpu=50; u beta spot cpu=1",
        "w alpha cpu=100; x beta cpu=1",
        "x@demand+model",
        ENG_NODES,
    ),
    Choice(
        "above what is lent",
        (cq("lend"), cq("a", "lend", "one cpu=3-2"), cq("b", "lend", "one cpu=2-2")),
        "v b one cpu=2",
        "w b cpu=3",
        "",
    ),
    Choice(
        "above what is lent, in a tree of cohorts",
        (cq("root"), cq("c", "root"), cq("a", "c", "one cpu=10-3"), cq("b", "c", "one cpu=5+10")),
        "v b one cpu=5",
        "w b cpu=4",
        "",
    ),
    Choice(
        "all that is lent, in a tree of cohorts",
        (cq("root"), cq("c", "root"), cq("a", "c", "one cpu=10-5"), cq("b", "c", "one cpu=5+10")),
        "v b one cpu=5",
        "w b cpu=5",
        "w@one",
    ),
    Choice(
        "victims in the queue and in the cohort",
        ENG,
        "t alpha spot cpu=100; u beta demand cpu=30 !-1; v beta demand cpu=10 !-2; s alpha demand cpu=60",
        "w beta cpu=20",
        "w>demand+model -s -v",
        ENG_NODES,
        differs="w>demand+model -u",
        why="one victim of its own queue does, once a victim of the cohort is refused that would let the queue borrow",
    ),
    Choice(
        "queues that preempt and queues that may not",
        (cq("o"), cq("a", "o", "one cpu=50+50"), cq("b", "o", "one cpu=50+10", **ANY)),
        "v a one cpu=100",
        "w b cpu=1 !-1; x a cpu=1 !1",
        "w>one -v",
    ),
    Choice(
        "the next flavor, as the cohort does not suffice",
        ENG,
        "v beta demand cpu=45",
        "w alpha cpu=1 *60",
        "w@spot+model",
        ENG_NODES,
    ),
    Choice(
        "no more than the cohort has",
        (*ENG, cq("gamma", "eng", "demand cpu=50+10; spot cpu=0+100", **ANY)),
        "u gamma demand cpu=51; v gamma spot cpu=100",
        "w beta cpu=1 *50; x alpha cpu=1; y gamma cpu=1 *50",
        "w@demand+model x@demand+model",
        ENG_NODES,
    ),
    Choice("two queues borrow different resources", TRIO, "", "w a r1=16 !-1; x b r2=16 !-2", "w@one x@one"),
    Choice("two queues borrow the same resource", TRIO, "", "w a r1=16 !-1; x b r1=14 !-2", "w@one x@one"),
    Choice("the more important of two queues borrows", TRIO, "", "w a r1=16 !-1; x b r1=16 !-2", "w@one"),
    Choice(
        "a workload that finds no victims does not keep another queue from borrowing",
        (
            cq("c"),
            cq("s", "c", "one cpu=4+0"),
            cq("a", "c", "one cpu=0+3", **BORROWING),
            cq("b", "c", "one cpu=0", **BORROWING),
        ),
        "v a one cpu=2",
        "w a cpu=3; x b cpu=1",
        "x@one",
    ),
    Choice(
        "the fewest victims of a queue",
        (cq("o"), cq("a", "o", "one cpu=2", **ANY), cq("b", "o", "one cpu=2"), cq("d", "o", "one cpu=2")),
        "r a one cpu=1 !-2; s a one cpu=1 !-2; t a one cpu=1 !-1; u b one cpu=1; v b one cpu=1; x b one cpu=1",
        "w a cpu=2",
        "w>one -r -s",
    ),
    Choice(
        "above the nominal quota nothing is preempted",
        (cq("o"), cq("a", "o", "one cpu=2", **ANY), cq("b", "o", "one cpu=2")),
        "v a one cpu=1 !-1; u b one cpu=1 !-1",
        "w a cpu=3 !1",
        "",
        differs="w>one -v",
        why="lower priorities of its own queue make way, although it borrows then",
    ),
    Choice(
        "two queues preempt at once",
        (cq("o"), cq("a", "o", "one cpu=2", **LOWER), cq("b", "o", "one cpu=2", **LOWER)),
        "u a one cpu=2; v b one cpu=2",
        "w a cpu=2 !100; x b cpu=2 !100",
        "w>one x>one -u -v",
    ),
    Choice(
        "preemption beside a workload that fits",
        (cq("o"), cq("a", "o", "one cpu=1", **LOWER), cq("b", "o", "one cpu=2", **LOWER)),
        "v b one cpu=2",
        "w a cpu=1 !100; x b cpu=2 !99",
        "w@one x>one -v",
    ),
    Choice(
        "preemption that would be of no use",
        (
            cq("o"),
            cq("a", "o", "one cpu=2", borrow_within=BorrowWithin(True), **LOWER),
            cq("b", "o", "one cpu=2", borrow_within=BorrowWithin(True), **LOWER),
            cq("bank", "o", "one cpu=1"),
        ),
        "u a one cpu=2; v b one cpu=2",
        "w a cpu=3 !100; x b cpu=3 !99",
        "w>one -u",
    ),
    Choice(
        "reclaim on the second flavor",
        (cq("o"), cq("a", "o", GPUS, **BOTH), cq("b", "o", NO_GPUS, **BOTH)),
        "u a demand gpu=5 !50; v b spot gpu=5 !50",
        "w a gpu=6 !100",
        "w>spot -v",
    ),
    Choice(
        "the first flavor, as the second one needs victims of both queues",
        (cq("o"), cq("a", "o", GPUS, **BOTH), cq("b", "o", NO_GPUS)),
        "u a demand gpu=5 !50; t a spot gpu=5 !50; v b spot gpu=5 !50",
        "w a gpu=6 !100",
        "w>demand -u",
    ),
    Choice(
        "the first flavor, as the borrower of the second one is more important",
        (cq("o"), cq("a", "o", GPUS, **BOTH), cq("b", "o", NO_GPUS)),
        "u a demand gpu=6 !50; t a spot gpu=5 !50; v b spot gpu=5 !9001",
        "w a gpu=5 !100",
        "w>demand -u",
    ),
    Choice(
        "reclaim before an older workload that does not fit",
        (
            cq("o"),
            cq("a", "o", "one gpu=10"),
            cq("b", "o", "one gpu=10", reclaim=Reclaim.ANY),
            cq("d", "o", "one gpu=0"),
        ),
        "u a one gpu=5; v d one gpu=5; t d one gpu=5 !1",
        "x a gpu=10; w b gpu=10",
        "w>one -v",
    ),
    Choice(
        "what is reclaimed later may be borrowed",
        lending(Reclaim.ANY),
        "v a one gpu=1",
        "w a gpu=2; x b gpu=1",
        "x@one",
    ),
    Choice(
        "what is reclaimed later by priority alone",
        lending(Reclaim.LOWER_PRIORITY),
        "v a one gpu=1",
        "w a gpu=2; x b gpu=1",
        "",
        differs="x@one",
        why=ONE_CYCLE,
    ),
    Choice(
        "what is never reclaimed",
        lending(Reclaim.NEVER),
        "v a one gpu=1",
        "w a gpu=2; x b gpu=1",
        "",
        differs="x@one",
        why=ONE_CYCLE,
    ),
    Choice(
        "what borrows from the nearer cohort first",
        (cq("root"), cq("sure", "root", "one cpu=4"), cq("a", "sure", "one cpu=0"), cq("b", "root", "one cpu=0")),
        "",
        "x b cpu=4 !3; w a cpu=4",
        "w@one",
    ),
    Choice(
        "the next flavor, as the lender of the first one uses no more than its quota",
        (
            cq("c"),
            cq("a", "c", "demand cpu=0+1; spot cpu=0+1", fungibility=STOP, borrow_within=BorrowWithin(True), **ANY),
            cq("b", "c", "demand cpu=1; spot cpu=1"),
        ),
        "v b demand cpu=1",
        "w a cpu=1 !100",
        "w@spot",
    ),
    Choice(
        "the next flavor rather than a less important victim",
        (cq("a", "", "demand cpu=1; spot cpu=1", **LOWER),),
        "v a demand cpu=1 !50",
        "w a cpu=1 !100",
        "w@spot",
    ),
    Choice(
        "preemption for a request of nothing without quota",
        (cq("a", "", "one cpu=4", **LOWER),),
        "v a one cpu=4 !-1",
        "w a cpu=2 gpu=0",
        "w>one -v",
    ),
    Choice(
        "preemption preferred to borrowing",
        preferring(PREEMPT_FIRST),
        "v a demand cpu=5 !-1",
        "w a cpu=5",
        "w>demand -v",
    ),
    Choice(
        "borrowing, as preemption is preferred and finds no victims",
        (
            cq("root", "", "demand cpu=0; spot cpu=5"),
            cq("mid", "root"),
            cq("a", "mid", "demand cpu=5+0; spot cpu=0", fungibility=PREEMPT_FIRST, **LOWER),
            cq("b", "mid", "demand cpu=5; spot cpu=0"),
        ),
        "v a demand cpu=5",
        "w a cpu=5",
        "w@spot",
    ),
    Choice("borrowing preferred to preemption", preferring(NEXT), "v a demand cpu=5 !-1", "w a cpu=5", "w@spot"),
]
"""pkg/scheduler: whole rounds."""
