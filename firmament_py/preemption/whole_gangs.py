"""Evictions of whole gangs, where evicting single tasks serves fewer waiting tasks.

First the members of all gangs of lower priority may be evicted one by one, whatever their gangs need: no decision
serves more. The gangs that lose members are then evicted as a whole, and put back one after the other, the most
important first, unless fewer tasks of higher priority are served then, or more victims take their place. A gang that
can only be disrupted as a whole counts as one victim.
"""

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.placement.ledger import Ledger
from firmament_py.preemption.decision import Decision, EvictionSearch, Question
from firmament_py.preemption.gang_victims import RunningGang, disruptions, evictable_gangs
from firmament_py.state.cluster import ClusterState

TRIALS = 16
"""Limit on the gangs that a decision tries to put back."""

_EFFORT = 0.1
"""Effort of a decision that is only compared with others."""


def decide(
    search: EvictionSearch, ledger: Ledger, question: Question, priority: int, effort: float = 1.0
) -> Decision | None:
    """The best decision found for a question. Gangs whose members all have less than `priority` may be evicted. effort:
    multiplies the effort of the search."""
    state = ledger.snapshot.releases.state
    first = search.decide(question, effort=effort)
    gangs = evictable_gangs(state, search.precedence.running, priority, question.victims)
    if len(state.budgets) and not search.beyond_budgets:
        gangs = [gang for gang in gangs if _within_budgets(state, [gang])]
    if not gangs or (first is not None and _is_best(first, search, question, gangs)):
        return first
    above = gangs[0].priority
    best = first
    for shared_by in _shares(state, gangs):
        loose = search.decide(question, loose=_members(gangs), shared_by=shared_by, effort=effort * _EFFORT)
        if loose is not None and standing(loose, search, above) > standing(best, search, above):
            found = _whole(search, question, gangs, loose, effort, above)
            if _improves(found, best, search, above):
                best = found
    return best


def _improves(found: Decision | None, best: Decision | None, search: EvictionSearch, above: int) -> bool:
    """Whether a decision serves more tasks of priorities above this one, or as many with fewer disruptions, and then no
    fewer of the others."""
    if found is None or best is None:
        return found is not None
    (served, disrupted), (before, disrupted_before) = (standing(each, search, above) for each in (found, best))
    if served != before:
        return served > before
    return disrupted > disrupted_before and len(found.tasks) >= len(best.tasks)


def _shares(state: ClusterState, gangs: list[RunningGang]) -> list[I64]:
    """(T,) by how many of its gang each task shares the cost of one victim: members on its node alone, which is right
    if one node is freed, and all members. The same for all gangs if none is disrupted as a whole."""
    every, on_node = np.ones((2, state.tasks.capacity), np.int64)
    for gang in gangs:
        if gang.whole:
            every[gang.members] = len(gang.members)
            _, node, count = np.unique(state.tasks.node[gang.members], return_inverse=True, return_counts=True)
            on_node[gang.members] = count[node.reshape(-1)]
    return [on_node, every] if (on_node != every).any() else [every]


def _whole(
    search: EvictionSearch, question: Question, gangs: list[RunningGang], loose: Decision, effort: float, above: int
) -> Decision | None:
    """A decision that evicts the gangs as a whole that lose members by `loose`; None: it serves no task."""
    lost = set(search.state.tasks.gang[loose.victims].tolist())
    chosen: list[RunningGang] = []
    for gang in gangs:
        if gang.row in lost and (search.beyond_budgets or _within_budgets(search.state, [*chosen, gang])):
            chosen.append(gang)
    best = search.decide(question, condemned=_members(chosen), effort=effort * _EFFORT)
    for gang in reversed(chosen[-TRIALS:]):
        others = [other for other in chosen if other is not gang]
        trial = search.decide(question, condemned=_members(others), effort=effort * _EFFORT)
        if standing(trial, search, gang.priority) > standing(best, search, gang.priority):
            best, chosen = trial, others
    final = search.decide(question, condemned=_members(chosen), effort=effort)
    return final if standing(final, search, above) >= standing(best, search, above) else best


def _within_budgets(state: ClusterState, gangs: list[RunningGang]) -> bool:
    """Whether the disruption budgets permit the eviction of these gangs."""
    return not len(state.allowances().exceeded(state.tasks.label_set[_members(gangs)]))


def _members(gangs: list[RunningGang]) -> I64:
    """Their rows (K,) of the task table."""
    return np.concatenate([NO_ROWS, *(gang.members for gang in gangs)])


def _is_best(decision: Decision, search: EvictionSearch, question: Question, gangs: list[RunningGang]) -> bool:
    """Whether all tasks are served, no victim is more important than the least important gang, and no gang is a single
    victim in the place of several."""
    if len(decision.tasks) < len(question.tasks) or (any(gang.whole for gang in gangs) and len(decision.victims) > 1):
        return False
    least = gangs[0].priority
    return bool(search.precedence.running[decision.victims].max(initial=least) <= least)


def standing(decision: Decision | None, search: EvictionSearch, above: int) -> tuple[list[int], list[int]]:
    """How many tasks of each priority above this one are served, from the highest, and, negative, how many disruptions
    of each priority there are. Greater is better."""
    if decision is None:
        return [], []
    precedence = search.precedence
    served = precedence.waiting[search.task_class[decision.tasks]]
    evicted = precedence.running[disruptions(search.state, decision.victims)]
    levels = -np.unique(-np.r_[precedence.waiting, precedence.running])

    def counts(priority: I64) -> I64:
        found: I64 = np.bincount(np.searchsorted(-levels, -priority), minlength=len(levels))
        return found

    return counts(served[served > above]).tolist(), (-counts(evicted)).tolist()
