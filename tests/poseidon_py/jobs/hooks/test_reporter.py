"""Reports of jobs through terms: a stop between any two writes loses nothing, and repeats with the same IDs."""

import asyncio
from itertools import pairwise

import pytest

from poseidon_py.hooks.config.hook_config import Hook, HookConfig
from poseidon_py.hooks.hooks import Hooks
from poseidon_py.hooks.sending.outcome import DELIVERED
from poseidon_py.jobs.events import JobEvents
from poseidon_py.jobs.hooks.reporter import HookReporter
from poseidon_py.jobs.reconcile import Reconciler
from poseidon_py.jobs.writer import NotLeadingError, Writer
from poseidon_py.kube.client import LostAnswerError
from tests.poseidon_py.hooks.world import ProcessStore, VirtualTime
from tests.poseidon_py.jobs.builders import task
from tests.poseidon_py.jobs.test_reconcile import JOB, PODS, Rig
from tests.poseidon_py.settling import settle

JOB_PATH = ["", "Pending", "Running", "Completed"]
POD_PATH = ["Absent", "Pending", "Running", "Succeeded"]


class HookRig(Rig):
    """A controller with hooks. `delivered`: what the endpoint got, in its order."""

    def __init__(self, *tasks, **fields):
        self.time, self.texts, self.asked, self.delivered = VirtualTime(), {}, [], []
        self.stores, self.ended, self.reported = [], [], []
        super().__init__(*tasks, **fields)

    def start(self):
        super().start()
        self.reporter = HookReporter(self._hooks, self.reported.append, self.ended.append, lambda: self.now)
        self.reporter.watch(self.cache)
        passing = self.reconciler._transitions
        passing.listeners.append(self.reporter.transitioned)
        writer = self.reconciler._writer
        assert isinstance(writer, Writer)
        self.events = JobEvents(self.api, lambda: self.now)
        self.reconciler = Reconciler(self.cache, writer, self.events, passing, lambda: self.now, self.reporter.outbox)

    def lead(self):
        self.reporter.lead()
        self.reconciler.lead()

    def _hooks(self):
        store = ProcessStore(self.texts, self.asked)
        self.stores.append(store)

        async def send(record):
            if store.dead:
                await asyncio.get_running_loop().create_future()
            self.delivered.append(record)
            return DELIVERED

        config = HookConfig((Hook("billing", "http://x"),))
        return Hooks(config, store, clock=self.time.clock(), senders=lambda hook: send, rng=lambda: 1.0)

    async def kill(self):
        """The process is killed, and what it has in memory is lost."""
        for store in self.stores:
            store.kill()
        reporter = self.reporter
        hooks, reporter._hooks = reporter._hooks, None
        assert hooks is not None
        reporter.stand_by()
        await hooks.stop(0)

    async def finish(self):
        await self.settle()
        await self.time.advance(5)
        await self.settle()

    def path(self, machine):
        """The states of a machine as a receiver has them that recognises duplicates."""
        found = {each.id: each.transition for each in self.delivered if each.transition.machine == machine}
        return [(each.before, each.after) for each in found.values()]


def chain(states):
    return list(pairwise(states))


def run(scenario):
    asyncio.run(asyncio.wait_for(scenario, 60))


async def life(rig):
    await rig.finish()
    for phase in ("Running", "Succeeded"):
        if rig.api.objects[f"{PODS}/j-w-0"].get("status", {}).get("phase") != "Succeeded":
            rig.set_phase(phase, "j-w-0")
        await rig.finish()


def test_a_job_is_delivered_once_and_leaves_no_notes():
    async def scenario():
        rig = HookRig(task("w", 1))
        rig.lead()
        await life(rig)
        assert rig.path("job") == chain(JOB_PATH)
        assert rig.path("replica") == chain(POD_PATH)
        assert rig.path("task") == chain(["", "Pending", "Running", "Succeeded"])
        assert len(rig.delivered) == 9
        assert ("ns", "j") in rig.reported
        texts = rig.status["controlledResources"]
        assert [key for key in texts if "noted" in key] == []
        assert texts["poseidon.io/transitions"] == "6"
        await rig.reporter.stop()

    run(scenario())


