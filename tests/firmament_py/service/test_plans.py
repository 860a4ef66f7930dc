"""Plans of moves through the contract."""

import grpc
import pytest

from firmament_py.model.options import Migrating
from protos.gen import flow_pb2
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, task_class, tasks

PACK = flow_pb2.PlanRequest.PACK


@pytest.fixture
def scattered(service):
    """A task on each of two nodes; both may be moved."""
    service.configure(migrating=Migrating.NEVER, migrate_after_us=0)
    service.resync()
    service.apply(classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=4), node("b", cpu=4)])
    for uid, on in ((1, "a"), (2, "b")):
        crew = tasks([uid], 1, on=on)
        crew.movable.append(True)
        crew.job_id[:] = [uid]
        service.apply(tasks=crew)
    return service


def plan_of(service, **fields):
    request = flow_pb2.PlanRequest(**{"now_us": NOW_US, "goal": PACK, "moves": 10, **fields})
    return service.flow.PlanMoves(request)


def carry_out(service, steps, epoch=None):
    epoch = service.engine.epoch if epoch is None else epoch
    return service.flow.CarryOut(flow_pb2.CarryOutRequest(epoch=epoch, now_us=NOW_US, steps=steps))


def progress(service):
    return service.flow.GetProgress(flow_pb2.ProgressRequest(epoch=service.engine.epoch))


def test_a_plan_names_tasks_nodes_and_wins(scattered):
    plan = plan_of(scattered)
    [step], [win] = plan.steps, plan.wins
    [move] = step.moves
    assert {getattr(move, "from"), move.to} == {"a", "b"}
    assert move.to_id == f"id-{move.to}"
    assert move.task.endswith(f"-{move.task_uid}")
    assert (win.node, win.count, step.win) == (getattr(move, "from"), 1, 1)
    assert (plan.before, plan.after, plan.bound, plan.bounded) == (0, 1, 1, True)
    assert (plan.running, plan.movable, plan.guarded) == (2, 2, 0)
    assert not plan.problem


def test_a_plan_is_carried_out(scattered):
    plan = plan_of(scattered)
    [move] = plan.steps[0].moves
    reply = carry_out(scattered, plan.steps)
    assert reply.active
    assert [each.stage for each in reply.moves] == [flow_pb2.MoveProgress.WAITING]
    reply = scattered.round()
    assert list(reply.migrated.task_uid) == [move.task_uid]
    assert [reply.migrated.nodes[at] for at in reply.migrated.node] == [move.to_id]
    assert [each.stage for each in progress(scattered).moves] == [flow_pb2.MoveProgress.LEAVING]
    scattered.apply(removed_tasks=[move.task_uid])
    successor = tasks([9], 1)
    successor.job_id[:] = [move.task_uid]
    scattered.apply(tasks=successor)
    reply = scattered.round(reply.round)
    assert list(reply.placed.nodes) == [move.to_id]
    now = progress(scattered)
    assert not now.active
    assert [each.stage for each in now.moves] == [flow_pb2.MoveProgress.DONE]


def test_a_plan_is_ended_without_steps(scattered):
    carry_out(scattered, plan_of(scattered).steps)
    reply = carry_out(scattered, [])
    assert not reply.active
    assert [(each.stage, each.reason) for each in reply.moves] == [
        (flow_pb2.MoveProgress.DROPPED, "the plan was ended")
    ]


def test_a_stale_epoch_carries_nothing_out(scattered):
    reply = carry_out(scattered, plan_of(scattered).steps, epoch=5)
    assert reply.status == flow_pb2.STALE_EPOCH
    assert not progress(scattered).moves
    assert scattered.flow.GetProgress(flow_pb2.ProgressRequest(epoch=5)).status == flow_pb2.STALE_EPOCH


def test_a_plan_of_a_shape_without_nodes_has_a_problem(scattered):
    plan = plan_of(scattered, shape={"gpu": 1})
    assert plan.problem == "no node has gpu; correct --for"
    assert not plan.steps


@pytest.mark.parametrize(
    ("fields", "problem"),
    [({"goal": 0}, "goal is not set; give PLACE, PACK, SPREAD, POLICY"), ({"goal": 9}, "goal is 9; give PLACE, PACK")],
)
def test_an_unknown_goal_is_refused(scattered, fields, problem):
    with pytest.raises(grpc.RpcError) as caught:
        plan_of(scattered, **fields)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert str(caught.value.details()).startswith(problem)


def test_no_moves_are_a_problem(scattered):
    assert plan_of(scattered, moves=0).problem == "moves is 0; give 1 or more"


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (flow_pb2.Step(), "steps[0].moves is empty"),
        (flow_pb2.Step(moves=[flow_pb2.Move(task_uid=1)], after=[0]), "steps[0].after names a step"),
        (
            flow_pb2.Step(moves=[flow_pb2.Move(task_uid=1)], nominated=flow_pb2.Placements(task_uid=[1])),
            "steps[0].nominated has columns that do not agree",
        ),
    ],
)
def test_steps_that_make_no_sense_are_refused(scattered, step, problem):
    with pytest.raises(grpc.RpcError) as caught:
        carry_out(scattered, [step])
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert str(caught.value.details()).startswith(problem)
