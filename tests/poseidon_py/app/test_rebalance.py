"""A plan of moves from the request to the end of its moves, with fakes of the engine and the API server."""

import asyncio
from typing import Any

import pytest

from poseidon_py.app.move_plan import Nomination, Step
from poseidon_py.app.plan_query import plan_query
from poseidon_py.app.rebalance import RebalanceError
from poseidon_py.feed.client import EngineError
from protos.gen import flow_pb2
from tests.poseidon_py.fakes import unavailable
from tests.poseidon_py.moving_rig import BUDGET, MovingRig, chain, move, plan_of

# -- plans -------------------------------------------------------------------------------------------------------------


def message() -> flow_pb2.MovePlan:
    """Task ids are set by the test."""
    plan = flow_pb2.MovePlan(before=1, after=2, bound=3, bounded=True, running=9, movable=3, guarded=1, seconds=0.5)
    plan.wins.add(node="n", count=1)
    plan.budgets.add(name="default/b", moves=2, allowed=1)
    return plan


def engine_move(task: int, name: str) -> flow_pb2.Move:
    fields: Any = {"from": "n", "to": "m", "to_id": "-"}
    return flow_pb2.Move(task_uid=task, task=f"default/{name}", **fields)


async def test_a_plan_names_pods_by_name_and_uid_and_nodes_by_name():
    async with MovingRig() as rig:
        rig.pod("w", cpu="100")  # it fits nowhere
        await rig.settle()
        task = {name: rig.store.pods[f"uid-{name}"].task for name in "abcw"}
        plan = rig.engine.plan = message()
        for name, after in (("a", []), ("c", [0])):
            plan.steps.add(moves=[engine_move(task[name], name)], after=after, win=len(after))
        plan.steps[1].nominated.CopyFrom(
            flow_pb2.Placements(task_uid=[task["w"]], node=[0], nodes=[rig.store.id_of_node("n")])
        )
        query = plan_query({"goal": "pack", "moves": "7", "for": "cpu=2", "moves-per-win": "3"})
        found = await rig.rebalancer.plan(query)
        (request,) = rig.engine.plan_requests
        assert (request.goal, request.moves, request.moves_per_win) == (flow_pb2.PlanRequest.PACK, 7, 3)
        assert (dict(request.shape), request.now_us) == ({"cpu": 2000, "pods": 1}, rig.now_us)
        first, second = found.steps
        assert (first.step, first.after, first.win) == (1, [], 0)
        assert (second.step, second.after, second.win) == (2, [1], 1)
        (only,) = second.moves
        assert (only.pod, only.uid, only.source, only.target) == ("default/c", "uid-c", "n", "m")
        assert only.why == "1 more of cpu=2 fits on n"
        assert second.nominated == [Nomination(pod="default/w", uid="uid-w", node="n")]
        assert (found.limit, found.shape, found.bound, found.running, found.movable, found.guarded) == (
            7,
            "cpu=2",
            3,
            9,
            3,
            1,
        )
        assert (found.budgets[0].name, found.budgets[0].moves, found.budgets[0].allowed) == ("default/b", 2, 1)


async def test_pods_that_have_gone_since_are_left_out():
    async with MovingRig() as rig:
        plan = rig.engine.plan = message()
        plan.steps.add(moves=[flow_pb2.Move(task_uid=12345, task="default/gone", to="m")])
        task = rig.store.pods["uid-a"].task
        plan.steps.add(moves=[engine_move(task, "a")], after=[0])
        found = await rig.rebalancer.plan(plan_query({"goal": "pack"}))
        assert [(step.step, step.after) for step in found.steps] == [(2, [])]
        assert found.bound == 3


async def test_an_unknown_bound_is_none():
    async with MovingRig() as rig:
        rig.engine.plan = flow_pb2.MovePlan(bound=3)
        assert (await rig.rebalancer.plan(plan_query({}))).bound is None


async def test_while_the_flow_service_is_away_there_is_no_plan():
    async with MovingRig() as rig:
        rig.session.lost()
        with pytest.raises(RebalanceError, match="not synchronised") as caught:
            await rig.rebalancer.plan(plan_query({}))
        assert caught.value.status == 503


