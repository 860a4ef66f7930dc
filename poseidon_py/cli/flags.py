"""The flags of `poseidon run` and `poseidon jobs run`, generated from the annotations of Settings."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from msgspec import inspect

from poseidon_py.config.fields import FIELDS, Field
from poseidon_py.config.layout import HEADINGS, section_of
from poseidon_py.util import logs

Command = Callable[..., Any]
_OTHERS = "Options"

_ALIASES: Mapping[str, str] = {
    "lease_duration": "leader-elect-lease-duration",
    "renew_deadline": "leader-elect-renew-deadline",
    "retry_period": "leader-elect-retry-period",
    "lease_name": "leader-elect-resource-name",
    "lease_namespace": "leader-elect-resource-namespace",
    "log_format": "logging-format",
}
"""Setting -> what its flag is called in kube-scheduler, too."""

_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
"""Those of Go's flags, in lower case."""


class GroupedCommand(click.Command):
    """A command whose help has the flags of settings under the headings of their sections, the shortest list first. It
    also takes flags in the forms that Go programs have: `--leader-elect=false`, `--lease_duration 15s`, `-v 4`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_as_click_has_them(args)))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records: dict[str, list[tuple[str, str]]] = {section: [] for section in ("", *HEADINGS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                records[section_of(parameter.name or "")].append(record)
        for section, lines in sorted(records.items(), key=lambda each: len(each[1])):  # equal ones as they were
            if lines:
                with formatter.section(HEADINGS.get(section, _OTHERS)):
                    formatter.write_dl(lines)


class _Words(click.Choice[str]):
    """Words in any case; where on and off are among them, Go's true and false stand for these."""

    def __init__(self, words: Collection[str]) -> None:
        super().__init__(tuple(words), case_sensitive=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        boolean = _BOOLEANS.get(str(value).lower())
        if boolean is not None and {"on", "off"} <= set(self.choices):
            value = "on" if boolean else "off"
        return super().convert(value, param, ctx)


def _as_click_has_them(args: list[str]) -> Iterator[str]:
    """Boolean flags without a value, names with dashes, and --log-level for klog's -v."""
    booleans = {f"--{field.key}" for field in FIELDS.values() if field.takes(inspect.BoolType)}
    known = {f"--{name}" for name in (*(field.key for field in FIELDS.values()), *_ALIASES.values())}
    known |= {name.replace("--", "--no-", 1) for name in booleans}
    waiting = iter(args)
    for arg in waiting:
        name, equals, value = arg.partition("=")
        dashed = name.replace("_", "-")
        if dashed in known:
            name, arg = dashed, dashed + equals + value
        if equals and name in booleans and value.lower() in _BOOLEANS:
            yield name if _BOOLEANS[value.lower()] else name.replace("--", "--no-", 1)
        elif arg == "--":
            yield from (arg, *waiting)
        elif name in ("-v", "--v") or (name[:2] == "-v" and name[2:].isdigit()):
            level = value if equals else name[2:] if name[2:].isdigit() else next(waiting, "")
            word = logs.level_of(level) if level.isdigit() else None
            if word is None:
                raise click.UsageError(f"-v is {level!r}; give a number: 4 and more is --log-level debug")
            yield from ("--log-level", word)
        else:
            yield arg


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
    alias = [f"--{_ALIASES[field.name]}"] if field.name in _ALIASES else []
    return click.option(
        f"--{field.key}/--no-{field.key}" if field.takes(inspect.BoolType) else f"--{field.key}",
        *alias,
        field.name,
        default=None,
        help=text,
        metavar=field.metavar,
        multiple=field.takes(inspect.VarTupleType),
        type=_type(field),
    )


def _type(field: Field) -> Any:
    """The click type; None: click infers it from the declaration, text or a boolean pair."""
    if field.in_seconds:
        return click.STRING  # 15s, a number of seconds, or a word
    if field.takes(inspect.CustomType):
        return click.Path(dir_okay=False, path_type=Path)
    if field.words and len(field.kinds) == 1:
        return _Words(field.words)
    if len(field.kinds) > 1:
        return click.STRING
    return click.INT if field.takes(inspect.IntType) else click.FLOAT if field.takes(inspect.FloatType) else None
