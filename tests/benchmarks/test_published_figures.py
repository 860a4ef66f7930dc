"""Published figures that follow from the seed are those that the named commands print."""

import shutil

import pytest

from benchmarks.harness import specs
from tests.benchmarks.published_figures import TABLES, measured, published, rewrite, row
from tests.effort import THOROUGH
from tests.paths import DOCS

CASES = sorted({(table.case, scheduler) for table in TABLES for scheduler in published(table)})


@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="minutes; in the thorough profile")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("case", "scheduler"), CASES)
def test_figures_are_those_that_the_command_prints(case, scheduler):
    """If a change of the engine was meant to change them: `make figures` writes the new ones."""
    figures = measured(case, scheduler)
    for table in TABLES:
        if table.case == case and scheduler in (rows := published(table)):
            assert rows[scheduler] == row(table, scheduler, figures), f"docs/{table.file}, `make figures`"


def test_the_same_figures_are_in_both_tables():
    """Of `--case effects`: each column of docs/policies.md is one of docs/benchmarks.md."""
    of_policies, of_benchmarks = (published(table) for table in TABLES[:2])
    for policy, line in of_policies.items():
        cells = [cell.strip() for cell in line.split("|")[2:-1]]
        others = [cell.strip() for cell in of_benchmarks[policy].split("|")[2:-1]]
        assert cells == [others[at] for at in (0, 1, 3, 4, 5)]


def test_every_row_is_a_case_and_every_policy_has_a_row():
    cases = {case.name for case in specs.load("quality").cases}
    assert {f"{case}/{scheduler}" for case, scheduler in CASES} <= cases
    policies = {name.rpartition("/")[2] for name in cases if name.startswith("effects/")}
    assert set(published(TABLES[1])) == policies


def test_tables_are_rewritten_in_place(tmp_path):
    """Only the figures change: what a row is called, and all other lines, stay."""
    for name in {table.file for table in TABLES}:
        shutil.copy(DOCS / name, tmp_path / name)
    shares = ("spread", "bytes_moved", "utilisation_contested")
    numbers = ("link_use_p99", "link_use_max", "interference", "nodes_used", "job_wait_s", "slowdown", "waiting_tasks")
    values = dict.fromkeys(shares, 0.25) | dict.fromkeys(numbers, 1234.5)
    rewrite(tmp_path, lambda case, scheduler: values | ({"gang_wait_s": 7.0} if "google" not in case else {}))
    assert published(TABLES[0], tmp_path)["trivial"] == "| `trivial` | 25 % | 1,234.50 | 25 % | 1,234 | 1,234 |"
    assert published(TABLES[2], tmp_path)["trivial"] == "| trivial | 25.0 % | 1,234 s |  | 1,234.5 | 25 % | 1,234 |"
    for name in {table.file for table in TABLES}:
        before, after = ((folder / name).read_text().splitlines() for folder in (DOCS, tmp_path))
        assert len(before) == len(after)
        rows = {line for table in TABLES if table.file == name for line in published(table).values()}
        assert {old for old, new in zip(before, after, strict=True) if old != new} <= rows
