"""Pods that share a volume that does not exist yet: all of them run where it is made."""

import asyncio

import pytest

from benchmarks.cluster.settings import NodeShape
from tests.poseidon_py.app.test_constraints import Constrained, with_claim
from tests.poseidon_py.world import template, world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
async def world(tmp_path):
    async with world_of(Constrained, tmp_path, nodes=0) as world:
        yield world
    world.check()


async def test_six_pods_run_in_the_zone_that_has_room_for_six(world):
    """A zone of two cpus, which comes first, and one of eight: the round places two and four of the pods."""
    world.cluster.add_nodes(1, NodeShape(cpu="2"), prefix="a-small", labels={ZONE: "small"})
    world.cluster.add_nodes(1, NodeShape(cpu="8"), prefix="b-large", labels={ZONE: "large"})
    world.storage_class("s")
    world.claim("shared", "s")
    await world.bridge()
    world.cluster.add_pods(6, template("1", **with_claim("shared")), prefix="p-")
    await world.until(lambda: world.placed("p", 6))
    assert world.domains("p") == {"large": 6}


async def test_no_pod_is_bound_in_a_zone_without_the_volume(world):
    """The volume is made for the first pod while rounds place the next ones."""
    for name in ("a", "b", "c"):
        world.cluster.add_nodes(1, NodeShape(cpu="8"), prefix=name, labels={ZONE: name})
    world.storage_class("s")
    world.claim("shared", "s")
    await world.bridge()
    for number in range(6):
        world.cluster.add_pods(1, template("1", **with_claim("shared")), prefix=f"p-{number}")
        await asyncio.sleep(0.05)
    await world.until(lambda: world.placed("p", 6))
    assert len(world.domains("p")) == 1
