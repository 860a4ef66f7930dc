"""Label and field selectors: text in, a predicate over labels or fields out.

Also the structured form (`matchLabels`, `matchExpressions`) that controllers and budgets use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from benchmarks.cluster.store.errors import bad_request
from benchmarks.cluster.store.kinds import Kind

Labels = Mapping[str, str]
LabelTest = Callable[[Labels], bool]


@dataclass(frozen=True)
class Requirement:
    """One term of a label selector; a label set must match all terms."""

    key: str
    operator: str  # In, NotIn, Exists, DoesNotExist, Gt, Lt
    values: frozenset[str] = frozenset()

    def holds(self, labels: Labels) -> bool:
        """Whether the labels match this term. NotIn and DoesNotExist match if the key is absent."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                bound = next(iter(self.values), "")
                try:
                    left, right = int(value or ""), int(bound)
                except ValueError:
                    return False
                return left > right if self.operator == "Gt" else left < right
        return False


_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_EQUALITY = re.compile(rf"({_KEY})\s*(==|=|!=|>|<)\s*({_VALUE})")
_EXISTS = re.compile(rf"(!?)\s*({_KEY})")


def _terms(text: str) -> list[str]:
    terms: list[str] = []
    depth, start = 0, 0
    for at, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth == 0:
            terms.append(text[start:at])
            start = at + 1
    terms.append(text[start:])
    return terms


def _requirement(term: str, text: str) -> Requirement:
    if found := _SET.fullmatch(term):
        key, operator, listed = found.groups()
        values = frozenset(value.strip() for value in listed.split(","))
        if all(re.fullmatch(_VALUE, value) for value in values):
            return Requirement(key, "In" if operator == "in" else "NotIn", values)
    elif found := _EQUALITY.fullmatch(term):
        key, operator, value = found.groups()
        names = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
        return Requirement(key, names[operator], frozenset((value,)))
    elif found := _EXISTS.fullmatch(term):
        return Requirement(found[2], "DoesNotExist" if found[1] else "Exists")
    raise bad_request(f"unable to parse requirement {term!r} of label selector {text!r}")


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> LabelTest | None:
    """The predicate of a label selector; None if it selects everything."""
    if not text.strip():
        return None
    terms = [_requirement(term.strip(), text) for term in _terms(text)]
    if len(terms) == 1:
        return terms[0].holds
    return lambda labels: all(term.holds(labels) for term in terms)


def from_structured(selector: Mapping[str, Any] | None) -> LabelTest:
    """The predicate of a `LabelSelector` object: None selects nothing, an empty one everything."""
    if selector is None:
        return lambda labels: False
    terms = [Requirement(k, "In", frozenset((v,))) for k, v in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        values = frozenset(expression.get("values") or ())
        terms.append(Requirement(expression["key"], expression["operator"], values))
    return lambda labels: all(term.holds(labels) for term in terms)


@dataclass(frozen=True)
class FieldTerm:
    """`position` in a record's fields (-1 name, -2 namespace) must, or must not, equal `value`."""

    position: int
    value: str
    equal: bool


@lru_cache(maxsize=4096)
def parse_fields(kind: Kind, text: str) -> tuple[FieldTerm, ...]:
    """The terms of a field selector. Raises ApiError for fields that the kind does not index."""
    terms: list[FieldTerm] = []
    for part in text.split(","):
        if not part.strip():
            continue
        found = re.fullmatch(r"\s*([^=!\s]+)\s*(==|=|!=)\s*(.*?)\s*", part)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        name, operator, value = found.groups()
        if name == "metadata.name":
            position = -1
        elif name == "metadata.namespace" and kind.namespaced:
            position = -2
        elif name in kind.field_names:
            position = kind.field_names.index(name)
        else:
            raise bad_request(
                f'Unable to find "{kind.group + "/" if kind.group else ""}{kind.version}, '
                f'Resource={kind.plural}" that match label selector "", field selector "{text}": '
                f"field label not supported: {name}"
            )
        terms.append(FieldTerm(position, value, operator != "!="))
    return tuple(terms)
