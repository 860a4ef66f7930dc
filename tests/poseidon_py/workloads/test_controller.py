"""When suspended workloads are resumed, what users are told of those that are not, and how long workloads may run."""

import pytest

from poseidon_py.kube.client import ApiError, BusyError
from poseidon_py.state.gangs.by_owner import DEPLOYMENTS, JOB_SETS, REPLICA_SETS
from poseidon_py.state.gangs.owner_kinds import RAY_CLUSTERS, TRAIN_JOBS
from tests.poseidon_py.workloads.rig import NOW, QUEUE, WorkloadRig

LABELLED = {QUEUE: "lq"}
LIMIT = "kueue.x-k8s.io/max-exec-time-seconds"
FORBIDDEN = ApiError(403, "Forbidden", 'jobs.batch "j" is forbidden')


@pytest.fixture
def rig():
    return WorkloadRig("off")


@pytest.fixture
def kueue():
    rig = WorkloadRig("kueue", limit=4)
    rig.cluster_queue()
    return rig


def suspended(rig, *names):
    return [name for name in names if rig.is_suspended(name)]


# -- what this scheduler has suspended ----------------------------------------------------------------------------


async def test_a_workload_is_resumed_once_its_pods_are_gone(rig):
    rig.new_job("j", 2)
    await rig.suspend(*rig.pods("j", "a", "b"))
    rig.pods("j", "a", deleting=True)
    rig.end_pods("b")
    await rig.step()
    assert rig.is_suspended("j")
    assert rig.controller.due == 1
    assert [each["why"] for each in rig.controller.listed()] == ["its pods are being deleted"]
    rig.end_pods("a")
    await rig.step()
    assert not rig.is_suspended("j")
    assert rig.note("j") is None
    assert rig.controller.due == 0
    assert rig.messages("Resumed") == ["resumed: the pods that it had are gone"]
    assert not list(rig.controller.listed())


@pytest.mark.parametrize("after", ["the patch", "the resumption"])
async def test_the_next_leader_goes_on(rig, after):
    rig.new_job("j")
    await rig.suspend(*rig.pods("j", "a"))
    if after == "the resumption":
        rig.end_pods("a")
        await rig.step()
        patches = len(rig.kube.patches)
    rig.start()
    rig.end_pods("a")
    await rig.step()
    assert not rig.is_suspended("j")
    if after == "the resumption":
        assert len(rig.kube.patches) == patches


async def test_a_replica_that_does_not_lead_resumes_nothing(rig):
    rig.new_job("j")
    await rig.suspend(*rig.pods("j", "a"))
    rig.end_pods("a")
    rig.leads = False
    await rig.step()
    assert rig.is_suspended("j")


async def test_what_a_user_suspends_without_a_queue_stays_suspended(rig):
    rig.new_job("j", suspend=True)
    await rig.step()
    assert rig.is_suspended("j")
    assert rig.events == []
    assert not list(rig.controller.listed())


@pytest.mark.parametrize("value", ["false", "False"])
async def test_what_its_user_wants_to_stay_suspended_does(rig, value):
    rig.new_job("j")
    await rig.suspend(*rig.pods("j", "a"))
    rig.end_pods("a")
    rig.change("/jobs/j", {"metadata": {"annotations": {"poseidon.io/resume": value}}})
    await rig.step()
    await rig.step()
    assert rig.is_suspended("j")
    why = 'annotation poseidon.io/resume is "false"; remove it, and the workload is resumed'
    assert rig.messages("NotResumed") == [f"stays suspended: {why}"]
    rig.change("/jobs/j", {"metadata": {"annotations": {"poseidon.io/resume": None}}})
    await rig.step()
    assert not rig.is_suspended("j")


async def test_if_somebody_else_resumes_it_the_annotation_goes(rig):
    """Otherwise it would be resumed against the will of a user who suspends it later."""
    rig.new_job("j")
    await rig.suspend(*rig.pods("j", "a"))
    rig.change("/jobs/j", {"spec": {"suspend": False}})
    await rig.step()
    assert rig.note("j") is None
    assert not rig.is_suspended("j")


async def test_a_deleted_workload_is_forgotten(rig):
    rig.new_job("j")
    await rig.suspend(*rig.pods("j", "a"))
    rig.drop_workload("/jobs/j")
    patches = len(rig.kube.patches)
    await rig.step()
    assert len(rig.kube.patches) == patches


async def test_a_workload_that_is_deleted_meanwhile_is_no_failure(rig):
    rig.new_job("j")
    await rig.suspend(*rig.pods("j", "a"))
    rig.end_pods("a")
    del rig.kube.objects["/jobs/j"]
    await rig.step()
    assert rig.messages("NotResumed") == []


