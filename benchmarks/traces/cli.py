"""`poseidon-bench trace`: make, describe and convert traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from benchmarks.traces import describe as describing
from benchmarks.traces import files, fitting
from benchmarks.traces.form import HOUR, TraceError
from benchmarks.traces.generate import generate as generate_trace
from benchmarks.traces.generate import preset
from benchmarks.traces.presets import PRESETS

_A_PATH = click.Path(path_type=Path)


def preset_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what to generate, except --preset."""
    for option in (
        click.option("--labels", is_flag=True, help="Label jobs with data location, traffic and interference class."),
        click.option(
            "--load",
            type=click.FloatRange(0, min_open=True),
            help="Demand for the scarcest resource, as a fraction of capacity (default: set by the preset).",
        ),
        click.option(
            "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random choices."
        ),
    ):
        command = option(command)
    return command


@click.group()
def trace() -> None:
    """Generate, describe and convert cluster traces."""


@trace.command("presets")
def presets_() -> None:
    """List the presets and the source of each parameter."""
    for one in PRESETS.values():
        click.echo(f"{one.name}: {one.summary}")
        for name, source in one.sources.items():
            click.echo(f"  {name}: {source}")


@trace.command()
@click.argument("out", type=_A_PATH)
@click.option("--preset", "name", required=True, metavar="NAME", help=f"Preset to follow: {', '.join(PRESETS)}.")
@click.option("--nodes", type=click.IntRange(1), default=100, show_default=True, help="Number of machines.")
@click.option(
    "--hours",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="Length of the trace in hours.",
)
@click.option(
    "--format", "form", type=click.Choice(files.FORMATS), default="json", show_default=True, help="Format of OUT."
)
@click.option(
    "--gzip", "compress", is_flag=True, help="Compress the google-v2 tables. For JSON, name OUT .json.gz instead."
)
@preset_options
def generate(
    out: Path,
    name: str,
    nodes: int,
    hours: float,
    form: str,
    compress: bool,
    seed: int,
    load: float | None,
    labels: bool,
) -> None:
    """Generate a trace that follows a published analysis.

    OUT is a .json or .json.gz file, or a folder for the tables of other formats.
    """
    try:
        made = generate_trace(preset(name), nodes, hours, seed, load, labels=labels)
        notes = files.write(made, out, form, compress=compress)
    except TraceError as error:
        raise click.ClickException(str(error)) from error
    tell(notes)
    click.echo(f"{out}: {len(made.machines)} machines, {len(made.jobs)} jobs, {len(made.task_us)} tasks")


@trace.command()
@click.argument("path", type=_A_PATH)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--hours", type=click.FloatRange(0, min_open=True), help="Read only this many hours from the start.")
def describe(path: Path, as_json: bool, hours: float | None) -> None:
    """Summarise the trace at PATH."""
    try:
        read, notes = files.read(path, None if hours is None else int(hours * HOUR))
    except TraceError as error:
        raise click.ClickException(str(error)) from error
    figures = describing.describe(read)
    click.echo(json.dumps(figures, indent=2) if as_json else "\n".join(describing.lines(figures)))
    tell([*notes, *fitting.notes(read)])


@trace.command()
@click.argument("source", type=_A_PATH)
@click.argument("out", type=_A_PATH)
@click.option(
    "--format", "form", type=click.Choice(files.FORMATS), default="json", show_default=True, help="Format of OUT."
)
@click.option(
    "--gzip", "compress", is_flag=True, help="Compress the google-v2 tables. For JSON, name OUT .json.gz instead."
)
@click.option("--hours", type=click.FloatRange(0, min_open=True), help="Read only this many hours from the start.")
def convert(source: Path, out: Path, form: str, compress: bool, hours: float | None) -> None:
    """Convert the trace at SOURCE to OUT.

    The format of SOURCE is recognised by its files.
    """
    try:
        read, notes = files.read(source, None if hours is None else int(hours * HOUR))
        notes += files.write(read, out, form, compress=compress)
    except TraceError as error:
        raise click.ClickException(str(error)) from error
    tell(notes)
    click.echo(f"{out}: {len(read.machines)} machines, {len(read.jobs)} jobs, {len(read.task_us)} tasks")


def tell(notes: list[str]) -> None:
    """Prints notes on a trace to standard error."""
    for note in notes:
        click.echo(f"note: {note}", err=True)
