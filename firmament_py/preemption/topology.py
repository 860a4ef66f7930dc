"""The domain in which a gang with a topology preempts."""

from collections.abc import Sequence

import numpy as np

from firmament_py.model.arrays import I64, NO_ROWS, Bools
from firmament_py.placement.ledger import Ledger
from firmament_py.placement.running import LATEST_US, started_us
from firmament_py.preemption.decision import EvictionSearch, Question
from firmament_py.preemption.whole_gangs import decide, standing
from firmament_py.snapshot.job_demand import JobDemand
from firmament_py.state.gangs import NO_GANG

SEARCHED = 4
"""Limit on the domains that are searched for a gang."""

_EFFORT = 0.1
"""Effort of a search that only compares domains."""


def preferred_domain(
    search: EvictionSearch,
    ledger: Ledger,
    demand: JobDemand,
    levels: Sequence[Sequence[Bools]],
    movable: Bools,
    priority: int,
) -> Bools | None:
    """The domain (N,), of those of each level of the gang's topology, the narrowest first, in which the gang preempts.
    None: there are none, or its topology is only preferred, and it is served in none. priority: residents of lower
    priority may be evicted."""
    for domains in levels[:-1]:
        found = _best_of(search, ledger, demand, domains, movable, priority)
        if found is not None:
            return found
    widest = levels[-1] if levels else ()
    if not demand.topology_required:
        return _best_of(search, ledger, demand, widest, movable, priority)
    if len(widest) <= 1:
        return next(iter(widest), None)
    found = _best_of(search, ledger, demand, widest, movable, priority)
    return widest[0] if found is None else found


def _best_of(
    search: EvictionSearch, ledger: Ledger, demand: JobDemand, domains: Sequence[Bools], movable: Bools, priority: int
) -> Bools | None:
    """The one of the domains (N,) in which the gang, if it were alone, would be served with the least important and
    fewest victims, then with the fewest moves, then with the newest victims; None: it is served in none of those that
    are searched."""
    core, seniority = demand.core(), np.arange(len(ledger.node_of))
    found, best = None, None
    for domain in domains[:SEARCHED]:
        question = Question(core, movable, NO_ROWS, seniority, [(core, domain)])
        decision = decide(search, ledger, question, priority, _EFFORT)
        if decision is None or len(decision.tasks) < len(core):
            continue
        importance = standing(decision, search, np.iinfo(np.int64).min)
        value = importance, -len(decision.movers), _starts(search, decision.victims)
        if best is None or value > best:
            found, best = domain, value
    return found


def _starts(search: EvictionSearch, victims: I64) -> list[int]:
    """When the victims (V,), rows of the task table, started, a gang as its first member: the most important ones
    first, of equal ones the oldest. Greater is better: as if the newest were evicted until the gang fits, and those put
    back that need not leave."""
    tasks = search.state.tasks
    unit = np.where(tasks.gang[victims] != NO_GANG, tasks.gang[victims], -2 - np.arange(len(victims)))
    _, of = np.unique(unit, return_inverse=True)
    shape = int(of.max(initial=-1)) + 1
    start_us, importance = np.full(shape, LATEST_US), np.full(shape, np.iinfo(np.int64).min)
    np.minimum.at(start_us, of, started_us(search.state, victims))
    np.maximum.at(importance, of, search.precedence.running[victims])
    found: list[int] = start_us[np.lexsort((start_us, -importance))].tolist()
    return found
