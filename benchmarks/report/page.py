"""One HTML page of any number of results, with all pictures in it: tables, plots, and where it was measured."""

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
    """A figure and how it goes into the page."""

    figure: Figure
    html: str


def labels(files: Sequence[Path]) -> list[str]:
    """What files are called in a report: names without ending, and a number where several are equal."""
    stems, found = [path.stem for path in files], list[str]()
    for stem in stems:
        label, number = stem, 1
        while label in found or (stems.count(stem) > 1 and label in stems):
            label, number = f"{stem}-{number}", number + 1
        found.append(label)
    return found


def write_plots(results: Sequence[tuple[str, SuiteResult]], folder: Path, form: str) -> list[Path]:
    """Every picture as a file of its own. Raises DrawingError, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for label, result in results:
        for figure in figures(result):
            path = folder / f"{label}-{figure.file_name}.{form}"
            path.write_bytes(draw(figure, form))
            written.append(path)
    return written


def render(results: Sequence[tuple[str, SuiteResult]], drawn: Callable[[Figure], None] = lambda figure: None) -> str:
    """The page. results: labels (file names without ending) and what is in the files; `drawn` is told of progress.

    Results of one suite are compared, each with the first of them. Raises DrawingError.
    """
    try:
        import jinja2
    except ImportError as error:
        raise DrawingError("a report needs matplotlib and jinja2: pip install 'poseidon-firmament[report]'") from error
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
    """As an address: pictures that share a page must not share the names of their parts."""
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
    return f"{len(case.failed)} of {case.checked} failed" if case.failed else f"{case.checked} held"


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
