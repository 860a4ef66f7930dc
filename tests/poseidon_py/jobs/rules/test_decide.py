"""Decisions on jobs in one step each."""

import pytest

from poseidon_py.jobs.rules.decide import decide
from poseidon_py.jobs.rules.machines import JobPhase, ReplicaState, TaskState
from poseidon_py.jobs.rules.missed import missed_evictions
from poseidon_py.jobs.rules.policies import Action
from poseidon_py.jobs.rules.status import ReplicaRetries
from poseidon_py.jobs.rules.world import Creation, Eviction, Signal
from tests.poseidon_py.jobs.builders import NOW, job, policy, replica, status, task, world

J, R, T = JobPhase, ReplicaState, TaskState


def names(replicas):
    return [each.name for each in replicas]


def command(action):
    return Signal("command u", "CommandIssued", action)


# -- life without incidents ------------------------------------------------------------------------------------------


def test_a_new_job_is_pending_before_it_has_pods():
    found = decide(world(job(), J.NEW))
    assert (found.status.phase, found.creations) == (J.PENDING, ())


def test_missing_pods_are_created_and_superfluous_ones_deleted():
    spec = job(task("a", 2), task("b", 1))
    present = (replica(1, task="a"), replica(2, task="a"), replica(0, task="gone"))
    found = decide(world(spec, J.PENDING, *present))
    assert found.creations == (Creation("a", 0), Creation("b", 0))
    assert names(found.deletions) == ["j-a-2", "j-gone-0"]


def test_a_place_is_free_only_when_its_pod_is_gone():
    found = decide(world(job(), J.PENDING, replica(0, deleting=True)))
    assert found.creations == (Creation("w", 1),)


@pytest.mark.parametrize(
    ("fields", "phases", "follows"),
    [
        pytest.param({}, [R.RUNNING, R.PENDING], J.PENDING, id="one runs, two are needed"),
        pytest.param({"minAvailable": 1}, [R.RUNNING, R.PENDING], J.RUNNING, id="one runs, one is needed"),
        pytest.param({}, [R.SUCCEEDED, R.FAILED], J.RUNNING, id="ended ones have run"),
    ],
)
def test_a_pending_job_runs_with_its_minimum(fields, phases, follows):
    pods = [replica(at, phase) for at, phase in enumerate(phases)]
    assert decide(world(job(**fields), J.PENDING, *pods)).status.phase == follows


@pytest.mark.parametrize(
    ("fields", "phases", "follows"),
    [
        pytest.param({}, [R.SUCCEEDED, R.SUCCEEDED], J.COMPLETED, id="all succeeded"),
        pytest.param({}, [R.SUCCEEDED, R.FAILED], J.FAILED, id="fewer succeeded than the task needs"),
        pytest.param({"minSuccess": 1}, [R.SUCCEEDED, R.RUNNING], J.COMPLETED, id="minSuccess is reached early"),
        pytest.param({"minSuccess": 2, "minAvailable": 1}, [R.SUCCEEDED, R.FAILED], J.FAILED, id="below minSuccess"),
        pytest.param({"minAvailable": 1}, [R.SUCCEEDED, R.FAILED], J.COMPLETED, id="the job needs one"),
        pytest.param({}, [R.SUCCEEDED, R.RUNNING], J.RUNNING, id="one still runs"),
        pytest.param({}, [R.PENDING, R.RUNNING], J.PENDING, id="too many are pending again"),
        pytest.param({"minAvailable": 1}, [R.PENDING, R.RUNNING], J.RUNNING, id="one may be pending"),
    ],
)
def test_a_running_job_ends_as_its_pods_do(fields, phases, follows):
    pods = [replica(at, phase) for at, phase in enumerate(phases)]
    assert decide(world(job(**fields), J.RUNNING, *pods)).status.phase == follows


def test_a_job_of_no_replicas_stays_as_it_is():
    assert decide(world(job(task(replicas=0)), J.RUNNING)).status.phase == J.RUNNING


@pytest.mark.parametrize(
    ("doing", "done"),
    [(J.ABORTING, J.ABORTED), (J.COMPLETING, J.COMPLETED), (J.TERMINATING, J.TERMINATED)],
)
def test_a_job_that_stops_waits_for_its_pods_and_keeps_the_ended_ones(doing, done):
    ended, running = replica(0, R.FAILED), replica(1)
    found = decide(world(job(), doing, ended, running))
    assert (found.status.phase, names(found.deletions)) == (doing, ["j-w-1"])
    assert decide(world(job(), doing, ended, replica(1, deleting=True))).status.phase == doing
    assert decide(world(job(), doing, ended)).status.phase == done


