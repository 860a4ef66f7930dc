"""Plans of moves <-> messages of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from firmament_py.engine.plan_execution import PlanExecution
from firmament_py.model.plan import Move, MovePlan, Step
from firmament_py.rebalance.planner import Goal, Wish
from firmament_py.service.calls.invalid_field import InvalidField
from firmament_py.state.cluster import ClusterState
from protos.gen import flow_pb2


def wish(request: flow_pb2.PlanRequest) -> Wish:
    """Raises InvalidField, PlanError."""
    known = {flow_pb2.PlanRequest.Goal.Value(goal.name): goal for goal in Goal}
    if request.goal not in known:
        raise InvalidField("goal", f"is {request.goal or 'not set'}; give {', '.join(goal.name for goal in Goal)}")
    return Wish(known[request.goal], request.moves, dict(request.shape), request.moves_per_win)


def plan_message(state: ClusterState, plan: MovePlan, seconds: float) -> flow_pb2.MovePlan:
    """state: as when the plan was made."""
    names = {node.id: node.name for node in state.nodes.observed.values()}
    return flow_pb2.MovePlan(
        steps=[_step_message(state, step, names) for step in plan.steps],
        wins=[
            flow_pb2.Win(node=names.get(win.node_id, ""), count=win.count, tasks=_task_names(state, win.uids))
            for win in plan.wins
        ],
        before=plan.before,
        after=plan.after,
        bound=plan.bound or 0,
        bounded=plan.bound is not None,
        running=plan.running,
        movable=plan.movable,
        guarded=plan.guarded,
        budgets=[flow_pb2.BudgetUse(name=use.name, moves=use.moves, allowed=use.allowed) for use in plan.budgets],
        seconds=seconds,
    )


def steps(messages: Sequence[flow_pb2.Step]) -> list[Step]:
    """Raises InvalidField."""
    return [_step(i, message) for i, message in enumerate(messages)]


def progress(execution: PlanExecution) -> flow_pb2.PlanProgress:
    return flow_pb2.PlanProgress(
        moves=[
            flow_pb2.MoveProgress(
                task_uid=each.move.uid,
                stage=each.stage.value,
                reason=each.reason,
            )
            for each in execution.progress
        ],
        active=execution.active,
    )


def _step_message(state: ClusterState, step: Step, names: dict[str, str]) -> flow_pb2.Step:
    nodes = sorted({node for _, node in step.nominated})
    return flow_pb2.Step(
        moves=[_move_message(state, move, names) for move in step.moves],
        after=step.after,
        win=step.win + 1,
        nominated=flow_pb2.Placements(
            task_uid=[uid for uid, _ in step.nominated],
            node=[nodes.index(node) for _, node in step.nominated],
            nodes=nodes,
        ),
    )


def _move_message(state: ClusterState, move: Move, names: dict[str, str]) -> flow_pb2.Move:
    [task] = _task_names(state, [move.uid])
    return flow_pb2.Move(
        task_uid=move.uid,
        task=task,
        **{"from": names[move.from_id]},
        to=names[move.to_id],
        to_id=move.to_id,
        saves=move.saves,
    )


def _task_names(state: ClusterState, uids: Iterable[int]) -> list[str]:
    rows = [state.task_row(uid) for uid in uids]
    return [str(state.tasks.name[row]) if row is not None else "" for row in rows]


def _step(position: int, message: flow_pb2.Step) -> Step:
    if not message.moves:
        raise InvalidField(f"steps[{position}].moves", "is empty; give at least one move")
    if any(other >= position for other in message.after):
        raise InvalidField(f"steps[{position}].after", "names a step that does not come before it; put that one first")
    nominated = message.nominated
    if len(nominated.node) != len(nominated.task_uid) or any(i >= len(nominated.nodes) for i in nominated.node):
        raise InvalidField(f"steps[{position}].nominated", "has columns that do not agree; see Placements")
    return Step(
        moves=tuple(Move(move.task_uid, "", move.to_id, move.saves) for move in message.moves),
        after=tuple(message.after),
        nominated=tuple((uid, nominated.nodes[i]) for uid, i in zip(nominated.task_uid, nominated.node, strict=True)),
        win=message.win - 1,
    )
