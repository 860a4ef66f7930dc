"""Whole jobs, on both servers. Without kubelets, the tests say what becomes of the pods."""

from __future__ import annotations

from collections.abc import Callable

from tests.e2e.api import Json, View
from tests.e2e.backends import PODS, Backend
from tests.e2e.jobs.manifests import (
    BATCH,
    COMMANDS,
    GROUPS,
    POLICIES,
    Start,
    command,
    job,
    phase,
    policy,
    task,
    until_phase,
    until_pods,
)
from tests.e2e.objects import node
from tests.e2e.processes import Scheduler


def test_a_job_runs_and_completes(backend: Backend, jobs: View, start: Start) -> None:
    start()
    plugins: Json = {"env": [], "svc": []}
    backend.create(job("j", task("a", 1), task("b-c", 2, minAvailable=1), plugins=plugins, minAvailable=2))
    pods = until_pods(backend, "j-a-0", "j-b-c-0", "j-b-c-1")
    (found,) = jobs.until(lambda items: items)
    uid, pod = found["metadata"]["uid"], pods["j-b-c-1"]
    assert [o["uid"] for o in pod["metadata"]["ownerReferences"] if o["controller"]] == [uid]
    texts = pod["metadata"]["labels"] | pod["metadata"]["annotations"]
    expected = {
        "volcano.sh/job-name": "j", "volcano.sh/task-spec": "b-c", "volcano.sh/task-index": "1",
        "volcano.sh/job-version": "0", "volcano.sh/queue-name": "default", "volcano.sh/job-namespace": "default",
        "scheduling.k8s.io/group-name": f"j-{uid}",
    }  # fmt: skip
    assert expected.items() <= texts.items()
    spec = pod["spec"]
    variables = {each["name"]: each.get("value") for each in spec["containers"][0]["env"]}
    assert (variables["VC_TASK_INDEX"], variables["VK_TASK_INDEX"]) == ("1", "1")
    assert {"VC_A_HOSTS", "VC_A_NUM", "VC_B_C_HOSTS", "VC_B_C_NUM"} <= set(variables)
    assert (spec["schedulerName"], spec["hostname"], spec["subdomain"]) == ("poseidon", "j-b-c-1", "j")
    hosts = backend.api("GET", "/api/v1/namespaces/default/configmaps/j-svc")["data"]
    assert (hosts["VC_B_C_HOSTS"], hosts["VC_B_C_NUM"]) == ("j-b-c-0.j,j-b-c-1.j", "2")
    assert backend.api("GET", "/api/v1/namespaces/default/services/j")["spec"]["clusterIP"] == "None"
    assert backend.api("GET", f"{POLICIES}/j")["spec"]["podSelector"]["matchLabels"]["volcano.sh/job-name"] == "j"
    group = backend.api("GET", f"{GROUPS}/j-{uid}")["spec"]
    # one of a and one of b-c, 100 millicores each
    assert group["minMember"] == 2
    assert group["minTaskMember"] == {"a": 1, "b-c": 1}
    assert group["minResources"] == {"cpu": "200m"}
    until_phase(jobs, "j", "Pending", pending=3)
    phase(backend, "Running", "j-a-0", "j-b-c-0")
    until_phase(jobs, "j", "Running", running=2, pending=1)
    phase(backend, "Succeeded", *pods)
    done = until_phase(jobs, "j", "Completed", succeeded=3)
    status = done["status"]
    assert status["taskStatusCount"] == {"a": {"phase": {"Succeeded": 1}}, "b-c": {"phase": {"Succeeded": 2}}}
    assert [each["status"] for each in status["conditions"]] == ["Pending", "Running", "Completed"]
    view = View(backend.api, GROUPS)
    view.until(lambda groups: not groups, "the deletion of the group")
    view.stop()
    assert sorted(until_pods(backend, *pods)) == sorted(pods)


