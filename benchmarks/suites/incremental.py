"""Measures rounds on a network that is kept between them, reoptimised and certified."""

from __future__ import annotations

import resource
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.loads.quincy import QuincyLoad
from firmament_py.flow.incremental.reoptimize import Reoptimized, Reoptimizer
from firmament_py.flow.network import Status
from firmament_py.flow.solver import OrToolsSolver

_TASKS_PER_NODE = 12


def measure(case: Case, options: Options) -> Sample:
    """Solves once from scratch and once with OR-Tools alone; then rounds of churn, the last of which OR-Tools solves
    alone as well."""
    sizes = case.sizes
    nodes = options.scaled(sizes["nodes"], 10)
    _compile()
    _reset_peak()
    load = QuincyLoad(sizes["shape"], nodes, _TASKS_PER_NODE * nodes, options.seed)
    solver = OrToolsSolver()
    reoptimizer = Reoptimizer(load.network, solver)
    bare_cpu_s, bare_s, cost = _bare(load)
    began, began_cpu = perf_counter(), process_time()
    first = reoptimizer.run()
    scratch_s, scratch_cpu_s = perf_counter() - began, process_time() - began_cpu
    checks = [Check("the full solve is an optimum", first.status is Status.OPTIMAL and first.cost == cost, str(first))]

    count = max(round(sizes["churn"] * load.network.size), 1)
    wall, cpu, results = [], [], []
    added = np.zeros(0, np.int64)
    for _ in range(sizes["rounds"]):
        load.lower_stay_costs(added)
        gone, heads, costs = load.churn(count)
        began, began_cpu = perf_counter(), process_time()
        load.network.remove_tasks(gone)
        added = load.network.add_tasks(heads, costs)
        results.append(reoptimizer.run())
        wall.append(perf_counter() - began)
        cpu.append(process_time() - began_cpu)
    last_bare_cpu_s, last_bare_s, cost = _bare(load)
    gap = results[-1].cost - cost
    checks += _check_rounds(results, reoptimizer, gap)
    return Sample(
        metrics={
            "round_s": float(np.median(wall)),
            "p99_s": float(np.quantile(wall, 0.99)),
            "cpu_s": float(np.median(cpu)),
            "certificate_s": float(np.median([r.certificate_seconds for r in results])),
            "speedup": float((bare_s + last_bare_s) / 2 / np.median(wall)),
            "scratch_ratio": scratch_cpu_s / bare_cpu_s,
            "peak_gib": _peak_gib(),
        },
        facts={
            "arcs": len(load.network.flow_network()[0].tail),
            "rounds": len(wall),
            "churn": count,
            "bare_s": round(bare_s, 3),
            "bare_cpu_s": round((bare_cpu_s + last_bare_cpu_s) / 2, 3),
            "scratch_s": round(scratch_s, 3),
            "cpu_p99_s": round(float(np.quantile(cpu, 0.99)), 4),
            "searches": int(np.median([r.searches for r in results])),
            "settled": int(np.median([r.settled for r in results])),
            "repair_s": round(float(np.median([r.repair_seconds for r in results])), 5),
            "full_solves": reoptimizer.full_solves,
            "gap": gap,
        },
        checks=checks,
    )


def _check_rounds(results: list[Reoptimized], reoptimizer: Reoptimizer, gap: int) -> list[Check]:
    uncertified = sum(r.status is not Status.OPTIMAL for r in results)
    return [
        Check("each round has a certificate", not uncertified, f"{uncertified} of {len(results)} have none"),
        Check("no repair was rejected", reoptimizer.rejected == 0, f"{reoptimizer.rejected} rejected"),
        Check("the last round has the cost of a full solve", gap == 0, f"{gap} more"),
    ]


def _bare(load: QuincyLoad) -> tuple[float, float, int]:
    """CPU and wall seconds of OR-Tools alone on the current network, and the optimum."""
    network, _ = load.network.flow_network()
    began, began_cpu = perf_counter(), process_time()
    solution = OrToolsSolver().solve(network)
    return process_time() - began_cpu, perf_counter() - began, solution.cost


def _compile() -> None:
    """Runs everything once on a small network, so that compiling, or loading compiled code, is not measured."""
    load = QuincyLoad("oversubscribed", 10, 120, 0)
    reoptimizer = Reoptimizer(load.network, OrToolsSolver())
    reoptimizer.run()
    gone, heads, costs = load.churn(5)
    load.network.remove_tasks(gone)
    load.network.set_task_costs(load.network.add_tasks(heads, costs), costs)
    reoptimizer.run()


def _reset_peak() -> None:
    """Resets the kernel's peak of this process's memory, where it can, so that earlier cases do not count."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak_gib() -> float:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 2**20
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
