"""Which of two schedulers writes the statuses of queues, on a virtual clock."""

import asyncio
from contextlib import asynccontextmanager

from poseidon_py.kube.lease import Election
from poseidon_py.report.queue_ownership import QueueOwnership
from tests.poseidon_py.kube.test_lease import Api, World


class Scheduler:
    """A replica of the scheduler of `names`, which leads or not, and serves queues or not."""

    def __init__(self, world, names, kind="kueue"):
        self.world, self.names, self.kind = world, names, kind
        self.leases = []
        self.needed = True
        self.ownership = QueueOwnership(self._election_for, lambda: self.kind if self.needed else "")

    def _election_for(self, lease):
        world, names = self.world, self.names
        self.leases.append(lease)
        return Election(
            Api(world, names),
            name="poseidon",
            namespace="kube-system",
            identity=names,
            started=lambda: None,
            stopped=lambda: None,
            sleep=world.sleep,
            monotonic=lambda: world.now,
            now=lambda: world.now,
            rng=lambda: 0.5,
        )

    def set(self, needed):
        self.needed = needed
        self.ownership.changed()

    @property
    def writes(self):
        return self.ownership.holds()

    @asynccontextmanager
    async def running(self):
        task = asyncio.create_task(self.ownership.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_one_scheduler_writes_and_the_other_takes_over_when_it_is_gone():
    world = World()
    a, b = Scheduler(world, "poseidon"), Scheduler(world, "batch")
    async with b.running(), a.running():
        await world.pass_time(10)
        writers = [each for each in (a, b) if each.writes]
        assert len(writers) == 1
        idle = b if writers == [a] else a
        assert idle.ownership.other == writers[0].names
        writers[0].set(False)
        await world.pass_time(20)
        assert (writers[0].writes, idle.writes) == (False, True)


async def test_another_replica_of_the_same_scheduler_goes_on_at_once():
    world = World()
    first, second = Scheduler(world, "poseidon"), Scheduler(world, "poseidon")
    second.needed = False
    async with first.running(), second.running():
        await world.pass_time(0)
        assert (first.writes, second.writes) == (True, False)
        first.set(False)
        second.set(True)
        await world.pass_time(0)
        assert (first.writes, second.writes) == (False, True)


async def test_without_queues_the_lease_is_not_asked_for():
    world = World()
    a = Scheduler(world, "poseidon")
    a.needed = False
    async with a.running():
        await world.pass_time(60)
        assert (world.lease, a.writes, a.ownership.other) == (None, False, "")


async def test_the_lease_is_that_of_the_kind_of_queues_in_force():
    world = World()
    a = Scheduler(world, "poseidon", "volcano")
    async with a.running():
        await world.pass_time(0)
        assert (a.writes, a.leases) == (True, ["poseidon-queues-volcano"])
        a.kind = "kueue"
        assert not a.writes  # before it has the lease of that kind
        a.ownership.changed()
        await world.pass_time(0)
        assert a.leases[1:] == ["poseidon-queues-kueue"]
