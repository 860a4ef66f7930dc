"""Measures pods with device claims: through the whole path on a live server, or the bridge's part alone."""

from __future__ import annotations

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.live.perf.comparing import measure_compared
from benchmarks.loads.devices.bridge_path import PathSpec, measured
from benchmarks.loads.devices.device_objects import device_count


def measure(case: Case, options: Options) -> Sample:
    """One case; `mode` of its sizes says which kind."""
    if case.sizes["mode"] == "bridge":
        return _bridge_alone(case, options)
    return measure_compared(case.sizes, options)


def _bridge_alone(case: Case, options: Options) -> Sample:
    sizes = case.sizes
    spec = PathSpec(
        nodes=options.scaled(sizes["nodes"], 3),
        pods=options.scaled(sizes["pods"], 3),
        devices=sizes["devices"],
        kind=sizes["claim"],
        running=sizes.get("running", 0.0),
    )
    path = measured(spec)
    figures, wrong = path.figures, list(path.wrong())
    metrics = {
        "bridge_us_per_pod": figures.cpu_s / spec.pods * 1e6,
        "observe_s": figures.observe_s,
        "describe_s": figures.describe_s,
        "choose_s": figures.choose_s,
        "write_s": figures.write_s,
        "follow_s": figures.follow_s,
    }
    facts = {
        "pods": spec.pods,
        "nodes": spec.nodes,
        "allocations": path.audit.allocations,
        "pods_described": figures.pods_described,
        "nodes_described": figures.nodes_described,
    }
    claims = -(-spec.pods // 256) if spec.kind == "shared" else spec.pods
    running = round(spec.running * spec.nodes * (spec.devices // device_count(spec.kind)))
    allocated = path.audit.allocations
    return Sample(
        metrics,
        facts,
        [
            Check("devices are given as claims ask, each once, on the pod's node", not wrong, "; ".join(wrong[:3])),
            Check("every claim has devices", allocated == claims + running, f"{allocated} of {claims + running}"),
            Check("every pod is placed", figures.placed == spec.pods, f"{figures.placed} of {spec.pods}"),
        ],
    )
