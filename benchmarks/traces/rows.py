"""Rows of CSV files with errors that name file, line and field. A file may be compressed (.gz)."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from benchmarks.traces.form import TraceError

_BROKEN = (OSError, EOFError, UnicodeDecodeError, zlib.error)
"""Raised for a file that does not exist, is not text, or is not valid gzip."""


class Row:
    """The fields of a line. Missing fields at its end count as empty."""

    __slots__ = ("_names", "_values", "line", "path")

    def __init__(self, path: Path, line: int, names: Sequence[str], values: list[str]) -> None:
        self.path, self.line = path, line
        self._names, self._values = names, values

    def text(self, column: int) -> str:
        return self._values[column].strip() if column < len(self._values) else ""

    def integer(
        self, column: int, default: int | None = None, *, minimum: int = -(2**63), maximum: int = 2**63 - 1
    ) -> int:
        """A whole number from `minimum` to `maximum`; the default if the field is empty, an error if there is none."""
        text = self.text(column)
        if not text:
            if default is None:
                raise self.error(column, "is missing; it is required")
            return default
        try:
            value = int(text)
        except ValueError:
            raise self.error(column, f"is {text!r}, not a whole number") from None
        if not minimum <= value <= maximum:
            raise self.error(column, f"is {text}; give a whole number from {minimum} to {maximum}")
        return value

    def number(self, column: int, maximum: float) -> float | None:
        """A number from 0 to `maximum`, None if the field is empty."""
        text = self.text(column)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            raise self.error(column, f"is {text!r}, not a number") from None
        if not 0 <= value <= maximum:
            raise self.error(column, f"is {text}; give a number from 0 to {maximum:g}")
        return value

    def error(self, column: int, what: str) -> TraceError:
        return TraceError(f"{self.path}, line {self.line}: {self._names[column]} {what}")


def rows(path: Path, names: Sequence[str]) -> Iterator[Row]:
    """The lines of a file without a header; its columns have these names."""
    try:
        with _open(path) as file:
            for line, values in enumerate(csv.reader(file), start=1):
                if values:
                    yield Row(path, line, names, values)
    except (*_BROKEN, csv.Error) as error:
        raise TraceError(f"cannot read {path}: {error}") from error


def headed_rows(path: Path) -> tuple[list[str], Iterator[Row]]:
    """The names in a file's header, and its other lines."""
    lines = rows(path, [f"column {i + 1}" for i in range(256)])
    header = next(lines, None)
    if header is None:
        raise TraceError(f"{path} is empty; its first line must name the columns")
    names = [name.strip() for name in header._values]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise TraceError(f"{path}, line {header.line}: column {name!r} appears twice; remove one")
    return names, (_headed(row, names) for row in lines)


def write_text(path: Path, text: str) -> None:
    """Writes a file; compressed if its name ends in .gz, and the same bytes for the same text."""
    data = text.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise TraceError(f"cannot write {path}: {error}") from error


def read_text(path: Path) -> str:
    """A file's text, decompressed if its name ends in .gz."""
    try:
        with _open(path) as file:
            return file.read()
    except _BROKEN as error:
        raise TraceError(f"cannot read {path}: {error}") from error


def csv_text(lines: Iterator[Sequence[object]]) -> str:
    """Lines as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def _headed(row: Row, names: Sequence[str]) -> Row:
    if len(row._values) > len(names):
        raise TraceError(
            f"{row.path}, line {row.line}: field {len(names) + 1} is {row._values[len(names)]!r}, but the header has "
            f"{len(names)} columns; add a column or remove the field"
        )
    return Row(row.path, row.line, names, row._values)


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", newline="", encoding="utf-8")
    return path.open(newline="", encoding="utf-8")
