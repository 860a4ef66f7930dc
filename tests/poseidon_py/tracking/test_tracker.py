"""States, times and statistics of jobs, by the pods that are observed."""

import pytest

from tests.poseidon_py.builders import as_pod
from tests.poseidon_py.tracking.histories import START, Life, Watched, of_job

T = START


def test_a_pod_makes_a_job_of_its_own_and_goes_its_way():
    watched = Watched()
    pod = Life("p", created=T)
    watched.tell(pod, pod.bind(T + 3), pod.bind(T + 3).start(T + 5))
    ended = pod.bind(T + 3).start(T + 5).succeed(T + 65)
    watched.tell(ended)
    assert watched.path("replica") == [("Pending", 0), ("Bound", 3), ("Running", 5), ("Succeeded", 65)]
    assert watched.path("job") == [("Pending", 0), ("Running", 5), ("Succeeded", 65)]
    assert watched.path("task") == [("Pending", 0), ("Running", 5), ("Succeeded", 65)]
    watched.gone(ended, T + 100)
    assert watched.path("replica")[-1] == ("Deleted", 100)
    assert (watched.state("p"), watched.job("p").key.kind) == ("Succeeded", "Pod")
    figures = watched.job("p").figures()
    assert (figures.created, figures.succeeded, figures.deleted) == (1, 1, 0)
    assert (figures.waits.mean, figures.run) == (3.0, 60.0)
    assert figures.resource_seconds == {"cpu": 62.0}, "from the node until the end"


def test_what_happened_before_it_was_seen_is_filled_in_from_the_times_of_the_pod():
    watched = Watched()
    watched.tell(Life("p").bind(T + 3).start(T + 5).fail(T + 9, 3))
    assert watched.path("replica") == [("Pending", 0), ("Bound", 3), ("Running", 5), ("Failed", 9)]
    assert watched.path("job") == [("Pending", 0), ("Running", 5), ("Failed", 9)]
    assert watched.job("p").reason == "Error (exit code 3)"


def test_pods_of_other_schedulers_are_no_jobs():
    watched = Watched()
    other = Life("p").json()
    other["spec"]["schedulerName"] = "default-scheduler"
    watched.tracker.observed(as_pod(other))
    assert not watched.tracker.jobs


# -- delayed preemption -----------------------------------------------------------------------------------------------


def test_notices_of_preemption():
    watched = Watched()
    waiting, running = of_job("urgent"), of_job("victim").start(T + 1)
    watched.tell(waiting, running)
    at, by = "2026-01-01T00:10:00Z", "default/urgent-0"
    watched.tell(waiting.annotate(preemption_state="Privileged", eviction_time=at))
    watched.tell(running.annotate(preemption_state="WillEvicted", eviction_time=at, preempted_by=by))
    assert (watched.state("urgent"), watched.state("victim")) == ("Privileged", "WillEvicted")
    assert (watched.job("victim").notice_at, watched.job("victim").preempted_by) == (T + 600, by)
    assert watched.path("replica", "victim-0")[-1][0] == "WillEvicted"
    watched.tell(running, waiting.start(T + 9))
    assert (watched.state("urgent"), watched.state("victim")) == ("Running", "Running")
    assert watched.path("replica", "victim-0")[-1][0] == "Running"


def test_a_job_will_be_evicted_until_its_pods_are_gone():
    watched = Watched()
    running = (
        of_job("victim").start(T + 1).annotate(preemption_state="WillEvicted", eviction_time="2026-01-01T00:10:00Z")
    )
    watched.tell(running)
    leaving = running.delete(T + 600)
    watched.tell(leaving)
    assert watched.state("victim") == "WillEvicted"
    watched.gone(leaving, T + 610)
    assert [state for state, _ in watched.path("job")][-2:] == ["WillEvicted", "Pending"]
    assert not +watched.illegal()


@pytest.mark.parametrize("state", ["willevicted", "", "Evicted"])
def test_an_unknown_notice_is_none(state):
    watched = Watched()
    watched.tell(Life("p").start(T + 1).annotate(preemption_state=state))
    assert watched.state("p") == "Running"


def test_a_job_goes_from_one_notice_to_the_other_by_legal_transitions():
    watched = Watched()
    pod = Life("p").start(T + 1)
    watched.tell(pod.annotate(preemption_state="Privileged"), pod.annotate(preemption_state="WillEvicted"))
    assert [state for state, _ in watched.path("job")][-3:] == ["Privileged", "Running", "WillEvicted"]
    assert not +watched.illegal()


