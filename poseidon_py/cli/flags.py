"""The flags of `poseidon run` and `poseidon jobs run`, generated from the annotations of Settings."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from msgspec import inspect

from poseidon_py.config.fields import FIELDS, Field

Command = Callable[..., Any]


def settings_flags(
    *, only: Collection[str] | None = None, defaults: Mapping[str, Any] = MappingProxyType({})
) -> Callable[[Command], Command]:
    """Adds a flag for each setting that has one. Flags have no defaults: Settings has them, and the file may differ.

    `only`: the settings of this command; None: all. `defaults`: those shown in the help in place of Settings' own.
    """

    def add(command: Command) -> Command:
        for field in reversed(list(FIELDS.values())):
            if field.is_flag and (only is None or field.name in only):
                command = _flag(field, str(defaults.get(field.name, field.shown_default)))(command)
        return command

    return add


def _flag(field: Field, shown_default: str) -> Callable[[Command], Command]:
    text = f"{field.text}  [default: {shown_default}]" if shown_default else field.text
    names = f"--{field.key}/--no-{field.key}" if field.takes(inspect.BoolType) else f"--{field.key}"
    return click.option(
        names,
        field.name,
        default=None,
        help=text,
        metavar=field.metavar,
        multiple=field.takes(inspect.VarTupleType),
        type=_type(field),
    )


def _type(field: Field) -> Any:
    """The click type; None: click infers it from the declaration, text or a boolean pair."""
    if field.takes(inspect.CustomType):
        return click.Path(dir_okay=False, path_type=Path)
    if field.words and len(field.kinds) == 1:
        return click.Choice(field.words)
    if len(field.kinds) > 1:
        return click.STRING
    return click.INT if field.takes(inspect.IntType) else click.FLOAT if field.takes(inspect.FloatType) else None
