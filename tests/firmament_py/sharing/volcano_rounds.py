"""The cases that Volcano publishes for its plugins capacity and proportion, and its actions reclaim and preempt.

One round each. Amounts of plugins/capacity are CPUs, GB and GPUs. `differs` is what happens here.
"""

from tests.firmament_py.sharing.published import Played

WORKER = "n1 0 cpu=2 memory=4; n2 0 cpu=2 memory=4"
GPUS = "n1 1 cpu=4 memory=8"
PROJECTS = "r 4; p1r 1 <2 in r; p1n 1 <1 in p1r; p1p -1 in p1r; p2r 3 <4 in r; p2n 3 <3 in p2r; p2p -1 in p2r"
LEVELS = (
    "r -1; ga -1 cpu=2 memory=2 cpu<4 in r; pa -1 cpu=2 memory=2 cpu<2 in ga; a -1 cpu=2 memory=2 cpu<2 in pa; "
    "gb -1 cpu=3 memory=3 cpu<4 in r; pb -1 cpu=1 memory=1 cpu<2 in gb; b -1 cpu=1 memory=1 cpu<2 in pb"
)
LEVELS_JOBS = "v b 0 cpu=2 memory=2 @n1; w a 0 cpu=2 memory=2 +1"
TREE = (
    "r -1; q3 -1 cpu=4 memory=4 cpu<4 in r; q4 -1 cpu=2 memory=2 cpu<4 in r; q31 -1 cpu=2 memory=2 cpu<4 in q3; "
    "q32 -1 cpu=2 memory=2 cpu<4 in q3; q33 -1 cpu=0 memory=0 cpu<4 in q3"
)
EIGHT = "n1 0 cpu=8 memory=8"

