"""The flags of `poseidon run` and `poseidon jobs run`, generated from the annotations of Settings."""

from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatch
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from msgspec import inspect

from poseidon_py.config.fields import FIELDS, Field

Command = Callable[..., Any]
_OTHERS = "Options"


GROUPS = {
    "Cluster": "kubeconfig context scheduler-name",
    "Policy": "policy policy-option bandwidth link-bandwidth default-spreading added-node-affinity improve",
    "Measured usage": "usage usage-* prometheus-*",
    "Gangs": "gangs-from gang-*",
    "Preemption and moves": "preemption preemption-* preempt-* longest-preemption-notice protected-* migrate migrate-* "
    "moves-*",
    "Queues": "queues queue-* yunikorn-queues suspend-workloads resumed-pods",
    "Jobs": "ended-jobs ended-jobs-* hooks",
    "Rounds, binds and events": "batch-* bind-* event-*",
    "Flow service": "firmament-* stats-address",
    "Leader election": "leader-elect lease-* renew-deadline retry-period",
    "Health, logs, start and stop": "health-* startup-timeout shutdown-timeout log-*",
}
"""Heading of the help -> patterns of the flags under it. Each flag matches those of one heading."""


def group_of(name: str) -> str:
    """The heading of a setting; `Options` for other options."""
    key = name.replace("_", "-")
    return next((each for each, words in GROUPS.items() if any(fnmatch(key, word) for word in words.split())), _OTHERS)


class GroupedCommand(click.Command):
    """A command whose help has the flags of settings under the headings of their groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (_OTHERS, *GROUPS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                records[group_of(parameter.name or "")].append(record)
        for heading, lines in records.items():
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)


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
