"""`poseidon config`: checks configuration files, shows the configuration in force, the defaults, and the schema."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from poseidon_py.cli.errors import Group, fail_with_all
from poseidon_py.cli.flags import GroupedCommand, settings_flags
from poseidon_py.cli.policies import check_policy, problem_of_policy
from poseidon_py.config import loading
from poseidon_py.config.configuration_file import read_file
from poseidon_py.config.conversion import OptionError
from poseidon_py.config.document import document_of
from poseidon_py.config.fields import FIELDS
from poseidon_py.config.layout import HEADINGS, LAYOUT
from poseidon_py.config.named_files import problems_of_files
from poseidon_py.config.settings import Settings
from poseidon_py.util.yaml_file import yaml_text

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(cls=Group)
def config() -> None:
    """Check configuration files of `poseidon run`, and write them."""


@config.command()
@click.argument("files", nargs=-1, required=True, type=_FILE, metavar="FILE...")
def check(files: tuple[Path, ...]) -> None:
    """Check files for `poseidon run --config`, and print all that is wrong with them.

    Exit code 2 if anything is. Certificates and other files that they name have to be there.
    """
    invalid: list[str] = []
    for file in files:
        problems = _problems(file)
        if not problems:
            click.echo(f"{file}: valid")
        invalid += problems
    if invalid:
        fail_with_all(invalid, f"there are {len(invalid)} problems", 2)


def _problems(file: Path) -> list[str]:
    try:
        settings = loading.settings(read_file(file), {}, file)
    except OptionError as error:
        return list(error.problems)
    policy = problem_of_policy(settings)
    return [f"{file}: {problem}" for problem in (*([policy] if policy else []), *problems_of_files(settings))]


@config.command(cls=GroupedCommand)
@click.option("--config", "file", type=_FILE, help="Configuration file; flags take precedence.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of YAML.")
@settings_flags()
def show(file: Path | None, as_json: bool, **flags: Any) -> None:
    """Show what `poseidon run` would use with the same file and flags, defaults included.

    The output is a PoseidonConfiguration, whichever form the file has: so it also renews old files.
    """
    try:
        settings = loading.settings(read_file(file) if file else {}, flags, file or "")
    except OptionError as error:
        fail_with_all(error.problems, f"the configuration {file} is invalid", 2)
    check_policy(settings)
    document = document_of(settings)
    click.echo(json.dumps(document, indent=2) if as_json else yaml_text(document), nl=as_json)


@config.command()
def default() -> None:
    """Show a file that has all settings with their defaults and meanings."""
    click.echo("\n".join(_described(document_of(Settings()))))


@config.command()
def schema() -> None:
    """Show the JSON schema of PoseidonConfiguration, for editors and validators."""
    from poseidon_py.config.document_schema import document_schema

    click.echo(json.dumps(document_schema(), indent=2, ensure_ascii=False))


def _described(document: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a document with the meaning of each setting above it."""
    for key, value in document.items():
        if key not in LAYOUT:
            yield from _lines({key: value})
    yield "  # policy:"
    yield from _comment(FIELDS["policy"].text, "  #   ")
    yield "  #   name: load-spreading"
    yield "  #   options: {by: requested}"
    for key, layout in LAYOUT.items():
        yield f"\n# {HEADINGS[key]}"
        yield f"{key}:"
        yield from _section(layout, document.get(key, {}), "  ")


def _section(layout: Mapping[str, Any], values: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, at in layout.items():
        if not isinstance(at, str):
            yield f"{indent}{key}:"
            yield from _section(at, values.get(key, {}), indent + "  ")
            continue
        field = FIELDS[at]
        unset = f" Default: {field.shown_default}." if field.default is None and field.shown_default else ""
        yield from _comment(f"{field.text}{unset} Give {field.expected_in_document}.", f"{indent}# ")
        if key in values:
            yield from (indent + line for line in _lines({key: values[key]}))
        else:
            yield f"{indent}# {key}:"


def _comment(text: str, indent: str) -> list[str]:
    return wrap(text, 110, initial_indent=indent, subsequent_indent=indent)


def _lines(values: Mapping[str, Any]) -> list[str]:
    return yaml_text(dict(values), width=110).splitlines()
