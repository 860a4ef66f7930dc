"""Workers pause after a call, and longer if calls have taken much of the time lately."""

from types import SimpleNamespace

import pytest

from poseidon_py.feed import workers
from tests.poseidon_py.rig import Rig


@pytest.mark.parametrize(("lasts", "last_pause"), [(0.001, 0.005), (0.1, 0.05)])
async def test_a_slow_call_after_quiet_time_is_followed_by_a_short_pause(monkeypatch, lasts, last_pause):
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=lambda: clock.now))
    async with Rig(leads=False) as rig:
        pauses, apply = [], rig.engine.apply
        clock.now += 10

        async def slow(update):
            clock.now += lasts
            return await apply(update)

        async def pause(seconds):
            pauses.append(seconds)

        rig.engine.apply, rig.feed._sleep = slow, pause
        for number in range(6):
            rig.pod(f"p{number}")
            await rig.settle()
    assert pauses[0] == 0.005
    assert pauses[-1] == pytest.approx(last_pause)
