"""A self-contained HTML page of any number of results: tables, plots, and the machines they were measured on."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from benchmarks.harness.results import CaseResult, SuiteResult
from benchmarks.report import comparison
from benchmarks.report.drawing import DrawingError, draw
from benchmarks.report.figures import Figure, figures
from benchmarks.report.tables import amount, spread


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure and its image as a data URL."""

    figure: Figure
    html: str


def labels(files: Sequence[Path]) -> list[str]:
    """Labels of files in a report: names without suffix, numbered where several are equal."""
    stems, found = [path.stem for path in files], list[str]()
    for stem in stems:
        label, number = stem, 1
        while label in found or (stems.count(stem) > 1 and label in stems):
            label, number = f"{stem}-{number}", number + 1
        found.append(label)
    return found


def write_plots(results: Sequence[tuple[str, SuiteResult]], folder: Path, form: str) -> list[Path]:
    """Writes each plot to a file. Raises DrawingError, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for label, result in results:
        for figure in figures(result):
            path = folder / f"{label}-{figure.file_name}.{form}"
            path.write_bytes(draw(figure, form))
            written.append(path)
    return written


def render(results: Sequence[tuple[str, SuiteResult]], drawn: Callable[[Figure], None] = lambda figure: None) -> str:
    """The page. results: label and content of each file. `drawn` is called after each plot.

    Results of one suite are compared with the first of them. Raises DrawingError.
    """
    try:
        import jinja2
    except ImportError as error:
        raise DrawingError("a report needs matplotlib and jinja2: in a checkout, pip install '.[report]'") from error
    sections = []
    for label, result in results:
        pictures = []
        for figure in figures(result):
            pictures.append(Picture(figure, _image(draw(figure))))
            drawn(figure)
        sections.append({"label": label, "result": result, "rows": _rows(result), "pictures": pictures})
    text = (resources.files("benchmarks.report") / "page.html.j2").read_text()
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    page = environment.from_string(text)
    return page.render(sections=sections, comparisons=_comparisons(results), amount=amount)


def _image(svg: bytes) -> str:
    """A data URL: inline SVG images of one page would share the ids of their elements."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()


def _rows(result: SuiteResult) -> list[dict[str, Any]]:
    rows = []
    for case in result.cases:
        cells = [
            spread(case.samples[name], about["unit"]) if case.samples.get(name) else ("", "")
            for name, about in result.metrics.items()
        ]
        rows.append({"case": case, "cells": cells, "checks": _checks(case)})
    return rows


def _checks(case: CaseResult) -> str:
    if not case.checked:
        return ""
    return f"{len(case.failed)} of {case.checked} failed" if case.failed else f"{case.checked} passed"


def _comparisons(results: Sequence[tuple[str, SuiteResult]]) -> list[dict[str, Any]]:
    first: dict[str, tuple[str, SuiteResult]] = {}
    found = []
    for label, result in results:
        if result.suite not in first:
            first[result.suite] = (label, result)
            continue
        base_label, base = first[result.suite]
        found.append(
            {
                "a": base_label,
                "b": label,
                "found": comparison.compare(base, result),
                "notes": comparison.differences(base, result),
            }
        )
    return found
