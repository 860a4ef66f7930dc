"""Published cases of Kueue's scheduler (scheduler_test.go): which flavor a workload takes, which wait, and victims.

The notation is that of flavored.py.
"""

from firmament_py.model.queues import BorrowWithin, Fungibility, QueueDefinition, Reclaim
from tests.firmament_py.sharing.flavored import Choice, cq
from tests.firmament_py.sharing.kueue_flavors import ANY, BORROWING, BOTH, DIFFERENT, LOWER, NEXT, PREEMPT_FIRST, STOP

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
