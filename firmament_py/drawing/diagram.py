"""A network that can be read: with names, with the price of each vertex, and with as few vertices as asked for.

The price of a vertex is what one more task there would cost: its cheapest way to the sink through what the flow leaves
free, rerouting what is there. It is the dual variable of the vertex, up to a constant.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from firmament_py.drawing.network_log import RecordedNetwork
from firmament_py.drawing.outline import KINDS, Outline, outlined, shape_of
from firmament_py.flow.certificate import UNREACHED
from firmament_py.model.arrays import I64, Bools
from firmament_py.network.placement_network import VertexKind
from firmament_py.state.cluster import ClusterState

NAMES = 20
"""Names of tasks or nodes that a vertex has at most."""

CHEAPEST_SLOTS = "cheapest slots"
_GONE = "a node that is gone"


@dataclass(frozen=True, slots=True)
class Vertex:
    """count: of tasks, classes or nodes, in all vertices that it stands for. names: of tasks or nodes, the first ones.
    supply: positive at tasks, negative at the sink. price: None: no way leads on, none is known, or it stands for
    several. merged: number of vertices that it stands for."""

    kind: VertexKind
    label: str
    count: int
    names: tuple[str, ...]
    supply: int
    price: int | None
    merged: int


@dataclass(frozen=True, slots=True)
class Diagram:
    """status: Status, or CHEAPEST_SLOTS where no network was built. The arcs are those of the outline, None: only the
    size of the network is known."""

    status: str
    recorded: RecordedNetwork
    vertices: tuple[Vertex, ...]
    outline: Outline | None


class UnknownName(Exception):
    """No network of the round has a class or a node of that name; the message says so."""


def outline_of(recorded: RecordedNetwork, limit: int, class_name: str = "", node: int = -1) -> Outline | None:
    """See outlined. class_name: empty: all classes. None: the network has none of that name, or is not recorded."""
    if recorded.is_too_large:
        return None
    classes = np.flatnonzero([name == class_name for name in recorded.class_names]) if class_name else None
    if classes is not None and not len(classes):
        return None
    return outlined(shape_of(recorded.solved), limit, classes, node)


def node_position(state: ClusterState, recorded: RecordedNetwork, name: str) -> int:
    """The position of a node among those of a network, by its name; -1: it is not there, or not the same any more."""
    row = state.node_index.rows_by_name().get(name, -1)
    at = np.flatnonzero(recorded.solved.nodes == row)
    return int(at[0]) if row >= 0 and len(at) and _same(state, recorded, at[:1])[0] else -1


def class_of_task(state: ClusterState, recorded: RecordedNetwork, name: str) -> str:
    """The name of the class of a task of a network, by its name; empty: it is not there, or gone."""
    rows = state.task_rows(recorded.solved.task_uid)
    at = np.flatnonzero((state.tasks.name[rows] == name) & (rows >= 0))
    return recorded.class_names[int(recorded.solved.task_class[at[0]])] if len(at) else ""


def named(state: ClusterState, recorded: RecordedNetwork, outline: Outline | None) -> Diagram:
    """The diagram of an outline, with names as they are now."""
    status = CHEAPEST_SLOTS if recorded.solved.solution is None else recorded.solved.solution.status.value
    if outline is None:
        return Diagram(status, recorded, (), None)
    vertices = [_vertex(state, recorded, outline, k) for k in range(len(outline.vertex))]
    return Diagram(status, recorded, tuple(vertices), outline)


def _vertex(state: ClusterState, recorded: RecordedNetwork, outline: Outline, k: int) -> Vertex:
    shape, vertex, merged = outline.shape, int(outline.vertex[k]), int(outline.merged[k])
    kind, supply, price = KINDS[shape.kind[vertex]], int(shape.arcs.supply[vertex]), int(shape.price[vertex])
    if merged > 1:
        return Vertex(kind, f"{merged} more", merged, (), 0, None, merged)
    label, count = kind.value, 1
    names: tuple[str, ...] = ()
    if kind is VertexKind.TASKS:
        group = int(shape.group[vertex])
        label, count = recorded.class_names[int(shape.group_class[group])], int(shape.group_size[group])
        names = tuple(_task_names(state, recorded, int(shape.group_class[group]), int(shape.group_wait[group])))
    elif kind is VertexKind.CLASS:
        some = [recorded.class_names[c] for c in np.flatnonzero(shape.class_vertex == vertex).tolist()]
        label, count, names = some[0] if len(some) == 1 else "alike classes", len(some), tuple(some[:NAMES])
    elif kind is VertexKind.NODES:
        group = int(shape.node_group[vertex])
        members = shape.members[shape.member_start[group] : shape.member_start[group + 1]]
        count, names = len(members), tuple(_node_names(state, recorded, members[:NAMES]))
        label = names[0] if count == 1 else f"{count} nodes as {names[0]}"
    elif kind not in (VertexKind.UNSCHEDULED, VertexKind.SINK):
        label = f"{kind.value} {int(shape.ordinal[vertex])}"
    return Vertex(kind, label, count, names, supply, price if price < UNREACHED else None, merged)


def _task_names(state: ClusterState, recorded: RecordedNetwork, cls: int, wait: int) -> Iterable[str]:
    """Of the tasks of a class with that cost of waiting; those that are gone have their uids."""
    solved = recorded.solved
    uids = solved.task_uid[(solved.task_class == cls) & (solved.task_wait == wait)][:NAMES]
    rows = state.task_rows(uids)
    for uid, row in zip(uids.tolist(), rows.tolist(), strict=True):
        yield state.tasks.name[row] if row >= 0 else f"task {uid:016x}, which is gone"


def _node_names(state: ClusterState, recorded: RecordedNetwork, at: I64) -> Iterable[str]:
    """(K,) of the nodes at these positions."""
    for same, row in zip(_same(state, recorded, at).tolist(), recorded.solved.nodes[at].tolist(), strict=True):
        yield state.nodes.observed[row].name if same and row in state.nodes.observed else _GONE


def _same(state: ClusterState, recorded: RecordedNetwork, at: I64) -> Bools:
    """(K,) whether the rows of these nodes are theirs still."""
    same: Bools = state.nodes.generation[recorded.solved.nodes[at]] == recorded.node_generation[at]
    return same