async def test_a_refused_resumption_is_said_and_tried_again_after_growing_delays(rig):
    rig.new_job("j")
    await rig.suspend(*rig.pods("j", "a"))
    rig.end_pods("a")
    patches = len(rig.kube.patches)
    rig.kube.faults = [FORBIDDEN] * 100
    for _ in range(60):
        rig.clock += 1
        await rig.step()
    assert rig.messages("NotResumed") == [f"cannot be resumed: {FORBIDDEN}"]
    assert len(rig.kube.patches) - patches == 4  # after 0, 5, 15 and 35 s
    rig.kube.faults = []
    rig.clock += 300
    await rig.step()
    assert not rig.is_suspended("j")


async def test_pods_that_the_controller_leaves_are_deleted_after_a_while(rig):
    """Nobody follows the field: the operator does not run."""
    rig.new_job("j", 2)
    await rig.suspend(*rig.pods("j", "a", "b"))
    rig.pods("j", "b", deleting=True)
    rig.clock += 29
    await rig.step()
    assert rig.deleted == []
    rig.clock += 2
    await rig.step()
    assert rig.deleted == ["a"]


async def test_a_queue_that_was_drained_resumes_once_it_is_open_again():
    """HoldAndDrain of Kueue, `drain` of a queue of our own: an administrative act, after which a Job goes on."""
    rig = WorkloadRig("poseidon")
    rig.namespace("default")
    rig.put("Queue", "q", {"stop": "drain"})
    rig.new_job("j", labels={"poseidon.io/queue": "q"})
    await rig.suspend(*rig.pods("j", "a"), reason="QueueDrained")
    rig.end_pods("a")
    for _ in range(3):
        await rig.step()
    assert rig.is_suspended("j")
    why = "queue q is stopped; it is resumed once the queue is open again"
    assert rig.messages("NotResumed") == [f"stays suspended: {why}"]
    assert [each["why"] for each in rig.controller.listed()] == [why]
    rig.put("Queue", "q", {})
    await rig.step()
    assert not rig.is_suspended("j")
    assert rig.messages("Resumed") == ["resumed: its pods wait in queue q"]


# -- what users of Kueue's queues create suspended ----------------------------------------------------------------


async def test_a_job_that_is_created_suspended_with_a_queue_label_starts(kueue):
    """Kueue's users create them so, and its webhook suspends all others: nobody else resumes them without it."""
    kueue.new_job("j", 2, suspend=True, labels=LABELLED)
    await kueue.step()
    assert not kueue.is_suspended("j")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"labels": None}, id="without the label"),
        pytest.param({"scheduler": "default-scheduler"}, id="another scheduler's"),
        pytest.param({"owner": ("JobSet", "s")}, id="its owner decides"),
    ],
)
async def test_other_suspended_jobs_stay_so(kueue, change):
    kueue.workload("s", {"suspend": True}, resource=JOB_SETS)
    kueue.new_job("j", suspend=True, **({"labels": LABELLED} | change))
    await kueue.step()
    assert kueue.is_suspended("j")
    assert not list(kueue.controller.listed())


async def test_a_train_job_does_not_tell_its_scheduler(kueue):
    """Its runtime has the templates."""
    kueue.workload("t", {"suspend": True}, resource=TRAIN_JOBS, labels=LABELLED)
    kueue.workload("r", {"suspend": True}, resource=RAY_CLUSTERS, labels=LABELLED)
    await kueue.step()
    assert not kueue.is_suspended("t", "trainjobs")
    assert kueue.is_suspended("r", "rayclusters")  # its templates name no scheduler: that is the default one


@pytest.mark.parametrize("why", ["Kueue runs", "pods are units"])
async def test_nothing_is_resumed_that_is_not_admitted_here(kueue, why):
    if why == "Kueue runs":
        kueue.queues.set_running("kueue", "kueue-controller-manager")
    else:
        kueue.units = lambda: False
    kueue.new_job("j", suspend=True, labels=LABELLED)
    await kueue.step()
    assert kueue.is_suspended("j")


async def test_kueue_that_appears_in_between_decides(kueue):
    kueue.new_job("j", labels=LABELLED)
    await kueue.suspend(*kueue.pods("j", "a"))
    kueue.end_pods("a")
    kueue.queues.set_running("kueue", "kueue-controller-manager")
    await kueue.step()
    await kueue.step()
    assert kueue.is_suspended("j")
    assert kueue.messages("NotResumed") == ["stays suspended: Kueue's controller decides when it is resumed"]


