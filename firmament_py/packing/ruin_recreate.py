"""Ruin and recreate: takes tasks off a few nodes and packs these anew, thousands of times, and keeps what is no worse.

Schrimpf et al., Record Breaking Optimization Results Using the Ruin and Recreate Principle, 2000; the blinks of the
insertion are those of Christiaens and Vanden Berghe, Slack Induction by String Removals, 2020. Each step takes a task
that is left, a few nodes that nearly fit it, and some or all of the tasks on them; these, then the tasks that are left,
are inserted as they come or in one of four orders, each at the node that it leaves with the least slack. A slightly
worse result is accepted now and then, less often towards the end (simulated annealing); the best of all is kept.
"""

import numpy as np

from firmament_py.model.arrays import F64, I64, U64
from firmament_py.numba_cache import compiled_in_place, inlined
from firmament_py.packing.problem import Packing, Problem, values
from firmament_py.packing.rounding import fill
from firmament_py.packing.search_math import IndexSet, above, accepted, any_with, clear, insert, reached, sort, uniform
from firmament_py.packing.search_tables import (
    Nodes,
    State,
    Step,
    Tasks,
    copy_changed,
    copy_node,
    place,
    remove,
    undo,
)

_NODES = 3
"""Largest number of nodes in one step; the least is 2. Tuned with the suite `packing`, docs/performance.md."""

_OTHERS = 8
"""Of so many classes with tasks left, at random, a step inserts some besides those that it has taken off its nodes."""

_ORDERED = 0.25
"""Share of the steps that sort tasks before they insert them. That takes time, and where far more is requested than
fits the others find more."""

_SOME = 0.3
"""The probability that a class is inserted in part at first, unless it is the chosen one."""

_BLINK = 0.1
"""The probability that a node is overlooked, at first."""

_STEP = 50
"""Effort of a step besides that of trying tasks on nodes."""

_PATIENCE = 0.5
"""The search ends when it has found nothing better for this share of its effort."""

_TEMPERATURE = 0.1
"""At the start a loss of this much of the mean value of a task is accepted with probability 1/e."""


def ruin_and_recreate(problem: Problem, packing: Packing, effort: int, target: F64, seed: int = 0) -> None:
    """Improves `packing` in place. effort: how many times a task is tried on a node, some 70 million a second.
    target (L,): values at which nothing can be gained any more. The result depends on nothing but the arguments."""
    if not packing.left.any() or not effort:
        return
    scale = problem.value.mean()
    weight = problem.weight
    tasks = Tasks(
        requests=problem.requests,
        takes=problem.slots > 0,
        value=problem.value / scale,
        level=problem.level,
        weight=weight,
        size=problem.requests @ weight,
    )
    state, best = (_state(p, values(problem, p) / scale) for p in (packing, packing.copy()))
    changed, waiting = IndexSet.of([], len(packing.free)), IndexSet.of(np.flatnonzero(packing.left), len(packing.left))
    rng = np.array([seed], np.uint64)
    _search(tasks, state, best, changed, waiting, _step(tasks, state), (target - 1e-6) / scale, effort, rng)
    fill(problem, packing)


def _state(packing: Packing, total: F64) -> State:
    return State(Nodes(packing.kinds, packing.cls, packing.number, packing.free), packing.left, total)


def _step(tasks: Tasks, state: State) -> Step:
    """An empty step."""
    classes, width = len(state.left), state.nodes.cls.shape[1]
    lists = np.zeros((2, _NODES, width), np.int64)
    before = Nodes(np.zeros(_NODES, np.int64), lists[0], lists[1], np.zeros((_NODES, len(tasks.weight)), np.int64))
    return Step(
        node=np.zeros(_NODES, np.int64),
        before=before,
        change=np.zeros(len(state.total)),
        classes=IndexSet.of([], classes),
        key=np.zeros(classes),
        spare=np.zeros(_NODES),
    )


@compiled_in_place
def _search(
    tasks: Tasks,
    state: State,
    best: State,
    changed: IndexSet,
    waiting: IndexSet,
    step: Step,
    target: F64,
    effort: int,
    rng: U64,
) -> None:
    """Makes `state` the best packing found. best: a copy; changed: no nodes; waiting: classes with tasks left."""
    spent = found = 0
    while spent < effort and spent - found < _PATIENCE * effort:
        chosen = any_with(state.left, waiting, rng)
        if chosen < 0:
            break
        spent += _STEP + _rivals(len(state.nodes.free)) * len(step.node)
        k = _choose_nodes(chosen, tasks, state.nodes.free, step.node, rng)
        if k == 0:
            continue
        _ruin(k, tasks, state, step, rng)
        candidates = _candidates(chosen, k, state.left, waiting, step, rng)
        spent += _recreate(chosen, candidates, k, tasks, state, step, rng)
        if not accepted(step.change, _TEMPERATURE * (1.0 - spent / effort), rng):
            undo(k, state, step)
            continue
        for i in range(len(step.change)):
            state.total[i] += step.change[i]
        for i in range(k):
            insert(step.node[i], changed)
        if above(state.total, best.total):
            found = spent
            copy_changed(state, best, changed)
            if reached(best.total, target):
                break
    copy_changed(best, state, changed)