async def test_one_plan_at_a_time_is_computed():
    async with MovingRig() as rig:
        answer = asyncio.Event()

        async def slow(request: flow_pb2.PlanRequest) -> flow_pb2.MovePlan:
            await answer.wait()
            return flow_pb2.MovePlan()

        rig.engine.plan_moves = slow
        first = asyncio.create_task(rig.rebalancer.plan(plan_query({})))
        await rig.settle()
        with pytest.raises(RebalanceError, match="another plan is being computed"):
            await rig.rebalancer.plan(plan_query({}))
        rig.pod("later")  # meanwhile changes and rounds go on
        await rig.settle()
        assert "later" in rig.bound
        answer.set()
        assert (await first).steps == []


# -- a plan that is carried out ----------------------------------------------------------------------------------------


async def test_the_steps_are_evicted_in_order_for_the_reasons_of_the_plan(caplog):
    caplog.set_level("INFO")
    async with MovingRig() as rig:
        started = await rig.carry_out(chain())
        assert (started["id"], started["goal"], started["active"], started["stopped"]) == ("x", "pack", True, False)
        assert await rig.follow() == {"a": "leaving", "b": "leaving", "c": "waiting"}
        assert rig.pods.of("evict") == ["a", "b"]
        assert rig.reports.migrations == [("a", "n", "m"), ("b", "n", "m")]
        assert "evicted default/a from n for m: it makes room for other moves of the plan" in caplog.text
        await rig.left("a", "b")
        assert await rig.follow() == {"a": "done", "b": "done", "c": "leaving"}
        assert "evicted default/c from n for m: the plan empties n" in caplog.text
        assert rig.rebalancer.summary() == {
            "goal": "pack",
            "stopped": False,
            "moves": dict.fromkeys(("waiting", "awaited", "elsewhere", "dropped", "gone"), 0)
            | {"leaving": 1, "done": 2},
        }
        await rig.left("c")
        assert await rig.follow() == dict.fromkeys("abc", "done")
        assert not rig.rebalancer.progress()["active"]
        assert rig.rebalancer.summary() is None
        assert "the plan of moves has ended: 3 done" in caplog.text


async def test_the_engine_gets_task_ids_and_node_ids_and_the_clock():
    async with MovingRig() as rig:
        rig.pod("w", cpu="100")
        await rig.settle()
        plan = chain()
        plan.steps[1].nominated = [
            Nomination(pod="default/w", uid="uid-w", node="n"),
            Nomination(pod="default/gone", uid="uid-gone", node="n"),
            Nomination(pod="default/w", uid="uid-w", node="gone"),
            Nomination(pod="default/a", uid="uid-a", node="n"),
        ]
        await rig.carry_out(plan)
        first, second = rig.engine.moves.steps
        (moved,) = second.moves
        known = rig.store.pods["uid-c"]
        assert (moved.task_uid, moved.task, getattr(moved, "from")) == (known.task, "default/c", "n")
        assert (moved.to, moved.to_id) == ("m", rig.store.id_of_node("m"))
        assert (list(first.after), list(second.after)) == ([], [0])
        nominated = flow_pb2.Placements(
            task_uid=[rig.store.pods["uid-w"].task], node=[0], nodes=[rig.store.id_of_node("n")]
        )
        assert second.nominated == nominated


async def test_the_same_plan_again_changes_nothing_and_another_one_is_refused():
    async with MovingRig() as rig:
        await rig.carry_out(chain())
        assert (await rig.carry_out(chain()))["id"] == "x"
        assert rig.engine.calls["carry_out"] == 1
        with pytest.raises(RebalanceError, match="another plan is being carried out") as caught:
            await rig.carry_out(plan_of(Step(step=1, moves=[move("c")]), ident="y"))
        assert caught.value.status == 409
        await rig.follow()
        await rig.left("a", "b")
        await rig.follow()
        await rig.left("c")
        await rig.follow()
        assert (await rig.carry_out(plan_of(ident="y")))["id"] == "y"


async def test_only_the_leader_carries_out_and_stops():
    async with MovingRig(leads=False) as rig:
        for request in (rig.rebalancer.carry_out(chain()), rig.rebalancer.stop()):
            with pytest.raises(RebalanceError, match="this replica is not the leader") as caught:
                await request
            assert caught.value.status == 503
        assert rig.engine.calls["carry_out"] == 0


