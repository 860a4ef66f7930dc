"""A plan that is carried out, while the flow service restarts or the leader changes."""

import asyncio

import pytest

from poseidon_py.app.move_plan import Step
from poseidon_py.describe.annotations.movable import MOVABLE
from poseidon_py.feed.client import EngineError
from tests.poseidon_py.fakes import unavailable
from tests.poseidon_py.moving_rig import BUDGET, MovingRig, chain, move

# -- restarts and leaders ----------------------------------------------------------------------------------------------


async def test_a_restarted_flow_service_gets_the_steps_that_have_not_begun():
    async with MovingRig() as rig:
        later = Step(step=5, moves=[move("d")], after=[2])
        rig.pods.put("d")
        rig.pod("d", node="n", owner="o", annotations={MOVABLE: "true"})
        plan = chain()
        plan.steps.append(later)
        await rig.carry_out(plan)
        await rig.follow()
        await rig.left("a")
        await rig.follow()
        rig.engine.restart()
        rig.pod("later")  # the next call notices it
        await rig.settle()
        assert rig.engine.moves.steps == []
        assert await rig.follow() == {"a": "done", "b": "leaving", "c": "waiting", "d": "waiting"}
        first, second = rig.engine.moves.steps
        assert [[moved.task for moved in step.moves] for step in (first, second)] == [["default/c"], ["default/d"]]
        assert (list(first.after), list(second.after)) == ([], [0])
        await rig.left("b")
        assert await rig.follow() == {"a": "done", "b": "done", "c": "leaving", "d": "waiting"}
        assert rig.pods.of("evict") == ["a", "b", "c"]


async def test_a_pod_that_leaves_already_is_waited_for_without_the_engine():
    async with MovingRig() as rig:
        rig.pod("a", node="n", owner="o", annotations={MOVABLE: "true"}, deleting=True)
        await rig.settle()
        await rig.carry_out(chain())
        assert await rig.follow() == {"a": "leaving", "b": "leaving", "c": "waiting"}
        first = rig.engine.moves.steps[0]
        assert [moved.task for moved in first.moves] == ["default/b"]
        await rig.left("a", "b")
        await rig.follow()
        await rig.left("c")
        assert await rig.follow() == dict.fromkeys("abc", "done")
        assert rig.pods.of("evict") == ["b", "c"]


async def test_a_pod_that_left_during_the_restart_is_done():
    async with MovingRig() as rig:
        await rig.carry_out(chain())
        await rig.follow()
        rig.engine.restart()
        await rig.left("a", "b")
        await rig.follow()
        await rig.follow()
        assert rig.states == {"a": "done", "b": "done", "c": "leaving"}
        assert rig.reasons["a"] == "it has left; where its successor runs is not known"
        assert rig.pods.of("evict") == ["a", "b", "c"]


async def test_a_pod_that_ended_by_itself_during_the_restart_is_dropped():
    async with MovingRig() as rig:
        await rig.carry_out(chain())
        await rig.follow()
        rig.engine.restart()
        await rig.left("c")
        await rig.follow()
        assert (rig.states["c"], rig.reasons["c"]) == ("dropped", "it has ended by itself")


async def test_a_stale_epoch_is_noticed_by_the_plan_itself():
    async with MovingRig() as rig:
        await rig.carry_out(chain())
        await rig.follow()
        rig.engine.restart()
        await rig.follow()  # STALE_EPOCH, and a resync
        await rig.follow()
        (step,) = rig.engine.moves.steps
        assert [moved.task for moved in step.moves] == ["default/c"]


async def test_an_eviction_that_is_refused_after_a_restart_is_told():
    async with MovingRig() as rig:
        rig.pods.hold, rig.pods.faults = asyncio.Event(), [BUDGET]
        await rig.carry_out(chain())
        await rig.follow()
        rig.engine.restart()
        await rig.follow()
        await rig.follow()
        assert rig.states["a"] == "leaving"
        rig.pods.hold.set()
        await rig.settle()
        await rig.follow()
        assert (rig.states["a"], rig.reasons["a"]) == ("dropped", f"its eviction was refused: {BUDGET}")
        assert rig.states["b"] == "leaving"


async def test_a_stopped_plan_does_not_go_on_after_a_restart():
    async with MovingRig() as rig:
        await rig.carry_out(chain())
        await rig.follow()
        await rig.rebalancer.stop()
        rig.engine.restart()
        await rig.left("a", "b")
        await rig.follow()
        assert rig.engine.moves.steps == []
        assert rig.states == {"a": "done", "b": "done", "c": "dropped"}


async def test_without_leadership_the_plan_is_forgotten_and_the_engine_begins_nothing():
    async with MovingRig() as rig:
        await rig.carry_out(chain())
        await rig.follow()
        rig.loop.stand_by()
        rig.rebalancer.stand_by()
        assert rig.rebalancer.progress() == {"id": "", "goal": "", "active": False, "stopped": False, "moves": []}
        assert [rig.store.pods[f"uid-{name}"].planned for name in "abc"] == [""] * 3
        await rig.follow()
        assert rig.engine.moves.steps == []
        rig.loop.lead()
        await rig.left("a", "b")
        assert rig.pods.of("evict") == ["a", "b"]
        await rig.follow()
        assert rig.engine.calls["carry_out"] == 2


async def test_a_plan_that_is_forgotten_while_it_is_sent_is_taken_back():
    async with MovingRig() as rig:
        sending = asyncio.create_task(rig.rebalancer.carry_out(chain()))
        await asyncio.sleep(0)
        rig.loop.stand_by()
        rig.rebalancer.stand_by()
        await asyncio.gather(sending)
        await rig.follow()
        assert rig.engine.moves.steps == []


# -- the task ----------------------------------------------------------------------------------------------------------


class Sleeps:
    """Ends the task after some pauses."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.left -= 1
        if not self.left:
            raise asyncio.CancelledError
        await asyncio.sleep(0)


async def test_the_task_follows_a_plan_through_failures_of_the_flow_service(caplog):
    async with MovingRig() as rig:
        await rig.carry_out(chain())
        sleeps = Sleeps(5)
        rig.rebalancer._sleep = sleeps
        rig.engine.fail["progress"] = [unavailable(), EngineError("GetProgress", "INTERNAL", "a defect")]
        with pytest.raises(asyncio.CancelledError):
            await rig.rebalancer.run()
        assert sleeps.seconds[2:] == [1.0, 1.0, 1.0]
        assert caplog.text.count("cannot follow the plan of moves") == 2
        assert rig.states == {"a": "leaving", "b": "leaving", "c": "waiting"}


async def test_without_a_plan_the_task_asks_nothing():
    async with MovingRig() as rig:
        running = asyncio.create_task(rig.rebalancer.run())
        await rig.settle()
        assert rig.engine.calls["progress"] == rig.engine.calls["carry_out"] == 0
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
