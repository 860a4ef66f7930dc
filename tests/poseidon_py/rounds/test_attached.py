"""A round that would follow changes of pods at once runs in the same call."""

import asyncio

import pytest

from poseidon_py.feed.client import EngineError
from poseidon_py.rounds.pacer import Pacer
from tests.poseidon_py.rig import Rig


def calls(rig) -> tuple[int, int, int]:
    """Calls of Apply, of Round, and rounds within Apply."""
    made = rig.engine.calls
    return made["apply"], made["round"] - made["attached"], made["attached"]


async def test_a_single_pod_takes_one_call():
    async with Rig() as rig:
        apply, rounds, attached = calls(rig)
        rig.confirm = False
        rig.pod("a")
        await rig.settle()
        assert rig.bound == ["a"]
        assert calls(rig) == (apply + 1, rounds, attached + 1)
        assert rig.loop.rounds == 1


async def test_a_standby_attaches_no_round():
    async with Rig(leads=False) as rig:
        rig.pod("a")
        await rig.settle()
        assert rig.engine.calls["round"] == 0
        rig.loop.lead()
        await rig.settle()
        assert rig.bound == ["a"]


@pytest.mark.parametrize("method", ["round", "apply"])
async def test_placements_of_a_lost_reply_are_carried_out_once(method):
    async with Rig(pods="100") as rig:
        rig.engine.lose[method] = [EngineError("Apply", "DEADLINE_EXCEEDED", "slow")]
        rig.pod("a")
        async with asyncio.timeout(30):
            while not rig.kube.asked:  # at once, or with the next attempt to send the pod  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        await rig.settle()
        assert rig.kube.asked == ["a"]
        assert rig.agrees()
        rig.pod("b")
        await rig.settle()
        assert rig.kube.asked == ["a", "b"]


async def test_changes_that_follow_a_lost_reply_get_a_round_of_their_own():
    """The next round repeats the placements of the lost reply; it must not count as the round of the new pod."""
    async with Rig(pods="100") as rig:
        rig.engine.lose["apply"] = [EngineError("Apply", "DEADLINE_EXCEEDED", "slow")]
        rig.pod("a")
        while not rig.engine.calls["attached"]:  # noqa: ASYNC110
            await asyncio.sleep(0)
        rig.pod("b")
        await rig.settle()
        assert sorted(rig.kube.asked) == ["a", "b"]


async def test_no_two_rounds_run_at_a_time():
    async with Rig(pods="100") as rig:
        running, greatest, release = 0, 0, asyncio.Event()
        apply, single = rig.engine.apply, rig.engine.round

        async def counted(call, argument, has_round):
            nonlocal running, greatest
            running += has_round
            greatest = max(greatest, running)
            try:
                await release.wait()
                return await call(argument)
            finally:
                running -= has_round

        rig.engine.apply = lambda update: counted(apply, update, update.HasField("round"))
        rig.engine.round = lambda request: counted(single, request, True)
        rig.pod("a")
        while not running:  # noqa: ASYNC110
            await asyncio.sleep(0)
        rig.changed.set()
        rig.pod("b")
        for _ in range(20):
            await asyncio.sleep(0)
        release.set()
        await rig.settle()
        assert greatest == 1
        assert sorted(rig.bound) == ["a", "b"]


async def test_the_loop_wakes_when_an_attached_round_asks_for_it():
    async with Rig(pods="100") as rig:
        assert Pacer().idle_seconds(0.0) > 5  # the loop waits for that long

        def due_soon(reply):
            reply.wake_us = rig.now_us + 20_000

        rig.engine.after_round = due_soon
        rig.pod("a")
        await rig.settle()
        before = calls(rig)
        async with asyncio.timeout(5):
            while calls(rig)[1] == before[1]:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
