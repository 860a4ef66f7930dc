import pytest

from tests.poseidon_py.http_server import Server


@pytest.fixture
async def server():
    async with Server() as server:
        yield server
