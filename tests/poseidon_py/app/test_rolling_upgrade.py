"""A Deployment's rollout: new replicas start, old ones are told to stop, while pods arrive."""

from collections import Counter

import pytest

from tests.poseidon_py.gang_world import World, job, template
from tests.poseidon_py.world import world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

FAST = {"leader_elect": True, "lease_duration": 3.0, "renew_deadline": 2.0, "retry_period": 0.1}
SIZE = 3


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path, nodes=20) as world:
        yield world


async def test_each_pod_is_bound_once_while_all_replicas_are_replaced(world):
    """The leader is stopped twice, each time with binds on their way and pods that it has not seen."""
    replicas = [await world.bridge(**FAST) for _ in range(2)]
    await world.until(lambda: any(each.election.leading for each in replicas))
    led = []
    for wave in range(2):
        world.create(job(f"gang{wave}", SIZE, cpu="100m", gang="all"))
        world.cluster.add_pods(60, template("50m"), prefix=f"before{wave}-")
        replicas.append(await world.bridge(**FAST))  # maxSurge 1
        await world.until(lambda wave=wave: len(world.bound(f"before{wave}-")) >= 10)
        old = next(each for each in replicas if each.election.leading)
        led.append(old)
        replicas.remove(old)
        world.cluster.add_pods(60, template("50m"), prefix=f"after{wave}-")
        await world.stop(old)
        await world.until(lambda: any(each.election.leading for each in replicas))
    count = 2 * (60 + 60 + SIZE)
    await world.until(lambda: len(world.bound()) == count)
    binds = Counter(entry.uid for entry in world.cluster.audit.of("bind"))
    assert set(binds.values()) == {1}
    assert len(binds) == count
    assert (
        len({*led, *(each for each in replicas if each.election.leading)}) == 3
    )  # three have led, one after the other
    assert all(each.runtime.binder.bound for each in led)
    world.check()
