"""Reports of observed jobs through terms: what a leader has not stored, the next one reports, and no more."""

import asyncio

import pytest

from poseidon_py.app.jobs.hook_terms import HookTerms, delivery_of
from poseidon_py.hooks.config.hook_config import Hook, HookConfig
from poseidon_py.hooks.hooks import Hooks
from poseidon_py.hooks.sending.outcome import DELIVERED
from poseidon_py.hooks.transition import delivery_id
from tests.poseidon_py.hooks.world import ProcessStore, VirtualTime
from tests.poseidon_py.settling import settle
from tests.poseidon_py.tracking.histories import START, Life, Watched

T = START


class Cluster:
    """What survives processes: what is stored, and what the endpoint got."""

    def __init__(self):
        self.time = VirtualTime()  # which begins at START
        self.texts, self.asked, self.delivered = {}, [], []

    def advance(self, seconds):
        return self.time.advance(seconds)

    def new(self, machine):
        """The transitions of a machine as a receiver has them that recognises duplicates, in their order."""
        found = {each.id: each.transition for each in self.delivered if each.transition.machine == machine}
        return [(each.name, each.before, each.after) for each in found.values()]


class Process:
    """A scheduler with hooks, which has listed the pods."""

    def __init__(self, cluster, *lives, listed=True):
        self.cluster = cluster
        self.watched = Watched(*lives, now=T + cluster.time.seconds, listed=listed)
        self.stores = []
        self.terms = HookTerms(self._hooks, now=lambda: T + cluster.time.seconds, sleep=cluster.time.clock().sleep)
        self.terms.watch(self.watched.tracker)
        self.watched.transitions.listeners.append(self.terms.transitioned)

    def _hooks(self):
        store = ProcessStore(self.cluster.texts, self.cluster.asked)
        self.stores.append(store)

        async def send(record):
            if store.dead:
                await asyncio.get_running_loop().create_future()
            self.cluster.delivered.append(record)
            return DELIVERED

        config = HookConfig((Hook("billing", "http://x"),))
        return Hooks(config, store, clock=self.cluster.time.clock(), senders=lambda hook: send, rng=lambda: 1.0)

    async def lead(self):
        self.terms.lead()
        await self.cluster.advance(1)

    async def kill(self):
        """What it has in memory is lost."""
        for store in self.stores:
            store.kill()
        hooks, self.terms._hooks = self.terms._hooks, None
        self.terms.stand_by()
        if hooks is not None:
            await hooks.stop(0)
        await settle()


@pytest.fixture
def cluster():
    return Cluster()


async def test_new_hooks_get_what_happens_from_now_on(cluster):
    await cluster.advance(100)
    pod = Life("p").start(T + 1)
    process = Process(cluster, pod)
    await process.lead()
    assert cluster.delivered == []
    process.watched.tell(pod.succeed(T + 105))
    await cluster.advance(10)
    assert cluster.new("replica") == [("p", "Running", "Succeeded")]
    assert cluster.new("job") == [("p", "Running", "Succeeded")]
    await process.terms.stop()


async def test_a_leader_that_is_killed_before_it_has_stored_a_transition_loses_none(cluster):
    """The next one has the same pods, and so the same transitions; a receiver knows what it got twice."""
    pod = Life("p", created=T + 10).bind(T + 11)
    first = Process(cluster)
    await first.lead()
    first.watched.tell(pod)
    await cluster.advance(20)
    for store in first.stores:
        store.set_mode("failing")
    first.watched.tell(pod.start(T + 30))
    await cluster.advance(20)
    await first.kill()
    before = len(cluster.delivered)
    assert cluster.new("replica") == [("p", "Absent", "Pending"), ("p", "Pending", "Bound")]

    second = Process(cluster, pod.start(T + 30))
    await second.lead()
    assert cluster.new("replica") == [("p", "Absent", "Pending"), ("p", "Pending", "Bound"), ("p", "Bound", "Running")]
    assert cluster.new("job") == [("p", "", "Pending"), ("p", "Pending", "Running")]
    assert len(cluster.delivered) > before + 1, "those of the last minute before the mark come again"
    await second.terms.stop()


