"""`poseidon-bench simulate`: a trace in simulated time."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from benchmarks.harness import runner, specs
from benchmarks.harness.results import Sample
from benchmarks.harness.results_file import ResultsFile, ended_cleanly
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.report import tables
from benchmarks.simulate.recording import Outcome
from benchmarks.simulate.replay import Settings
from benchmarks.simulate.running import Run, horizon_us, measured, run
from benchmarks.simulate.service import RefusedError
from benchmarks.traces import files, fitting
from benchmarks.traces.cli import preset_options, tell
from benchmarks.traces.form import HOUR, SECOND, Trace, TraceError
from benchmarks.traces.generate import generate, preset
from benchmarks.traces.presets import PRESETS
from firmament_py.cli.durations import parse_after
from firmament_py.model.options import RESERVE_AFTER_US
from firmament_py.policy.registry import DEFAULT_POLICY, UnknownPolicyError
from poseidon_py.util.terminal import new_console

SUITE = "simulate"


@click.command()
@click.option("--trace", "path", type=click.Path(path_type=Path), help="Trace to replay: a file or a folder.")
@click.option(
    "--preset", "name", metavar="NAME", help=f"Generate the trace to replay from a preset: {', '.join(PRESETS)}."
)
@click.option("--nodes", type=click.IntRange(1), help="With --preset: number of machines.  [default: 100]")
@click.option(
    "--hours", type=click.FloatRange(0, min_open=True), help="Simulated hours (default: 1, or the whole trace)."
)
@click.option(
    "--policy",
    default=DEFAULT_POLICY,
    show_default=True,
    help="Cost policy, or one of the baselines first-fit and least-allocated.",
)
@preset_options
@click.option(
    "--round-ms",
    type=click.FloatRange(0, min_open=True),
    default=100.0,
    show_default=True,
    help="Simulated milliseconds that a round takes.",
)
@click.option("--measured", "as_measured", is_flag=True, help="Use the real duration of each round; results then vary.")
@click.option(
    "--bind-ms",
    type=click.FloatRange(0),
    default=50.0,
    show_default=True,
    help="Milliseconds from the end of a round to its binds.",
)
@click.option(
    "--gap-ms",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Minimum milliseconds from the start of a round to the next.",
)
@click.option("--expectations", is_flag=True, help="Jobs declare how long their tasks run.")
@click.option(
    "--reserve-after",
    default=f"{RESERVE_AFTER_US // SECOND}",
    show_default=True,
    metavar="SECONDS",
    help="Seconds after which capacity is reserved for a pending gang or task, or `never`.",
)
@click.option("--grpc", is_flag=True, help="Call the engine over gRPC, as the bridge does.")
@click.option(
    "--audit",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Solve every N-th network again with networkx; 0 disables this.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of samples; with --preset, each uses a trace of the next seed.",
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="File to write the result to."
)
@click.option("--facts", is_flag=True, help="Show secondary figures too.")
def simulate(
    path: Path | None,
    name: str | None,
    nodes: int | None,
    hours: float | None,
    policy: str,
    seed: int,
    load: float | None,
    labels: bool,
    round_ms: float,
    as_measured: bool,
    bind_ms: float,
    gap_ms: float,
    expectations: bool,
    reserve_after: str,
    grpc: bool,
    audit: int,
    repeat: int,
    json_file: Path | None,
    facts: bool,
) -> None:
    """Replay a trace through the scheduler in simulated time.

    The result depends on the trace, the seed and the options only, except for its `environment`. The exit code is 1
    if the judge finds an illegal placement.
    """
    if (path is None) == (name is None):
        raise click.UsageError("give one of --trace PATH and --preset NAME")
    if path is not None and (nodes is not None or load is not None or labels):
        raise click.UsageError(
            "--nodes, --load and --labels apply to generated traces; use them with --preset, not with --trace"
        )
    if path is not None and repeat > 1 and not as_measured:
        raise click.UsageError("--repeat needs --preset or --measured: every replay of a file gives the same figures")
    try:
        reserve_after_us = parse_after(reserve_after)
    except ValueError as error:
        raise click.UsageError(f"--reserve-after {error}") from error
    results_file, console = ResultsFile(json_file), new_console(highlight=False)
    settings = Settings(None if as_measured else round_ms, bind_ms, gap_ms, expectations=expectations)
    suite = replace(specs.load("quality"), name=SUITE, virtual=path is None or not as_measured)
    began, times = time.perf_counter(), dict[str, float]()
    try:
        first, hours = _trace(path, name, nodes or 100, hours, seed, load, labels)
        tell(fitting.notes(first))
        until = horizon_us(first, hours)

        def measure(case: Case, options: Options) -> Sample:
            trace = first
            if name is not None and options.seed != seed:
                trace = generate(preset(name), nodes or 100, hours or 1.0, options.seed, load, labels=labels)
                tell(fitting.notes(trace))
            sample, outcome = _with_progress(
                console, trace, Run(policy, settings, grpc, audit, reserve_after_us), until
            )
            times.update(measured(outcome))
            return sample

        sizes = {"trace": first.name, "policy": policy, "nodes": len(first.machines), "hours": until / HOUR}
        case = Case(f"{first.name}/{policy}", sizes)
        options = Options(seed, extra={"load": load, **asdict(settings), "reserve_after": reserve_after, "grpc": grpc})
        with ended_cleanly():
            result = runner.run(suite, [case], options, repeat, measure=measure, keep=results_file.keep)
    except (TraceError, UnknownPolicyError) as error:
        raise click.UsageError(str(error)) from error
    except RefusedError as error:
        raise click.ClickException(f"the scheduler rejected an event of the replay: {error}") from error
    result.environment |= {"wall_s": round(time.perf_counter() - began, 3), **times}
    there = {name for one in result.cases for name in one.samples}
    result.metrics = {name: about for name, about in result.metrics.items() if name in there}
    if result.cases:
        tables.show(console, suite, result)
    if facts:
        tables.show_facts(console, result)
        console.print(", ".join(f"{k} {v:.4g}" for k, v in times.items()))
    sys.exit(results_file.finish(result))


def _trace(
    path: Path | None, name: str | None, nodes: int, hours: float | None, seed: int, load: float | None, labels: bool
) -> tuple[Trace, float | None]:
    """What to replay, and for how many hours; None: all of it."""
    if name is not None:
        hours = hours or 1.0
        return generate(preset(name), nodes, hours, seed, load, labels=labels), hours
    assert path is not None
    trace, notes = files.read(path, None if hours is None else int(hours * HOUR))
    tell(notes)
    return trace, hours


def _with_progress(console: Console, trace: Trace, what: Run, until: int) -> tuple[Sample, Outcome]:
    """Runs with a progress bar where there is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(f"{trace.name}, {what.scheduler}", total=until)
        return run(trace, what, until, lambda now, _: progress.update(bar, completed=now))
