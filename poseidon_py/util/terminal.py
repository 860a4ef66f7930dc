"""Tables that adapt to the width of the terminal, and plain lines where the output is none."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from rich.columns import Columns
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_INDENT = (0, 0, 0, 2)
_UNLIMITED = 100_000
_PROSE_WIDTH = 32
"""Minimum width of a column of prose."""


def new_console(*, stderr: bool = False, **options: Any) -> Console:
    """A console on standard output or error. What is piped is not wrapped, so that each record stays a line, unless
    COLUMNS names a width."""
    piped = not (sys.stderr if stderr else sys.stdout).isatty() and "COLUMNS" not in os.environ
    return Console(stderr=stderr, width=_UNLIMITED if piped else None, **options)


def print_rows(
    console: Console,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    prose: str = "",
    title: str = "",
    caption: str = "",
    **style: Any,
) -> None:
    """Print a table if it fits without wrapping, else without a box and with the prose of a row on the line below it,
    else each row as a record under its first cell. What is piped is a line for each row, in columns that are separated
    by at least two spaces.

    The first cell of a row is its name, printed literally; the others may contain markup. `right`: columns that are
    aligned to the right; `prose`: the column whose text may be wrapped; `style`: arguments of the table.
    """
    if console.width >= _UNLIMITED:
        _print_lines(console, header, rows, right)
        return
    table = Table(title=title or None, title_justify="left", caption=caption or None, caption_justify="left", **style)
    for name in header:
        heading = name if name == prose else name.replace(" ", "\n")
        table.add_column(heading, justify="right" if name in right else "left", no_wrap=name != prose)
    for row in rows:
        table.add_row(Text(row[0]), *row[1:])
    width = console.measure(table, options=console.options.update(max_width=_UNLIMITED)).maximum
    if prose:
        longest = max((console.measure(row[header.index(prose)]).maximum for row in rows), default=0)
        width -= max(longest - _PROSE_WIDTH, 0)
    if width <= console.width:
        console.print(table)
        return
    if title:
        console.print(f"[italic]{title.strip()}[/]")
    if prose and _print_lines(console, header, rows, right, below=prose):
        return
    before = None
    for row in rows:
        if row[0] != before:
            before = row[0]
            print_name(console, before)
        _print_record(console, header[1:], row[1:])
    if caption:
        console.print(f"[dim]{caption}[/]")


def _print_lines(
    console: Console,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str],
    below: str = "",
) -> bool:
    """Print a line for each row; `below`: the column whose text is on a line of its own. False: it does not fit."""
    at = header.index(below) if below else len(header)
    texts = [[Text(row[0]), *(Text.from_markup(cell) for cell in row[1:])] for row in rows]
    lines = [[Text(name) for name in header], *texts]
    columns = [index for index in range(len(header)) if index != at]
    widths = {index: max(line[index].cell_len for line in lines) for index in columns}
    if sum(widths.values()) + 2 * (len(columns) - 1) > console.width:
        return False
    for line in lines:
        for index, width in widths.items():
            line[index].align("right" if header[index] in right else "left", width)
        whole = Text("  ").join(line[index] for index in columns)
        whole.rstrip()
        console.print(whole)
        if below and line is not lines[0] and line[at]:
            console.print(Padding(line[at], (0, 0, 0, 4), expand=False))
    return True


def _print_record(console: Console, header: Sequence[str], row: Sequence[str]) -> None:
    """Print short fields side by side, long ones on separate lines, and skip empty ones."""
    fields = [f"[dim]{name}:[/] {cell}" for name, cell in zip(header, row, strict=True) if cell]
    half = console.width // 2 - 3
    short = [field for field in fields if console.measure(field).maximum <= half]
    if short:
        console.print(Padding(Columns(short, padding=(0, 3)), _INDENT))
    for field in fields:
        if field not in short:
            console.print(Padding(field, _INDENT))


def print_name(console: Console, name: str) -> None:
    """Print a name on a separate line; the terminal wraps a long one, so that it can be copied whole."""
    console.print(Text(name, style="bold"), soft_wrap=True)
