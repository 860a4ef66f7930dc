"""How jobs end: when their owners say so, when no pod follows, and by evictions."""

import pytest

from tests.poseidon_py.tracking.histories import START, Life, Watched, of_job

T = START


def test_a_job_whose_owner_tells_its_end_has_ended_when_that_does():
    """Its second pod is created after the first one has ended, so all pods have ended for a while."""
    watched = Watched()
    watched.verdicts["uid-j"] = ""
    first, second = of_job("j", 0).start(T + 1), of_job("j", 1, created=T + 11).start(T + 12)
    watched.tell(first, first.succeed(T + 10))
    watched.at(T + 600)
    assert watched.state("j") == "Running"
    watched.tell(second, second.succeed(T + 20))
    watched.verdicts["uid-j"] = "Succeeded"
    watched.at(T + 601)
    assert watched.path("job") == [("Pending", 0), ("Running", 1), ("Succeeded", 20)]


def test_a_job_whose_owner_is_unknown_has_ended_when_no_pod_follows():
    watched = Watched()
    pod = of_job("j", kind="Custom").start(T + 1)
    watched.tell(pod, pod.succeed(T + 10))
    watched.at(T + 39)
    assert watched.state("j") == "Running"
    watched.at(T + 40)
    assert watched.state("j") == "Succeeded"
    watched.tell(of_job("j", 1, kind="Custom", created=T + 50))
    assert watched.path("job")[-2:] == [("Succeeded", 10), ("Pending", 50)]


@pytest.mark.parametrize(
    ("ends", "verdict", "expected"),
    [
        pytest.param(["succeed", "succeed"], None, "Succeeded", id="all succeed"),
        pytest.param(["succeed", "fail"], None, "Failed", id="one fails, and none follows it"),
        pytest.param(["fail", "succeed"], "Succeeded", "Succeeded", id="the owner has the last word"),
        pytest.param(["succeed", "succeed"], "Failed", "Failed", id="also if all succeed"),
    ],
)
def test_how_a_job_ends(ends, verdict, expected):
    watched = Watched()
    if verdict is not None:
        watched.verdicts["uid-j"] = verdict
    watched.tell(*(of_job("j", number, created=T + number).start(T + 5) for number in range(len(ends))))
    for number, end in enumerate(ends):
        pod = of_job("j", number, created=T + number).start(T + 5)
        watched.tell(getattr(pod, end)(T + 10 + number))
    watched.at(T + 100)
    assert watched.state("j") == expected


def test_a_job_with_an_evicted_pod_that_none_follows_has_stopped():
    watched = Watched()
    done, evicted = (of_job("j", number, kind="Custom").start(T + 1) for number in range(2))
    watched.tell(done.succeed(T + 5), evicted.fail(T + 6, 137, reason="Evicted"))
    watched.at(T + 36)
    assert (watched.state("j"), watched.job("j").reason) == ("Stopped", "Evicted (exit code 137)")


def test_a_pod_that_failed_and_was_replaced_does_not_fail_its_job():
    watched = Watched()
    first = of_job("j", kind="Custom").start(T + 1).fail(T + 5)
    second = of_job("j", 1, kind="Custom", created=T + 5).start(T + 6).succeed(T + 9)
    watched.tell(first, second)
    watched.at(T + 100)
    assert watched.state("j") == "Succeeded"
    assert watched.job("j").figures().retries == 1


def test_retries_do_not_depend_on_the_order_of_a_list():
    pods = [
        of_job("j").start(T + 1).fail(T + 5),
        of_job("j", 1, created=T + 6).start(T + 7).fail(T + 9),
        of_job("j", 2, created=T + 20),
    ]
    for order in (pods, pods[::-1], [pods[1], pods[2], pods[0]]):
        job = Watched(*order, now=T + 30).job("j")
        assert (job.figures().retries, str(job.state)) == (2, "Pending")


def test_a_job_all_of_whose_pods_are_deleted_has_stopped():
    watched = Watched()
    pod = of_job("j", kind="ReplicaSet").start(T + 1)
    watched.tell(pod, pod.delete(T + 10))
    assert watched.state("j") == "Running", "its containers have time to end"
    watched.gone(pod.delete(T + 10), T + 12)
    assert watched.state("j") == "Pending", "its owner may create another pod"
    watched.at(T + 42)
    assert watched.path("job") == [("Pending", 0), ("Running", 1), ("Pending", 12), ("Stopped", 12)]


# -- evictions --------------------------------------------------------------------------------------------------------


def test_an_eviction_loses_what_was_done_since_the_last_checkpoint():
    watched = Watched()
    saved = "2026-01-01T00:01:00Z"  # 60 s after its creation
    pod = Life("p").bind(T + 5).start(T + 10).annotate(last_checkpoint=saved)
    leaving = pod.delete(T + 100, "EvictionByEvictionAPI")
    watched.tell(pod, leaving)
    watched.gone(leaving, T + 110)
    assert watched.path("replica")[-2:] == [("Terminating", 100), ("Evicted", 110)]
    assert (watched.state("p"), watched.job("p").reason) == ("Stopped", "EvictionByEvictionAPI")
    figures = watched.job("p").figures()
    assert (figures.evicted, figures.lost, figures.run) == (1, 50.0, 100.0)
    assert (figures.preempted, figures.migrated, figures.deleted) == (0, 0, 0)
    assert figures.resource_seconds == {"cpu": 105.0}


@pytest.mark.parametrize(
    ("disruption", "by_us", "counted"),
    [
        ("PreemptionByScheduler", "", "preempted"),
        ("", "preempted", "preempted"),
        ("EvictionByEvictionAPI", "migrated", "migrated"),
    ],
)
def test_why_a_pod_was_evicted(disruption, by_us, counted):
    watched = Watched()
    pod = Life("p").start(T + 10)
    watched.tell(pod, pod.delete(T + 20, disruption))
    watched.evictions["uid-p"] = by_us
    watched.gone(pod.delete(T + 20, disruption), T + 25)
    figures = watched.job("p").figures()
    assert (figures.evicted, getattr(figures, counted)) == (1, 1)
    assert figures.preempted + figures.migrated == 1


def test_a_node_that_evicts_a_pod_is_no_failure_of_the_pod():
    watched = Watched()
    watched.tell(Life("p").start(T + 10).fail(T + 20, 137, reason="Evicted"))
    assert watched.path("replica")[-1] == ("Evicted", 20)
    assert (watched.job("p").figures().failed, watched.job("p").figures().evicted) == (0, 1)


def test_a_pod_that_ends_because_it_is_deleted_is_deleted():
    watched = Watched()
    pod = Life("p").start(T + 10)
    leaving = pod.delete(T + 20)
    watched.tell(pod, leaving, leaving.fail(T + 25, 143))
    watched.gone(leaving.fail(T + 25, 143), T + 26)
    assert watched.path("replica")[-2:] == [("Terminating", 20), ("Deleted", 26)]
    figures = watched.job("p").figures()
    assert (figures.failed, figures.deleted, figures.run) == (0, 1, 15.0), "it ran until its containers ended"


def test_a_replacement_that_is_created_while_the_evicted_pod_terminates_is_a_retry():
    watched = Watched()
    pod = of_job("j").start(T + 1)
    leaving = pod.delete(T + 10, "EvictionByEvictionAPI")
    watched.tell(pod, leaving, of_job("j", 1, created=T + 10))
    watched.gone(leaving, T + 40)
    assert watched.job("j").figures().retries == 1
