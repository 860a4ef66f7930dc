"""Whether pods with devices would fit: `poseidon fits` and `what-if`, asked before any pod has asked for them."""

import pytest

from poseidon_py.kube.objects import InvalidField
from tests.benchmarks.cluster.device_builders import claim, claim_template, request
from tests.poseidon_py.app.devices.device_world import DeviceWorld
from tests.poseidon_py.app.queue_kinds import declare, install_own
from tests.poseidon_py.world import template, world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DRIVER = "gpu.example.com"
OWN = "deviceclass.resource.kubernetes.io/gpu"


@pytest.fixture
async def world(tmp_path):
    async with world_of(DeviceWorld, tmp_path, nodes=3) as world:
        yield world


async def asked_of(world):
    bridge = await world.bridge()
    await world.until(lambda: [node.sent is not None for node in bridge.store.nodes.values()] == [True] * 3)
    return bridge


def asking(number, *objects, of="", named="", **question):
    """The question whether so many pods fit, with claims of a template or a named one; else with one device each by its
    extended resource."""
    source = {"resourceClaimTemplateName": of} if of else {"resourceClaimName": named}
    found = template(**({"resourceClaims": [{"name": "d", **source}]} if of or named else {}))
    amounts = {OWN: "1"} if not (of or named) else {}
    found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"} | amounts, "limits": amounts}
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{at}"}, **found} for at in range(number)]
    return {"objects": [*objects, *pods], "minimum": number, **question}


async def fits(bridge, *given, **question):
    return (await bridge.fits(asking(*given, **question)))["fits"]


async def test_extended_resources(world):
    world.gpus(2, 1)
    bridge = await asked_of(world)
    assert await fits(bridge, 3)
    assert not await fits(bridge, 4)


async def test_templates_of_the_cluster_and_of_the_manifest(world):
    """The manifest's counts where both have one of the name."""
    world.gpus(3, 2)
    world.create(claim_template("one", request()), claim_template("both", request()))
    bridge = await asked_of(world)
    assert await fits(bridge, 5, of="one")
    assert not await fits(bridge, 6, of="one")
    two = claim_template("both", request(count=2))
    assert await fits(bridge, 2, two, of="both")
    assert not await fits(bridge, 3, two, of="both")
    with pytest.raises(InvalidField, match="template 'none' does not exist; add it to the manifest"):
        await bridge.fits(asking(1, of="none"))
    unknown = claim_template("of-no-class", request(device_class="fpga"))
    with pytest.raises(InvalidField, match="device class fpga does not exist"):
        await bridge.fits(asking(1, unknown, of="of-no-class"))


async def test_requests_with_a_column_of_their_own_are_counted_there(world):
    """Pairs of one NUMA node: each node has three devices and one pair, so that sets alone promise too much."""
    world.gpus(4, 4, numa=[{"int": 0}, {"int": 0}, {"int": 1}, {"int": 2}])
    same = [{"requests": ["gpu"], "matchAttribute": f"{DRIVER}/numa"}]
    world.create(claim("pair", request(count=2), constraints=same))
    bridge = await asked_of(world)
    given = claim_template("pair", request(count=2))
    given["spec"]["spec"]["devices"]["constraints"] = same
    assert await fits(bridge, 2, given, of="pair")
    assert not await fits(bridge, 3, given, of="pair")
    loop_turn = bridge.store.devices.offers
    await world.until(lambda: not loop_turn._kind)  # nodes offer it no longer


async def test_claims_that_are_named(world):
    world.gpus(1, 2)
    world.create(claim("c", request(count=2)))
    bridge = await asked_of(world)
    assert await fits(bridge, 1, named="c")
    answer = await bridge.fits(asking(2, named="c"))
    assert answer["notes"] == ["pods that share claim c are counted as if each had one of its own"]
    assert await fits(bridge, 1, claim("new", request(count=2)), named="new")
    assert not await fits(bridge, 1, claim("large", request(count=3)), named="large")


async def test_quotas_of_devices_count_in_a_queue(world):
    world.gpus(4)
    world.create(claim_template("one", request()), claim_template("all", request(allocationMode="All")))
    install_own(world.cluster)
    declare(world.cluster, "poseidon.io/v1", "Queue", "team", {"limit": {OWN: "2"}})
    bridge = await asked_of(world)
    await world.until(lambda: "team" in bridge.store.queues.built.taking_by_name)
    assert await fits(bridge, 3, of="one")
    assert await fits(bridge, 2, of="one", queue="team")
    assert not await fits(bridge, 3, of="one", queue="team")
    with pytest.raises(InvalidField, match="All has no quota"):
        await bridge.fits(asking(1, of="all", queue="team"))


async def test_nodes_that_are_added_have_the_devices_of_the_one_that_they_are_like(world):
    world.gpus(2)
    world.create(claim_template("one", request()))
    bridge = await asked_of(world)
    first = world.names()[0]
    assert not await fits(bridge, 4, of="one")
    assert await fits(bridge, 4, of="one", add_nodes=[{"count": 1, "like": first}])