CAPACITY = [
    Played("within the limit", "q -1 cpu<2", WORKER, "a q 0 cpu=1 @n1; b q 0 cpu=1 +1", "+b"),
    Played("above the limit", "q -1 cpu<1.5", WORKER, "a q 0 cpu=1 @n1; b q 0 cpu=1 +1", ""),
    Played(
        "below what is deserved",
        "q -1 cpu=2 memory=4; p -1 cpu=2 memory=4",
        WORKER,
        "a q 0 cpu=2 memory=4 @n1 fixed; b q 0 cpu=2 memory=4 @n2; c p 0 cpu=2 memory=4 +1",
        "-b",
    ),
    Played(
        "other resources than the requested ones are overused",
        "q 10 cpu=2 memory=4; p 10 cpu=2 memory=4",
        "n1 10 cpu=2 memory=4; n2 10 cpu=2 memory=4",
        "a q 10 @n1 fixed; b q 10 @n2; c p 0 cpu=2 memory=4 @n1; d p 0 cpu=2 memory=4 @n2; e p 10 +1",
        "-b",
    ),
    Played(
        "the queue of the highest priority first",
        "q -1 cpu<2 !5; p -1 cpu<2 !1; o -1 cpu<2 !10",
        WORKER,
        "a q 0 cpu=2 memory=4 @n1; b p 0 cpu=2 memory=4 +1; c o 0 cpu=2 memory=4 +1",
        "+c",
    ),
    Played(
        "below what is deserved in one resource",
        "q -1 cpu=2 memory=2 cpu<4 memory<4; p -1 cpu=0 memory=0 cpu<2",
        "n1 0 cpu=2 memory=4",
        "a q 0 cpu=1 memory=3 @n1; b q 0 cpu=1 memory=1 +1; c p 0 cpu=1 memory=1 @n1",
        "-c",
    ),
    Played(
        "above what is deserved in all resources",
        "q -1 cpu=1 memory=2 cpu<4 memory<4; p -1 cpu=0 memory=0 cpu<2",
        "n1 0 cpu=2 memory=4",
        "a q 0 cpu=1 memory=1 @n1; b q 0 cpu=1 memory=2 +1; c p 0 cpu=1 memory=1 @n1",
        "",
    ),
    Played(
        "victims are not above what is deserved where it matters",
        "q 2 cpu=2 memory=4; p -1; o 2 cpu=2 memory=4",
        "n1 4 cpu=4 memory=8",
        "a q 0 cpu=2 memory=4 @n1; b p 1 @n1; c o 1 cpu=2 memory=1 @n1; d o 1 cpu=2 memory=3 +1",
        "",
    ),
    Played(
        "only what the preemptor needs is evicted",
        "q -1 cpu=2 memory=2; p 1 cpu=2 memory=4",
        GPUS,
        "a q 0 memory=4 @n1; b q 0 cpu=1 @n1; c q 1 @n1; d p 0 cpu=2 memory=4 @n1; e p 1 cpu=1 +1",
        "-c",
    ),
    Played(
        "what is deserved is stated for some resources only",
        "q 1; p -1 cpu=2 memory=2",
        GPUS,
        "a q 1 cpu=4 memory=4 @n1; b p 0 cpu=1 memory=1 +1",
        "",
        "-a",
        "a resource that q states nothing of is none that it deserves, whatever else it states",
    ),
    Played(
        "above a limit",
        "q -1 cpu=8 memory=100 cpu<8 memory<100; p -1 cpu<2 memory<5",
        "n1 0 cpu=8 memory=100; n2 0 cpu=8 memory=100",
        "a q 0 cpu=7 memory=90 @n1; b q 0 cpu=2 memory=5 +1; c p 0 cpu=2 memory=5 @n2",
        "",
    ),
    Played("a leaf", "r -1; q -1 cpu<4 in r; s -1 cpu<1 in q; t -1 cpu<3 in q", EIGHT, "a s 0 cpu=1 +1", "+a"),
    Played("no leaf", "r -1; q -1 cpu<4 in r; s -1 cpu<1 in q; t -1 cpu<3 in q", EIGHT, "a q 0 cpu=1 +1", ""),
    Played("a gang", TREE, EIGHT, "a q31 0 cpu=2 memory=2 +2", "+a +a"),
    Played(
        "between siblings",
        TREE,
        EIGHT,
        "a q4 0 cpu=4 memory=4 @n1; b q31 0 cpu=2 memory=2 @n1 fixed; c q31 0 cpu=2 memory=2 @n1; "
        "d q32 0 cpu=2 memory=2 +1",
        "-c",
    ),
    Played(
        "the limit of an ancestor",
        TREE,
        EIGHT,
        "a q31 0 cpu=2 memory=2 @n1 fixed; b q32 0 cpu=2 memory=2 @n1; c q33 0 cpu=3 memory=3 +1",
        "",
    ),
    Played("without a limit", "r -1; q -1 memory<4 in r; s -1 memory<2 in q", EIGHT, "a s 0 cpu=1 +1", "+a"),
    Played(
        "guarantees that are more than the limit of the parent",
        "r -1; q -1 cpu<6 in r; s -1 cpu=4 cpu>4 cpu<6 in q; t -1 cpu=4 cpu>4 cpu<6 in q",
        EIGHT,
        "a s 0 cpu=4 +1; b t 0 cpu=2 +1",
        "+a +b",
    ),
    Played(
        "deserved devices",
        "r -1; q 8 cpu=4 memory=4 in r; s 4 cpu=2 memory=2 in q; t 4 cpu=2 memory=2 in q",
        "n1 8 cpu=8 memory=8",
        "a s 1 cpu=2 memory=2 +1",
        "+a",
    ),
    Played(
        "limits of siblings",
        "r -1; q -1 in r; s -1 <4 cpu<4 in q; t -1 <4 cpu<4 in q",
        "n1 8 cpu=8 memory=8",
        "a s 4 cpu=1 +1; b t 4 cpu=1 +1",
        "+a +b",
    ),
    Played(
        "deserved devices from a sibling",
        "r 4 cpu=16; q 2 in r; s 2 in q; t -1 in q",
        "n1 5 cpu=16 memory=16",
        "a s 2 cpu=1 +1; b t 2 cpu=1 @n1; c t 2 cpu=1 @n1 fixed",
        "-b",
    ),
    Played(
        "only the parent deserves it, ancestorReclaimLevel 1",
        "r 4; q 1 in r; s -1 in q; p -1 in r",
        "n1 4 cpu=16",
        "a p 4 @n1; b s 1 +1",
        "-a",
        "",
        "Volcano's default level is 0: the queue itself has to be below what it deserves",
    ),
    Played(
        "only the parent deserves it, by priority, ancestorReclaimLevel 1",
        PROJECTS,
        "n1 4",
        "a p2p 1 !2 @n1; b p2p 1 !2 @n1; c p2p 1 !2 @n1; d p2p 1 !1 @n1; e p1p 1 +1",
        "-d",
        "",
        "likewise",
    ),
    Played(
        "a sibling first",
        PROJECTS,
        "n1 4",
        "a p2p 1 !2 @n1; b p2p 1 !2 @n1; c p2p 1 !2 @n1; d p2p 1 !0 +1; e p1p 1 @n1; f p2n 1 +1",
        "-c",
    ),
    Played(
        "the victim's queue is within what it deserves",
        "r 4; p1 1 in r; c1 1 in p1; s -1 in p1; p2 1 in r; c2 1 in p2",
        "n1 2",
        "a c1 1 @n1; b s 1 @n1 fixed; c c2 1 +1",
        "",
    ),
    Played(
        "only the leaf exceeds, ancestorReclaimLevel 0",
        LEVELS,
        "n1 0 cpu=2 memory=2",
        LEVELS_JOBS,
        "-v",
        "",
        "what all queues up to the common ancestor deserve is protected, as with the highest level",
    ),
    Played(
        "the leaf and its parent exceed, ancestorReclaimLevel 1",
        LEVELS,
        "n1 0 cpu=2 memory=2",
        LEVELS_JOBS,
        "-v",
        "",
        "likewise",
    ),
    Played("the grandparent does not exceed, ancestorReclaimLevel 2", LEVELS, "n1 0 cpu=2 memory=2", LEVELS_JOBS, ""),
    Played(
        "siblings that deserve nothing",
        "r -1; p -1 cpu=4 memory=4 in r; a -1 in p; b -1 in p",
        "n1 0 cpu=2 memory=2",
        LEVELS_JOBS,
        "",
    ),
    Played(
        "cousins that deserve nothing",
        "r -1; g -1 cpu=2 memory=2 cpu<2 in r; pa -1 in g; a -1 in pa; pb -1 in g; b -1 in pb",
        "n1 0 cpu=2 memory=2",
        LEVELS_JOBS,
        "",
    ),
    Played(
        "a shallow queue that deserves nothing",
        "r -1; g -1 cpu=1 memory=1 cpu<2 in r; pb -1 cpu=1 memory=1 cpu<2 in g; b -1 in pb; a -1 in g",
        "n1 0 cpu=2 memory=2",
        LEVELS_JOBS,
        "",
    ),
    Played(
        "a deep queue within what its grandparent deserves",
        "r -1; ps 1 in r; s 1 in ps; g 2 in r; pd 1 in g; d 1 in pd",
        "n1 2 cpu=4 memory=4",
        "v d 2 cpu=1 @n1; w s 1 cpu=1 +1",
        "",
        "-v",
        "CPUs, of which all of them deserve none, exceed what is deserved at each level",
    ),
]
"""plugins/capacity: flat, by `parent`, and with its levels of reclaim."""

