"""The table of rights, chart/rights.yaml, as the chart reads it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

TABLE = Path(__file__).parent / "chart" / "rights.yaml"
LEASE_NAME = "LEASE_NAME"
"""Stands for the name of the lease."""
ANY = "any"

Json = dict[str, Any]


class Grant(NamedTuple):
    """One right. `names`: those of the objects that it is limited to; empty: all."""

    group: str
    resource: str
    verb: str
    names: tuple[str, ...] = ()


class Feature(NamedTuple):
    """A row of the table. `when`: alternatives, of which one must hold; none: it always does."""

    account: str
    name: str
    text: str
    namespace: str
    when: tuple[Json, ...]
    rules: tuple[Json, ...]

    def grants(self) -> Iterator[Grant]:
        for rule in self.rules:
            for each in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"]):
                yield Grant(*each, tuple(rule.get("resourceNames", ())))

    def holds(self, settings: Mapping[str, Any]) -> bool:
        """`settings`: those of the table, by path in the configuration, with the values that they have."""
        return not self.when or any(
            all(_is_one_of(word(settings[key]), values) for key, values in each.items()) for each in self.when
        )


def word(value: object) -> str:
    """The text of a setting: off is a boolean in YAML."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _is_one_of(has: str, values: Iterable[object]) -> bool:
    return any(word(value) == has or (value == ANY and has not in ("", "off")) for value in values)


def features() -> tuple[Feature, ...]:
    table = _table()
    return tuple(
        Feature(
            account, row["feature"], row["text"], row.get("namespace", ""), tuple(row.get("when", ())),
            tuple(row["rules"]),
        )
        for account in ("scheduler", "jobs")
        for row in table[account]
    )  # fmt: skip


def settings() -> Json:
    """The settings that features depend on, with their defaults."""
    return dict(_table()["settings"])


@cache
def _table() -> Json:
    table: Json = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return table
