import pytest

from poseidon_py.cluster import Cluster, ClusterSettings, NodeShape
from tests.bridge.gangs.world import World

SMALL = NodeShape(cpu="4", memory="8Gi", pods=20)


@pytest.fixture
async def world(tmp_path):
    settings = ClusterSettings(nodes=5, shapes=(SMALL,), start_seconds=0.01, stop_seconds=0.01)
    async with Cluster(settings) as cluster:
        world = World(cluster, tmp_path)
        yield world
        for bridge in world.bridges:
            await bridge.stop()