PAIR = "q -1 w1; p -1 w1"
PROPORTION = [
    Played(
        "a queue above its share",
        PAIR,
        "n1 0 cpu=3",
        "a q 0 cpu=1 @n1 fixed; b q 0 cpu=1 @n1; c q 0 cpu=1 @n1 fixed; d p 0 cpu=1 +1",
        "-b",
    ),
    Played(
        "the lowest priority first",
        "q -1; p -1; o -1",
        "n1 0 cpu=4",
        "a q 0 cpu=1 !500 @n1; b q 0 cpu=1 !500 @n1; c p 0 cpu=1 !100 @n1; d p 0 cpu=1 !100 @n1 fixed; "
        "e o 0 cpu=1 !1000 +1",
        "-c",
    ),
    Played(
        "the queue of the lowest priority first",
        "q -1 !5; p -1 !10; o -1 !1",
        "n1 0 cpu=4",
        "a q 0 cpu=1 @n1; b q 0 cpu=1 @n1 fixed; c p 0 cpu=1 @n1; d p 0 cpu=1 @n1 fixed; e o 0 cpu=1 +1",
        "-a",
    ),
    Played(
        "a class that never preempts", "q -1 w5; p -1 w10", "n1 0 cpu=1", "a q 0 cpu=1 @n1; b p 0 cpu=1 +1 never", ""
    ),
    Played(
        "a closed queue",
        "q -1; p -1 closed",
        "n1 0 cpu=3",
        "a q 0 cpu=1 @n1 fixed; b q 0 cpu=1 @n1; c q 0 cpu=1 @n1 fixed; d p 0 cpu=1 +1",
        "",
    ),
    Played(
        "what is free counts",
        "q -1 !1; p -1 !2; o -1 !3",
        "n1 0 cpu=10 memory=2",
        "a q 0 cpu=1 memory=1 @n1; b p 0 cpu=1 memory=1 @n1; c o 0 cpu=2 memory=1 +1",
        "-a",
        differs="",
        why="no eviction for a task that two thirds of a unit of memory, the share of its queue, do not let run",
    ),
    Played(
        "no eviction where there is room", "q -1 w1; p -1 w9", "n1 0 cpu=10", "a q 0 cpu=2 @n1; b p 0 cpu=3 +1", "+b"
    ),
]
"""plugins/proportion with the action reclaim."""

