"""The domain in which a gang with a topology preempts."""

from collections.abc import Sequence

import numpy as np

from firmament_py.model.arrays import NO_ROWS, Bools
from firmament_py.placement.ledger import Ledger
from firmament_py.preemption.decision import EvictionSearch, Question
from firmament_py.preemption.whole_gangs import decide, standing
from firmament_py.snapshot.job_demand import JobDemand

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
    fewest victims, then with the fewest moves; None: it is served in none of those that are searched."""
    core, seniority = demand.core(), np.arange(len(ledger.node_of))
    found, best = None, None
    for domain in domains[:SEARCHED]:
        question = Question(core, movable, NO_ROWS, seniority, [(core, domain)])
        decision = decide(search, ledger, question, priority, _EFFORT)
        if decision is None or len(decision.tasks) < len(core):
            continue
        value = standing(decision, search, np.iinfo(np.int64).min), -len(decision.movers)
        if best is None or value > best:
            found, best = domain, value
    return found
