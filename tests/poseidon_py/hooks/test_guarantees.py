"""Whatever fails, and wherever the process is killed: at least once, in the order of the job, no loss."""

import asyncio

import pytest
from hypothesis import seed
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from poseidon_py.hooks.config.hook_config import Hook, Retry, Selector
from poseidon_py.hooks.storage.store import Request
from poseidon_py.hooks.transition import delivery_id
from tests.effort import examples
from tests.poseidon_py.hooks.world import World
from tests.poseidon_py.settling import settle

ATTEMPTS = 4
JOBS = ("a", "b", "c")
HOOKS = ("billing", "audit")
REACHED = {"restarts": 0, "dead": 0, "asked": 0}


def hook(name, **fields):
    return Hook(name, f"http://{name}/", retry=Retry(ATTEMPTS, 1.0, 8.0), concurrency=2, **fields)


class Guarantees(RuleBasedStateMachine):
    """The model: per hook and job, the IDs in the order in which the controller reported them."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.reported = {}
        self.problems = []
        self.since_crash = 0

    def run(self, work):
        return self.loop.run_until_complete(work)

    @initialize()
    def begin(self):
        async def start():
            self.world = World(hook("billing"), hook("audit", on=(Selector(after=frozenset({"Running"})),)))
            self.world.endpoint.on_attempt = self.check_order
            await self.world.start()
            await settle()

        self.run(start())

    def is_settled(self, name, identity):
        """Whether a delivery was acknowledged once, or may be a dead letter."""
        endpoint, key = self.world.endpoint, (name, identity)
        return key in endpoint.acknowledged or key in endpoint.permanent or endpoint.failed.get(key, 0) >= ATTEMPTS

    def check_order(self, name, record):
        order = self.reported[name, record.transition.job]
        earlier = order[: order.index(record.id)]
        waiting = [identity for identity in earlier if not self.is_settled(name, identity)]
        if waiting:
            self.problems.append(f"{name}: {record.id} is sent before {waiting}")
        if record.key not in self.world.texts:
            self.problems.append(f"{name}: {record.id} is sent before it is stored")

    @rule(job=st.sampled_from(JOBS), after=st.sampled_from(["Running", "Completed"]), number=st.integers(1, 3))
    def report(self, job, after, number):
        self.since_crash += 1

        async def act():
            for _ in range(number):
                transition = self.world.report(job, after=after)
                for name in HOOKS if after == "Running" else HOOKS[:1]:
                    self.reported.setdefault((name, job), []).append(delivery_id(transition))

        self.run(act())

    @rule(steps=st.integers(1, 12))
    def some_steps(self, steps):
        """Leaves the process anywhere: before a write, between a write and a request, before an acknowledgement."""

        async def act():
            for _ in range(steps):
                await asyncio.sleep(0)

        self.run(act())

    @rule(seconds=st.sampled_from([0.1, 1.5, 4.0, 20.0]))
    def time_passes(self, seconds):
        async def act():
            await self.world.time.advance(seconds)

        self.run(act())

    @precondition(lambda self: self.since_crash > 2)
    @rule()
    def crash(self):
        REACHED["restarts"] += 1
        self.since_crash = 0
        self.run(self.world.restart())

    @rule(
        name=st.sampled_from(HOOKS),
        job=st.sampled_from(JOBS),
        mode=st.sampled_from(["ok", "ok", "failing", "ack lost", "permanent", "busy", "hang"]),
    )
    def endpoint_changes(self, name, job, mode):
        async def act():
            self.world.endpoint.set_mode(name, job, mode)

        self.run(act())

    @rule(mode=st.sampled_from(["ok", "ok", "slow", "failing", "partial", "lost"]))
    def store_changes(self, mode):
        async def act():
            self.world.process.store.set_mode(mode)

        self.run(act())

    @precondition(lambda self: self.world.dead())
    @rule(verb=st.sampled_from(["retry", "drop"]), chosen=st.integers(0, 100))
    def user_asks(self, verb, chosen):
        dead = self.world.dead()
        record = dead[chosen % len(dead)]
        self.world.asked.append(Request(verb, record.key))
        REACHED["asked"] += 1

    @invariant()
    def order_is_that_of_the_job(self):
        assert self.problems == []

    @invariant()
    def dead_letters_had_their_attempts(self):
        for record in self.world.dead() if self.reported else ():
            assert self.is_settled(record.hook, record.id)
            REACHED["dead"] += 1

    def teardown(self):
        try:
            self.run(self.recover())
        finally:
            self.run(self.world.process.kill())
            self.loop.close()

    async def recover(self):
        """Everything works again: nothing is left but dead letters."""
        for name in HOOKS:
            for job in JOBS:
                self.world.endpoint.set_mode(name, job, "ok")
        self.world.process.store.set_mode("ok")
        await self.world.time.advance(300)
        assert self.problems == []
        assert self.world.unreported == {}
        assert [record for record in self.world.records() if not record.dead] == []
        for (name, _), order in self.reported.items():
            assert [identity for identity in order if not self.is_settled(name, identity)] == []


Guarantees.TestCase.settings = examples(60, steps=40)


TestGuarantees = pytest.mark.slow(Guarantees.TestCase)


@pytest.mark.slow
def test_the_machine_reaches_what_it_checks():
    """Crashes, dead letters and requests of users happen: few examples may be without these."""
    for number in range(20):
        if min(REACHED.values()) > 0:
            break
        run_state_machine_as_test(seed(number)(Guarantees), settings=examples(10, steps=40))
    assert min(REACHED.values()) > 0, REACHED
