import pytest

from tests.poseidon_py.app.gangs.world import World
from tests.poseidon_py.world import world_of


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path) as world:
        yield world
