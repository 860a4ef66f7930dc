"""Workloads that leave as a whole: which are suspended, and what happens if that cannot be."""

import pytest

from poseidon_py.kube.client import ApiError, BusyError, ConflictError, LostAnswerError
from poseidon_py.state.gangs.by_owner import JOB_SETS
from poseidon_py.state.gangs.owner_kinds import KIND_OF, RAY_JOBS, SUSPENDABLE
from tests.poseidon_py.workloads.rig import QUEUE, WorkloadRig

FORBIDDEN = ApiError(403, "Forbidden", 'jobs.batch "j" is forbidden')
BUSY = BusyError(500, "InternalError", "etcd is away")
STALE = ConflictError(409, "Conflict", "the object has been modified")
LOST = LostAnswerError("connection closed")


@pytest.fixture
def rig():
    return WorkloadRig("off")


def outcomes(rig):
    samples = rig.store.metrics.suspensions.collect()[0].samples
    return {each.labels["result"]: each.value for each in samples if each.name.endswith("_total") and each.value}


async def test_a_job_all_of_whose_pods_leave_is_suspended(rig):
    rig.new_job("j", 2)
    pods = rig.pods("j", "a", "b")
    assert [[known.name for known in each] for each in rig.suspender.leaving(pods)] == [["a", "b"]]
    assert await rig.suspend(*pods)
    assert rig.is_suspended("j")
    assert rig.note("j") == {"reason": "Preempted", "since": "2026-01-01T00:00:00Z"}
    [(_, patch)] = rig.kube.patches
    assert (patch["metadata"]["uid"], patch["metadata"]["resourceVersion"]) == ("uid-j", "101")
    message = "Preempted: why: 2 pods leave together, and it is resumed when its turn comes"
    assert rig.events == [("j", "Suspended", message)]
    assert outcomes(rig) == {"written": 1}


@pytest.mark.parametrize(
    ("node", "fields", "whole"),
    [
        pytest.param("n", {}, False, id="runs"),
        pytest.param("n", {"deleting": True}, True, id="leaves already"),
        pytest.param("", {}, True, id="is pending"),
        pytest.param("n", {"scheduler": "another"}, False, id="runs, by another scheduler"),
    ],
)
async def test_another_pod_of_the_job_counts_if_it_would_be_lost(rig, node, fields, whole):
    rig.new_job("j", 3)
    pods = rig.pods("j", "a", "b")
    rig.pods("j", "other", node=node, **fields)
    assert bool(list(rig.suspender.leaving(pods))) is whole
    assert await rig.suspend(*pods) is whole


async def test_pods_of_an_earlier_decision_that_is_marked_leave_already(rig):
    rig.new_job("j", 2)
    a, b = rig.pods("j", "a", "b")
    a.preempting = True
    assert not await rig.suspend(b)
    a.observed.disrupted = True
    assert await rig.suspend(b)


async def test_the_uppermost_owner_is_suspended_with_all_below_it(rig):
    """The controller of a JobSet sets the field of its Jobs to its own: pkg/controllers/jobset_controller.go."""
    rig.workload("s", resource=JOB_SETS)
    for name in ("one", "two"):
        rig.new_job(name, owner=("JobSet", "s"))
    a, b = rig.pods("one", "a") + rig.pods("two", "b")
    assert not list(rig.suspender.leaving([a]))
    assert await rig.suspend(a, b)
    assert rig.is_suspended("s", "jobsets")
    assert not rig.is_suspended("one")


@pytest.mark.parametrize("resource", SUSPENDABLE, ids=lambda each: each.plural)
async def test_each_kind_has_its_field(rig, resource):
    """As Kueue's pkg/controller/jobs suspends them."""
    spec = {"shutdownAfterJobFinishes": True, "runPolicy": {}}
    rig.workload("w", spec, resource=resource)
    assert await rig.suspend(*rig.pods("w", "a"))
    [(_, patch)] = rig.kube.patches
    of_policy = resource.group == "kubeflow.org"
    assert patch["spec"] == ({"runPolicy": {"suspend": True}} if of_policy else {"suspend": True})
    assert rig.objects.by_uid["uid-w"].suspended