def test_finished_jobs_are_deleted_in_time():
    spec = job(ttlSecondsAfterFinished=60)  # it finished 50 s ago
    early, late = decide(world(spec, J.FAILED)), decide(world(spec, J.FAILED, now=NOW + 10))
    assert (early.delete_job, early.again_in) == (False, 10)
    assert late.delete_job
    assert not decide(world(spec, J.ABORTED, now=NOW + 10)).delete_job


# -- policies --------------------------------------------------------------------------------------------------------

FAILED = replica(0, R.FAILED, exit_code=3, ended=NOW - 5)


@pytest.mark.parametrize(
    ("task_policies", "job_policies", "follows"),
    [
        pytest.param([], [], J.RUNNING, id="no policy"),
        pytest.param([], [policy("AbortJob", "PodFailed")], J.ABORTING, id="of the job"),
        pytest.param([policy("TerminateJob", "PodFailed")], [policy("AbortJob", "*")], J.TERMINATING, id="task first"),
        pytest.param([policy("AbortJob", exitCode=3)], [], J.ABORTING, id="an exit code"),
        pytest.param([policy("AbortJob", exitCode=4)], [], J.RUNNING, id="another exit code"),
        pytest.param([], [policy("AbortJob", "PodEvicted", "PodFailed")], J.ABORTING, id="a list of events"),
        pytest.param([], [policy("NoAction", "PodFailed"), policy("AbortJob", "*")], J.RUNNING, id="the first counts"),
        pytest.param([], [policy("AbortJob", "PodEvicted")], J.RUNNING, id="another event"),
        pytest.param([], [policy("CompleteJob", "*")], J.COMPLETING, id="any event"),
        pytest.param([], [policy("FailJob", "*")], J.FAILED, id="failing at once"),
        pytest.param([], [policy("ResumeJob", "*")], J.RUNNING, id="without effect here"),
    ],
)
def test_policies_of_the_task_come_before_those_of_the_job(task_policies, job_policies, follows):
    spec = job(task(policies=task_policies), policies=job_policies)
    assert decide(world(spec, J.RUNNING, FAILED, replica(1))).status.phase == follows


def test_a_timeout_counts_from_the_event():
    spec = job(policies=[policy("AbortJob", "PodFailed", timeout="20s")])
    pods = FAILED, replica(1)
    found = decide(world(spec, J.RUNNING, *pods))
    assert (found.status.phase, found.again_in) == (J.RUNNING, 15)
    assert decide(world(spec, J.RUNNING, *pods, now=NOW + 15)).status.phase == J.ABORTING


def test_pods_that_are_pending_for_long_raise_an_event_only_with_a_timeout():
    pods = replica(0, R.PENDING), replica(1, R.PENDING)  # created 100 s ago
    assert decide(world(job(policies=[policy("AbortJob", "*")]), J.PENDING, *pods)).status.phase == J.PENDING
    spec = job(policies=[policy("AbortJob", "PodPending", timeout="90s")])
    assert decide(world(spec, J.PENDING, *pods)).status.phase == J.ABORTING


def test_a_pod_that_is_being_deleted_has_not_failed():
    spec = job(policies=[policy("AbortJob", "PodFailed")])
    pods = replica(0, R.FAILED, deleting=True), replica(1)
    assert decide(world(spec, J.RUNNING, *pods)).status.phase == J.RUNNING


def test_a_completed_task_completes_the_job():
    spec = job(task("a", 1, policies=[policy("CompleteJob", "TaskCompleted")]), task("b", 1))
    pods = replica(0, R.SUCCEEDED, task="a"), replica(0, task="b")
    found = decide(world(spec, J.RUNNING, *pods))
    assert found.status.phase == J.COMPLETING
    assert (found.status.reason, found.status.tasks) == ("TaskCompleted", {"a": T.SUCCEEDED, "b": T.STOPPED})


def test_the_main_task_completes_the_job_whatever_the_others_do():
    spec = job(task("a", 1), task("b", 1), annotations={"poseidon.io/main-task": "a"})
    pods = replica(0, R.SUCCEEDED, task="a"), replica(0, task="b")
    assert decide(world(spec, J.RUNNING, *pods)).status.phase == J.COMPLETING
    other = replica(0, task="a"), replica(0, R.SUCCEEDED, task="b")
    assert decide(world(spec, J.RUNNING, *other)).status.phase == J.RUNNING


