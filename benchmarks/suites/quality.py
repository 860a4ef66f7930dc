"""Replays a synthetic trace in simulated time and measures the quality of the placements."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.simulate.replay import Settings
from benchmarks.simulate.running import Run, horizon_us, measured, run
from benchmarks.simulate.service import RefusedError
from benchmarks.traces.generate import generate, preset


def measure(case: Case, options: Options) -> Sample:
    """Replays one trace with one scheduler."""
    sizes = case.sizes
    hours = float(sizes["hours"])
    nodes = options.scaled(sizes["nodes"], 4)
    trace = generate(
        preset(sizes["preset"]),
        nodes,
        hours,
        options.seed,
        sizes["load"] or None,
        labels=sizes["labels"],
        link_kbps=1000 * sizes["link_mbps"] or None,
    )
    settings = Settings(gap_ms=sizes["gap_ms"], samples=sizes["samples"], expectations=sizes["expectations"])
    try:
        sample, outcome = run(trace, Run(sizes["policy"], settings), horizon_us(trace, hours))
    except RefusedError as error:
        return Sample({}, checks=[Check("the scheduler accepts all events", False, str(error))])
    # one plot per trace, with a line for each scheduler
    sample.series = [replace(line, name=f"{line.name}, {case.name.rpartition('/')[0]}") for line in sample.series]
    times = measured(outcome)
    sample.metrics["round_s"] = times.get("round_s", 0.0)
    sample.facts |= {**times, **{k: v for k, v in sample.metrics.items() if k not in times}}
    return sample
