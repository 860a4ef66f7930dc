"""The tables of the documentation whose figures follow from the seed, and the commands that print them.

    python -m tests.benchmarks.published_figures        # measures all again and rewrites the tables

A row is a scheduler; a table, or the part of one below a row in bold, is a case of `poseidon-bench run quality`.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import specs
from benchmarks.harness.runner import Options, measure_of
from tests.paths import DOCS

Figures = Mapping[str, float]
Cell = Callable[[Figures], str]


def _share(name: str, digits: int = 0) -> Cell:
    return lambda figures: f"{figures[name]:.{digits}%}".replace("%", " %")


def _number(name: str, digits: int = 0) -> Cell:
    return lambda figures: f"{figures[name]:,.{digits}f}"


def _seconds(name: str, digits: int = 0) -> Cell:
    return lambda figures: f"{figures[name]:,.{digits}f} s" if name in figures else ""


class Table(NamedTuple):
    """One table, or a part of it."""

    file: str
    begins: str
    """The line above its rows."""
    case: str
    """The case of the suite, without the scheduler."""
    columns: tuple[Cell, ...]


_RULE = "| --- | --- | --- | --- | --- | --- | --- | --- |"
_OVER = (
    _share("utilisation_contested", 1),
    _seconds("job_wait_s"),
    _seconds("gang_wait_s"),
    _number("slowdown", 1),
    _share("spread"),
    _number("waiting_tasks"),
)
TABLES = (
    Table(
        "policies.md",
        "| --- | --- | --- | --- | --- | --- |",
        "effects/500-nodes",
        (
            _share("spread"),
            _number("link_use_p99", 2),
            _share("bytes_moved"),
            _number("interference"),
            _number("nodes_used"),
        ),
    ),
    Table(
        "benchmarks.md",
        f"| | spread | link p99 | fullest link | bytes moved | interference | nodes used | job wait |\n{_RULE}",
        "effects/500-nodes",
        (
            _share("spread"),
            _number("link_use_p99", 2),
            _number("link_use_max", 2),
            _share("bytes_moved"),
            _number("interference"),
            _number("nodes_used"),
            _seconds("job_wait_s", 1),
        ),
    ),
    Table("benchmarks.md", "| **`google2011`, 100 nodes, 2 h** | | | | | | |", "over/google2011", _OVER),
    Table("benchmarks.md", "| **`alibaba-gpu`, 100 nodes, 2 h** | | | | | | |", "over/alibaba-gpu", _OVER),
    Table(
        "benchmarks.md",
        "| **the same, with expected durations of the jobs (`--case expectations`)** | | | | | | |",
        "expectations/alibaba-gpu",
        _OVER,
    ),
    Table("benchmarks.md", "| **`philly`, 100 nodes, 12 h** | | | | | | |", "over/philly", _OVER),
)


def published(table: Table, docs: Path = DOCS) -> dict[str, str]:
    """Scheduler -> its row, as it is in the documentation."""
    _, begins, after = (docs / table.file).read_text().partition(f"{table.begins}\n")
    assert begins, f"{table.file} has no line {table.begins}"
    return {row.split("|")[1].strip(" `"): row for row in _rows(after)}


def _rows(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.startswith("| ") or line.startswith("| **"):
            return
        yield line


def row(table: Table, scheduler: str, figures: Figures) -> str:
    """The row with these figures."""
    name = f"`{scheduler}`" if table.file == "policies.md" else scheduler
    return f"| {name} | {' | '.join(cell(figures) for cell in table.columns)} |"


def measured(case: str, scheduler: str) -> Figures:
    """What `poseidon-bench run quality --case CASE/SCHEDULER` prints."""
    suite = specs.load("quality")
    (chosen,) = (each for each in suite.cases if each.name == f"{case}/{scheduler}")
    return measure_of(suite.name)(chosen, Options()).metrics


def rewrite(docs: Path = DOCS, measure: Callable[[str, str], Figures] = measured) -> None:
    """Measures all figures and writes them into the documentation."""
    done: dict[tuple[str, str], Figures] = {}
    for table in TABLES:
        for scheduler, old in published(table, docs).items():
            key = table.case, scheduler
            if key not in done:
                done[key] = measure(*key)
            path = docs / table.file
            head, begins, after = path.read_text().partition(f"{table.begins}\n")
            new = row(table, scheduler, done[key])
            path.write_text(head + begins + after.replace(old, new, 1))
            print(f"{table.file}: {new}", file=sys.stderr)


if __name__ == "__main__":
    rewrite()