async def test_a_process_that_leads_before_it_has_listed_the_pods_reports_them_afterwards(cluster):
    first = Process(cluster)
    await first.lead()
    pod = Life("p", created=T + 2)
    first.watched.tell(pod)
    await cluster.advance(10)
    await first.kill()
    second = Process(cluster, pod.start(T + 11), listed=False)
    await second.lead()
    assert ("p", "Bound", "Running") not in cluster.new("replica")
    second.watched.tracker.listed({"uid-p"})
    await cluster.advance(1)
    assert cluster.new("replica")[-1] == ("p", "Bound", "Running")
    assert cluster.new("job")[-1] == ("p", "Pending", "Running")
    await second.terms.stop()


async def test_what_was_stored_long_ago_is_not_reported_again(cluster):
    old, recent = Life("p", created=T + 10), Life("q", created=T + 500)
    first = Process(cluster)
    await first.lead()
    first.watched.tell(old)
    await cluster.advance(499)
    first.watched.tell(recent)
    await cluster.advance(100)
    await first.kill()
    before = len(cluster.delivered)
    second = Process(cluster, old, recent)
    await second.lead()
    again = {each.transition.name for each in cluster.delivered[before:]}
    assert again == {"q", "q-main"}
    await second.terms.stop()


async def test_a_pod_that_left_while_another_process_led_is_reported(cluster):
    pod = Life("p", created=T + 1).start(T + 2)
    first, second = Process(cluster), Process(cluster)
    await first.lead()
    first.watched.tell(pod)
    second.watched.tell(pod)
    await cluster.advance(10)
    await first.kill()
    second.watched.gone(pod.delete(T + 12), T + 13)
    await second.lead()
    assert cluster.new("replica")[-2:] == [("p", "Running", "Terminating"), ("p", "Terminating", "Deleted")]
    await second.terms.stop()


async def test_each_job_gets_its_transitions_in_order(cluster):
    process = Process(cluster)
    await process.lead()
    for name in "pq":
        pod = Life(name, created=T + 2)
        process.watched.tell(pod, pod.bind(T + 3), pod.start(T + 4), pod.start(T + 4).fail(T + 5))
    await cluster.advance(10)
    for name in "pq":
        of_job = [each.transition for each in cluster.delivered if each.transition.job == f"default/{name}"]
        states = [each.after for each in of_job if each.machine == "replica"]
        assert states == ["Pending", "Bound", "Running", "Failed"]
        assert [each.after for each in of_job if each.machine == "job"] == ["Pending", "Running", "Failed"]
        assert [each.at for each in of_job if each.machine == "replica"] == [T + 2, T + 3, T + 4, T + 5]
    await process.terms.stop()


def test_what_a_hook_is_given():
    watched = Watched()
    watched.queues["uid-j-0"] = "batch"
    pod = Life("j-0", owner="uid-j", created=T + 1, annotations={"poseidon.io/user": "anna"}, cpu="1500m")
    watched.tell(pod, pod.bind(T + 2).start(T + 3).fail(T + 9, 2))
    last = [it for it in watched.passed if it.machine == "replica"][-1]
    found = delivery_of(last)
    assert (found.machine, found.id, found.name, found.job, found.user_id) == (
        "replica", "uid-j-0", "j-0", "default/j", "anna",
    )  # fmt: skip
    assert (found.before, found.after, found.at) == ("Running", "Failed", T + 9)
    assert found.details == {
        "requests.cpu": "1.5", "kind": "Job", "task": "main", "pod": "j-0", "node": "n", "queue": "batch",
        "reason": "Error", "since": "2026-01-01T00:00:03Z",
    }  # fmt: skip
    (of_job,) = [it for it in watched.passed if it.machine == "job" and it.new == "Pending"]
    assert (delivery_of(of_job).id, delivery_of(of_job).details["kind"]) == ("uid-j", "Job")


def test_every_process_finds_the_same_identity_of_a_transition():
    lives = [Life("j-0", owner="uid-j").bind(T + 2).start(T + 3), Life("p").start(T + 5).succeed(T + 9)]
    seen = Watched()
    for life in lives:
        seen.tell(Life(life.name, owner=life.owner), life)
    later = Watched(*lives, now=T + 100)
    passed = {delivery_id(delivery_of(it)) for it in seen.passed}
    assert passed == {delivery_id(delivery_of(it)) for it in later.tracker.present()}
    assert len(passed) == len(seen.passed)
