import pytest

from tests.bridge.gangs.world import World
from tests.bridge.world import world_of


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path) as world:
        yield world
