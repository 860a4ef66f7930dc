"""Which tasks wait for a better node, although they fit: those whose node costs more than the delay does.

A task waits if every node with capacity costs more than its delay. A flow can also send a task to such a node, because
others take the cheaper ones: then it is withdrawn, and the next flow tries again with what is left. So no task waits
beside a node that costs less than its delay, and none of a higher priority waits because one of a lower priority is
placed.
"""

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.network.decode import Assignment, NodeCounts
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.subproblem import Subproblem
from firmament_py.policy import DELAY_LONGEST_US, Costs
from firmament_py.policy.locality import of_groups
from firmament_py.state.gangs import NO_GANG

_NOWHERE = 2**61


def wait_for_any(ledger: Ledger, subproblem: Subproblem, costs: Costs) -> Bools:
    """(T',) for which tasks of a subproblem every node costs more than the delay."""
    if costs.delay is None:
        return np.zeros(len(subproblem.tasks), np.bool_)
    return (_least(subproblem, costs) > costs.delay) & _may_wait(ledger, subproblem)


def wait_for_others(ledger: Ledger, subproblem: Subproblem, costs: Costs, sent: Assignment) -> Bools:
    """(K,) which tasks of an assignment are sent to nodes that cost more than the delay."""
    if costs.delay is None:
        return np.zeros(len(sent.task), np.bool_)
    cost = _base(subproblem, costs)[sent.cls, sent.node]
    if costs.data is not None:
        cost = cost + costs.data.at(costs.data.of_task[sent.task], sent.node)
    return (cost > costs.delay[sent.task]) & _may_wait(ledger, subproblem)[sent.task]


def counts(sent: Assignment, nodes: int) -> NodeCounts:
    """The number of tasks of each class that an assignment sends to each of `nodes` nodes."""
    pairs, count = np.unique(sent.cls * nodes + sent.node, return_counts=True)
    return NodeCounts(*np.divmod(pairs, nodes), count)


def _may_wait(ledger: Ledger, subproblem: Subproblem) -> Bools:
    """(T',) tasks that are young, and in no gang: a gang is placed as a whole or not at all. None in a trial."""
    may_wait: Bools = ledger.snapshot.task_gang[subproblem.tasks] == NO_GANG
    may_wait &= (subproblem.view.task_age_us < DELAY_LONGEST_US) & (not ledger.trial)
    return may_wait


def _base(subproblem: Subproblem, costs: Costs) -> I64:
    """(C, N) the cost of a task on each node, its data aside."""
    return np.broadcast_to(costs.place + costs.slot[:, 0], subproblem.capacities.slots.shape)


def _least(subproblem: Subproblem, costs: Costs) -> I64:
    """(T',) what each task costs where that is least, among the nodes with capacity."""
    base = np.where(subproblem.capacities.slots > 0, _base(subproblem, costs), _NOWHERE)
    cls, data = subproblem.view.task_class, costs.data
    least: I64 = base.min(axis=1)[cls]
    if data is None:
        return least
    least += np.append(data.anywhere, 0)[data.of_task]
    in_rack = np.full((len(base), int(data.rack.max(initial=-1)) + 2), _NOWHERE)
    np.minimum.at(in_rack, (np.arange(len(base))[:, None], data.rack[None, :]), base)  # the last one: in none
    for of_set, where, cost, costs_there in (
        (data.near_set, data.near_node, data.near_cost, base),
        (data.rack_set, data.rack_id, data.rack_cost, in_rack),
    ):
        arc, task = of_groups(data.of_task, of_set, len(data.anywhere))
        np.minimum.at(least, task, cost[arc] + costs_there[cls[task], where[arc]])
    return least
