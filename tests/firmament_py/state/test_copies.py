"""A copy of a state and the state itself do not depend on each other, although they share what never changes."""

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.effort import seeds
from tests.firmament_py.engine.wake_kinds import KINDS
from tests.firmament_py.engine.wake_worlds import World

STEPS = 40


def content(value: Any, on_the_way: tuple[int, ...] = ()) -> Any:
    """All that can be reached from a value, as plain values."""
    if id(value) in on_the_way:
        return "..."
    deeper = (*on_the_way, id(value))
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tolist() if value.dtype.hasobject else value.tobytes()
    if isinstance(value, Mapping):
        return [(repr(key), content(each, deeper)) for key, each in value.items()]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, list | tuple | deque):
        return [content(each, deeper) for each in value]
    if hasattr(value, "__dict__"):
        return type(value).__name__, [(name, content(each, deeper)) for name, each in vars(value).items()]
    return repr(value)


@pytest.mark.slow
@seeds(4)
@pytest.mark.parametrize("name", ["priorities", "moves", "reclaim", "delays"])
def test_what_happens_to_one_does_not_happen_to_the_other(name, seed):
    world = World(KINDS[name], seed)
    for _ in range(STEPS):
        world.step()
        world.rounds()
        state = world.cluster.state
        copied, before = state.copy(), content(state)
        assert content(copied) == before
        copied.validate()
        world.step()
        world.rounds()
        assert content(copied) == before, "the state has changed its copy"
        now = content(state)
        world.missed()  # rounds on a copy of its own
        assert content(state) == now, "a copy has changed the state"
