"""The arrays of the search for a packing, and how tasks come and go in them. Compiled."""

from typing import NamedTuple

from firmament_py.model.arrays import F64, I64, U64, Bools
from firmament_py.numba_cache import inlined
from firmament_py.packing.search_math import IndexSet, clear, copy, uniform


class Tasks(NamedTuple):
    """C classes, N nodes, R resources. requests (C, R) of one task; takes (C, N): whether a node can take one if it has
    no other; value, level (C,), see Problem; weight (R,) of a unit; size (C,): what one task requests, weighted."""

    requests: I64
    takes: Bools
    value: F64
    level: I64
    weight: F64
    size: F64


class Nodes(NamedTuple):
    """What some nodes have, see Packing."""

    kinds: I64
    cls: I64
    number: I64
    free: I64


class State(NamedTuple):
    """A packing: its nodes; left (C,): tasks of each class that are on none; total (L,): value of the others, by
    level."""

    nodes: Nodes
    left: I64
    total: F64


class Step(NamedTuple):
    """One step: node (K,), of which the first few are used; before: what these had; change (L,): of the values.
    classes: of which tasks are inserted, key (C,): by what they are sorted; spare (K,): what is free on each node,
    weighted."""

    node: I64
    before: Nodes
    change: F64
    classes: IndexSet
    key: F64
    spare: F64


@inlined
def add(c: int, n: int, tasks: int, kinds: I64, cls: I64, number: I64) -> None:
    """Counts so many more tasks of class c on node n."""
    for j in range(kinds[n]):
        if cls[n, j] == c:
            number[n, j] += tasks
            return
    cls[n, kinds[n]], number[n, kinds[n]] = c, tasks
    kinds[n] += 1


@inlined
def place(c: int, n: int, tasks: Tasks, state: State, step: Step) -> None:
    """Places one task of class c on node n."""
    add(c, n, 1, state.nodes.kinds, state.nodes.cls, state.nodes.number)
    state.left[c] -= 1
    step.change[tasks.level[c]] += tasks.value[c]
    for r in range(len(tasks.weight)):
        state.nodes.free[n, r] -= tasks.requests[c, r]


@inlined
def remove(n: int, share: float, tasks: Tasks, state: State, step: Step, rng: U64) -> None:
    """Takes a share of the tasks of each class off node n, rounded at random."""
    nodes, remaining = state.nodes, 0
    for j in range(nodes.kinds[n]):
        c, count = nodes.cls[n, j], nodes.number[n, j]
        gone = min(int(count * share + uniform(rng)), count)
        state.left[c] += gone
        step.change[tasks.level[c]] -= gone * tasks.value[c]
        for r in range(len(tasks.weight)):
            nodes.free[n, r] += gone * tasks.requests[c, r]
        if gone < count:
            nodes.cls[n, remaining], nodes.number[n, remaining] = c, count - gone
            remaining += 1
    nodes.kinds[n] = remaining


@inlined
def undo(k: int, state: State, step: Step) -> None:
    """Restores the first k nodes of a step."""
    nodes = state.nodes
    for i in range(k):
        n = step.node[i]
        for j in range(nodes.kinds[n]):
            state.left[nodes.cls[n, j]] += nodes.number[n, j]
        copy_node(step.before, i, nodes, n)
        for j in range(nodes.kinds[n]):
            state.left[nodes.cls[n, j]] -= nodes.number[n, j]


@inlined
def copy_node(source: Nodes, n: int, target: Nodes, m: int) -> None:
    """Gives node m of the target what node n of the source has."""
    target.kinds[m] = source.kinds[n]
    for j in range(source.kinds[n]):
        target.cls[m, j], target.number[m, j] = source.cls[n, j], source.number[n, j]
    for r in range(source.free.shape[1]):
        target.free[m, r] = source.free[n, r]


@inlined
def copy_changed(source: State, target: State, changed: IndexSet) -> None:
    """Makes the target equal to the source; `changed`: the nodes that may differ, none afterwards."""
    copy(source.left, target.left)
    copy(source.total, target.total)
    for i in range(changed.length[0]):
        copy_node(source.nodes, changed.members[i], target.nodes, changed.members[i])
    clear(changed)
