"""Gangs whose devices have one value of an attribute, through the whole bridge and the flow service."""

import pytest

from tests.benchmarks.cluster.device_builders import claim_template, device, device_class, request, resource_slice
from tests.poseidon_py.app.devices.device_world import DeviceWorld
from tests.poseidon_py.gang_world import job
from tests.poseidon_py.world import world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

RAIL = "gpu.example.com/rail"


@pytest.fixture
async def world(tmp_path):
    async with world_of(DeviceWorld, tmp_path, nodes=3) as world:
        yield world


def gang(name, size, template, *, matches=True):
    found = job(name, size, gang="all", cpu="100m")
    pod = found["spec"]["template"]
    pod["metadata"].setdefault("annotations", {})
    if matches:
        pod["metadata"]["annotations"]["poseidon.io/gang-match-attribute"] = RAIL
    pod["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimTemplateName": template}]
    return found


def rails(world):
    """Name of a job -> the rails of its pods."""
    found: dict[str, set[int]] = {}
    for pod, devices in world.devices().items():
        found.setdefault(pod.rpartition("-")[0], set()).update(int(each[-1]) % 2 for each in devices)
    return found


async def test_all_pods_of_a_gang_have_one_rail(world):
    """Each node has two devices of either rail: two gangs of six have one each, and a third one waits as a whole."""
    world.gpus(4, 4, 4, rail=[{"int": at % 2} for at in range(4)])
    world.create(claim_template("one", request()))
    await world.bridge()
    for name in ("first", "second"):
        world.create(gang(name, 6, "one"))
        await world.until(lambda name=name: sum(each.startswith(name) for each in world.running()) == 6)
    assert sorted(map(sorted, rails(world).values())) == [[0], [1]]
    world.create(gang("third", 1, "one"))
    await world.until(lambda: world.events("FailedScheduling"))
    assert len(world.running()) == 12
    world.check()


async def test_a_value_that_is_too_scarce_on_the_nodes_gives_way_to_the_next(world):
    """Rail 0 has as many devices as the gang needs, but pairs of it on one node only: rail 1 has two."""
    layout = ([0, 0, 1, 1], [0, 1, 1], [0, 1])
    world.create(*_slices(world, layout))
    world.create(claim_template("pair", request(count=2)))
    await world.bridge()
    world.create(gang("pairs", 2, "pair"))
    await world.until(lambda: len(world.running()) == 2)
    assert rails(world) == {"pairs": {1}}
    world.check()


def _slices(world, layout):
    yield device_class("gpu")
    for node, numbers in zip(world.names(), layout, strict=True):
        devices = [device(f"gpu-{at}-{rail}", attributes={"rail": {"int": rail}}) for at, rail in enumerate(numbers)]
        yield resource_slice(f"slice-{node}", *devices, pool=node, node=node)