# -- gangs, tasks -----------------------------------------------------------------------------------------------------


def test_a_gang_of_which_a_part_runs_is_unknown():
    watched = Watched()
    watched.gang_is_short = True
    watched.tell(of_job("j").start(T + 1), of_job("j", 1))
    assert watched.state("j") == "Unknown"
    watched.gang_is_short = False
    watched.tell(of_job("j", 1).bind(T + 2))
    assert watched.state("j") == "Running"
    watched.tell(of_job("k").start(T + 1), of_job("k", 1))
    assert watched.state("k") == "Running"


def test_tasks_are_the_roles_of_a_job():
    role = "volcano.sh/task-spec"
    watched = Watched()
    master, worker = (of_job("j", name, labels={role: name}) for name in ("master", "worker"))
    watched.tell(master.start(T + 1), worker)
    watched.tell(master.start(T + 1).succeed(T + 5))
    assert {name: str(task.state) for name, task in watched.job("j").tasks.items()} == {
        "master": "Succeeded",
        "worker": "Pending",
    }
    assert watched.state("j") == "Pending"


@pytest.mark.parametrize(
    ("life", "kind", "name", "task"),
    [
        (Life("p", owner="uid-j"), "Job", "j", "main"),
        (Life("p", owner="uid-j", kind="Custom"), "Custom.example.com", "j", "main"),
        (Life("p", labels={"scheduling.x-k8s.io/pod-group": "g"}), "PodGroup", "g", "main"),
        (
            Life(
                "p",
                owner="uid-s-workers-0",
                labels={"jobset.sigs.k8s.io/jobset-name": "s", "jobset.sigs.k8s.io/replicatedjob-name": "workers"},
            ),
            "JobSet",
            "s",
            "workers",
        ),
        (Life("p", labels={"spark-app-selector": "a-1", "spark-role": "driver"}), "SparkApplication", "a-1", "driver"),
        (Life("p", labels={"leaderworkerset.sigs.k8s.io/name": "l"}), "LeaderWorkerSet", "l", "leader"),
        (
            Life(
                "p",
                owner="uid-m-launcher",
                labels={"training.kubeflow.org/job-name": "m", "training.kubeflow.org/replica-type": "launcher"},
            ),
            "MPIJob",
            "m",
            "launcher",
        ),
        (Life("p"), "Pod", "p", "main"),
    ],
)
def test_what_a_pod_belongs_to(life, kind, name, task):
    watched = Watched()
    watched.tell(life)
    (job,) = watched.tracker.jobs.values()
    assert (job.key.kind, job.key.name, list(job.tasks)) == (kind, name, [task])


@pytest.mark.parametrize(
    ("labels", "annotations", "user"),
    [
        ({}, {}, "default"),
        ({"poseidon.io/user": "anna"}, {}, "anna"),
        ({"poseidon.io/user": "anna"}, {"poseidon.io/user": "bert"}, "bert"),
    ],
)
def test_the_user_of_a_job(labels, annotations, user):
    watched = Watched()
    watched.tell(Life("p", labels=labels, annotations=annotations))
    assert watched.job("p").user == user


# -- memory, lists, restarts ------------------------------------------------------------------------------------------


def test_ended_jobs_are_dropped_after_a_time_and_a_number_and_their_totals_stay():
    watched = Watched(keep_seconds=100, keep_jobs=2)
    pods = [Life(f"p{number}").start(T + 1).succeed(T + 10 + number) for number in range(4)]
    watched.tell(*pods)
    watched.at(T + 20)
    assert sorted(key.name for key in watched.tracker.jobs) == ["p2", "p3"]
    watched.at(T + 113)
    assert not watched.tracker.jobs
    assert not len(watched.tracker)
    watched.tell(*pods)
    assert not watched.tracker.jobs, "the same pods are listed again"
    watched.tracker.listed({pod.uid for pod in pods})
    (figures,) = watched.tracker.accounts.totals.values()
    assert (figures.created, figures.succeeded) == (4, 4)
    watched.gone(pods[0], T + 200)
    assert "uid-p0" not in watched.tracker._dropped