def test_a_policy_may_do_something_else_about_the_main_task():
    spec = job(
        task("a", 1), task("b", 1), policies=[policy("TerminateJob", "MainTaskEvent")],
        annotations={"poseidon.io/main-task": "a"},
    )  # fmt: skip
    pods = replica(0, R.SUCCEEDED, task="a"), replica(0, task="b")
    assert decide(world(spec, J.RUNNING, *pods)).status.phase == J.TERMINATING


def test_containers_that_restart_too_often_fail_the_task():
    spec = job(task(policies=[policy("AbortJob", "TaskFailed")], maxRetry=4))
    few, many = (replica(0, restarts=2), replica(1, restarts=1)), (replica(0, restarts=2), replica(1, restarts=2))
    assert decide(world(spec, J.RUNNING, *few)).status.phase == J.RUNNING
    assert decide(world(spec, J.RUNNING, *many)).status.phase == J.ABORTING


def test_an_unknown_group_raises_unknown():
    spec = job(policies=[policy("RestartJob", "Unknown")])
    here = world(spec, J.RUNNING, replica(0), replica(1))
    assert decide(here).status.phase == J.RUNNING
    unknown = type(here)(here.spec, here.status, here.replicas, group_unknown=True, now=NOW)
    assert decide(unknown).status.phase == J.RESTARTING


# -- evictions -------------------------------------------------------------------------------------------------------


def test_an_evicted_pod_is_replaced_and_the_replacement_says_since_when():
    gone = Eviction("w", 0, NOW - 3)
    found = decide(world(job(), J.RUNNING, replica(1), evictions=[gone]))
    assert found.creations == (Creation("w", 0, NOW - 3),)


def test_an_eviction_restarts_the_job():
    spec = job(policies=[policy("RestartJob", "PodEvicted")])
    found = decide(world(spec, J.RUNNING, replica(1), evictions=[Eviction("w", 0, NOW)]))
    assert (found.status.phase, found.status.version, found.status.retry_count) == (J.RESTARTING, 1, 1)
    superfluous = [Eviction("w", 2, NOW), Eviction("other", 0, NOW)]
    assert decide(world(spec, J.RUNNING, replica(0), replica(1), evictions=superfluous)).status.phase == J.RUNNING


def test_an_eviction_with_a_timeout_has_its_effect_unless_the_replacement_runs():
    spec = job(policies=[policy("AbortJob", "PodEvicted", timeout="10s")])
    assert decide(world(spec, J.RUNNING, replica(1), evictions=[Eviction("w", 0, NOW)])).status.phase == J.RUNNING
    waits = replica(0, R.PENDING, evicted_at=NOW - 4)
    found = decide(world(spec, J.PENDING, waits, replica(1)))
    assert (found.status.phase, found.again_in) == (J.PENDING, 6)
    assert decide(world(spec, J.PENDING, waits, replica(1), now=NOW + 6)).status.phase == J.ABORTING
    runs = replica(0, evicted_at=NOW - 400)
    assert decide(world(spec, J.RUNNING, runs, replica(1))).status.phase == J.RUNNING


def test_evictions_while_no_controller_ran_are_found_by_the_counts():
    spec = job(task(replicas=4))
    before = status(task_counts={"w": {"Running": 2, "Succeeded": 1}})
    # three were counted, one is there, and one of the two that are missing had ended or was never there
    assert missed_evictions(spec, before, [replica(1)], NOW) == (Eviction("w", 0, NOW), Eviction("w", 2, NOW))
    assert missed_evictions(spec, before, [replica(at) for at in range(3)], NOW) == ()
    assert missed_evictions(spec, status(task_counts={"w": {"Succeeded": 3}}), [], NOW) == ()
    assert missed_evictions(spec, status(J.ABORTING, task_counts={"w": {"Running": 3}}), [], NOW) == ()


# -- restarts --------------------------------------------------------------------------------------------------------


def test_a_restart_of_the_job_deletes_pods_of_older_versions_and_waits_for_their_places():
    old = replica(0), replica(1, R.SUCCEEDED)
    found = decide(world(job(), J.RESTARTING, *old, version=1, retry_count=1))
    assert (found.status.phase, names(found.deletions)) == (J.RESTARTING, ["j-w-0", "j-w-1"])
    left = replica(0, deleting=True)
    assert decide(world(job(), J.RESTARTING, left, version=1, retry_count=1)).status.phase == J.RESTARTING
    one = job(minAvailable=1)
    assert decide(world(one, J.RESTARTING, left, version=1, retry_count=1)).status.phase == J.PENDING
    assert decide(world(job(), J.RESTARTING, version=1, retry_count=1)).status.phase == J.PENDING