def test_a_gang_is_placed_as_a_whole(
    backend: Backend, jobs: View, start: Start, schedule: Callable[..., Scheduler]
) -> None:
    schedule()
    start()
    backend.create(node("n", cpu="250m"))
    backend.create(job("j", task("a", 1), task("b", 2)))  # 300m
    until_pods(backend, "j-a-0", "j-b-0", "j-b-1")
    backend.until_event("FailedScheduling", "j-a-0")
    assert backend.bound() == {}
    backend.create(node("m", cpu="250m"))
    backend.until_bound(3, "j-")
    phase(backend, "Running", "j-a-0", "j-b-0", "j-b-1")
    until_phase(jobs, "j", "Running", running=3)


def test_tasks_start_after_those_they_depend_on(
    backend: Backend, jobs: View, start: Start, schedule: Callable[..., Scheduler]
) -> None:
    schedule()
    start()
    backend.create(node("n"), job("j", task("a", 1), task("b", 1, dependsOn={"name": ["a"]})))
    until_pods(backend, "j-a-0")
    backend.until_bound(1, "j-a-0")  # the group does not wait for what cannot exist yet
    phase(backend, "Running", "j-a-0")
    backend.until_bound(2, "j-")
    until_phase(jobs, "j", "Pending", running=1)
    phase(backend, "Running", "j-b-0")
    until_phase(jobs, "j", "Running", running=2)


def test_the_main_task_completes_the_job(backend: Backend, jobs: View, start: Start) -> None:
    start()
    backend.create(job("j", task("a", 1), task("b", 2), annotations={"poseidon.io/main-task": "a"}))
    until_pods(backend, "j-a-0", "j-b-0", "j-b-1")
    phase(backend, "Running", "j-a-0", "j-b-0", "j-b-1")
    until_phase(jobs, "j", "Running", running=3)
    phase(backend, "Succeeded", "j-a-0")
    done = until_phase(jobs, "j", "Completed", succeeded=1)
    assert done["status"]["state"]["reason"] == "MainTaskEvent"
    until_pods(backend, "j-a-0")


def test_failures_restart_the_job_until_its_retries_are_used_up(backend: Backend, jobs: View, start: Start) -> None:
    start()
    backend.create(job("j", policies=[policy("RestartJob")], maxRetry=2))
    first = until_pods(backend, "j-w-0", "j-w-1", job_version="0")
    phase(backend, "Running", "j-w-0")
    phase(backend, "Failed", "j-w-1")
    second = until_pods(backend, "j-w-0", "j-w-1", job_version="1", job_retry_count="1")
    assert not {p["metadata"]["uid"] for p in first.values()} & {p["metadata"]["uid"] for p in second.values()}
    phase(backend, "Running", "j-w-0")
    phase(backend, "Failed", "j-w-1")
    done = until_phase(jobs, "j", "Failed", retryCount=2, failed=1)
    assert done["status"]["state"]["reason"] == "RetriesExhausted"
    until_pods(backend, "j-w-1")  # as a record
    backend.until_event("ExecuteAction", "j", "RestartJob: PodFailed of pod j-w-1")


def test_one_pod_is_restarted_and_the_others_run_on(backend: Backend, jobs: View, start: Start) -> None:
    start()
    backend.create(job("j", task("w", 3, policies=[policy("RestartPod")]), minAvailable=1))
    first = until_pods(backend, "j-w-0", "j-w-1", "j-w-2")
    phase(backend, "Running", *first)
    until_phase(jobs, "j", "Running", running=3)
    phase(backend, "Failed", "j-w-1")
    until_phase(jobs, "j", "Running", running=2, pending=1, retryCount=1)
    second = until_pods(backend, "j-w-0", "j-w-1", "j-w-2")
    same = [name for name in first if first[name]["metadata"]["uid"] == second[name]["metadata"]["uid"]]
    assert sorted(same) == ["j-w-0", "j-w-2"]


