"""Tables that adapt to the width of the terminal."""

from __future__ import annotations

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
    """Print a table if it fits without wrapping, else each row as a record under its first cell.

    The first cell of a row is its name, printed literally; the others may contain markup. `right`: columns that are
    aligned to the right; `prose`: the column whose text may be wrapped; `style`: arguments of the table.
    """
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
    before = None
    for row in rows:
        if row[0] != before:
            before = row[0]
            print_name(console, before)
        _print_record(console, header[1:], row[1:])
    if caption:
        console.print(f"[dim]{caption}[/]")


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
