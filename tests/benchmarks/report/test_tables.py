"""Tables in terminals of any width."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from click.testing import CliRunner
from rich.console import Console

from benchmarks.__main__ import cli
from benchmarks.harness import specs
from benchmarks.harness.results import CaseResult, Check, SuiteResult
from benchmarks.report import comparison, tables
from poseidon_py.cli.rendering.render import print_explanation
from poseidon_py.util.terminal import print_rows
from tests.benchmarks.report.test_report import WHERE

WIDTHS = (40, 60, 80, 120)


def printed(width: int, show: Callable[[Console], None]) -> str:
    out = io.StringIO()
    show(Console(width=width, file=out, highlight=False))
    return out.getvalue()


@cache
def measured(name: str, factor: float = 1.0) -> tuple[specs.Suite, SuiteResult]:
    """A result with the longest names of a suite, every metric, passed checks and a failed one."""
    suite = specs.load(name)
    suite = replace(suite, cases=tuple(sorted(suite.cases, key=lambda case: len(case.name))[-6:]))
    cases = [
        CaseResult(
            case.name,
            {},
            {metric.name: [factor, 1.25 * factor, 0.9 * factor] for metric in suite.metrics},
            checked=12,
            failed=[Check("capacity", False, "node-00000 holds too much")] * (case is suite.cases[0]),
            target="; ".join(map(str, case.targets)),
            facts={"solves": 3},
        )
        for case in suite.cases
    ]
    metrics = {m.name: {"title": m.title, "unit": m.unit, "better": m.better} for m in suite.metrics}
    return suite, SuiteResult(name, WHERE, {"repeat": 3, "scale": 1.0, "seed": 0}, metrics, cases)


@cache
def compared_with_twice_the_time(name: str) -> list[comparison.Comparison]:
    suite, result = measured(name)
    return comparison.compare(result, measured(name, 2.0)[1], [metric.name for metric in suite.metrics[:2]])


def words(text: str) -> set[str]:
    return set(text.split())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", specs.available())
def test_no_table_splits_a_name(name, width):
    suite, result = measured(name)
    names = {case.name for case in suite.cases}
    shown = printed(width, lambda console: tables.show(console, suite, result))
    assert names <= words(shown)
    titles = " ".join(metric.title for metric in suite.metrics)
    assert words(titles.replace(":", " ")) <= words(shown.replace(":", " "))
    assert names <= words(printed(width, lambda console: tables.show_facts(console, result)))
    found = compared_with_twice_the_time(name)
    compared = printed(width, lambda console: tables.show_comparison(console, found, ()))
    assert names | {one.metric for one in found} <= words(compared)
    assert {word for one in found for word in str(one.verdict).split()} <= words(compared)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_the_list_splits_no_name(width):
    ran = CliRunner().invoke(cli, ["list", "-v"], env={"COLUMNS": str(width)})
    assert ran.exit_code == 0
    suites = [specs.load(name) for name in specs.available()]
    assert {suite.name for suite in suites} | {case.name for s in suites for case in s.cases} <= words(ran.output)
    assert {word for suite in suites for word in suite.title.split()} <= words(ran.output)


def test_rows_that_fit_are_a_table_and_others_are_records():
    rows = [("one-long-name/of-a-case", "1 ms", ""), ("two", "[bold]2 ms[/]", "12 passed")]
    wide = printed(60, lambda console: print_rows(console, ("case", "round", "checks"), rows, right=("round",)))
    assert [line.split() for line in wide.splitlines() if "two" in line] == [
        ["│", "two", "│", "2", "ms", "│", "12", "passed", "│"]
    ]
    narrow = printed(30, lambda console: print_rows(console, ("case", "round", "checks"), rows, title="times"))
    assert [line.rstrip() for line in narrow.splitlines()] == [
        "times",
        "one-long-name/of-a-case",
        "  round: 1 ms",
        "two",
        "  round: 2 ms",
        "  checks: 12 passed",
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_an_explanation_splits_no_node_name(width):
    node = "ip-10-0-12-34.eu-central-1.compute.internal"
    body = {
        **dict.fromkeys(("node", "problem", "message"), ""),
        "pod": "default/p",
        "state": "waits for a node",
        "priority": 0,
        "requests": {},
        "fits_now": 0,
        "nearest": [{"node": node, "lacks": {"cpu": 500, "nvidia.com/gpu": 2}}],
        "story": [],
    }
    shown = printed(width, lambda console: print_explanation(body, console))
    assert {node, "nvidia.com/gpu"} <= words(shown)
