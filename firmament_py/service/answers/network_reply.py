"""The reply to GetNetwork: the networks of a round, drawn."""

from firmament_py.drawing.diagram import Diagram, class_of_task, named, node_position, outline_of
from firmament_py.drawing.network_log import RecordedNetwork, RecordedRound
from firmament_py.engine.engine import Engine
from firmament_py.service.calls.caller import Caller
from firmament_py.service.calls.locking import locked
from firmament_py.state.cluster import ClusterState
from protos.gen import flow_pb2

VERTICES, MOST_VERTICES = 40, 1_000
"""Of each kind, unless asked for others, and at most."""


def network_reply(engine: Engine, request: flow_pb2.NetworkRequest, caller: Caller) -> flow_pb2.NetworkReply:
    """Takes the engine's lock for a moment at a time: rounds go on while networks are outlined."""
    with locked(engine, caller):
        state, recorded = engine.state, engine.networks.find(request.round)
        rounds = [_recorded_round(each) for each in engine.networks]
        asked = [_asked(state, each, request) for each in (recorded.networks if recorded is not None else ())]
    reply = flow_pb2.NetworkReply(rounds=rounds, round=recorded.number if recorded else 0)
    if recorded is None:
        reply.problem = _no_round(request.round, [each.number for each in rounds])
        return reply
    limit = min(request.limit or VERTICES, MOST_VERTICES)
    some = [
        (network, outline_of(network, limit, *part))
        for network, part in zip(recorded.networks, asked, strict=True)
        if part is not None
    ]
    if not some:
        selected = ("class", request.class_name), ("pod", request.task), ("node", request.node)
        missing = " and the ".join(f"{kind} {name!r}" for kind, name in selected if name)
        reply.problem = f"no network of round {recorded.number} has the {missing}"
        return reply
    with locked(engine, caller):
        if engine.state is not state:
            return flow_pb2.NetworkReply(problem="the state has been replaced meanwhile; ask again")
        reply.networks.extend(_drawn(named(state, network, outline)) for network, outline in some)
    return reply


def _asked(state: ClusterState, network: RecordedNetwork, request: flow_pb2.NetworkRequest) -> tuple[str, int] | None:
    """The class and the position of the node that are asked for, empty and -1 for all; None: not all of it is there.
    What a network that is too large has is not known."""
    if network.is_too_large:
        return "", -1
    cls, node = request.class_name, -1
    if request.task:
        cls = class_of_task(state, network, request.task)
        if not cls or request.class_name not in ("", cls):
            return None
    if cls and cls not in network.class_names:
        return None
    if request.node and (node := node_position(state, network, request.node)) < 0:
        return None
    return cls, node


def _recorded_round(each: RecordedRound) -> flow_pb2.RecordedRound:
    return flow_pb2.RecordedRound(
        number=each.number, started_us=each.started_us, placed=each.placed, networks=len(each.networks)
    )


def _no_round(number: int, recorded: list[int]) -> str:
    if not recorded:
        return "no round of this service has solved a network yet"
    return f"the networks of round {number} are not recorded; there are those of {', '.join(map(str, recorded))}"


def _drawn(diagram: Diagram) -> flow_pb2.DrawnNetwork:
    recorded, outline = diagram.recorded, diagram.outline
    drawn = flow_pb2.DrawnNetwork(
        status=diagram.status,
        cost=recorded.solved.cost,
        tasks=recorded.tasks,
        vertices_in_all=recorded.vertices,
        arcs_in_all=recorded.arcs,
        too_large=recorded.is_too_large,
    )
    for each in diagram.vertices:
        drawn.vertices.add(
            kind=each.kind.value,
            label=each.label,
            count=each.count,
            names=each.names,
            supply=each.supply,
            price=each.price,
            merged=each.merged,
        )
    if outline is not None:
        columns = (
            outline.tail, outline.head, outline.capacity, outline.flow,
            outline.least_cost, outline.most_cost, outline.arcs,
        )  # fmt: skip
        for tail, head, capacity, flow, least, largest, merged in zip(
            *(each.tolist() for each in columns), strict=True
        ):
            drawn.arcs.add(
                tail=tail, head=head, capacity=capacity, flow=flow, least_cost=least, most_cost=largest, merged=merged
            )
    return drawn
