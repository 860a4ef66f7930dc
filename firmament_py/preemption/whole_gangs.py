"""Evictions of whole gangs, where evicting single tasks serves fewer waiting tasks.

First the members of all gangs of lower priority may be evicted one by one, whatever their gangs need: no decision
serves more. The gangs that lose members are then evicted as a whole, and put back one after the other, the most
important first, unless fewer tasks of higher priority are served then, or more victims take their place.
"""

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS
from firmament_py.placement.ledger import Ledger
from firmament_py.preemption.decision import Decision, EvictionSearch, Question
from firmament_py.preemption.gang_victims import RunningGang, evictable_gangs
from firmament_py.preemption.precedence import Precedence
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
    if not gangs or (first is not None and _is_best(first, search.precedence, question, gangs[0].priority)):
        return first
    above = gangs[0].priority
    loose = search.decide(question, loose=_members(gangs), effort=effort * _EFFORT)
    if loose is None or standing(loose, search, above) <= standing(first, search, above):
        return first
    lost = set(state.tasks.gang[loose.victims].tolist())
    chosen: list[RunningGang] = []
    for gang in gangs:
        if gang.row in lost and (search.beyond_budgets or _within_budgets(state, [*chosen, gang])):
            chosen.append(gang)
    best = search.decide(question, condemned=_members(chosen), effort=effort * _EFFORT)
    for gang in reversed(chosen[-TRIALS:]):
        others = [other for other in chosen if other is not gang]
        trial = search.decide(question, condemned=_members(others), effort=effort * _EFFORT)
        if standing(trial, search, gang.priority) > standing(best, search, gang.priority):
            best, chosen = trial, others
    final = search.decide(question, condemned=_members(chosen), effort=effort)
    if standing(final, search, above) >= standing(best, search, above):
        best = final
    return best if standing(best, search, above) > standing(first, search, above) else first


def _within_budgets(state: ClusterState, gangs: list[RunningGang]) -> bool:
    """Whether the disruption budgets permit the eviction of these gangs."""
    allowed, counted = state.evictions_allowed(state.tasks.label_set[_members(gangs)])
    return bool((counted.sum(axis=1) <= allowed).all())


def _members(gangs: list[RunningGang]) -> I64:
    """Their rows (K,) of the task table."""
    return np.concatenate([NO_ROWS, *(gang.members for gang in gangs)])


def _is_best(decision: Decision, precedence: Precedence, question: Question, priority: int) -> bool:
    """Whether all tasks are served, and no victim is more important than a gang of this priority."""
    highest = precedence.running[decision.victims].max(initial=priority)
    return len(decision.tasks) == len(question.tasks) and bool(highest <= priority)


def standing(decision: Decision | None, search: EvictionSearch, above: int) -> tuple[list[int], list[int]]:
    """How many tasks of each priority above this one are served, from the highest, and, negative, how many of each
    priority are evicted. Greater is better."""
    if decision is None:
        return [], []
    precedence = search.precedence
    served = precedence.waiting[search.task_class[decision.tasks]]
    evicted = precedence.running[decision.victims]
    levels = -np.unique(-np.r_[precedence.waiting, precedence.running])

    def counts(priority: I64) -> I64:
        found: I64 = np.bincount(np.searchsorted(-levels, -priority), minlength=len(levels))
        return found

    return counts(served[served > above]).tolist(), (-counts(evicted)).tolist()
