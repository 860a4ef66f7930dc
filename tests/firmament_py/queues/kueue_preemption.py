"""The cases that Kueue publishes for preemption (pkg/scheduler/preemption, 0.19), as values.

Tasks are "name queue flavor/resource=amount,... priority @created", victims "name:reason".
"""

from typing import NamedTuple

from firmament_py.model.queues import BorrowWithin, Reclaim, Within
from tests.firmament_py.queues.trees import queue, quota

CLASSICAL_0 = [
    queue(
        "standalone",
        "",
        quota(6000, on="default/cpu"),
        quota(3072, on="alpha/memory"),
        quota(3072, on="beta/memory"),
        within=Within.LOWER_PRIORITY,
    )
]
CLASSICAL_1 = [
    queue("cohort", ""),
    queue(
        "c1",
        "cohort",
        quota(6000, 6000, on="default/cpu"),
        quota(3072, 3072, on="default/memory"),
        within=Within.LOWER_PRIORITY,
        reclaim=Reclaim.LOWER_PRIORITY,
    ),
    queue(
        "c2", "cohort", quota(6000, 6000, on="default/cpu"), quota(3072, 3072, on="default/memory"), reclaim=Reclaim.ANY
    ),
]
CLASSICAL_2 = [
    queue("cohort-no-limits", ""),
    queue(
        "d1",
        "cohort-no-limits",
        quota(6000, on="default/cpu"),
        quota(3072, on="default/memory"),
        within=Within.LOWER_PRIORITY,
        reclaim=Reclaim.LOWER_PRIORITY,
    ),
    queue(
        "d2", "cohort-no-limits", quota(6000, on="default/cpu"), quota(3072, on="default/memory"), reclaim=Reclaim.ANY
    ),
]
CLASSICAL_3 = [
    queue("legion", ""),
    queue(
        "l1",
        "legion",
        quota(6000, 12000, on="default/cpu"),
        quota(3072, 6144, on="default/memory"),
        within=Within.LOWER_PRIORITY,
        reclaim=Reclaim.LOWER_PRIORITY,
    ),
]
CLASSICAL_4 = [
    queue("preventStarvation", "", quota(6000, on="default/cpu"), within=Within.LOWER_OR_NEWER_EQUAL_PRIORITY)
]
CLASSICAL_5 = [
    queue("with_shared_cq", ""),
    queue(
        "a_standard",
        "with_shared_cq",
        quota(1000, 12000, on="default/cpu"),
        reclaim=Reclaim.LOWER_PRIORITY,
        borrow_within=BorrowWithin(True, 0),
    ),
    queue(
        "b_standard",
        "with_shared_cq",
        quota(1000, 12000, on="default/cpu"),
        within=Within.LOWER_PRIORITY,
        reclaim=Reclaim.ANY,
        borrow_within=BorrowWithin(True, 0),
    ),
    queue(
        "a_best_effort",
        "with_shared_cq",
        quota(1000, 12000, on="default/cpu"),
        reclaim=Reclaim.LOWER_PRIORITY,
        borrow_within=BorrowWithin(True, 0),
    ),
    queue(
        "b_best_effort",
        "with_shared_cq",
        quota(0, 13000, on="default/cpu"),
        reclaim=Reclaim.LOWER_PRIORITY,
        borrow_within=BorrowWithin(True, 0),
    ),
    queue("shared", "with_shared_cq", quota(10000, on="default/cpu")),
]
CLASSICAL_6 = [
    queue("cohort-lend", ""),
    queue(
        "lend1",
        "cohort-lend",
        quota(6000, None, 4000, on="default/cpu"),
        within=Within.LOWER_PRIORITY,
        reclaim=Reclaim.LOWER_PRIORITY,
    ),
    queue(
        "lend2",
        "cohort-lend",
        quota(6000, None, 2000, on="default/cpu"),
        within=Within.LOWER_PRIORITY,
        reclaim=Reclaim.LOWER_PRIORITY,
    ),
]
CLASSICAL_7 = [
    queue("cohort-three", ""),
    queue(
        "a",
        "cohort-three",
        quota(2000, on="default/cpu"),
        quota(2000, on="default/memory"),
        within=Within.LOWER_PRIORITY,
        reclaim=Reclaim.ANY,
    ),
    queue("b", "cohort-three", quota(2000, on="default/cpu"), quota(2000, on="default/memory")),
    queue("c", "cohort-three", quota(2000, on="default/cpu"), quota(2000, on="default/memory")),
]
CLASSICAL_8 = [
    queue("root", ""),
    queue("cohort-left", "root"),
    queue("cohort-right", "root"),
    queue("cq-left", "cohort-left", quota(10000, on="default/cpu"), reclaim=Reclaim.ANY),
    queue("cq-right", "cohort-right", quota(0, on="default/cpu")),
]
HIERARCHICAL_9 = [
    queue("r", ""),
    queue("c", "r", quota(2000, on="default/cpu")),
    queue("q", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q_borrowing", "r", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
HIERARCHICAL_10 = [
    queue("r", ""),
    queue("c", "r", quota(2000, on="default/cpu")),
    queue("q_nominal", "r", quota(2000, on="default/cpu"), within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q_borrowing", "r", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
HIERARCHICAL_11 = [
    queue("r", ""),
    queue("c", "r", quota(3000, on="default/cpu")),
    queue("q", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY, borrow_within=BorrowWithin(True, 0)),
    queue("q_same_cohort", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
HIERARCHICAL_12 = [
    queue("r", ""),
    queue("c", "r", quota(2000, on="default/cpu")),
    queue("q", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY, borrow_within=BorrowWithin(True, 0)),
    queue("q_nominal", "r", quota(2000, on="default/cpu"), within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q_same_cohort", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
HIERARCHICAL_13 = [
    queue("r", ""),
    queue("c", "r", quota(2000, on="default/cpu")),
    queue("q", "c", quota(4000, on="default/cpu"), within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q_borrowing", "r", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q_same_cohort", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
HIERARCHICAL_14 = [
    queue("r", "", quota(1000, on="default/cpu")),
    queue("c", "r", quota(4000, on="default/cpu")),
    queue("q", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.LOWER_PRIORITY, borrow_within=BorrowWithin(True, 0)),
    queue("q_borrowing", "r", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q_same_cohort", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
HIERARCHICAL_15 = [
    queue("r", ""),
    queue("c", "r", quota(3000, on="default/cpu")),
    queue("q", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q_borrowing", "r", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q_nominal", "r", quota(2000, on="default/cpu"), within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
HIERARCHICAL_16 = [
    queue("r", ""),
    queue("c", "r", quota(2000, on="default/cpu")),
    queue("c_other", "r", quota(2000, on="default/cpu")),
    queue("q_other", "c_other", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q_same_cohort", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
HIERARCHICAL_17 = [
    queue("r", "", quota(3000, on="default/cpu")),
    queue("c", "r", quota(4000, on="default/cpu"), quota(4096, on="default/memory")),
    queue("q", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q_borrowing", "r", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q_same_cohort", "c", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
HIERARCHICAL_18 = [
    queue("r", ""),
    queue("c", "r", quota(2000, on="default/cpu")),
    queue("q", "c", quota(3000, None, 2000, on="default/cpu"), within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q_borrowing", "r", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
HIERARCHICAL_19 = [
    queue("r", ""),
    queue("c11", "r", quota(4000, on="default/cpu")),
    queue("c12", "r", quota(4000, on="default/cpu")),
    queue("c21", "c11", quota(4000, on="default/cpu")),
    queue("c22", "c11", quota(4000, on="default/cpu")),
    queue("c23", "c11", quota(4000, on="default/cpu")),
    queue("c31", "c21", quota(4000, on="default/cpu")),
    queue("c32", "c21", quota(4000, on="default/cpu")),
    queue("q1", "c12", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q2", "c23", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q3", "c22", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q4", "c32", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("q5", "c31", within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
FAIR_20 = [
    queue("all", ""),
    queue(
        "a",
        "all",
        quota(3000, on="default/cpu"),
        within=Within.LOWER_PRIORITY,
        reclaim=Reclaim.ANY,
        borrow_within=BorrowWithin(True, -3),
    ),
    queue(
        "b",
        "all",
        quota(3000, on="default/cpu"),
        within=Within.LOWER_PRIORITY,
        reclaim=Reclaim.ANY,
        borrow_within=BorrowWithin(True, -3),
    ),
    queue(
        "c",
        "all",
        quota(3000, on="default/cpu"),
        within=Within.LOWER_PRIORITY,
        reclaim=Reclaim.ANY,
        borrow_within=BorrowWithin(True, -3),
    ),
    queue("preemptible", "all", quota(0, on="default/cpu")),
]
FAIR_21 = [
    queue("all", ""),
    queue("a", "all", quota(3000, on="default/cpu"), weight=2.0, within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("b", "all", quota(3000, on="default/cpu"), within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("c", "all", quota(3000, on="default/cpu"), within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
FAIR_22 = [
    queue("all", ""),
    queue("a", "all", quota(3000, on="default/cpu"), within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("b", "all", quota(3000, on="default/cpu"), weight=0.0, within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("c", "all", quota(3000, on="default/cpu"), within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
FAIR_23 = [
    queue("all", ""),
    queue("a", "all", quota(3000, on="default/cpu"), within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("b", "all", quota(3000, on="default/cpu"), weight=0.0, within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
]
FAIR_24 = [
    queue("root", ""),
    queue("right-cohort", "root", quota(1000, on="default/cpu"), weight=0.0),
    queue("left-cq", "root", quota(0, on="default/cpu"), reclaim=Reclaim.ANY),
    queue("right-cq", "right-cohort", quota(0, on="default/cpu"), weight=0.0, reclaim=Reclaim.ANY),
]
FAIR_25 = [queue("a", "", quota(1000, on="default/cpu"), within=Within.LOWER_PRIORITY)]
FAIR_26 = [
    queue("ROOT", "", quota(5000, on="default/cpu")),
    queue("LEFT", "ROOT", quota(5000, on="default/cpu"), weight=2.0),
    queue("RIGHT", "ROOT", quota(5000, on="default/cpu")),
    queue("a", "LEFT", quota(1000, on="default/cpu"), weight=2.0, reclaim=Reclaim.ANY),
    queue("b", "LEFT", quota(1000, on="default/cpu")),
    queue("c", "ROOT", quota(1000, on="default/cpu")),
    queue("d", "RIGHT", quota(1000, on="default/cpu")),
    queue("e", "RIGHT", quota(1000, on="default/cpu"), weight=0.99),
]
FAIR_27 = [
    queue("ROOT", ""),
    queue("RIGHT", "ROOT", quota(1000, on="default/cpu"), weight=0.1),
    queue("a", "ROOT", quota(5000, on="default/cpu"), weight=10.0, within=Within.LOWER_PRIORITY, reclaim=Reclaim.ANY),
    queue("b", "RIGHT", weight=0.1),
]
FAIR_28 = [
    queue("ROOT", ""),
    queue("RIGHT", "ROOT", quota(3000, on="default/cpu"), weight=0.1),
    queue(
        "a",
        "ROOT",
        quota(5000, on="default/cpu"),
        weight=10.0,
        within=Within.LOWER_PRIORITY,
        reclaim=Reclaim.LOWER_PRIORITY,
    ),
    queue("b", "RIGHT", weight=0.1),
]
FAIR_29 = [
    queue("ROOT", ""),
    queue("A", "ROOT", weight=1.01),
    queue("AA", "A"),
    queue("AAA", "AA"),
    queue("B", "ROOT", weight=0.99),
    queue("BB", "B"),
    queue("BBB", "BB"),
    queue("C", "ROOT"),
    queue("CC", "C"),
    queue("CCC", "CC"),
    queue("CCCC", "CCC", quota(1000, on="default/cpu")),
    queue("a", "AAA", quota(0, on="default/cpu"), reclaim=Reclaim.ANY),
    queue("b", "BBB", quota(0, on="default/cpu")),
]
FAIR_30 = [
    queue("ROOT", ""),
    queue("a", "ROOT", quota(1000, on="default/cpu"), weight=0.0, reclaim=Reclaim.ANY),
    queue("b", "ROOT", quota(0, on="default/cpu"), weight=1.0),
]
FAIR_31 = [
    queue("ROOT", ""),
    queue("A", "ROOT", quota(1000, on="default/cpu"), weight=0.0),
    queue("a", "A", quota(0, on="default/cpu"), weight=0.0, reclaim=Reclaim.ANY),
    queue("b", "ROOT", quota(0, on="default/cpu"), weight=1.0),
]
FAIR_32 = [
    queue("all", ""),
    queue("a", "all", quota(3000, on="premium/cpu"), quota(0, on="cheap/cpu"), reclaim=Reclaim.ANY),
    queue("b", "all", quota(0, on="premium/cpu"), quota(6000, on="cheap/cpu")),
]
FAIR_33 = [
    queue("all", ""),
    queue("a", "all", quota(1000, on="default/cpu"), weight=0.0, reclaim=Reclaim.ANY),
    queue("b", "all", quota(1000, on="default/cpu"), weight=1.0),
]
FAIR_34 = [
    queue("all", "", quota(3000, on="default/cpu")),
    queue("a", "all", quota(1000, on="default/cpu"), weight=0.0, reclaim=Reclaim.ANY),
    queue("b", "all", quota(0, on="default/cpu"), weight=0.0),
]
FAIR_35 = [
    queue("all", "", quota(3000, on="default/cpu")),
    queue("a", "all", quota(1000, on="default/cpu"), weight=1.0, reclaim=Reclaim.ANY),
    queue("b", "all", quota(0, on="default/cpu"), weight=1.0),
]
FAIR_36 = [
    queue("ROOT", ""),
    queue("A", "ROOT", quota(1000, on="default/cpu"), weight=0.0),
    queue("p", "A", quota(2000, on="default/cpu"), weight=1.0, reclaim=Reclaim.ANY),
    queue("y", "A", quota(2000, on="default/cpu"), weight=1.0),
    queue("x", "ROOT", quota(1000, on="default/cpu"), weight=1.0),
]


class Case(NamedTuple):
    name: str
    queues: list
    running: str
    preemptor: str
    victims: str = ""
    strategies: tuple = ()


CLASSICAL = [
    Case(
        "classical 0",
        CLASSICAL_0,
        "low standalone default/cpu=2000 -1; mid standalone default/cpu=2000; high standalone default/cpu=2000 1",
        "in standalone default/cpu=2000 1",
        "low:InClusterQueue",
    ),
    Case(
        "classical 1",
        CLASSICAL_0,
        "low standalone default/cpu=2000 -1; mid standalone default/cpu=2000; high standalone default/cpu=2000 1",
        "in standalone default/cpu=3000 1",
        "low:InClusterQueue mid:InClusterQueue",
    ),
    Case(
        "classical 2",
        CLASSICAL_0,
        "low standalone default/cpu=3000 -1; mid standalone default/cpu=3000",
        "in standalone default/cpu=1000 -1",
        "",
    ),
    Case(
        "classical 3",
        CLASSICAL_0,
        "low standalone default/cpu=3000 -1; mid standalone default/cpu=3000",
        "in standalone default/cpu=4000",
        "",
    ),
    Case(
        "classical 4",
        CLASSICAL_0,
        "low standalone default/cpu=1000 -1; mid standalone default/cpu=1000; high standalone default/cpu=3000 1",
        "in standalone default/cpu=2000 1",
        "low:InClusterQueue",
    ),
    Case(
        "classical 5",
        CLASSICAL_0,
        "low standalone default/cpu=1000 -1; mid standalone default/cpu=2000; high standalone default/cpu=3000 1",
        "in standalone default/cpu=2000 1",
        "mid:InClusterQueue",
    ),
    Case(
        "classical 6",
        CLASSICAL_0,
        "low standalone alpha/memory=2048 -1; mid standalone beta/memory=1024; high standalone beta/memory=1024 1",
        "in standalone default/cpu=1000,beta/memory=2048 1",
        "mid:InClusterQueue",
    ),
    Case(
        "classical 7",
        CLASSICAL_1,
        "c1-low c1 default/cpu=3000 -1; c2-mid c2 default/cpu=3000; c2-high c2 default/cpu=6000 1",
        "in c1 default/cpu=3000 1",
        "c2-mid:InCohortReclamation",
    ),
    Case(
        "classical 8",
        CLASSICAL_1,
        "c1-low c1 default/cpu=3000,default/memory=3072 -1; c2-mid c2 default/cpu=3000; c2-high c2 default/cpu=6000 1",
        "in c1 default/cpu=3000,default/memory=0 1",
        "c2-mid:InCohortReclamation",
    ),
    Case(
        "classical 9",
        CLASSICAL_1,
        "c1-high c1 default/cpu=4000 1; c2-low-1 c2 default/cpu=4000 -1",
        "in c1 default/cpu=4000 1",
        "",
    ),
    Case(
        "classical 10",
        CLASSICAL_1,
        "c1-high c1 default/cpu=4000 1; c2-low-1 c2 default/cpu=4000 -1; c2-low-2 c2 default/cpu=4000 -1",
        "in c1 default/cpu=4000 1",
        "",
    ),
    Case(
        "classical 11",
        CLASSICAL_1,
        "c1-low c1 default/cpu=4000 -1; c2-low-1 c2 default/cpu=4000 -1; c2-high-2 c2 default/cpu=4000 1",
        "in c1 default/cpu=4000,default/memory=5120 1",
        "c1-low:InClusterQueue",
    ),
    Case(
        "classical 12",
        CLASSICAL_1,
        "c1-med c1 default/cpu=4000; c1-low c1 default/cpu=4000 -1; c2-low-1 c2 default/cpu=4000 -1",
        "in c1 default/cpu=4000 1",
        "c1-low:InClusterQueue",
    ),
    Case(
        "classical 13",
        CLASSICAL_2,
        "d1-med d1 default/cpu=4000; d1-low d1 default/cpu=4000 -1; d2-low-1 d2 default/cpu=4000 -1",
        "in d1 default/cpu=4000 1",
        "d1-low:InClusterQueue",
    ),
    Case(
        "classical 14",
        CLASSICAL_1,
        "c1-med c1 default/cpu=4000; c2-low-1 c2 default/cpu=5000 -1; c2-low-2 c2 default/cpu=1000 -1; "
        "c2-low-3 c2 default/cpu=1000 -1",
        "in c1 default/cpu=2000,default/memory=5120 1",
        "c1-med:InClusterQueue",
    ),
    Case(
        "classical 15",
        CLASSICAL_3,
        "l1-med l1 default/cpu=4000; l1-low l1 default/cpu=2000 -1",
        "in l1 default/cpu=4000 1",
        "l1-med:InClusterQueue",
    ),
    Case(
        "classical 16",
        CLASSICAL_1,
        "c1 c1 default/cpu=2000; c2-1 c2 default/cpu=4000; c2-2 c2 default/cpu=4000",
        "in c1 default/cpu=4000",
        "",
    ),
    Case(
        "classical 17",
        CLASSICAL_1,
        "c1-1 c1 default/cpu=4000; c1-2 c1 default/cpu=4000 1; c2 c2 default/cpu=2000",
        "in c2 default/cpu=4000",
        "c1-1:InCohortReclamation",
    ),
    Case(
        "classical 18",
        CLASSICAL_1,
        "c1-low c1 default/cpu=3000 -1; c1-mid c1 default/cpu=2000; c2-low c2 default/cpu=3000 -1; "
        "c2-mid c2 default/cpu=4000",
        "in c1 default/cpu=4000",
        "c1-low:InClusterQueue c2-low:InCohortReclamation",
    ),
    Case("classical 19", CLASSICAL_1, "c2-low c2 default/cpu=3000 -1", "in c2 default/cpu=4000 1", ""),
    Case(
        "classical 20",
        CLASSICAL_4,
        "wl1 preventStarvation default/cpu=2000 2; wl2 preventStarvation default/cpu=2000 1; "
        "wl3 preventStarvation default/cpu=2000 1",
        "in preventStarvation default/cpu=2000 1 @-15",
        "wl2:InClusterQueue",
    ),
    Case(
        "classical 21",
        CLASSICAL_5,
        "a_best_effort_low a_best_effort default/cpu=10000 -1; b_best_effort_low b_best_effort default/cpu=1000 -1",
        "in a_standard default/cpu=10000",
        "a_best_effort_low:InCohortReclaimWhileBorrowing",
    ),
    Case(
        "classical 22",
        CLASSICAL_5,
        "b_standard b_standard default/cpu=10000 1",
        "in a_standard default/cpu=10000 2",
        "",
    ),
    Case(
        "classical 23",
        CLASSICAL_5,
        "b_standard b_standard default/cpu=13000 1",
        "in a_standard default/cpu=1000 2",
        "b_standard:InCohortReclamation",
    ),
    Case(
        "classical 24", CLASSICAL_5, "a_standard a_standard default/cpu=13000 1", "in a_standard default/cpu=1000 2", ""
    ),
    Case(
        "classical 25",
        CLASSICAL_5,
        "a_standard_1 a_standard default/cpu=10000 1; a_standard_2 a_standard default/cpu=1000 1; "
        "b_standard_1 b_standard default/cpu=1000 1; b_standard_2 b_standard default/cpu=1000 2",
        "in b_standard default/cpu=1000 3",
        "b_standard_1:InClusterQueue",
    ),
    Case(
        "classical 26",
        CLASSICAL_5,
        "b_standard_high b_standard default/cpu=10000 2; b_standard_mid b_standard default/cpu=1000 1; "
        "a_best_effort_low a_best_effort default/cpu=1000 -1; "
        "a_best_effort_lower a_best_effort default/cpu=1000 -2",
        "in b_standard default/cpu=2000 2",
        "a_best_effort_lower:InCohortReclaimWhileBorrowing b_standard_mid:InClusterQueue",
    ),
    Case(
        "classical 27",
        CLASSICAL_6,
        "lend1-low lend1 default/cpu=3000 -1; lend2-mid lend2 default/cpu=3000; lend2-high lend2 default/cpu=4000 1",
        "in lend1 default/cpu=3000 1",
        "lend2-mid:InCohortReclamation",
    ),
    Case(
        "classical 28",
        CLASSICAL_6,
        "lend1-low lend1 default/cpu=3000 -1; lend1-mid lend1 default/cpu=2000; "
        "lend2-low lend2 default/cpu=3000 -1; lend2-mid lend2 default/cpu=4000",
        "in lend1 default/cpu=4000",
        "lend1-low:InClusterQueue lend2-low:InCohortReclamation",
    ),
    Case("classical 29", CLASSICAL_6, "lend2-low lend2 default/cpu=10000 -1", "in lend1 default/cpu=9000", ""),
    Case(
        "classical 30",
        CLASSICAL_7,
        "a1 a default/cpu=1000 -2; a2 a default/cpu=1000 -2; a3 a default/cpu=1000 -1; "
        "b1 b default/cpu=1000; b2 b default/cpu=1000; b3 b default/cpu=1000",
        "in a default/cpu=2000",
        "a1:InClusterQueue a2:InClusterQueue",
    ),
    Case(
        "classical 31",
        CLASSICAL_7,
        "a1 a default/cpu=1000,default/memory=1000 -2; a2 a default/cpu=1000,default/memory=1000 -2; "
        "a3 a default/cpu=1000,default/memory=1000 -1; b1 b default/cpu=1000,default/memory=1000; "
        "b2 b default/cpu=1000,default/memory=1000; b3 b default/cpu=1000,default/memory=1000",
        "in a default/cpu=2000,default/memory=2000",
        "a1:InClusterQueue a2:InClusterQueue",
    ),
    Case(
        "classical 32",
        CLASSICAL_7,
        "a1 a default/cpu=1000 -2; a2 a default/cpu=1000 -2; a3 a default/cpu=1000 -1; "
        "b1 b default/cpu=1000; b2 b default/cpu=1000; b3 b default/cpu=1000",
        "in a default/cpu=2000,default/memory=2000",
        "a1:InClusterQueue a2:InClusterQueue",
    ),
    Case(
        "classical 33",
        CLASSICAL_7,
        "a1 a default/cpu=1000 -1; b1 b default/cpu=1000; b2 b default/cpu=1000; b3 b default/cpu=1000; "
        "b4 b default/cpu=1000; b5 b default/cpu=1000 -1",
        "in a default/cpu=2000",
        "a1:InClusterQueue b5:InCohortReclamation",
    ),
    Case(
        "classical 34",
        CLASSICAL_8,
        "to-be-preempted cq-right default/cpu=5000",
        "in cq-left default/cpu=8000",
        "to-be-preempted:InCohortReclamation",
    ),
]
HIERARCHICAL = [
    Case(
        "hierarchical 35",
        HIERARCHICAL_9,
        "admitted2 q_borrowing default/cpu=2000",
        "in q default/cpu=2000",
        "admitted2:InCohortReclamation",
    ),
    Case(
        "hierarchical 36",
        HIERARCHICAL_10,
        "admitted1 q_nominal default/cpu=2000 -10; admitted2 q_borrowing default/cpu=2000",
        "in q default/cpu=2000",
        "admitted2:InCohortReclamation",
    ),
    Case(
        "hierarchical 37",
        HIERARCHICAL_9,
        "admitted1 q_borrowing default/cpu=1000 1; admitted2 q_borrowing default/cpu=1000 2",
        "in q default/cpu=2000",
        "admitted1:InCohortReclamation admitted2:InCohortReclamation",
    ),
    Case(
        "hierarchical 38",
        HIERARCHICAL_11,
        "admitted_not_preemptible q_same_cohort default/cpu=1000 1; "
        "admitted_preemptible q_same_cohort default/cpu=2000; admitted_own_queue q default/cpu=1000 -1",
        "in q default/cpu=2000 1",
        "admitted_own_queue:InClusterQueue admitted_preemptible:InCohortReclaimWhileBorrowing",
    ),
    Case(
        "hierarchical 39",
        HIERARCHICAL_9,
        "admitted_borrowing q_borrowing default/cpu=1000 1; admitted_same_queue q default/cpu=1000 -2",
        "in q default/cpu=1000",
        "admitted_borrowing:InCohortReclamation",
    ),
    Case(
        "hierarchical 40",
        HIERARCHICAL_12,
        "admitted_nominal q_nominal default/cpu=2000 -10; admitted_same_cohort q_same_cohort default/cpu=2000 -1",
        "in q default/cpu=2000",
        "admitted_same_cohort:InCohortReclaimWhileBorrowing",
    ),
    Case(
        "hierarchical 41",
        HIERARCHICAL_13,
        "admitted_borrowing q_borrowing default/cpu=3000 10; admitted_same_cohort q_same_cohort default/cpu=3000 10",
        "in q default/cpu=4000",
        "admitted_borrowing:InCohortReclamation admitted_same_cohort:InCohortReclamation",
    ),
    Case(
        "hierarchical 42",
        HIERARCHICAL_14,
        "admitted_borrowing q_borrowing default/cpu=2000 -1; "
        "admitted_same_cohort_preemptible q_same_cohort default/cpu=1000 -1; "
        "admitted_borrowing_not_preemptible q_borrowing default/cpu=2000 1",
        "in q default/cpu=3000",
        "admitted_borrowing:InCohortReclamation admitted_same_cohort_preemptible:InCohortReclaimWhileBorrowing",
    ),
    Case(
        "hierarchical 43",
        HIERARCHICAL_14,
        "admitted_borrowing q_borrowing default/cpu=2000 -1; "
        "admitted_same_queue_preemptible q default/cpu=1000 -1; "
        "admitted_borrowing_not_preemptible q_borrowing default/cpu=2000 1",
        "in q default/cpu=3000",
        "admitted_borrowing:InCohortReclamation admitted_same_queue_preemptible:InClusterQueue",
    ),
    Case(
        "hierarchical 44",
        HIERARCHICAL_15,
        "admitted_borrowing_prio_8 q_borrowing default/cpu=1000 8; "
        "admitted_borrowing_prio_9 q_borrowing default/cpu=1000 9; "
        "admitted_borrowing_prio_10 q_borrowing default/cpu=1000 9; "
        "admitted_nominal q_nominal default/cpu=2000 -2",
        "in q default/cpu=1000",
        "admitted_borrowing_prio_8:InCohortReclamation",
    ),
    Case(
        "hierarchical 45",
        HIERARCHICAL_16,
        "admitted_other_1 q_other default/cpu=1000 -10; admitted_other_2 q_other default/cpu=1000 -10; "
        "admitted_same_cohort q_same_cohort default/cpu=2000",
        "in q default/cpu=2000",
        "",
    ),
    Case(
        "hierarchical 46",
        HIERARCHICAL_17,
        "admitted_borrowing q_borrowing default/cpu=3000,default/memory=1024; "
        "admitted_same_cohort q_same_cohort default/cpu=1000,default/memory=3072 -2",
        "in q default/cpu=2000,default/memory=1024 -2",
        "admitted_borrowing:InCohortReclamation",
    ),
    Case(
        "hierarchical 47",
        HIERARCHICAL_18,
        "admitted_borrowing q_borrowing default/cpu=4000",
        "in q default/cpu=5000 -2",
        "admitted_borrowing:InCohortReclamation",
    ),
    Case(
        "hierarchical 48",
        HIERARCHICAL_19,
        "admitted_borrowing_1 q1 default/cpu=4000 -6; admitted_borrowing_2 q1 default/cpu=4000 -5; "
        "admitted_borrowing_3 q2 default/cpu=4000 -9; admitted_borrowing_4 q2 default/cpu=4000 -10; "
        "admitted_borrowing_5 q3 default/cpu=4000 -4; admitted_borrowing_6 q3 default/cpu=3000 -3; "
        "admitted_borrowing_7 q4 default/cpu=2000 4; admitted_borrowing_8 q4 default/cpu=3000 2",
        "in q5 default/cpu=7000 -2",
        "admitted_borrowing_1:InCohortReclamation admitted_borrowing_4:InCohortReclamation",
    ),
]
FAIR = [
    Case(
        "fair 49",
        FAIR_20,
        "a1 a default/cpu=1000; a2 a default/cpu=1000; a3 a default/cpu=1000; b1 b default/cpu=1000; "
        "b2 b default/cpu=1000; b3 b default/cpu=1000; b4 b default/cpu=1000; b5 b default/cpu=1000; "
        "c1 c default/cpu=1000",
        "c_incoming c default/cpu=1000",
        "b1:InCohortReclamation",
    ),
    Case(
        "fair 50",
        FAIR_20,
        "a1 a default/cpu=3000; a2 a default/cpu=1000; b1 b default/cpu=2000; b2 b default/cpu=3000",
        "c_incoming c default/cpu=3000",
        "a1:InCohortReclamation",
    ),
    Case(
        "fair 51",
        FAIR_20,
        "a1 a default/cpu=1000; a2 a default/cpu=1000; a3 a default/cpu=1000; b1 b default/cpu=1000; "
        "b2 b default/cpu=1000; b3 b default/cpu=1000; b4 b default/cpu=1000; b5 b default/cpu=1000; "
        "c1 c default/cpu=1000",
        "a_incoming a default/cpu=1000",
        "b1:InCohortFairSharing",
    ),
    Case(
        "fair 52",
        FAIR_20,
        "a1 a default/cpu=500; a2 a default/cpu=500; a3 a default/cpu=3000; b1 b default/cpu=500; "
        "b2 b default/cpu=500; b3 b default/cpu=3000",
        "c_incoming c default/cpu=2000",
        "a1:InCohortReclamation b1:InCohortReclamation",
    ),
    Case(
        "fair 53",
        FAIR_20,
        "a1 a default/cpu=1000; a2 a default/cpu=1000; a3 a default/cpu=1000; b1 b default/cpu=1000; "
        "b2 b default/cpu=1000; b3 b default/cpu=1000; c1 c default/cpu=1000; c2 c default/cpu=1000; "
        "c3 c default/cpu=1000",
        "c_incoming c default/cpu=1000",
        "",
    ),
    Case(
        "fair 54",
        FAIR_20,
        "a1 a default/cpu=1000; a2 a default/cpu=1000; a3 a default/cpu=1000; b1 b default/cpu=1000; "
        "b2 b default/cpu=1000; b3 b default/cpu=1000; b4 b default/cpu=1000; b5 b default/cpu=1000",
        "a_incoming a default/cpu=2000",
        "",
    ),
    Case(
        "fair 55",
        FAIR_20,
        "a1_low a default/cpu=1000 -1; a2_low a default/cpu=1000 -1; a3 a default/cpu=1000; "
        "a4 a default/cpu=1000; b1 b default/cpu=1000; b2 b default/cpu=1000; b3 b default/cpu=1000; "
        "b4 b default/cpu=1000; b5 b default/cpu=1000",
        "a_incoming a default/cpu=2000",
        "a1_low:InClusterQueue a2_low:InClusterQueue",
    ),
    Case(
        "fair 56",
        FAIR_20,
        "a_low a default/cpu=1000 -1; a2 a default/cpu=1000; a3 a default/cpu=1000; "
        "b1 b default/cpu=1000; b2 b default/cpu=1000; b3 b default/cpu=1000; b4 b default/cpu=1000; "
        "b5 b default/cpu=1000; b6 b default/cpu=1000",
        "a_incoming a default/cpu=2000",
        "a_low:InClusterQueue b1:InCohortFairSharing",
    ),
    Case("fair 57", FAIR_20, "b1 b default/cpu=9000", "a_incoming a default/cpu=2000", "b1:InCohortReclamation"),
    Case("fair 58", FAIR_20, "a1 a default/cpu=2000; b1 b default/cpu=7000", "a_incoming a default/cpu=5000", ""),
    Case(
        "fair 59",
        FAIR_20,
        "b1 b default/cpu=2000; b2 b default/cpu=2000; b3 b default/cpu=3000",
        "a_incoming a default/cpu=6000",
        "",
    ),
    Case(
        "fair 60",
        FAIR_20,
        "a1_low a default/cpu=2000 -1; a2_low a default/cpu=1000 -1; b1 b default/cpu=3000; b2 b default/cpu=3000",
        "a_incoming a default/cpu=4000",
        "a1_low:InClusterQueue b1:InCohortFairSharing",
    ),
    Case(
        "fair 61",
        FAIR_20,
        "b1 b default/cpu=2000; b2 b default/cpu=1000; b3 b default/cpu=2000; c1 c default/cpu=1000",
        "a_incoming a default/cpu=3500",
        "b2:InCohortFairSharing",
    ),
    Case(
        "fair 62",
        FAIR_20,
        "b1 b default/cpu=2000; b2 b default/cpu=2500; c1 c default/cpu=2000; c2 c default/cpu=2500",
        "a_incoming a default/cpu=3500",
        "b1:InCohortFairSharing c1:InCohortFairSharing",
    ),
    Case(
        "fair 63",
        FAIR_20,
        "a1 a default/cpu=3500; b2 b default/cpu=2500; c2 c default/cpu=2500",
        "b_incoming b default/cpu=2000",
        "",
    ),
    Case(
        "fair 64",
        FAIR_20,
        "b1 b default/cpu=3000; b2 b default/cpu=3000; c1 c default/cpu=3000",
        "a_incoming a default/cpu=4000",
        "",
    ),
    Case(
        "fair 65",
        FAIR_20,
        "a1 a default/cpu=1000; a2 a default/cpu=1000; a3 a default/cpu=1000; b1 b default/cpu=1000; "
        "b2 b default/cpu=1000; b3 b default/cpu=1000; preemptible1 preemptible default/cpu=1000 -3; "
        "preemptible2 preemptible default/cpu=1000 -3; preemptible3 preemptible default/cpu=1000 -3",
        "a_incoming a default/cpu=2000",
        "",
    ),
    Case(
        "fair 66",
        FAIR_20,
        "a1 a default/cpu=3000; b_low b default/cpu=5000; b_high b default/cpu=1000 1",
        "a_incoming a default/cpu=1000",
        "b_low:InCohortFairSharing",
        ("LessThanInitialShare",),
    ),
    Case(
        "fair 67",
        FAIR_20,
        "a1 a default/cpu=3000; b_low b default/cpu=5000; b_high b default/cpu=1000 1",
        "a_incoming a default/cpu=1000",
        "b_high:InCohortFairSharing",
        ("LessThanOrEqualToFinalShare",),
    ),
    Case(
        "fair 68",
        FAIR_21,
        "a1 a default/cpu=1000; a2 a default/cpu=1000; a3 a default/cpu=1000; b1 b default/cpu=1000; "
        "b2 b default/cpu=1000; b3 b default/cpu=1000; b4 b default/cpu=1000; b5 b default/cpu=1000; "
        "b6 b default/cpu=1000",
        "a_incoming a default/cpu=2000",
        "b1:InCohortFairSharing b2:InCohortFairSharing",
    ),
    Case(
        "fair 69",
        FAIR_22,
        "a1 a default/cpu=1000; a2 a default/cpu=1000; a3 a default/cpu=1000; b1 b default/cpu=1000; "
        "b2 b default/cpu=1000; b3 b default/cpu=1000; b4 b default/cpu=1000; b5 b default/cpu=1000; "
        "b6 b default/cpu=1000",
        "a_incoming a default/cpu=3000",
        "b1:InCohortFairSharing b2:InCohortFairSharing b3:InCohortFairSharing",
    ),
    Case(
        "fair 70",
        FAIR_23,
        "a1 a default/cpu=1000; a2 a default/cpu=1000; a3 a default/cpu=1000; b1 b default/cpu=1000; "
        "b2 b default/cpu=1000; b3 b default/cpu=1000",
        "a_incoming a default/cpu=1000",
        "",
    ),
    Case("fair 71", FAIR_24, "right-1 right-cq default/cpu=1000", "left-1 left-cq default/cpu=1000", ""),
    Case("fair 72", FAIR_25, "a1 a default/cpu=1000", "a_incoming a default/cpu=1000 1000", "a1:InClusterQueue"),
    Case(
        "fair 73",
        FAIR_26,
        "b1 b default/cpu=1000 1; b2 b default/cpu=1000 2; b3 b default/cpu=1000 3; "
        "b4 b default/cpu=1000 4; b5 b default/cpu=1000 5; c1 c default/cpu=1000 1; "
        "c2 c default/cpu=1000 2; c3 c default/cpu=1000 3; c4 c default/cpu=1000 4; "
        "c5 c default/cpu=1000 5; d1 d default/cpu=1000 1; d2 d default/cpu=1000 2; "
        "d3 d default/cpu=1000 3; d4 d default/cpu=1000 4; d5 d default/cpu=1000 5; "
        "e1 e default/cpu=1000 1; e2 e default/cpu=1000 2; e3 e default/cpu=1000 3; "
        "e4 e default/cpu=1000 4; e5 e default/cpu=1000 5",
        "unit a default/cpu=5000",
        "b1:InCohortFairSharing b2:InCohortFairSharing c1:InCohortFairSharing "
        "c2:InCohortFairSharing e1:InCohortFairSharing",
    ),
    Case(
        "fair 74",
        FAIR_27,
        "a1 a default/cpu=1000 -1; a2 a default/cpu=1000 -1; a3 a default/cpu=1000 -1; b1 b default/cpu=1000 -1",
        "unit a default/cpu=5000",
        "a1:InClusterQueue a2:InClusterQueue a3:InClusterQueue",
    ),
    Case(
        "fair 75",
        FAIR_28,
        "b1 b default/cpu=4000 100; a1 a default/cpu=1000 -1; a2 a default/cpu=1000 -1; a3 a default/cpu=1000 -1",
        "unit a default/cpu=4000",
        "a1:InClusterQueue a2:InClusterQueue a3:InClusterQueue",
    ),
    Case("fair 76", FAIR_29, "b1 b default/cpu=1000", "a1 a default/cpu=1000", "b1:InCohortFairSharing"),
    Case("fair 77", FAIR_30, "b1 b default/cpu=1000", "a1 a default/cpu=1000", "b1:InCohortReclamation"),
    Case("fair 78", FAIR_31, "b1 b default/cpu=1000", "a1 a default/cpu=1000", "b1:InCohortFairSharing"),
    Case(
        "fair 79",
        FAIR_32,
        "a_prem1 a premium/cpu=1000; a_prem2 a premium/cpu=1000; a_cheap1 a cheap/cpu=1000; "
        "a_cheap2 a cheap/cpu=1000; a_cheap3 a cheap/cpu=1000; a_cheap4 a cheap/cpu=1000; "
        "a_cheap5 a cheap/cpu=1000; b_prem1 b premium/cpu=1000",
        "a_incoming a premium/cpu=1000",
        "b_prem1:InCohortReclamation",
    ),
    Case(
        "fair 80",
        FAIR_33,
        "a1 a default/cpu=1000; b1 b default/cpu=1000; b2 b default/cpu=1000",
        "a_incoming a default/cpu=1000",
        "",
    ),
    Case(
        "fair 81",
        FAIR_34,
        "b1 b default/cpu=1000; b2 b default/cpu=1000; b3 b default/cpu=1000",
        "a_incoming a default/cpu=2000",
        "b1:InCohortFairSharing",
    ),
    Case(
        "fair 82",
        FAIR_35,
        "b1 b default/cpu=1000; b2 b default/cpu=1000; b3 b default/cpu=1000",
        "a_incoming a default/cpu=2000",
        "b1:InCohortFairSharing",
    ),
    Case(
        "fair 83",
        FAIR_36,
        "p1 p default/cpu=2000; y1 y default/cpu=2000; y2 y default/cpu=2000; x1 x default/cpu=1000; "
        "x2 x default/cpu=1000",
        "p_incoming p default/cpu=1000",
        "y1:InCohortFairSharing x1:InCohortFairSharing",
    ),
]
