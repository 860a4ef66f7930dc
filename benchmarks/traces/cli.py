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
    """The options that say what to generate, but for --preset itself."""
    for option in (
        click.option("--labels", is_flag=True, help="Jobs say where their data is, their traffic, how they interfere."),
        click.option(
            "--load",
            type=click.FloatRange(0, min_open=True),
            help="Demand of the contended resource, as a part of what there is (default: the preset's).",
        ),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of everything random."),
    ):
        command = option(command)
    return command


@click.group()
def trace() -> None:
    """Make, describe and convert traces of clusters."""


@trace.command("presets")
def presets_() -> None:
    """List the presets, and where each of their parameters is from."""
    for one in PRESETS.values():
        click.echo(f"{one.name}: {one.summary}")
        for name, source in one.sources.items():
            click.echo(f"  {name}: {source}")


@trace.command()
@click.argument("out", type=_A_PATH)
@click.option("--preset", "name", required=True, metavar="NAME", help=f"One of {', '.join(PRESETS)}.")
@click.option("--nodes", type=click.IntRange(1), default=100, show_default=True, help="Machines.")
@click.option("--hours", type=click.FloatRange(0, min_open=True), default=1.0, show_default=True, help="Length.")
@click.option("--format", "form", type=click.Choice(files.FORMATS), default="json", show_default=True)
@click.option("--gzip", "compress", is_flag=True, help="google-v2: compress the tables. (JSON: name it .json.gz.)")
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
    """Make a trace after a published analysis and write it to OUT: a .json file, or a folder for tables."""
    try:
        made = generate_trace(preset(name), nodes, hours, seed, load, labels=labels)
        notes = files.write(made, out, form, compress=compress)
    except TraceError as error:
        raise click.ClickException(str(error)) from error
    tell(notes)
    click.echo(f"{out}: {len(made.machines)} machines, {len(made.jobs)} jobs, {len(made.task_us)} tasks")


@trace.command()
@click.argument("path", type=_A_PATH)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--hours", type=click.FloatRange(0, min_open=True), help="Only the first so many hours.")
def describe(path: Path, as_json: bool, hours: float | None) -> None:
    """Say what is in the trace at PATH."""
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
@click.option("--format", "form", type=click.Choice(files.FORMATS), default="json", show_default=True)
@click.option("--gzip", "compress", is_flag=True, help="google-v2: compress the tables. (JSON: name it .json.gz.)")
@click.option("--hours", type=click.FloatRange(0, min_open=True), help="Only the first so many hours.")
def convert(source: Path, out: Path, form: str, compress: bool, hours: float | None) -> None:
    """Write the trace at SOURCE, in whatever format it is, to OUT in another."""
    try:
        read, notes = files.read(source, None if hours is None else int(hours * HOUR))
        notes += files.write(read, out, form, compress=compress)
    except TraceError as error:
        raise click.ClickException(str(error)) from error
    tell(notes)
    click.echo(f"{out}: {len(read.machines)} machines, {len(read.jobs)} jobs, {len(read.task_us)} tasks")


def tell(notes: list[str]) -> None:
    """Notes on a trace, beside what a command puts out."""
    for note in notes:
        click.echo(f"note: {note}", err=True)