def test_the_retry_that_reaches_the_limit_fails_the_job_and_ended_pods_stay():
    pods = replica(0, R.FAILED), replica(1)
    failed = decide(world(job(maxRetry=2), J.RESTARTING, *pods, version=2, retry_count=2))
    assert (failed.status.phase, failed.deletions) == (J.FAILED, ())
    assert names(decide(world(job(maxRetry=2), J.FAILED, *pods, version=2, retry_count=2)).deletions) == ["j-w-1"]


@pytest.mark.parametrize(
    ("action", "marked"),
    [
        pytest.param("RestartPod", ["j-a-0"], id="the pod"),
        pytest.param("RestartTask", ["j-a-0", "j-a-1", "j-a-2"], id="its task"),
        pytest.param("RestartPartition", ["j-a-0", "j-a-1"], id="its partition"),
    ],
)
def test_restarts_of_some_pods_mark_them_and_count_one_retry(action, marked):
    partitions = {"totalPartitions": 2, "partitionSize": 2}
    spec = job(task("a", 4, policies=[policy(action, "PodFailed")], partitionPolicy=partitions), task("b", 1))
    pods = [replica(at, R.FAILED if at == 0 else R.RUNNING, task="a") for at in range(3)]
    pods += [replica(3, task="a", deleting=True), replica(0, task="b")]
    found = decide(world(spec, J.RUNNING, *pods))
    assert names(found.restarted) == marked
    assert (found.status.phase, found.status.retry_count, found.status.version) == (J.RESTARTING, 1, 0)
    assert found.status.tasks["a"] == T.RESTARTING


def test_pods_that_fail_together_cost_one_retry():
    spec = job(policies=[policy("RestartPod", "PodFailed")])
    found = decide(world(spec, J.RUNNING, replica(0, R.FAILED), replica(1, R.FAILED)))
    assert (names(found.restarted), found.status.retry_count) == (["j-w-0", "j-w-1"], 1)


def test_only_marked_pods_go():
    pods = replica(0, R.FAILED, restart_number=1), replica(1)
    found = decide(world(job(), J.RESTARTING, *pods, retry_count=1))
    assert names(found.deletions) == ["j-w-0"]


def test_an_interrupted_restart_continues_and_counts_once():
    """The controller stopped between the marks and the status: the cause is gone, the marks are there."""
    pods = replica(0, restart_number=1), replica(1)
    found = decide(world(job(), J.RUNNING, *pods))
    assert (found.status.phase, found.status.retry_count, names(found.restarted)) == (J.RESTARTING, 1, ["j-w-0"])


def test_a_restart_waits_for_the_delay_of_the_retry_policy():
    spec = job(annotations={"poseidon.io/retry-policy": {"delay": 60, "maxRetryCount": 2}})
    found = decide(world(spec, J.RESTARTING, version=1, retry_count=1))  # restarting for 50 s
    assert (found.status.phase, found.again_in) == (J.RESTARTING, 10)
    assert decide(world(spec, J.RESTARTING, version=1, retry_count=1, now=NOW + 10)).status.phase == J.PENDING


def test_a_job_that_fails_is_retried_by_its_retry_policy():
    spec = job(annotations={"poseidon.io/retry-policy": {"maxRetryCount": 2}})
    pods = replica(0, R.SUCCEEDED), replica(1, R.FAILED)
    for before, follows in ((0, J.RESTARTING), (1, J.RESTARTING), (2, J.FAILED)):
        assert decide(world(spec, J.RUNNING, *pods, retry_count=before)).status.phase == follows


# -- policies of OpenI's TaskSet -------------------------------------------------------------------------------------


def completion(**tasks):
    return {"poseidon.io/completion-policy": tasks}


def test_a_completion_policy_ends_the_job_before_all_pods_have_ended():
    spec = job(task("a", 3), annotations=completion(a={"minSucceeded": 2, "maxFailed": 1}))
    done = replica(0, R.SUCCEEDED, task="a"), replica(1, R.SUCCEEDED, task="a"), replica(2, R.FAILED, task="a")
    assert decide(world(spec, J.RUNNING, *done)).status.phase == J.COMPLETING  # success is tested first
    failed = replica(0, R.SUCCEEDED, task="a"), replica(1, task="a"), replica(2, R.FAILED, task="a")
    assert decide(world(spec, J.RUNNING, *failed)).status.phase == J.FAILED


def test_a_policy_may_do_nothing_about_a_failed_task():
    spec = job(task("a", 3), policies=[policy("NoAction", "TaskFailed")], annotations=completion(a={"maxFailed": 1}))
    pods = replica(0, task="a"), replica(1, task="a"), replica(2, R.FAILED, task="a")
    assert decide(world(spec, J.RUNNING, *pods)).status.phase == J.RUNNING


