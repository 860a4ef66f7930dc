"""The complete help of every command fits a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import cli as poseidon_bench
from poseidon_py.cli.main import cli as poseidon


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The command's path and those of all its subcommands."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*path, name))


PATHS = [*commands(poseidon, ("poseidon",)), *commands(poseidon_bench, ("poseidon-bench",))]


def help_of(path: tuple[str, ...]) -> str:
    root = poseidon if path[0] == "poseidon" else poseidon_bench
    ran = CliRunner().invoke(root, [*path[1:], "--help"], prog_name=path[0], env={"COLUMNS": "80"})
    assert ran.exit_code == 0
    return ran.output


def test_every_command_is_found():
    assert {("poseidon", "cluster"), ("poseidon", "demo"), ("poseidon-bench", "trace", "convert")} <= set(PATHS)


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_fits_80_columns(path):
    assert [line for line in help_of(path).splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("path", [path for path in PATHS if path[0] == "poseidon-bench"], ids=" ".join)
def test_no_summary_is_cut_off(path):
    lines = help_of(path).splitlines()
    assert [line for line in lines if line.endswith("...") and not line.startswith("Usage:")] == []


@pytest.mark.parametrize(
    "path", [p for p in PATHS if p[0] == "poseidon-bench" or p[1:2] in (("cluster",), ("demo",))], ids=" ".join
)
def test_every_option_has_help(path):
    command: click.Command = poseidon if path[0] == "poseidon" else poseidon_bench
    for name in path[1:]:
        assert isinstance(command, click.Group)
        inner = command.get_command(click.Context(command), name)
        assert inner is not None
        command = inner
    assert [one.name for one in command.params if isinstance(one, click.Option) and not one.help] == []
