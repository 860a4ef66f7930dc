"""Jobs that are preempted as a whole are suspended and resumed: the synthetic cluster runs their controller."""

from __future__ import annotations

import pytest

from tests.e2e.api import Json, View
from tests.e2e.backends import PODS, Backend
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.objects import condition, container, node
from tests.e2e.preemption import HIGH, LOW, define_priorities, ranked
from tests.e2e.processes import Scheduler

JOBS = "/apis/batch/v1/namespaces/default/jobs"


@SYNTHETIC
@pytest.mark.flags("--gangs-from", "jobs")
def test_a_preempted_job_of_eight_pods_runs_again(backend: Backend, scheduler: Scheduler) -> None:
    """Eight deletions are more than the backoffLimit, which is 6 by default: the Job failed for good."""
    define_priorities(backend)
    backend.create(node("n", cpu="8"))
    spec = {
        "schedulerName": "poseidon",
        "priorityClassName": LOW,
        "restartPolicy": "Never",
        "containers": [container(cpu="1")],
        "terminationGracePeriodSeconds": 0,
    }
    backend.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {"parallelism": 8, "completions": 8, "template": {"spec": spec}},
        }
    )
    first = backend.until_bound(8, "j-")
    backend.create(ranked("high", HIGH, cpu="8"))
    backend.until_bound(1, "high")
    backend.until_event("Suspended", "j", "8 pods leave together")
    jobs = View(backend.api, JOBS)
    try:
        jobs.until(lambda found: found and not found[0]["spec"]["suspend"], "it is resumed")
        backend.delete(PODS, "high")
        second = backend.until_bound(8, "j-")
        assert not first.keys() & second.keys()
        (job,) = jobs.until(
            lambda found: [job for job in found if job["status"].get("active") == 8], "they are counted"
        )
    finally:
        jobs.stop()
    assert_unharmed(job)


def assert_unharmed(job: Json) -> None:
    assert job["status"].get("failed", 0) == 0
    assert not condition(job, "Failed")
    assert "poseidon.io/suspended" not in job["metadata"].get("annotations", {})
