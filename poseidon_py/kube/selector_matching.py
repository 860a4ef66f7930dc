"""Whether labels match the selectors of the API. Pure."""

from collections.abc import Mapping

from poseidon_py.kube.object_details import LabelSelector
from poseidon_py.kube.objects import InvalidField, RequiredTerms, Requirement, SelectorTerm

_DIGITS = 19
"""Digits of the largest 64-bit integer."""


def matches(selector: LabelSelector, values: Mapping[str, str]) -> bool:
    """Whether labels match a label selector. Raises InvalidField for an unknown operator."""
    exact = all(values.get(key) == value for key, value in (selector.labels or {}).items())
    return exact and all(meets(each, values) for each in selector.expressions or ())


def meets(requirement: Requirement, present: Mapping[str, str]) -> bool:
    """Whether labels meet one requirement of a node or label selector. Raises InvalidField for an unknown operator."""
    value, values = present.get(requirement.key), requirement.values or []
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            number, bound = integer(value or ""), integer(values[0] if len(values) == 1 else "")
            if number is None or bound is None:
                return False
            return number > bound if requirement.operator == "Gt" else number < bound
    raise InvalidField("operator", f"{requirement.operator!r} is none of In, NotIn, Exists, DoesNotExist, Gt, Lt")


def meets_term(term: SelectorTerm, node: str, labels: Mapping[str, str]) -> bool:
    """Whether a node matches a term; an empty one, or one that cannot be read, matches none."""
    try:
        return bool(term.labels or term.fields) and (
            all(meets(each, labels) for each in term.labels or ())
            and all(meets(each, {"metadata.name": node}) for each in term.fields or ())
        )
    except InvalidField:
        return False


def node_matches(selector: RequiredTerms | None, node: str, labels: Mapping[str, str]) -> bool:
    """Whether a node matches one of a selector's terms; None: every node does."""
    return selector is None or any(meets_term(term, node, labels) for term in selector.terms or ())


def integer(text: str) -> int | None:
    """The value of a decimal 64-bit integer, as Gt and Lt compare it; None: not one. Python's int() accepts more."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"
    if len(digits) > _DIGITS:  # Python refuses to convert thousands of them
        return None
    value = -int(digits) if text[0] == "-" else int(digits)
    return value if -(2**63) <= value < 2**63 else None
