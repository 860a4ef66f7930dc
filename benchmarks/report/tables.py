"""Results as tables on a terminal."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from benchmarks.harness.results import CaseResult, SuiteResult
from benchmarks.harness.specs import Suite
from benchmarks.report.comparison import Comparison, Verdict
from poseidon_py.util.terminal import print_name, print_rows

_COLOUR = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.UNSURE: "yellow", Verdict.BROKEN: "red"}


def amount(value: float, unit: str) -> str:
    """A figure with its unit, to three significant digits."""
    if unit == "s":
        return f"{value:.3g} s" if value >= 1 else f"{value * 1000:.3g} ms"
    if unit == "count":
        return f"{value:,.0f}"
    if unit == "ratio":
        return f"{value:.3f}"
    return f"{value:,.3g} {unit}" if abs(value) < 1000 else f"{value:,.0f} {unit}"


def spread(values: Sequence[float], unit: str) -> tuple[str, str]:
    """The median, and the range of the samples around it, empty if they are equal."""
    middle = statistics.median(values)
    if min(values) == max(values) or not middle:
        return amount(middle, unit), ""
    return amount(middle, unit), f"{(min(values) - middle) / middle:+.0%} {(max(values) - middle) / middle:+.0%}"


def with_spread(values: Sequence[float], unit: str) -> str:
    """Median and range, for a terminal."""
    middle, apart = spread(values, unit)
    return f"{middle} [dim]{apart}[/]" if apart else middle


def show(console: Console, suite: Suite, result: SuiteResult) -> None:
    """Prints one row per case: figures, checks, target, and the figures of other systems with their ratio to ours."""
    shown = [m for m in suite.metrics if any(m.name in case.samples for case in result.cases)]
    targets, rivals = any(c.target for c in result.cases), any(c.compared_with for c in suite.cases)
    rivals_of = {case.name: case.compared_with for case in suite.cases}
    first = suite.metrics[0]
    rows = []
    for case in result.cases:
        cells = [with_spread(case.samples[m.name], m.unit) if m.name in case.samples else "" for m in shown]
        mine = case.median(first.name)
        others = [
            f"{rival.system}: {amount(rival.value, first.unit)} ({rival.value / mine:.3g}x)"
            for rival in rivals_of.get(case.name, ())
            if mine and result.options.get("scale") == 1.0
        ]
        columns = [_target(case)] * targets + ["\n".join(others)] * rivals
        rows.append([case.name, *cells, _checks(case), *columns])
    titles = [m.title for m in shown]
    header = ["case", *titles, "checks", *["target"] * targets, *["others"] * rivals]
    print_rows(console, header, rows, right=titles, title=suite.title, caption=_caption(result))
    for case in result.cases:
        for check in case.failed:
            print_name(console, case.name)
            console.print(Padding(Text(f"{check.name}: {check.detail}", style="red"), (0, 0, 0, 2), expand=False))


def show_facts(console: Console, result: SuiteResult) -> None:
    """Prints the secondary figures of the last sample of each case."""
    for case in result.cases:
        if case.facts:
            print_name(console, case.name)
            facts = ", ".join(f"{name} {_fact(value)}" for name, value in case.facts.items())
            console.print(Padding(Text(facts), (0, 0, 0, 2), expand=False))


def show_comparison(console: Console, found: Sequence[Comparison], notes: Sequence[str]) -> None:
    """Prints one row for each case and metric that two results have in common."""
    rows = []
    for one in found:
        interval = "" if one.low is None or one.high is None else f"{one.low:.3f} .. {one.high:.3f}"
        colour = _COLOUR.get(one.verdict)
        verdict = f"[{colour}]{one.verdict}[/]" if colour else str(one.verdict)
        ratio = "" if one.ratio is None else f"{one.ratio:.3f}"
        cells = (amount(one.a, one.unit), amount(one.b, one.unit), ratio, interval, verdict)
        rows.append([one.case, one.metric, *cells])
    header = ["case", "metric", "A", "B", "B / A", "95 % interval", "verdict"]
    print_rows(console, header, rows, right=header[2:6], title="B compared with A")
    for note in notes:
        console.print(f"[yellow]note:[/] {note}")


def _caption(result: SuiteResult) -> str:
    where, scale = result.environment, result.options.get("scale", 1.0)
    return (
        f"{where['cpu']}, {where['cores']} cores, Python {where['python']}, load {where['load_average'][0]}; "
        f"median of {result.options['repeat']} and range of the samples"
        f"{f'; all sizes times {scale:g}, so targets do not apply' if scale != 1.0 else ''}"
        f"{f'; {result.stopped}' if result.stopped else ''}"
    )


def _checks(case: CaseResult) -> str:
    if not case.checked:
        return ""
    return f"[red]{len(case.failed)} of {case.checked} failed[/]" if case.failed else f"[green]{case.checked} passed[/]"


def _target(case: CaseResult) -> str:
    if case.target_met is None:
        return case.target and f"[dim]{case.target}[/]"
    return f"[green]{case.target}[/]" if case.target_met else f"[red]missed: {case.target}[/]"


def _fact(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_fact(v)}" for k, v in value.items()) + ")"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
