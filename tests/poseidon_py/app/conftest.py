"""The event loops that tests of the whole bridge run on."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from tests.effort import THOROUGH


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests with real sockets and processes run on uvloop as in production, and in the thorough profile on asyncio's
    loop, too. Tests that settle without time passing (tests/poseidon_py/settling.py) need asyncio's."""
    if item.get_closest_marker("e2e") is None:
        return {"asyncio": asyncio.new_event_loop}
    return {"uvloop": uvloop.new_event_loop} | ({"asyncio": asyncio.new_event_loop} if THOROUGH else {})