@pytest.mark.parametrize(
    ("kind", "spec", "why"),
    [
        ("ClusterQueue", {"stopPolicy": "Hold"}, "queue cq is stopped; it is resumed once the queue is open again"),
        (
            "LocalQueue",
            {"stopPolicy": "Hold", "clusterQueue": "cq"},
            "queue default/lq is stopped; it is resumed once the queue is open again",
        ),
    ],
)
async def test_a_stopped_queue_resumes_nothing_and_says_so_once(kueue, kind, spec, why):
    kueue.cluster_queue(**(spec if kind == "ClusterQueue" else {}))
    if kind == "LocalQueue":
        kueue.put(kind, "lq", spec, namespace="default")
    kueue.new_job("j", suspend=True, labels=LABELLED)
    for _ in range(4):
        await kueue.step()
    assert kueue.is_suspended("j")
    assert kueue.messages("NotResumed") == [f"stays suspended: {why}"]
    assert [(each["name"], each["kind"], each["why"]) for each in kueue.controller.listed()] == [
        ("default/j", "Job", why)
    ]


async def test_a_missing_queue_resumes_nothing_and_says_so(kueue):
    kueue.new_job("j", suspend=True, labels={QUEUE: "nowhere"})
    await kueue.step()
    assert kueue.events == []  # it may have been created in one apply with its queue
    await kueue.step()
    assert kueue.is_suspended("j")
    assert "LocalQueue default/nowhere does not exist" in kueue.messages("NotResumed")[0]
    kueue.put("LocalQueue", "nowhere", {"clusterQueue": "cq"}, namespace="default")
    await kueue.step()
    assert not kueue.is_suspended("j")


async def test_a_missing_priority_class_resumes_nothing_and_says_so(kueue):
    kueue.new_job("j", suspend=True, labels=LABELLED | {"kueue.x-k8s.io/priority-class": "high"})
    await kueue.step()
    await kueue.step()
    assert kueue.is_suspended("j")
    assert "WorkloadPriorityClass high does not exist" in kueue.messages("NotResumed")[0]
    kueue.put("WorkloadPriorityClass", "high", value=1)
    await kueue.step()
    assert not kueue.is_suspended("j")


async def test_a_workload_without_a_label_starts_where_its_namespace_has_a_default_queue(kueue):
    kueue.new_job("j", suspend=True)
    await kueue.step()
    assert kueue.is_suspended("j")
    assert not list(kueue.controller.listed())
    kueue.put("LocalQueue", "default", {"clusterQueue": "cq"}, namespace="default")
    await kueue.step()
    assert not kueue.is_suspended("j")
    assert kueue.messages("Resumed") == ["resumed: its pods wait in queue cq"]


async def test_a_part_of_a_workload_does_not_start_by_the_default_queue(kueue):
    """The owner above it is a workload by its label."""
    kueue.put("LocalQueue", "default", {"clusterQueue": "cq"}, namespace="default")
    kueue.workload("r", resource=REPLICA_SETS, labels=LABELLED)
    kueue.new_job("j", suspend=True, owner=("ReplicaSet", "r"))
    await kueue.step()
    assert kueue.is_suspended("j")


async def test_workloads_are_resumed_in_turn(kueue):
    """At most 4 pods are pending at a time here."""
    for at, name in enumerate("abcd"):
        kueue.new_job(name, 2, suspend=True, labels=LABELLED, created=at)
    await kueue.step()
    assert suspended(kueue, *"abcd") == ["c", "d"]
    await kueue.step()  # their pods are not there yet
    assert suspended(kueue, *"abcd") == ["c", "d"]
    why = "waits for its turn: enough other pods of queue cq are pending"
    assert {each["why"] for each in kueue.controller.listed()} == {why}
    assert kueue.messages("NotResumed") == []
    kueue.pods("a", "a-0", "a-1", node="", labels=LABELLED)
    kueue.pods("b", "b-0", "b-1", node="", labels=LABELLED)
    await kueue.step()
    assert suspended(kueue, *"abcd") == ["c", "d"]
    kueue.pods("a", "a-0", "a-1")  # they are bound
    await kueue.step()
    assert suspended(kueue, *"abcd") == ["d"]


async def test_pods_that_never_come_do_not_hold_others_back_for_ever(kueue):
    """The resumed Job was deleted, or its controller does not run."""
    kueue.new_job("a", 4, suspend=True, labels=LABELLED)
    kueue.new_job("b", 4, suspend=True, labels=LABELLED, created=1)
    await kueue.step()
    assert suspended(kueue, "a", "b") == ["b"]
    kueue.clock += 61
    await kueue.step()
    assert suspended(kueue, "a", "b") == []