NONE = "victims request something that the preemptor requests"
PREEMPT = [
    Played("a gang that is not complete", "q -1", "n1 0 cpu=10", "a q 0 cpu=1 @n1,n1 +1", "+a"),
    Played("equal priorities", "q -1", "n1 0 cpu=3", "a q 0 cpu=1 @n1,n1 min=1; b q 0 cpu=1 @n1 +1 min=1", ""),
    Played(
        "one victim for one of two tasks",
        "q -1",
        "n1 0 cpu=2",
        "a q 0 cpu=1 !10 @n1; b q 0 cpu=1 !10 @n1 fixed; c q 0 cpu=1 !1000 +2 min=1",
        "-a",
    ),
    Played(
        "two victims for a large task",
        "q -1",
        "n1 0 cpu=6",
        "a q 0 cpu=1 !10 @n1; b q 0 cpu=1 !10 @n1; c q 0 cpu=1 !10 @n1 fixed; d q 0 cpu=5 !1000 +1",
        "-a -b",
    ),
    Played("for the limit", "q -1 cpu<4", "n1 0 cpu=12", "a q 0 cpu=3 !10 @n1; b q 0 cpu=3 !1000 +1", "-a"),
    Played("within the limit", "q -1 cpu<6", "n1 0 cpu=12", "a q 0 cpu=3 !10 @n1; b q 0 cpu=3 !1000 +1", "+b"),
    Played(
        "lower priorities only",
        "q -1 cpu<3",
        "n1 0 cpu=12",
        "a q 0 cpu=1 !10 @n1 fixed; b q 0 cpu=1 !10 @n1; c q 0 cpu=1 !1000 @n1; d q 0 cpu=1 !1000 +1",
        "-b",
    ),
    Played("for a place", "q -1 cpu<6", "n1 0 cpu=12 pods=1", "a q 0 !10 @n1; b q 0 cpu=3 !1000 +1", "-a", "", NONE),
    Played("without requests", "q -1 cpu<6", "n1 0 cpu=12 pods=1", "a q 0 !10 @n1; b q 0 !1000 +1", "-a", "", NONE),
    Played("a class that never preempts", "q -1", "n1 0 cpu=1", "a q 0 cpu=1 !10 @n1; b q 0 cpu=1 !1000 +1 never", ""),
]
"""The action preempt, within a queue."""

