"""`poseidon-bench`: list, run, compare and report benchmarks, make traces and simulate.

Exit codes: 0 all checks passed, 1 a check failed (or, with --enforce, a target was missed, or B is worse than A or
failed a check), 2 wrong usage or a missing prerequisite, 130 interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from benchmarks.harness import runner, specs
from benchmarks.harness.results import CaseResult, ResultError, SuiteResult, read
from benchmarks.harness.results_file import ResultsFile, ended_cleanly
from benchmarks.harness.runner import Options
from benchmarks.report import comparison, tables
from benchmarks.report.drawing import FORMATS, DrawingError
from benchmarks.report.figures import figures
from benchmarks.report.page import labels, render, write_plots
from benchmarks.simulate.cli import simulate
from benchmarks.traces.cli import trace
from firmament_py import compile_ahead
from poseidon_py.cli.errors import Group, version_option
from poseidon_py.util.terminal import new_console, print_name, print_rows

_COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@version_option
def cli() -> None:
    """Benchmark the scheduler and its parts."""


cli.add_command(trace)
cli.add_command(simulate)


@cli.command("list")
@click.option("-v", "--verbose", is_flag=True, help="List the cases of each suite too.")
def list_(verbose: bool) -> None:
    """List the benchmark suites."""
    console = new_console(highlight=False)
    suites = [specs.load(name) for name in specs.available()]
    rows = [(suite.name, str(len(suite.cases)), suite.title) for suite in suites]
    header = ("suite", "cases", "what it measures")
    print_rows(console, header, rows, right=("cases",), prose="what it measures", box=None, pad_edge=False)
    if not verbose:
        console.print("\nCases: poseidon-bench list -v. Run a suite: poseidon-bench run SUITE --quick")
        return
    for suite in suites:
        console.print(f"\n[bold]{suite.name}[/]: {' '.join(suite.about.split())}")
        for case in suite.cases:
            print_name(console, f"  {case.name}")
            details = [f"[{', '.join(case.labels)}]"] * bool(case.labels)
            details += [f"target: {', '.join(map(str, case.targets))}"] * bool(case.targets)
            if details:
                console.print(Padding(Text("  ".join(details)), (0, 0, 0, 4), expand=False))


@cli.command()
@click.argument("suite_name", metavar="SUITE")
@click.option(
    "--case", "names", multiple=True, metavar="TEXT", help="Run only cases whose name contains TEXT. Repeatable."
)
@click.option("--quick", is_flag=True, help="Run only the short cases, once each.")
@click.option("--repeat", type=click.IntRange(1), help="Number of samples per case (default: set by the suite).")
@click.option(
    "--scale", type=click.FloatRange(0, min_open=True), default=1.0, help="Factor by which all sizes are multiplied."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random choices.")
@click.option("--nodes", type=click.IntRange(1), help="Live suites: number of nodes, instead of the case's.")
@click.option("--pods", type=click.IntRange(2), help="Live suites: number of pods, instead of the case's.")
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    help="Live suites: kubeconfig of a test cluster; the benchmark adds nodes and pods and removes them at the end.",
)
@click.option(
    "--against",
    metavar="SCHEDULER",
    help="Live suites: name of a scheduler that already runs there, to measure instead.",
)
@click.option(
    "--start",
    metavar="COMMAND",
    help="Live suites, with --against: how to start that scheduler, which does not run yet; {kubeconfig} is the file.",
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="File to write the results to."
)
@click.option("--facts", is_flag=True, help="Show secondary figures too, such as solves, arcs and percentiles.")
@click.option("--enforce", is_flag=True, help="Exit with code 1 if a target is missed.")
def run(
    suite_name: str,
    names: tuple[str, ...],
    quick: bool,
    repeat: int | None,
    scale: float,
    seed: int,
    json_file: Path | None,
    facts: bool,
    enforce: bool,
    nodes: int | None,
    pods: int | None,
    **live: str | None,
) -> None:
    """Run the cases of SUITE."""
    try:
        compile_ahead.check()
    except compile_ahead.NotCompiledError as error:
        raise click.UsageError(str(error)) from error
    try:
        suite = specs.load(suite_name)
    except specs.SpecError as error:
        raise click.UsageError(str(error)) from error
    cases = runner.choose(suite, quick, names)
    if not cases:
        raise click.UsageError(f"no case of suite {suite_name} matches; `poseidon-bench list -v` lists them")
    cases = runner.resized(cases, nodes, pods)
    extra = {name: value for name, value in live.items() if value is not None}
    for name in (*extra, *(["nodes"] if nodes else []), *(["pods"] if pods else [])):
        if name not in suite.options:
            raise click.UsageError(f"--{name} does not apply to suite {suite_name}; leave it out")
    results_file, console = ResultsFile(json_file), new_console(highlight=False)
    times = repeat or (1 if quick else suite.repeat)
    with ended_cleanly():
        result = _measure(console, suite, cases, Options(seed, scale, extra), times, results_file)
    if result.cases:
        tables.show(console, suite, result)
    if facts:
        tables.show_facts(console, result)
    sys.exit(results_file.finish(result, enforce and any(case.target_met is False for case in result.cases)))


@cli.command()
@click.argument("a", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("b", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--metric", "metrics", multiple=True, help="Compare only this metric. Repeatable.")
@click.option("--policies", nargs=2, metavar="X Y", help="Compare policy Y in B (or A, without B) with policy X in A.")
@click.option("--enforce", is_flag=True, help="Exit with code 1 if B is worse in any case or failed a check.")
def compare(a: Path, b: Path | None, metrics: tuple[str, ...], policies: tuple[str, str] | None, enforce: bool) -> None:
    """Test whether result B is better or worse than A.

    A and B are files that `run --json` wrote. Differences within the noise are neither.
    """
    if b is None and policies is None:
        raise click.UsageError("give two result files, or one file and --policies X Y")
    b = b or a
    try:
        old, new = read(a), read(b)
    except ResultError as error:
        raise click.UsageError(str(error)) from error
    if old.suite != new.suite:
        raise click.UsageError(f"{a} holds suite {old.suite}, but {b} holds {new.suite}; compare results of one suite")
    if policies is not None:
        old, new = (_under(*which) for which in zip((a, b), (old, new), policies, strict=True))
    found, notes = comparison.compare(old, new, metrics), comparison.differences(old, new)
    if not found:
        if policies is None and any("policy" in case.sizes for case in old.cases):
            notes.append("to compare two policies on the same traces, use --policies X Y")
        why = "".join(f"\n  {note}" for note in notes)
        raise click.UsageError(f"{a} and {b} have no case and metric in common{why}")
    tables.show_comparison(new_console(highlight=False), found, notes)
    sys.exit(1 if enforce and any(one.verdict in comparison.FAILS for one in found) else 0)


@cli.command()
@click.argument("files", metavar="RESULT...", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="HTML file to write; it is self-contained.",
)
@click.option(
    "--plots", type=click.Path(file_okay=False, path_type=Path), help="Directory to write each plot to as well."
)
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="svg", show_default=True, help="File format of --plots."
)
def report(files: tuple[Path, ...], out: Path, plots: Path | None, form: str) -> None:
    """Write an HTML report of results.

    RESULT is a file that `run --json` wrote. Results of the same suite are compared as well.
    """
    try:
        results = list(zip(labels(files), map(read, files), strict=True))
    except ResultError as error:
        raise click.UsageError(str(error)) from error
    console = new_console(highlight=False)
    try:
        with Progress(*_COLUMNS, console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task("drawing", total=sum(len(figures(result)) for _, result in results))
            page = render(results, lambda figure: progress.update(bar, advance=1, description=figure.title))
        out.write_text(page)
        written = write_plots(results, plots, form) if plots is not None else []
    except (DrawingError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    click.echo(f"{out}: {len(results)} results")
    if plots is not None:
        click.echo(f"{plots}: {len(written)} plots")


def _under(path: Path, result: SuiteResult, policy: str) -> SuiteResult:
    chosen = comparison.under(result, policy)
    if not chosen.cases:
        there = sorted({str(case.sizes["policy"]) for case in result.cases if "policy" in case.sizes})
        raise click.UsageError(
            f"{path} has no case of policy {policy!r}; its policies are: {', '.join(there) or 'none'}"
        )
    return chosen


def _measure(
    console: Console,
    suite: specs.Suite,
    cases: list[specs.Case],
    options: Options,
    repeat: int,
    results_file: ResultsFile,
) -> SuiteResult:
    """Runs with a progress bar on a terminal, and with one line per case elsewhere."""
    with Progress(*_COLUMNS, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(suite.name, total=len(cases) * repeat)

        def tell(case: specs.Case, done: int, _: CaseResult) -> None:
            progress.update(bar, description=case.name, completed=cases.index(case) * repeat + done)
            if not console.is_terminal and done == 0:
                click.echo(f"running {case.name} ...", err=True)

        return runner.run(suite, cases, options, repeat, tell, keep=results_file.keep)


if __name__ == "__main__":
    cli()
