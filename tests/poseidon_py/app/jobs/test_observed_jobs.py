"""Observed jobs through the whole bridge, against the synthetic cluster with its kubelets and controllers."""

import asyncio
import time

import pytest

from poseidon_py.app.jobs.observed_jobs import ObservedJobs
from poseidon_py.app.queries.job_list import UnknownJob
from poseidon_py.config.settings import Settings
from poseidon_py.state.store import Store
from tests.poseidon_py.app.queue_kinds import declare, install_own
from tests.poseidon_py.builders import pod
from tests.poseidon_py.gang_world import World, job
from tests.poseidon_py.world import world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
EXIT_CODE = "cluster.poseidon.io/exit-code"


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path) as world:
        yield world


def states(bridge):
    return {key.name: str(found.state) for key, found in bridge.runtime.jobs.tracker.jobs.items()}


def failing(name, attempts):
    found = job(name, 1, seconds=1.1)  # creation times are whole seconds
    found["spec"]["backoffLimit"] = attempts - 1
    found["spec"]["template"]["metadata"].setdefault("annotations", {})[EXIT_CODE] = "7"
    return found


async def test_the_owner_says_when_a_job_has_ended(world):
    """Six pods, two at a time, and two attempts: while others follow, the jobs have not ended."""
    bridge = await world.bridge()
    paths: dict[str, list[str]] = {}

    def note(it):
        if it.machine == "job":
            paths.setdefault(it.job, [it.old]).append(it.new)

    bridge.runtime.jobs.transitions.listeners.append(note)
    good = job("good", 6, seconds=0.2)
    good["spec"]["parallelism"] = 2
    world.create(good, failing("bad", 2))
    await world.until(lambda: states(bridge) == {"good": "Succeeded", "bad": "Failed"})
    assert paths["good"][-1] == "Succeeded"
    assert set(paths["good"][:-1]) <= {"", "Pending", "Running"}
    assert paths["bad"][-1] == "Failed"
    assert set(paths["bad"][:-1]) <= {"", "Pending", "Running"}
    body = await bridge.jobs(name="bad", namespace="", user="", queue="", state="")
    (shown,) = body["jobs"]
    assert (shown["pods"], shown["retries"], shown["reason"]) == ({"Failed": 2}, 1, "Error (exit code 7)")
    assert (await bridge.status())["outcomes"] == {"succeeded": 6, "failed": 2, "removed": 0}
    with pytest.raises(UnknownJob):
        await bridge.jobs(name="goood")


async def test_a_queue_has_the_statistics_of_its_users(world):
    install_own(world.cluster)
    for name, parent in (("org", {}), ("a", {"parent": "org"}), ("b", {"parent": "org"})):
        declare(world.cluster, "poseidon.io/v1", "Queue", name, {"resources": {"cpu": {"nominal": 10}}, **parent}, None)
    bridge = await world.bridge()
    for name, queue, user in (("one", "a", "anna"), ("two", "a", "bert"), ("three", "b", "anna")):
        found = job(name, 2, seconds=0.1)
        metadata = found["spec"]["template"]["metadata"]
        metadata.setdefault("labels", {})["poseidon.io/queue"] = queue
        metadata.setdefault("annotations", {})["poseidon.io/user"] = user
        world.create(found)
    await world.until(lambda: states(bridge) == dict.fromkeys(("one", "two", "three"), "Succeeded"))
    of_a = (await bridge.queues("a"))["queues"][0]
    assert {user: figures["succeeded"] for user, figures in of_a["users"].items()} == {"anna": 2, "bert": 2}
    assert of_a["statistics"]["created"] == 4
    of_all = (await bridge.queues("org"))["queues"][0]
    assert {user: figures["succeeded"] for user, figures in of_all["users"].items()} == {"anna": 4, "bert": 2}
    assert 'poseidon_queue_pods_ended_total{outcome="succeeded",queue="a"} 4.0' in bridge.metrics.exposition().decode()


async def test_a_sweep_takes_reports_that_still_wait_into_account():
    """Or a job whose last pod has ended would have ended, although the next one is there."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)
        if len(slept) > 1:
            raise asyncio.CancelledError

    jobs = ObservedJobs(Settings(), Store(["poseidon"]), sleep=sleep)
    jobs.pods.listed(set())
    jobs.pods.observed(pod("new"))
    assert len(jobs.tracker) == 0
    with pytest.raises(asyncio.CancelledError):
        await jobs.run()
    assert len(jobs.tracker) == 1


async def test_a_pod_that_was_reported_a_moment_ago_is_shown(world):
    bridge = await world.bridge()
    bridge.runtime.jobs.pods.observed(pod("late"))
    assert len(bridge.runtime.jobs.tracker) == 0
    (shown,) = (await bridge.jobs())["jobs"]
    assert shown["name"] == "default/late"


async def test_what_is_noted_is_not_late_by_the_wait():
    """Of a pod with a node, but without the time of its bind, that of the report is noted."""
    jobs = ObservedJobs(Settings(), Store(["poseidon"]))
    jobs.pods.listed(set())
    jobs.pods.observed(pod("new", node="n"))
    reported = time.time()
    await asyncio.sleep(0.01)
    jobs.pods.flush()
    ((_, replica),) = next(iter(jobs.tracker.jobs.values())).replicas()
    assert 0 < replica.bound <= reported