SATURATED = (
    "r -1 w100; n1 -1 w25 in r; n2 -1 w25 in r; n3 -1 w25 in r; n31 -1 w50 in n3; n32 -1 w50 in n3; n4 -1 w25 in r"
)
PROCESSORS = "a n1 0 cpu=1 +30 min=1; b n2 0 cpu=1 +30 min=1; c n31 0 cpu=1 +30 min=1; "
COMPLEMENTARY = "r -1; n1 -1 w50 in r; n2 -1 w50 in r; n21 -1 w50 in n2; n22 -1 w50 in n2"
HDRF = [
    Played(
        "children are rescaled",
        "r -1 w100; sci -1 w50 in r; eng -1 w50 in r; dev -1 w50 in eng; prod -1 w50 in eng",
        "n 0 cpu=10 memory=10 pods=50",
        "a sci 0 cpu=1 memory=1 +10 min=1; b dev 0 cpu=1 +10 min=1; c prod 0 memory=1 +10 min=1",
        "a=5 b=5 c=5",
    ),
    Played(
        "queues whose resource is used up do not hold up others",
        SATURATED,
        "n 0 cpu=30 memory=30 pods=500",
        PROCESSORS + "d n32 0 memory=1 +30 min=1; e n4 0 memory=1 +30 min=1",
        "a=10 b=10 c=10 d=15 e=15",
    ),
    Played(
        "likewise, with jobs of both kinds in one queue",
        SATURATED,
        "n 0 cpu=30 memory=30 pods=500",
        PROCESSORS + "d n31 0 memory=1 +30 min=1; e n4 0 memory=1 +30 min=1",
        "a=10 b=10 c=10 d=15 e=15",
    ),
    Played(
        "siblings with different dominant resources",
        COMPLEMENTARY,
        "n 10 cpu=10",
        "a n21 0 cpu=1 +10 min=1; b n1 1 +10 min=1; c n22 1 +10 min=1",
        "a=10 b=5 c=5",
    ),
    Played(
        "a sibling that uses all of another resource",
        COMPLEMENTARY,
        "n 10 cpu=10",
        f"a n21 0 cpu=1 @{','.join('n' * 10)} min=1; b n1 1 +10 min=1; c n22 1 +10 min=1",
        "a=10 b=5 c=5",
        "a=10 b=10 c=0",
        "Volcano's code, unlike its design, counts resources that are used up in the shares of inner queues",
    ),
]
"""The plugin drf with hierarchy, and its design. Its own test compares a table with one amount, which never fails."""

HDRF_RECLAIM = [
    Played(
        "by weight",
        "r -1; n1 -1 w1 in r; n2 -1 w2 in r",
        "n 0 cpu=12",
        f"a n1 0 cpu=1 @{','.join('n' * 12)} min=1; b n2 0 cpu=1 +12 min=1",
        "a=5 b=7",
    ),
    Played(
        "of one branch, from the sibling that uses more",
        "r -1; n1 -1 w1 in r; n2 -1 w1 in r; n21 -1 w1 in n2; n22 -1 w1 in n2",
        "n 0 cpu=12",
        f"a n1 0 cpu=1 @{','.join('n' * 6)} min=1; b n21 0 cpu=1 @{','.join('n' * 6)} min=1; c n22 0 cpu=1 +9 min=1",
        "a=6 b=4 c=2",
    ),
    Played(
        "a queue whose dominant resource is another one is not poor",
        "r -1; n1 -1 w1 in r; n2 -1 w1 in r",
        "n 10 cpu=10",
        "a n1 1 cpu=5 @n,n min=1; b n2 4 @n,n min=1; c n1 1 +5 min=1",
        "a=2 b=2 c=0",
    ),
    Played(
        "a sibling that uses all of another resource does not count",
        COMPLEMENTARY,
        "n 10 cpu=10",
        f"a n21 0 cpu=1 @{','.join('n' * 10)} min=1; b n1 1 +10 min=1; c n22 1 +10 min=1",
        "a=10 b=6 c=4",
    ),
]
"""Likewise with the action reclaim, while the preemptor's side uses less than the victim's does without the victim.
Volcano's code counts the sibling in the last case."""
