"""The cases that Kueue publishes for preemption (pkg/scheduler/preemption, 0.19): fair sharing."""

from firmament_py.model.queues import BorrowWithin, Reclaim, Within
from tests.firmament_py.queues.scene import Case
from tests.firmament_py.queues.trees import queue, quota

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