@inlined
def _rivals(nodes: int) -> int:
    """Of so many nodes at random the one that lacks least is chosen."""
    return min(max(nodes // 100, 3), 20)


@inlined
def _choose_nodes(chosen: int, tasks: Tasks, free: I64, some: I64, rng: U64) -> int:
    """Fills `some` with different nodes; the first can take a task of class `chosen` if others go. Their number."""
    nodes = len(free)
    target_nodes = min(2 + int((len(some) - 1) * uniform(rng)), nodes)
    among = _rivals(nodes)
    k = 0
    for _ in range(2 * target_nodes):
        if k == target_nodes:
            break
        least, nearest = np.inf, -1
        for _ in range(among):
            n = int(nodes * uniform(rng))
            if k == 0 and not tasks.takes[chosen, n]:
                continue
            lacking = 0.0
            for r in range(len(tasks.weight)):
                lacking += max(tasks.requests[chosen, r] - free[n, r], 0) * tasks.weight[r]
            for i in range(k):
                if some[i] == n:
                    lacking = np.inf
            if lacking < least:
                least, nearest = lacking, n
        if nearest >= 0:
            some[k] = nearest
            k += 1
    return k


@inlined
def _ruin(k: int, tasks: Tasks, state: State, step: Step, rng: U64) -> None:
    """Takes all tasks, or a random share of them, off the first k nodes of a step."""
    for i in range(len(step.change)):
        step.change[i] = 0.0
    share = 1.0 if uniform(rng) < 0.5 else 0.2 + 0.6 * uniform(rng)
    for i in range(k):
        copy_node(state.nodes, step.node[i], step.before, i)
        remove(step.node[i], share, tasks, state, step, rng)


@inlined
def _candidates(chosen: int, k: int, left: I64, waiting: IndexSet, step: Step, rng: U64) -> int:
    """Lists the classes that a step inserts: those of which tasks are left that its nodes had, the chosen one, and some
    others; their number."""
    for i in range(k):
        for j in range(step.before.kinds[i]):
            c = step.before.cls[i, j]
            if left[c] > 0:
                insert(c, waiting)
                insert(c, step.classes)
    insert(chosen, step.classes)
    first = int(waiting.length[0] * uniform(rng))
    for i in range(min(waiting.length[0], _OTHERS)):
        c = waiting.members[(first + i) % waiting.length[0]]
        if left[c] > 0:
            insert(c, step.classes)
    number = step.classes.length[0]
    clear(step.classes)
    return int(number)


@inlined
def _recreate(chosen: int, candidates: int, k: int, tasks: Tasks, state: State, step: Step, rng: U64) -> int:
    """Inserts tasks of the first classes of a step: first some of the tasks of most of them, then what else fits, in
    the opposite order. How many times one was tried on a node."""
    order = step.classes.members
    if uniform(rng) < _ORDERED:
        _sort(chosen, candidates, tasks, step, rng)
    for i in range(k):
        step.spare[i] = 0.0
        for r in range(len(tasks.weight)):
            step.spare[i] += state.nodes.free[step.node[i], r] * tasks.weight[r]
    tries = further = 0
    for position in range(candidates):
        c = order[position]
        count = state.left[c]
        if c != chosen and count > 1 and uniform(rng) < _SOME:
            count = 1 + int(count * uniform(rng))
        remaining = state.left[c] - count
        tries += _insert_tasks(c, count, _BLINK, k, tasks, state, step, rng)
        if remaining > 0 and state.left[c] == remaining:  # there may be room for more
            order[further] = c
            further += 1
    for position in range(further - 1, -1, -1):
        c = order[position]
        tries += _insert_tasks(c, state.left[c], 0.0, k, tasks, state, step, rng)
    return tries


@inlined
def _sort(chosen: int, candidates: int, tasks: Tasks, step: Step, rng: U64) -> None:
    """Sorts the first classes of a step by level, then in one of four ways; in three of these the chosen is first."""
    way = int(4 * uniform(rng))
    for i in range(candidates):
        c = step.classes.members[i]
        size = tasks.size[c]
        if way == 0:
            step.key[i] = -size * (0.7 + 0.6 * uniform(rng))
        elif way == 1:
            step.key[i] = uniform(rng)
        elif way == 2:
            step.key[i] = -size / tasks.value[c] * (0.8 + 0.4 * uniform(rng))
        else:
            step.key[i] = -size
        step.key[i] += tasks.level[c] * 1e3
        if c == chosen and way != 2:
            step.key[i] = -1e3
    sort(step.classes.members, step.key, candidates)


@inlined
def _insert_tasks(c: int, count: int, blink: float, k: int, tasks: Tasks, state: State, step: Step, rng: U64) -> int:
    """Places up to so many tasks of class c on the first k nodes of a step; how many times one was tried on a node."""
    tries = 0
    while count > 0:
        i = _tightest(c, blink, k, tasks, state.nodes.free, step, rng)
        tries += k
        if i < 0:
            break
        step.spare[i] -= tasks.size[c]
        place(c, step.node[i], tasks, state, step)
        count -= 1
    return tries


@inlined
def _tightest(c: int, blink: float, k: int, tasks: Tasks, free: I64, step: Step, rng: U64) -> int:
    """Which of the first k nodes of a step a task leaves with the least slack, -1: it fits on none. Each is overlooked
    with probability `blink` if there is another."""
    overlooked = k
    if blink > 0.0:
        overlooked = int(uniform(rng) / blink)
    needed = tasks.size[c] - 1e-9
    found, least = -1, np.inf
    for i in range(k):
        slack = step.spare[i] + (1e6 if i == overlooked else 0.0)
        if slack >= least or step.spare[i] < needed:
            continue
        n = step.node[i]
        fits = True
        for r in range(len(tasks.weight)):
            if free[n, r] < tasks.requests[c, r] and tasks.requests[c, r] > 0:
                fits = False
                break
        if fits and tasks.takes[c, n]:
            found, least = i, slack
    return found
