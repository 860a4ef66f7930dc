"""The classes of a round: those of the state, divided where selectors of tasks distinguish the labels of others, by the
nodes that tasks require, but not for tasks that have a place beforehand, and by the gangs whose domain binds them."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from firmament_py.model.arrays import I64, U64, Bools, group_starts, positions_in
from firmament_py.model.changes import ANY
from firmament_py.model.constraints import NO_PEERS, NodeDemand, Operator, PeerSelector, Requirement, Term
from firmament_py.snapshot.unreserved import unreserved
from firmament_py.state.classes import carried
from firmament_py.state.cluster import ClusterState
from firmament_py.state.gangs import NO_GANG
from firmament_py.state.tables import ANY_NODE

GANG_DOMAIN = "domain of its gang"
"""Names the further affinity to the domain that the gang of a task requires."""

UNSETTLED = -1
"""Of a task that has no place beforehand."""

_SETTLED = -2
"""In place of the required nodes of all that have one."""


def by_class(state: ClusterState, rows: I64, apart: I64 | None = None, settled: I64 | None = None) -> tuple[I64, I64]:
    """Waiting task rows (K,) reordered by class of the round, and the start of each class (C,).

    apart: (K,) tasks with different values belong to different classes. settled: (K,) see settled_tasks; None: none is.
    """
    cls = state.tasks.cls[rows]
    signature = _signatures(state, cls, state.tasks.label_set[rows])
    required = state.tasks.required_node[rows]
    if settled is not None:
        required = np.where(settled >= 0, _SETTLED, required)
    bound = bound_to_domain(state, rows)
    optional = (apart, required if (required != ANY_NODE).any() else None, bound if (bound != NO_GANG).any() else None)
    keys = (*(key for key in optional if key is not None), signature, cls)
    order = np.lexsort(keys)
    begins = np.zeros(len(cls), np.bool_)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[order[1:]] != key[order[:-1]]
    return rows[order], begins.nonzero()[0]


def _signatures(state: ClusterState, classes: I64, label_sets: I64) -> I64:
    """(K,) numbers for tasks with these class and label set rows (K,), equal if no selector distinguishes the tasks.

    Only selectors of waiting classes, and of anti-affinity and preferences of running tasks, matter.
    """
    if not state.classes.has_intertask_terms:
        return np.zeros(len(classes), np.int64)
    running = state.tasks.on_nodes
    selectors: set[PeerSelector] = set()
    for row in set(classes.tolist()):
        definition = state.classes.definition(row)
        demand, preferences = definition.peers, definition.preferences
        selectors.update(term.selector for term in (*demand.affinity, *demand.anti_affinity))
        selectors.update(term.selector for _, term in preferences.peers)
        selectors.update(spread.selector for spread in (*demand.spread, *preferences.spread))
    of_running = state.tasks.cls[running]
    for row in set(of_running[(state.classes.repels | state.classes.wishes)[of_running]].tolist()):
        selectors.update(term.selector for term in state.classes.definition(row).peers.anti_affinity)
        selectors.update(term.selector for _, term in carried(state.classes.definition(row)))
    if not selectors:
        return np.zeros(len(classes), np.int64)
    matched = [rows for s in selectors if len(rows := state.label_sets.rows_matching(s))]
    if not matched:
        return np.zeros(len(classes), np.int64)
    # one weight for all selectors that match the same rows; not by their order, which differs from process to process
    lengths = np.array([len(rows) for rows in matched])
    number = _numbers(state.label_sets.capacity)
    weight, first = np.unique(
        np.add.reduceat(number[np.concatenate(matched)], group_starts(lengths)), return_index=True
    )
    signature = np.zeros(state.label_sets.capacity, np.uint64)
    rows = np.concatenate([matched[s] for s in first.tolist()])
    np.add.at(signature, rows, np.repeat(_scattered(weight), lengths[first]))
    return np.unique(signature[label_sets], return_inverse=True)[1]


@lru_cache(maxsize=2)
def _numbers(rows: int) -> U64:
    """(rows,) random numbers, always the same."""
    return np.random.default_rng(6).integers(0, 2**63, rows, dtype=np.uint64)


def _scattered(values: U64) -> U64:
    """(K,) numbers that look random: sums of different ones of them are different, unlike sums of `values` (K,)."""
    mixed: U64 = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def settled_tasks(state: ClusterState, waiting: I64, nodes: I64, overdue_us: int | None = None) -> I64:
    """(T,) the position in node rows `nodes` (N,) at which each of the task rows `waiting` (T,) has a place beforehand,
    UNSETTLED: none. It requires that node, which has room for all that require it. No flow decides about it, since it
    has no choice: so 15,000 pods of a DaemonSet stay one class, however many nodes they require.

    Left to the flow are tasks whose node lacks room for all that require it, since the most important come first; that
    concern other tasks, or others them, by required affinity, spread or anti-affinity; members of gangs and tasks of
    queues; and those that come after others: of a lower priority than a gang, or than a task that no round has tried
    yet and that may go to any node; and of no higher priority than what was created at `overdue_us` or before, for
    which capacity may be reserved.
    """
    tasks, settled = state.tasks, np.full(len(waiting), UNSETTLED)
    required = tasks.required_node[waiting]
    if not (required >= 0).any():
        return settled
    position = positions_in(nodes, state.nodes.capacity)
    row = tasks.required_names.rows(state.node_index)[required]
    able = (row >= 0) & (tasks.gang[waiting] == NO_GANG) & (tasks.queue[waiting] == 0) & (tasks.nominated[waiting] < 0)
    at = np.where(able, position[row], UNSETTLED)
    able = at >= 0
    priority = state.classes.priority[tasks.cls[waiting]]
    able &= priority >= _first_level(state, waiting, priority, overdue_us)
    (some,) = able.nonzero()
    some = some[_unconcerned(state, waiting[some])]
    some = some[_welcome(state, tasks.cls[waiting[some]], nodes, at[some])]
    order = np.lexsort((tasks.uid[waiting[some]], tasks.created_us[waiting[some]], -priority[some], at[some]))
    some = some[order]
    some = some[_fitting(unreserved(state)[nodes], at[some], state.classes.requests[tasks.cls[waiting[some]]])]
    settled[some] = at[some]
    return settled


def _first_level(state: ClusterState, waiting: I64, priority: I64, overdue_us: int | None) -> int:
    """The least priority of tasks that come after none of those of the task rows `waiting` (T,), with these priorities
    (T,), that the order of a round has to decide about."""
    tasks, least = state.tasks, int(np.iinfo(np.int64).min)
    free, ganged = tasks.required_node[waiting] == ANY_NODE, tasks.gang[waiting] != NO_GANG
    untried = free & (tasks.awaits[waiting] == int(ANY))
    level = int(priority[untried | ganged].max(initial=least))
    if overdue_us is not None:
        old = (free & ~ganged) & (tasks.created_us[waiting] <= overdue_us)
        gangs = np.unique(tasks.gang[waiting[ganged]])
        overdue = [gang for gang in gangs.tolist() if state.gangs.definition(gang).created_us <= overdue_us]
        old |= np.isin(tasks.gang[waiting], overdue) & ganged
        level = max(level, int(priority[old].max(initial=least)) + 1 if old.any() else least)
    return level


def _unconcerned(state: ClusterState, rows: I64) -> Bools:
    """(K,) which task rows neither have required terms about other tasks nor are matched by anti-affinity of others."""
    classes, cls, label_set = state.classes, state.tasks.cls[rows], state.tasks.label_set[rows]
    alone = np.zeros(classes.capacity, np.bool_)
    for row in np.unique(cls).tolist():
        alone[row] = classes.definition(row).peers == NO_PEERS
    matched = np.zeros(state.label_sets.capacity, np.bool_)
    for row in np.flatnonzero(classes.repels & (classes.tasks > 0)).tolist():
        for term in classes.definition(row).peers.anti_affinity:
            matched[state.label_sets.rows_matching(term.selector)] = True
    return alone[cls] & ~matched[label_set]


def _welcome(state: ClusterState, cls: I64, nodes: I64, at: I64) -> Bools:
    """(K,) whether tasks of class rows (K,) may run on nodes[at] (K,) by selectors, affinity, taints, and resources
    that are offered at all."""
    welcome = np.zeros(len(cls), np.bool_)
    for row in np.unique(cls).tolist():
        if not state.classes.lacking(row):
            selected, taint = state.node_index.evaluate(state.classes.demand(row), nodes)
            (of_class,) = (cls == row).nonzero()
            welcome[of_class] = (selected & (taint < 0))[at[of_class]]
    return welcome


def _fitting(free: I64, at: I64, requests: I64) -> Bools:
    """(K,) which of the tasks at nodes `at` (K,), ascending, fit in what is free (N, R) with all before them there."""
    total = requests.cumsum(axis=0)
    starts = np.searchsorted(at, at)
    before = np.where((starts > 0)[:, None], total[starts - 1], 0)
    fits: Bools = ((total - before <= np.maximum(free[at], 0)) | (requests == 0)).all(axis=1)
    return fits


def demand_of(state: ClusterState, row: int) -> NodeDemand:
    """The demand of a task row on nodes: that of its class, the node that it requires itself, and, named GANG_DOMAIN,
    the domain of its gang that it has to join."""
    demand, required = state.classes.demand(int(state.tasks.cls[row])), int(state.tasks.required_node[row])
    if required >= 0:
        demand = demand.on_node(state.tasks.required_names.names()[required])
    gang = int(bound_to_domain(state, np.array([row]))[0])
    if gang == NO_GANG:
        return demand
    keys = state.gangs.definition(gang).domain_keys
    terms = tuple(
        Term(tuple(Requirement(key, Operator.IN, (value,)) for key, value in zip(keys, domain, strict=True)))
        for domain in _domains_of(state, keys, _placed(state, [gang]))
    )
    return replace(demand, further=(*demand.further, (GANG_DOMAIN, terms)))


def bound_to_domain(state: ClusterState, rows: I64) -> I64:
    """(K,) the gang row of each of the task rows that its gang does not lack, and that has to join the others in the
    domain that the gang requires; NO_GANG: of no other task. Those that a gang lacks are placed together, in a domain
    that their admission chooses."""
    found, of = np.full(len(rows), NO_GANG, np.int64), state.tasks.gang[rows]
    some = [g for g in np.unique(of[of != NO_GANG]).tolist() if state.gangs.definition(g).topology_required]
    if not some:
        return found
    placed = _placed(state, some)
    starts = np.searchsorted(state.tasks.gang[placed], [*some, some[-1] + 1]).tolist()
    for gang, first, end in zip(some, starts, [*starts[1:]], strict=False):
        if not lacked(state, gang, placed[first:end])[0]:
            found[of == gang] = gang
    return found


def lacked(state: ClusterState, gang: int, placed: I64) -> tuple[int, tuple[int, ...]]:
    """How many more tasks a gang row with task rows `placed` (P,) on nodes has to get, in all and of each role. It is
    one at least while none of them is in a domain that it requires: the next one decides on the domain."""
    definition = state.gangs.definition(gang)
    of_role = np.bincount(state.tasks.role[placed], minlength=len(definition.roles))
    roles = tuple(max(minimum - int(of_role[r]), 0) for r, (_, minimum) in enumerate(definition.roles))
    lacks = max(definition.minimum - len(placed), sum(roles), 0)
    undecided = definition.topology_required and not lacks and not _domains_of(state, definition.domain_keys, placed)
    return (1 if undecided else lacks), roles


def _placed(state: ClusterState, gangs: list[int]) -> I64:
    """(P,) the task rows of these gang rows, ascending, that are on nodes and do not leave, by gang."""
    tasks = state.tasks
    (placed,) = (tasks.on_nodes & ~tasks.leaving & np.isin(tasks.gang, gangs)).nonzero()
    return placed[np.argsort(tasks.gang[placed], kind="stable")]


def _domains_of(state: ClusterState, keys: tuple[str, ...], placed: I64) -> list[tuple[str, ...]]:
    """The values of labels `keys` on those nodes of task rows `placed` (P,) that have all of them, ascending."""
    observed = state.nodes.observed
    labels = [observed[row].labels for row in np.unique(state.tasks.node[placed]).tolist() if row in observed]
    return sorted({tuple(of[key] for key in keys) for of in labels if all(key in of for key in keys)})