def test_there_are_thirteen_kinds():
    assert len(SUSPENDABLE) == 13
    assert len(KIND_OF) > len(SUSPENDABLE)  # a Deployment cannot be suspended


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        pytest.param(RAY_JOBS, {}, id="KubeRay refuses it: ValidateRayJobSpec"),
        pytest.param(
            RAY_JOBS, {"shutdownAfterJobFinishes": True, "clusterSelector": {"a": "b"}}, id="another's cluster"
        ),
        pytest.param(JOB_SETS, {"managedBy": "kueue.x-k8s.io/multikueue"}, id="MultiKueue"),
    ],
)
async def test_some_objects_must_not_be_suspended(rig, resource, spec):
    rig.workload("w", spec, resource=resource)
    pods = rig.pods("w", "a")
    assert not list(rig.suspender.leaving(pods))
    assert not await rig.suspend(*pods)
    assert rig.kube.patches == []


async def test_a_refused_patch_is_said_once_and_not_tried_again_for_a_while(rig, caplog):
    rig.new_job("j")
    pods = rig.pods("j", "a")
    rig.kube.faults = [FORBIDDEN]
    assert not await rig.suspend(*pods)
    assert not list(rig.suspender.leaving(pods))
    assert not await rig.suspend(*pods)
    assert len(rig.kube.patches) == 1
    assert len(caplog.records) == 1
    assert rig.messages("SuspendFailed") == [
        f"cannot be suspended, so its pods are deleted one by one, and count as failed: {FORBIDDEN}"
    ]
    assert outcomes(rig) == {"refused": 1}
    rig.clock += 61
    assert await rig.suspend(*pods)


async def test_a_field_that_the_server_drops_is_a_refusal(rig):
    """An older definition of a kind may lack it: the server prunes it without an error."""
    rig.new_job("j")
    pods = rig.pods("j", "a")
    put = rig.kube.put

    def pruned(path, body):
        body["spec"].pop("suspend", None)
        put(path, body)

    rig.kube.put = pruned
    assert not await rig.suspend(*pods)
    assert "its kind has no field spec.suspend in this cluster" in rig.messages("SuspendFailed")[0]


@pytest.mark.parametrize("faults", [[BUSY], [STALE], [("lost", LOST)], [LOST, BUSY]], ids=str)
async def test_a_patch_without_a_clear_answer_is_repeated(rig, faults):
    rig.new_job("j")
    rig.kube.faults = faults
    assert await rig.suspend(*rig.pods("j", "a"))
    assert rig.is_suspended("j")


async def test_a_version_that_is_not_watched_yet_is_read(rig):
    rig.new_job("j")
    pods = rig.pods("j", "a")
    rig.kube.put("/jobs/j", rig.kube.objects["/jobs/j"])  # its controller has written the status
    assert await rig.suspend(*pods)
    assert len(rig.kube.patches) == 2


async def test_what_its_user_has_suspended_in_between_stays_his(rig):
    rig.new_job("j")
    pods = rig.pods("j", "a")
    rig.kube.objects["/jobs/j"]["spec"]["suspend"] = True
    rig.kube.put("/jobs/j", rig.kube.objects["/jobs/j"])
    assert await rig.suspend(*pods)
    assert rig.note("j") is None


async def test_a_successor_of_its_name_is_not_suspended(rig):
    rig.new_job("j")
    pods = rig.pods("j", "a")
    rig.kube.objects["/jobs/j"]["metadata"]["uid"] = "another"
    assert await rig.suspender.suspend(pods, "Preempted", "why")  # its pods are deleted with it
    assert not rig.is_suspended("j")


async def test_only_the_leader_writes(rig):
    rig.new_job("j")
    rig.leads = False
    assert not await rig.suspend(*rig.pods("j", "a"))
    assert rig.kube.patches == []


async def test_it_gives_up_after_a_while(rig):
    rig.new_job("j")
    rig.kube.faults = [BUSY] * 100
    assert not await rig.suspend(*rig.pods("j", "a"))
    assert rig.clock < 30
    assert outcomes(rig) == {"given up": 1}


@pytest.mark.parametrize(("running", "suspended"), [("kueue-controller-manager", False), ("", True)])
async def test_what_kueue_admits_is_left_to_it(running, suspended):
    """It resumes at once what is admitted: pkg/controller/jobframework/reconciler.go."""
    rig = WorkloadRig("kueue")
    rig.cluster_queue()
    rig.queues.set_running("kueue", running)
    rig.new_job("j", labels={QUEUE: "lq"})
    assert await rig.suspend(*rig.pods("j", "a")) is suspended


async def test_the_executors_of_a_driver_belong_to_its_application(rig):
    resource = next(each for each in SUSPENDABLE if each.plural == "sparkapplications")
    rig.workload("s", resource=resource)
    driver = rig.pods("s", "driver")
    rig.pod("executor", node="n", owner="uid-driver")
    assert not await rig.suspend(*driver)
    assert await rig.suspend(*driver, rig.known("executor"))