@pytest.mark.parametrize("writes", range(8))
def test_a_process_that_is_killed_after_any_write_loses_nothing(writes):
    """It has written the status, and neither stored nor delivered what it says."""

    async def scenario():
        rig = HookRig(task("w", 1))
        rig.lead()
        await settle()
        rig.stores[-1].set_mode("slow")
        rig.writes_left = writes
        try:
            for phase in ("Pending", "Running", "Succeeded"):
                if f"{PODS}/j-w-0" in rig.api.objects:
                    rig.set_phase(phase, "j-w-0")
                await rig.settle()
        except NotLeadingError:
            pass
        assert rig.delivered == []
        await rig.kill()
        rig.writes_left = None
        rig.start()
        rig.lead()
        await life(rig)
        assert rig.path("job") == chain(JOB_PATH)
        assert rig.path("replica") == chain(POD_PATH)
        await rig.reporter.stop()

    run(scenario())


def test_a_lost_answer_loses_no_transition():
    async def scenario():
        rig = HookRig(task("w", 1))
        rig.lead()
        await rig.finish()
        rig.set_phase("Running", "j-w-0")
        rig.api.lose = ["PATCH"]
        with pytest.raises(LostAnswerError):
            await rig.settle()
        await rig.finish()
        assert rig.path("job") == chain(JOB_PATH[:3])
        await rig.reporter.stop()

    run(scenario())


def test_a_second_term_repeats_what_exists_with_the_same_ids():
    async def scenario():
        rig = HookRig(task("w", 1))
        rig.lead()
        await rig.finish()
        rig.set_phase("Running", "j-w-0")
        await rig.finish()
        first = [each.id for each in rig.delivered]
        rig.reporter.stand_by()
        await rig.time.advance(10)
        rig.set_phase("Succeeded", "j-w-0")
        rig.api.feed(rig.cache)
        await rig.time.advance(10)
        assert [each.id for each in rig.delivered] == first
        rig.lead()
        await rig.finish()
        repeated = [each for each in rig.delivered[len(first) :] if each.id in first]
        assert {(each.transition.machine, each.transition.after) for each in repeated} >= {
            ("replica", "Pending"),
            ("replica", "Running"),
        }
        assert rig.path("replica") == chain(POD_PATH)
        assert rig.path("job") == chain(JOB_PATH)
        sequences = [each.sequence for each in rig.delivered]
        assert sequences == sorted(sequences)
        await rig.reporter.stop()

    run(scenario())


@pytest.mark.parametrize("seen_terminating", [False, True])
def test_what_leaves_between_two_terms_is_reported_by_the_one_that_has_seen_it(seen_terminating):
    """All of it: the leader may have ended before it reported the pod's start."""

    async def scenario():
        rig = HookRig(task("w", 1))
        await rig.step()
        await rig.settle()
        rig.set_phase("Running", "j-w-0")
        await rig.settle()
        assert rig.delivered == []
        if seen_terminating:  # an API server waits for the kubelet
            found = rig.api.objects[f"{PODS}/j-w-0"]
            metadata = found["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
            rig.api.put(f"{PODS}/j-w-0", found | {"metadata": metadata})
            rig.api.feed(rig.cache)
        rig.api.remove(f"{PODS}/j-w-0")
        rig.api.remove(JOB)
        rig.api.feed(rig.cache)
        rig.lead()
        await rig.time.advance(5)
        assert rig.path("replica") == chain([*POD_PATH[:3], "Terminating", "Absent"])
        await rig.reporter.stop()

    run(scenario())


def test_a_job_that_has_expired_is_deleted_once_its_transitions_are_stored():
    async def scenario():
        rig = HookRig(task("w", 1), ttlSecondsAfterFinished=0)
        rig.lead()
        await rig.finish()
        rig.stores[-1].set_mode("failing")
        rig.set_phase("Succeeded", "j-w-0")
        for _ in range(5):
            again = await rig.step()
        assert rig.phase == "Completed"
        assert again == 1.0
        assert JOB in rig.api.objects
        rig.stores[-1].set_mode("ok")
        await rig.time.advance(60)
        await rig.step()
        await rig.step()
        assert JOB not in rig.api.objects
        assert rig.path("job") == chain(JOB_PATH)
        await rig.reporter.stop()

    run(scenario())


def test_hooks_that_end_are_told():
    async def scenario():
        rig = HookRig(task("w", 1))
        rig.lead()
        await settle()
        hooks = rig.reporter._hooks
        assert hooks is not None
        hooks._end("another one has taken over")
        await settle()
        assert rig.ended == ["another one has taken over"]
        await rig.reporter.stop()

    run(scenario())