async def test_pods_and_nodes_that_do_not_exist_are_told_at_once():
    async with MovingRig() as rig:
        await rig.left("a")
        plan = plan_of(Step(step=1, moves=[move("a"), move("b", "gone")]), Step(step=2, moves=[move("c")], after=[1]))
        await rig.carry_out(plan)
        assert rig.states == {"a": "gone", "b": "dropped", "c": "waiting"}
        assert (rig.reasons["a"], rig.reasons["b"]) == ("it had gone before", "there is no node gone")
        (step,) = rig.engine.moves.steps
        assert list(step.after) == []
        assert [rig.store.pods[f"uid-{name}"].planned != "" for name in "bc"] == [False, True]


async def test_a_plan_without_moves_has_ended():
    async with MovingRig() as rig:
        assert not (await rig.carry_out(plan_of()))["active"]
        assert rig.engine.calls["carry_out"] == 0


async def test_a_pod_that_somebody_else_deletes():
    async with MovingRig() as rig:
        await rig.carry_out(chain())
        await rig.left("c")
        assert await rig.follow() == {"a": "leaving", "b": "leaving", "c": "dropped"}
        assert rig.reasons["c"] == "it has ended"


async def test_a_budget_that_refuses_is_told_and_the_pod_stays():
    async with MovingRig() as rig:
        rig.pods.faults = [BUDGET]
        await rig.carry_out(chain())
        await rig.follow()
        assert rig.states == {"a": "dropped", "b": "leaving", "c": "waiting"}
        assert rig.reasons["a"] == f"its eviction was refused: {BUDGET}"
        known = rig.store.pods["uid-a"]
        assert (known.planned, known.migrating, known.migration_refused) == ("", False, True)


async def test_the_flow_service_does_not_take_the_plan():
    async with MovingRig() as rig:
        rig.engine.fail["carry_out"] = [EngineError("CarryOut", "INTERNAL", "a defect")]
        with pytest.raises(EngineError):
            await rig.carry_out(chain())
        assert rig.rebalancer.progress()["id"] == ""
        assert rig.store.pods["uid-a"].planned == ""
        assert (await rig.carry_out(chain()))["active"]


async def test_a_plan_whose_answer_was_lost_is_taken_back():
    """The caller is told that it failed, so nothing of it may begin later."""
    async with MovingRig() as rig:
        rig.engine.lose["carry_out"] = [unavailable()]
        with pytest.raises(EngineError):
            await rig.rebalancer.carry_out(chain())
        assert len(rig.engine.moves.steps) == 2
        await rig.follow()
        assert rig.engine.moves.steps == []
        rig.pod("later")
        await rig.settle()
        assert rig.pods.of("evict") == []


async def test_without_a_flow_service_nothing_is_carried_out():
    async with MovingRig() as rig:
        rig.engine.fail["hello"] = [unavailable()] * 1000
        rig.session.lost()
        with pytest.raises(RebalanceError, match="not synchronised"):
            await rig.rebalancer.carry_out(chain())
        assert rig.rebalancer.progress()["id"] == ""
        rig.engine.fail["hello"].clear()
        await rig.settle()
        assert rig.engine.calls["carry_out"] == 0


# -- stopping ----------------------------------------------------------------------------------------------------------


async def test_a_plan_that_is_stopped_begins_no_further_step():
    async with MovingRig() as rig:
        await rig.carry_out(chain())
        await rig.follow()
        progress = await rig.rebalancer.stop()
        assert (progress["stopped"], progress["active"]) == (True, True)
        assert rig.states == {"a": "leaving", "b": "leaving", "c": "dropped"}
        assert rig.reasons["c"] == "the plan was ended"
        await rig.left("a", "b")
        assert await rig.follow() == {"a": "done", "b": "done", "c": "dropped"}
        assert rig.pods.of("evict") == ["a", "b"]


async def test_there_may_be_nothing_to_stop():
    async with MovingRig() as rig:
        assert not (await rig.rebalancer.stop())["active"]
        assert rig.engine.calls["carry_out"] == 0