def test_replicas_are_retried_on_their_own():
    retry = {"poseidon.io/retry-policy": {"tasks": {"w": {"delay": 10, "maxRetryCount": 1}}}}
    spec = job(policies=[policy("AbortJob", "PodFailed")], annotations=retry)
    failed, other = replica(0, R.FAILED, uid="one", ended=NOW - 4), replica(1)
    waits = decide(world(spec, J.RUNNING, failed, other))
    assert (waits.status.phase, waits.again_in, waits.deletions) == (J.RUNNING, 6, ())
    noted = decide(world(spec, J.RUNNING, failed, other, now=NOW + 6))
    assert (noted.status.retries, noted.deletions) == ({"j-w-0": ReplicaRetries(1, "one")}, ())
    deleted = decide(world(spec, J.RUNNING, failed, other, retries=noted.status.retries, now=NOW + 6))
    assert (names(deleted.deletions), deleted.status.retry_count) == (["j-w-0"], 0)
    again = replica(0, R.FAILED, uid="two", ended=NOW)
    assert decide(world(spec, J.RUNNING, again, other, retries=noted.status.retries)).status.phase == J.ABORTING


# -- commands and custom events --------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [Action.ABORT_JOB, Action.RESTART_JOB, Action.COMPLETE_JOB, Action.TERMINATE_JOB])
def test_a_command_has_its_effect_once(action):
    pods = replica(0), replica(1)
    found = decide(world(job(), J.RUNNING, *pods, signal=command(action)))
    assert found.status.phase not in (J.RUNNING, J.PENDING)
    assert found.status.handled == "command u"
    seen = decide(world(job(), J.RUNNING, *pods, signal=command(action), handled="command u"))
    assert (seen.status.phase, seen.status.handled) == (J.RUNNING, "command u")
    gone = decide(world(job(), J.RUNNING, *pods, handled="command u"))
    assert (gone.status.phase, gone.status.handled) == (J.RUNNING, "")


def test_a_job_that_was_aborted_is_resumed_with_what_has_succeeded():
    pods = replica(0, R.SUCCEEDED), replica(1, R.FAILED)
    found = decide(world(job(), J.ABORTED, *pods, signal=command(Action.RESUME_JOB)))
    assert (found.status.phase, found.status.retry_count, names(found.restarted)) == (J.RESTARTING, 1, ["j-w-1"])


@pytest.mark.parametrize("phase", [J.COMPLETED, J.FAILED, J.TERMINATED])
@pytest.mark.parametrize("action", [Action.RESUME_JOB, Action.RESTART_JOB, Action.ABORT_JOB])
def test_finished_jobs_stay_finished(phase, action):
    found = decide(world(job(), phase, signal=command(action)))
    assert found.status.phase == phase
    assert str(phase) in found.no_effect


def test_a_custom_event_of_a_pod_is_for_the_policies_of_its_task():
    spec = job(task(policies=[policy("RestartPod", "LossIsNan")]), policies=[policy("AbortJob", "LossIsNan")])
    pods = replica(0), replica(1, event="LossIsNan")
    signal = Signal("event LossIsNan of uid-j-w-1", "LossIsNan", None, "w", "j-w-1")
    assert names(decide(world(spec, J.RUNNING, *pods, signal=signal)).restarted) == ["j-w-1"]
    of_job = Signal("event LossIsNan of the job", "LossIsNan")
    assert decide(world(spec, J.RUNNING, *pods, signal=of_job)).status.phase == J.ABORTING


# -- dependencies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("iteration", "pods", "starts"),
    [
        pytest.param("all", [], False, id="nothing runs"),
        pytest.param("all", [replica(0, task="a")], False, id="one of two runs"),
        pytest.param("any", [replica(0, task="a")], True, id="one of two is enough"),
        pytest.param("any", [replica(0, task="a", ready=False)], False, id="it is not ready"),
        pytest.param("all", [replica(0, task="a"), replica(0, R.SUCCEEDED, task="b")], True, id="both run or ran"),
    ],
)
def test_a_task_waits_for_others(iteration, pods, starts):
    spec = job(task("a", 1), task("b", 1), task("c", 1, dependsOn={"name": ["a", "b"], "iteration": iteration}))
    found = decide(world(spec, J.PENDING, *pods))
    assert (Creation("c", 0) in found.creations) is starts
    assert found.started["c"] is starts
    assert found.status.tasks["c"] == (T.PENDING if starts else T.WAITING)
