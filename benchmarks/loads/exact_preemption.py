"""The best preemption of small loads, by an exact solver of another kind than the engine's search."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model

from benchmarks.loads.preemption import NOWHERE, PreemptionLoad, Result


def best_preemption(load: PreemptionLoad, seconds: float) -> Result | None:
    """The best standing (PreemptionLoad.standing); then the least run time is lost. Budgets hold. None: not found, or
    not proved, within so many seconds for each of these objectives."""
    model = cp_model.CpModel()
    counts = np.bincount(load.waiting, minlength=len(load.suitable)).tolist()
    sent = {
        (c, n): model.new_int_var(0, counts[c], "")
        for c, n in zip(*(column.tolist() for column in np.nonzero(load.suitable)), strict=True)
    }
    evicted = [model.new_bool_var("") for _ in load.node]
    for c, count in enumerate(counts):
        model.add(sum(x for (of, _), x in sent.items() if of == c) <= count)
    for n, free in enumerate(load.free.tolist()):
        residents = np.flatnonzero(load.node == n).tolist()
        for r, amount in enumerate(free):
            released = sum(int(load.requests[pod, r]) * evicted[pod] for pod in residents)
            used = sum(int(load.waiting_requests[c, r]) * x for (c, at), x in sent.items() if at == n)
            model.add(used <= amount + released)
        for pod in residents:
            above = [x for (c, at), x in sent.items() if at == n and load.waiting_priority[c] > load.priority[pod]]
            model.add(evicted[pod] <= sum(above))
    for b, allowed in enumerate(load.allowed.tolist()):
        model.add(sum(evicted[pod] for pod in np.flatnonzero(load.budget == b).tolist()) <= allowed)

    cost = load.costs().tolist()
    objectives = []
    for level, below in load.order():
        objectives.append(-sum(x for (c, _), x in sent.items() if load.waiting_priority[c] == level))
        objectives += [
            sum(cost[pod] * evicted[pod] for pod in np.flatnonzero(load.priority == p).tolist()) for p in below
        ]
    objectives.append(sum(run_s * evicted[pod] for pod, run_s in enumerate(load.run_s.tolist())))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    for objective in objectives:
        model.minimize(objective)
        if solver.solve(model) != cp_model.OPTIMAL:
            return None
        model.add(objective <= round(solver.objective_value))
    node_of = np.full(len(load.waiting), NOWHERE, np.int64)
    for c in range(len(counts)):
        nodes = [n for (of, n), x in sent.items() if of == c for _ in range(solver.value(x))]
        node_of[np.flatnonzero(load.waiting == c)[: len(nodes)]] = nodes
    return Result(node_of, np.array([bool(solver.value(one)) for one in evicted], np.bool_))
