"""Draws figures with matplotlib, which only this module imports."""

from __future__ import annotations

import io
from typing import Any

from benchmarks.report.figures import Figure

FORMATS = ("svg", "png")
_WIDTH, _HEIGHT, _ROW = 8.0, 4.2, 0.32
_COLOURS = 10
"""This number of lines differ by colour only; further ones also by line style."""
_STYLES = ("-", "--", ":")
_FEW_LINES = 6
"""A legend of more lines is placed beside the plot."""


class DrawingError(RuntimeError):
    """Plots cannot be drawn; the message names the packages to install."""


def draw(figure: Figure, form: str = "svg") -> bytes:
    """The plot of a figure in `form`, one of FORMATS. Equal figures give equal bytes. Raises DrawingError."""
    plots = _matplotlib()
    height = max(_HEIGHT, 1.2 + _ROW * len(figure.markers)) if figure.kind == "spread" else _HEIGHT
    picture, axes = plots.subplots(figsize=(_WIDTH, height), layout="constrained")
    try:
        if figure.kind == "spread":
            _draw_markers(axes, figure)
        else:
            _lines(axes, figure)
        axes.set_xlabel(figure.x_title)
        axes.set_ylabel(figure.y_title)
        axes.set_title(figure.title, loc="left")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        out = io.BytesIO()
        # no date, and ids that do not change from run to run
        picture.savefig(out, format=form, dpi=110, metadata={"Date": None} if form == "svg" else {"Software": None})
        return out.getvalue()
    finally:
        plots.close(picture)


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise DrawingError("plots need matplotlib and jinja2: in a checkout, pip install '.[report]'") from error
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "poseidon", "svg.fonttype": "none", "font.size": 9})
    import matplotlib.pyplot as plots

    return plots


def _lines(axes: Any, figure: Figure) -> None:
    for i, line in enumerate(figure.lines):
        line_style = {"color": f"C{i % _COLOURS}", "linestyle": _STYLES[i // _COLOURS % len(_STYLES)]}
        if figure.kind == "growth":
            (drawn,) = axes.plot(line.x, line.y, marker="o", markersize=4, label=line.label or None, **line_style)
            axes.fill_between(line.x, line.low, line.high, color=drawn.get_color(), alpha=0.15, linewidth=0)
        else:
            style = "steps-post" if figure.kind == "cdf" else "default"
            axes.plot(line.x, line.y, drawstyle=style, linewidth=1.3, label=line.label or None, **line_style)
    if figure.log_x:
        _logarithmic(axes, "x")
    if figure.log_y:
        _logarithmic(axes, "y")
    elif figure.kind == "cdf":
        axes.set_ylim(0.0, 1.02)
    if any(line.label for line in figure.lines):
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if len(figure.lines) > _FEW_LINES else {}
        axes.legend(fontsize=8, frameon=False, **beside)


def _draw_markers(axes: Any, figure: Figure) -> None:
    rows = range(len(figure.markers))
    middle = [marker.median for marker in figure.markers]
    reach = [
        [marker.median - marker.low for marker in figure.markers],
        [marker.high - marker.median for marker in figure.markers],
    ]
    axes.errorbar(middle, rows, xerr=reach, fmt="o", markersize=5, capsize=3, label="median and range of the samples")
    aims = [(row, marker.target) for row, marker in zip(rows, figure.markers, strict=True) if marker.target is not None]
    if aims:
        axes.plot(
            [aim for _, aim in aims], [row for row, _ in aims], "|", color="tab:red", markersize=14, label="target"
        )
        axes.legend(fontsize=8, frameon=False)
    axes.set_yticks(list(rows), [marker.label for marker in figure.markers], fontsize=8)
    axes.invert_yaxis()
    if figure.log_x:
        _logarithmic(axes, "x")


def _logarithmic(axes: Any, which: str) -> None:
    """Sets a logarithmic axis with plain numbers at 1, 2 and 5 of each decade."""
    from matplotlib import ticker

    axes.set(**{f"{which}scale": "log"})
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(ticker.NullFormatter())