@pytest.mark.parametrize("by", ["WorkloadPriorityClass", "PriorityClass", "default class"])
async def test_the_order_is_that_of_priorities(kueue, by):
    """Kueue: the label first, then the templates, then the default: pkg/util/priority/priority.go."""
    kueue.put("WorkloadPriorityClass", "high", value=5)
    kueue.priority_class("high", 5)
    kueue.priority_class("usual", 3, globalDefault=True)
    kueue.priority_class("low", 1)
    kueue.new_job("old", 4, suspend=True, labels=LABELLED, priority_class="low")
    label = {"kueue.x-k8s.io/priority-class": "high"} if by == "WorkloadPriorityClass" else {}
    template = {"PriorityClass": "high", "WorkloadPriorityClass": "low", "default class": ""}[by]
    kueue.new_job("new", 4, suspend=True, labels=LABELLED | label, priority_class=template, created=1)
    await kueue.step()
    assert suspended(kueue, "old", "new") == ["old"]


async def test_thousands_of_suspended_jobs_make_no_storm_of_writes(kueue):
    for at in range(1000):
        kueue.new_job(f"j{at}", suspend=True, labels=LABELLED)
    for _ in range(5):
        await kueue.step()
    assert len(kueue.kube.patches) == 4
    assert len(kueue.events) == 4


# -- how long workloads may run -----------------------------------------------------------------------------------


def limited(rig, seconds="60", **fields):
    rig.new_job("j", labels=LABELLED | {LIMIT: seconds}, **fields)
    (known,) = rig.pods("j", "a", labels=LABELLED)
    known.described.started_us = int((NOW + rig.clock) * 1e6)
    return known


async def test_a_workload_that_runs_for_too_long_is_suspended_for_good(kueue):
    """Kueue deactivates it: pkg/controller/core/workload_controller.go, reconcileMaxExecutionTime."""
    limited(kueue)
    kueue.clock += 59
    await kueue.step()
    assert not kueue.is_suspended("j")
    kueue.clock += 1
    await kueue.step()
    assert kueue.is_suspended("j")
    kueue.end_pods("a")
    for _ in range(3):
        await kueue.step()
    assert kueue.is_suspended("j")
    assert kueue.note("j")["reason"] == "MaximumExecutionTimeExceeded"
    assert f"its pods have run for 60 s, longer than label {LIMIT} permits" in kueue.messages("Suspended")[0]


async def test_the_time_before_a_preemption_counts(kueue):
    """accumulatedPastExecutionTimeSeconds of Kueue's Workload."""
    known = limited(kueue)
    kueue.clock += 40
    await kueue.suspend(known)
    kueue.end_pods("a")
    kueue.clock += 1000
    await kueue.step()
    assert not kueue.is_suspended("j")
    (again,) = kueue.pods("j", "b", labels=LABELLED)
    again.described.started_us = int((NOW + kueue.clock) * 1e6)
    kueue.clock += 19
    await kueue.step()
    assert not kueue.is_suspended("j")
    kueue.clock += 1
    await kueue.step()
    assert kueue.is_suspended("j")


@pytest.mark.parametrize("seconds", ["-5", "soon", "0"])
async def test_a_limit_that_cannot_be_read_is_said_once(kueue, seconds):
    limited(kueue, seconds)
    kueue.clock += 1e6
    await kueue.step()
    await kueue.step()
    assert not kueue.is_suspended("j")
    assert kueue.messages("InvalidLabel") == [
        f"label {LIMIT}: {seconds!r} is not valid; give a whole number of seconds from 1"
    ]


async def test_a_limit_of_what_cannot_be_suspended_is_said(kueue):
    kueue.workload("d", {"replicas": 1}, resource=DEPLOYMENTS, labels=LABELLED | {LIMIT: "60"})
    await kueue.step()
    assert "has no effect: its kind cannot be suspended" in kueue.messages("InvalidLabel")[0]


async def test_a_job_that_has_ended_is_not_suspended(kueue):
    known = limited(kueue)
    kueue.clock += 40
    await kueue.suspend(known)
    kueue.end_pods("a")
    await kueue.step()
    kueue.change("/jobs/j", {"metadata": {"annotations": {"poseidon.io/ran-seconds": "60"}}})
    kueue.change("/jobs/j", {"status": {"conditions": [{"type": "Complete", "status": "True"}]}})
    await kueue.step()
    assert not kueue.is_suspended("j")


async def test_a_limit_whose_suspension_is_refused_is_not_tried_all_the_time(kueue):
    limited(kueue)
    kueue.clock += 61
    kueue.kube.faults = [FORBIDDEN, BusyError(500, "InternalError", "")]
    for _ in range(50):
        kueue.clock += 1
        await kueue.step()
    assert len(kueue.kube.patches) == 1