def test_an_evicted_pod_aborts_the_job_which_is_resumed_by_a_command(
    backend: Backend, jobs: View, start: Start
) -> None:
    start()
    backend.create(job("j", task("w", 3), policies=[policy("AbortJob", "PodEvicted")]))
    first = until_pods(backend, "j-w-0", "j-w-1", "j-w-2")
    phase(backend, "Running", "j-w-0", "j-w-1", "j-w-2")
    phase(backend, "Succeeded", "j-w-2")
    until_phase(jobs, "j", "Running", running=2, succeeded=1)
    backend.delete(PODS, "j-w-0")
    until_phase(jobs, "j", "Aborted", succeeded=1)
    until_pods(backend, "j-w-2")
    backend.create(command("j", "ResumeJob"))
    until_phase(jobs, "j", "Pending", pending=2, succeeded=1, retryCount=1)
    second = until_pods(backend, "j-w-0", "j-w-1", "j-w-2")
    assert first["j-w-2"]["metadata"]["uid"] == second["j-w-2"]["metadata"]["uid"]
    assert backend.api("GET", COMMANDS)["items"] == []
    phase(backend, "Succeeded", "j-w-0", "j-w-1")
    until_phase(jobs, "j", "Completed", succeeded=3)


def test_commands_and_custom_events_have_their_effect_once(backend: Backend, jobs: View, start: Start) -> None:
    start()
    backend.create(job("j", policies=[policy("RestartJob", "DataChanged")], maxRetry=5))
    until_pods(backend, "j-w-0", "j-w-1", job_version="0")
    backend.create(command("j", "RestartJob"))
    until_pods(backend, "j-w-0", "j-w-1", job_version="1")
    backend.patch(f"{BATCH}/j", {"metadata": {"annotations": {"poseidon.io/event": "DataChanged"}}})
    until_pods(backend, "j-w-0", "j-w-1", job_version="2")
    backend.patch(f"{PODS}/j-w-0", {"metadata": {"annotations": {"poseidon.io/event": "DataChanged"}}})
    until_pods(backend, "j-w-0", "j-w-1", job_version="3")
    found = until_phase(jobs, "j", "Pending", retryCount=3, version=3)
    assert "poseidon.io/event" not in found["metadata"].get("annotations", {})
    backend.create(command("j", "TerminateJob"))
    until_phase(jobs, "j", "Terminated", retryCount=3)
    backend.create(command("j", "ResumeJob"))
    backend.until_event("NoEffect", "j", "ResumeJob has no effect on a job that is Terminated")


def test_finished_jobs_are_deleted_after_their_time(backend: Backend, jobs: View, start: Start) -> None:
    start()
    backend.create(job("j", ttlSecondsAfterFinished=1), job("stays", task("x", 1)))
    until_pods(backend, "j-w-0", "j-w-1", "stays-x-0")
    phase(backend, "Succeeded", "j-w-0", "j-w-1", "stays-x-0")
    jobs.until(lambda items: [item["metadata"]["name"] for item in items] == ["stays"], "the deletion of j")
    until_phase(jobs, "stays", "Completed")


def test_a_bad_job_is_told_what_is_wrong_and_the_others_run(backend: Backend, jobs: View, start: Start) -> None:
    start()
    bad = job("bad", task("w", 1), policies=[policy("Explode")])
    backend.create(bad, job("good", task("w", 1)))
    pods = until_pods(backend, "good-w-0")
    found = until_phase(jobs, "bad", "Pending")
    assert found["status"]["state"]["reason"] == "InvalidJob"
    assert found["status"]["state"]["message"].startswith("spec.policies[0].action: is 'Explode'; give one of AbortJob")
    backend.until_event("InvalidJob", "bad", "spec.policies[0].action")
    backend.patch(f"{BATCH}/bad", {"spec": {"policies": [policy("AbortJob")]}})
    assert until_pods(backend, "bad-w-0", *pods)
    phase(backend, "Running", "bad-w-0")
    assert "InvalidJob" not in until_phase(jobs, "bad", "Running", running=1)["status"]["state"].values()


def test_replicas_change_while_the_job_runs(backend: Backend, jobs: View, start: Start) -> None:
    start()
    backend.create(job("j", task("w", 2, minAvailable=1), minAvailable=1))
    until_pods(backend, "j-w-0", "j-w-1")
    for replicas in (3, 1):
        changed = task("w", replicas, minAvailable=1)
        backend.patch(f"{BATCH}/j", {"spec": {"tasks": [changed]}})
        until_pods(backend, *(f"j-w-{at}" for at in range(replicas)))
    phase(backend, "Succeeded", "j-w-0")
    until_phase(jobs, "j", "Completed", succeeded=1, retryCount=0)
