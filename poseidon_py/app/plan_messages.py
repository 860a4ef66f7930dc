"""Plans of moves between JSON and the messages of the contract, which names pods by task id and nodes by node id."""

from collections.abc import Collection, Iterable

from poseidon_py.app.move_plan import Budget, Goal, Move, Nomination, Plan, Step, Win, purposes, without
from poseidon_py.app.plan_query import PlanQuery
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.store import Store
from protos.gen import flow_pb2

_GOALS: dict[Goal, flow_pb2.PlanRequest.Goal] = {
    "place": flow_pb2.PlanRequest.PLACE,
    "pack": flow_pb2.PlanRequest.PACK,
    "spread": flow_pb2.PlanRequest.SPREAD,
    "policy": flow_pb2.PlanRequest.POLICY,
}


def request_of(query: PlanQuery, now_us: int) -> flow_pb2.PlanRequest:
    return flow_pb2.PlanRequest(
        goal=_GOALS[query.goal],
        moves=query.moves,
        shape=query.amounts,
        moves_per_win=query.moves_per_win,
        now_us=now_us,
    )


def plan_of(store: Store, reply: flow_pb2.MovePlan, query: PlanQuery) -> Plan:
    """The engine's plan. Pods that have gone since are left out."""
    plan = Plan(
        goal=query.goal,
        limit=query.moves,
        shape=query.shape,
        problem=reply.problem,
        before=reply.before,
        after=reply.after,
        bound=reply.bound if reply.bounded else None,
        running=reply.running,
        movable=reply.movable,
        guarded=reply.guarded,
        seconds=reply.seconds,
        wins=[Win(node=win.node, count=win.count, pods=list(win.tasks)) for win in reply.wins],
        budgets=[Budget(name=use.name, moves=use.moves, allowed=use.allowed) for use in reply.budgets],
        steps=[_step(store, step, number) for number, step in enumerate(reply.steps, start=1)],
    )
    plan = without(plan, {""})
    for _, move, why in purposes(plan):
        move.why = why
    return plan


def _step(store: Store, step: flow_pb2.Step, number: int) -> Step:
    """A pod that has gone has an empty UID."""
    moves = []
    for move in step.moves:
        known = store.pod_of_task(move.task_uid)
        uid = known.uid if known is not None else ""
        moves.append(Move(pod=move.task, uid=uid, source=getattr(move, "from"), target=move.to, saves=move.saves))
    return Step(
        step=number, moves=moves, after=[at + 1 for at in step.after], win=step.win, nominated=_nominations(store, step)
    )


def _nominations(store: Store, step: flow_pb2.Step) -> list[Nomination]:
    nodes = [store.node_with_id(node) for node in step.nominated.nodes]
    found = []
    for task, at in zip(step.nominated.task_uid, step.nominated.node, strict=True):
        known, node = store.pod_of_task(task), nodes[at]
        if known is not None and node is not None:
            found.append(Nomination(pod=known.full_name, uid=known.uid, node=node))
    return found


def messages_of(store: Store, steps: Iterable[Step], ended: Collection[str]) -> list[flow_pb2.Step]:
    """The steps for the engine, without the moves whose pods have these UIDs. All other pods and their nodes must
    exist."""
    found: list[flow_pb2.Step] = []
    position: dict[int, int] = {}
    for step in steps:
        moves = [move for move in step.moves if move.uid not in ended]
        if not moves:
            continue
        message = flow_pb2.Step(after=[position[number] for number in step.after if number in position])
        for move in moves:
            message.moves.append(_move(store, move))
        _nominate(store, step.nominated, message.nominated)
        position[step.step] = len(found)
        found.append(message)
    return found


def _move(store: Store, move: Move) -> flow_pb2.Move:
    task, node = store.pods[move.uid].task, store.id_of_node(move.target)
    source = {"from": move.source}  # a keyword of Python
    return flow_pb2.Move(task_uid=task, task=move.pod, to=move.target, to_id=node, saves=move.saves, **source)


def _nominate(store: Store, nominations: Iterable[Nomination], message: flow_pb2.Placements) -> None:
    """Pods that are not pending any more, or whose node is gone, are left out."""
    nodes: dict[str, int] = {}
    for nomination in nominations:
        known = store.pods.get(nomination.uid)
        if known is None or known.state is not PodState.WAITING or nomination.node not in store.nodes:
            continue
        message.task_uid.append(known.task)
        message.node.append(nodes.setdefault(store.id_of_node(nomination.node), len(nodes)))
    message.nodes.extend(nodes)
