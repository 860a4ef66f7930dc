"""A replay as a sample of a benchmark: figures, lines for plots, and checks."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.harness.results import Check, Sample
from benchmarks.simulate import metrics
from benchmarks.simulate.audit import AuditedSolver
from benchmarks.simulate.baselines import BASELINES
from benchmarks.simulate.recording import Outcome
from benchmarks.simulate.replay import Progress, Settings, replay
from benchmarks.simulate.service import InProcess, Service, ThroughGrpc
from benchmarks.simulate.strict_queue import STRICT
from benchmarks.traces.form import HOUR, Trace, TraceError
from firmament_py.model.options import RESERVE_AFTER_US
from firmament_py.policy import registry
from firmament_py.policy.registry import UnknownPolicyError

MUST_HOLD = (
    "no machine is over-committed",
    "no gang is placed in part",
    "only pending tasks are placed, each once",
    "no task is placed on a removed machine",
    "every placement matches the selector of its task",
    "no task is placed after it was lost",
    "no task waits that fits on a machine",
    "no task runs on a removed machine",
    "the totals of every machine are those of its tasks",
    "the engine dropped no placements",
)
"""The checks of every replay."""


@dataclass(frozen=True, slots=True)
class Run:
    """What to replay with. scheduler: a policy, or one of BASELINES or STRICT. reserve_after_us: the wait of a gang
    after which capacity is reserved for it; None: never. Baselines do not reserve."""

    scheduler: str
    settings: Settings = field(default_factory=Settings)
    grpc: bool = False
    audit_every: int = 20
    """One in so many networks is also solved by networkx; 0: none."""
    reserve_after_us: int | None = RESERVE_AFTER_US


def schedulers() -> list[str]:
    """Names of all schedulers that can replay a trace: the registered policies and the baselines."""
    return [info.name for info in registry.available() if not info.error] + list(BASELINES)


def horizon_us(trace: Trace, hours: float | None) -> int:
    """The end of a replay: after `hours`, or, for None, when the last task of the trace could have ended."""
    if hours is None:
        return max(trace.span_us, 1)
    if hours <= 0:
        raise TraceError(f"the length must be more than 0 hours, not {hours:g}")
    return int(hours * HOUR)


def run(trace: Trace, what: Run, until_us: int, progress: Progress = lambda *_: None) -> tuple[Sample, Outcome]:
    """Replays a trace. Raises UnknownPolicyError for an unknown scheduler."""
    audit = AuditedSolver(what.audit_every) if what.audit_every else None
    service = _service(what, audit)
    try:
        outcome = replay(trace, service, until_us, what.settings, progress)
    finally:
        service.close()
    figures = metrics.summary(outcome)
    if audit is not None and audit.audits:
        figures["gap"] = audit.gap
    facts = {
        "tasks": len(trace.task_us),
        "rounds": outcome.rounds,
        "placements": outcome.placements,
        "bind_failures": outcome.bind_failures,
        "solves": outcome.solves,
        "audits": audit.audits if audit else 0,
        "contended": outcome.contended,
        **{
            f"utilisation_{name}": value
            for name, value in zip(outcome.resources, outcome.utilisation.tolist(), strict=True)
        },
    }
    checks = [Check(name, name not in outcome.violations, outcome.violations.get(name, "")) for name in MUST_HOLD]
    checks += [Check(name, False, detail) for name, detail in outcome.violations.items() if name not in MUST_HOLD]
    if "gap" in figures:
        checks.append(Check("placements have the optimal cost", figures["gap"] == 0, f"gap {figures['gap']:g}"))
    return Sample(figures, facts, checks, metrics.series_of(outcome)), outcome


def measured(outcome: Outcome) -> dict[str, float]:
    """Real times, which differ from run to run."""
    if not outcome.round_s:
        return {}
    ordered = sorted(outcome.round_s)
    return {
        "round_s": statistics.median(ordered),
        "round_p99_s": ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))],
        "rounds_s": sum(ordered),
        "solve_s": outcome.solve_s,
    }


def _service(what: Run, audit: AuditedSolver | None) -> Service:
    if make_baseline := (BASELINES | STRICT).get(what.scheduler):
        return make_baseline()
    make: Callable[[str, AuditedSolver | None, int | None], Service] = ThroughGrpc if what.grpc else InProcess
    try:
        return make(what.scheduler, audit, what.reserve_after_us)
    except UnknownPolicyError as error:
        raise UnknownPolicyError(f"{error}; or compare with {', '.join(BASELINES)}") from error
