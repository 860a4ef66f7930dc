"""The cases that Kueue publishes for preemption (pkg/scheduler/preemption, 0.19): cohorts below cohorts."""

from firmament_py.model.queues import BorrowWithin, Reclaim, Within
from tests.firmament_py.queues.scene import Case
from tests.firmament_py.queues.trees import queue, quota

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
