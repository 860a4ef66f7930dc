"""The cases that Kueue publishes for preemption (pkg/scheduler/preemption, 0.19): one level of queues."""

from firmament_py.model.queues import BorrowWithin, Reclaim, Within
from tests.firmament_py.queues.scene import Case
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