def test_totals_do_not_count_what_happened_before_the_start():
    """Of three pods one had ended, one runs, and one comes later; the two end."""
    before, running = (
        Life("p").start(T + 1).succeed(T + 10),
        Life("q", annotations={"poseidon.io/user": "u"}).start(T + 2),
    )
    watched = Watched(before, running, now=T + 20)
    watched.queues = {"uid-q": "batch", "uid-r": "batch"}
    late = Life("r", created=T + 30).bind(T + 40)
    watched.tell(late, late.start(T + 41).fail(T + 50), running.succeed(T + 60))
    totals = watched.tracker.accounts
    assert watched.tracker.since == T + 20
    figures = totals.of_queues()["batch"]
    assert (figures.created, figures.succeeded, figures.failed) == (1, 1, 1)
    assert (figures.waits.count, figures.waits.sum) == (1, 10.0)
    assert {user: (each.succeeded, each.failed) for user, each in totals.of_users({"batch"}).items()} == {
        "u": (1, 0),
        "default": (0, 1),
    }
    assert "" not in totals.of_queues()


def test_a_list_without_a_pod_says_that_it_is_gone():
    watched = Watched(Life("p").start(T + 1), Life("q").start(T + 1))
    watched.now = T + 9
    watched.tracker.listed({"uid-q"})
    assert watched.path("replica") == [("Deleted", 9)]
    assert (watched.state("p"), watched.state("q")) == ("Stopped", "Running")


def test_the_first_list_passes_on_nothing_and_all_of_it_is_present():
    """All pods that ran have ended, and one has yet to run: so the job is pending."""
    pods = [of_job("j").start(T + 1).succeed(T + 5), of_job("j", 1).bind(T + 3)]
    watched = Watched(*pods, now=T + 10)
    assert watched.passed == []
    history = [(it.machine, str(it.new), it.time - T) for it in watched.tracker.present() if it.machine != "task"]
    assert history == [
        ("job", "Pending", 0),
        *(("replica", *each) for each in [("Pending", 0), ("Bound", 1), ("Running", 1), ("Succeeded", 5)]),
        *(("replica", *each) for each in [("Pending", 0), ("Bound", 3)]),
    ]


def test_the_report_of_a_deletion_shows_how_the_pod_ended():
    watched = Watched()
    pod = Life("p").start(T + 1)
    watched.tell(pod)
    watched.gone(pod.succeed(T + 9), T + 12)
    assert watched.path("replica")[-2:] == [("Succeeded", 9), ("Deleted", 12)]
    assert (watched.state("p"), watched.job("p").figures().succeeded) == ("Succeeded", 1)


def test_a_deletion_that_reports_metadata_alone_is_one_too():
    watched = Watched()
    pod = Life("p").start(T + 1)
    watched.tell(pod)
    watched.now = T + 5
    watched.tracker.removed(as_pod({"metadata": {"uid": pod.uid, "name": "p", "namespace": "default"}}))
    assert watched.path("replica")[-1] == ("Deleted", 5)


def test_fields_that_cannot_be_read_count_as_missing():
    """A container with a broken state, and labels that are no texts."""
    watched = Watched()
    broken = Life("p").start(T + 1).json()
    broken["status"]["containerStatuses"][0]["state"] = "running"
    broken["metadata"]["labels"] = {"poseidon.io/user": 7}
    broken["metadata"]["annotations"] = ["poseidon.io/preemption-state"]
    broken["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "much"}}
    watched.now = T + 9
    watched.tracker.observed(as_pod(broken))
    assert (watched.state("p"), watched.job("p").user) == ("Running", "default")
    watched.tell(Life("q").start(T + 1).succeed(T + 5))
    assert watched.state("q") == "Succeeded", "others are not concerned"


def test_an_older_version_changes_nothing():
    watched = Watched()
    pod = Life("p").start(T + 1)
    watched.tell(pod.succeed(T + 5), pod)
    leaving = Life("q").start(T + 1)
    watched.tell(leaving.delete(T + 6), leaving)
    assert (watched.state("p"), watched.path("replica", "q")[-1][0]) == ("Succeeded", "Terminating")


def test_a_listener_that_fails_stops_neither_the_others_nor_the_tracker(caplog):
    def broken(transition):
        raise RuntimeError("a defect")

    watched = Watched()
    watched.transitions.listeners.insert(0, broken)
    watched.tell(Life("p").start(T + 1))
    assert watched.path("replica")[-1] == ("Running", 1)
    assert "a listener to transitions failed" in caplog.text
