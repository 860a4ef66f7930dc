import pytest

from tests.bridge.http_server import Server


@pytest.fixture
async def server():
    async with Server() as server:
        yield server
