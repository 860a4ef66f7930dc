"""Selectors in the contract's words: of nodes, and of labels.

Both check what they translate: an operator that nobody knows must not turn into a demand that everything meets.
"""

from collections.abc import Iterable, Mapping

from poseidon_py.kube.object_details import LabelSelector
from poseidon_py.kube.objects import InvalidField, Requirement, SelectorTerm
from protos.gen import firmament_pb2

NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_FIELDS = ("metadata.name",)
_DIGITS = 19
"""Of the longest 64-bit integer."""

Told = firmament_pb2.NodeSelectorRequirement


def node_selector(terms: Iterable[SelectorTerm], path: str, *, strict: bool = False) -> firmament_pb2.NodeSelector:
    """Alternatives; without any of them no node matches. Raises InvalidField.

    API servers let a bound pass that is no number. Unless `strict`, its term is told, matches nothing, and leaves the
    other alternatives what they are, as in kube-scheduler.
    """
    return firmament_pb2.NodeSelector(
        nodeSelectorTerms=[node_term(term, f"{path}[{at}]", strict=strict) for at, term in enumerate(terms)]
    )


def node_term(term: SelectorTerm, path: str, *, strict: bool = True) -> firmament_pb2.NodeSelectorTerm:
    """Demands that must all be met; an empty term matches nothing. Raises InvalidField."""
    return firmament_pb2.NodeSelectorTerm(
        matchExpressions=_requirements(term.labels or (), f"{path}.matchExpressions", NODE_OPERATORS, strict=strict),
        matchFields=_requirements(term.fields or (), f"{path}.matchFields", NODE_OPERATORS, _FIELDS, strict=strict),
    )


def on_node(name: str) -> firmament_pb2.NodeSelectorTerm:
    """The node of that name."""
    return firmament_pb2.NodeSelectorTerm(matchFields=[Told(key="metadata.name", operator="In", values=[name])])


def label_requirements(selector: LabelSelector, path: str) -> list[Told]:
    """What labels must meet, all of it; none for a selector that matches everything. Raises InvalidField."""
    exact = [Told(key=key, operator="In", values=[value]) for key, value in sorted((selector.labels or {}).items())]
    return exact + _requirements(selector.expressions or (), f"{path}.matchExpressions", LABEL_OPERATORS)


def with_label_keys(
    told: list[Told], labels: Mapping[str, str], match: Iterable[str], mismatch: Iterable[str] = ()
) -> list[Told]:
    """`told`, narrowed to pods that share (or do not share) these labels' values with the pod whose `labels` they are.

    API servers do the same when they admit the pod, so that mostly nothing is left to add.
    """
    more = [Told(key=key, operator="In", values=[labels[key]]) for key in match if key in labels]
    more += [Told(key=key, operator="NotIn", values=[labels[key]]) for key in mismatch if key in labels]
    known = {each.SerializeToString(deterministic=True) for each in told} if more else set()
    return told + [each for each in more if each.SerializeToString(deterministic=True) not in known]


def _requirements(
    given: Iterable[Requirement],
    path: str,
    operators: tuple[str, ...],
    keys: tuple[str, ...] | None = None,
    *,
    strict: bool = True,
) -> list[Told]:
    result = []
    for each in given:
        values = each.values or []
        if each.operator not in operators:
            raise InvalidField(path, f"operator {each.operator!r} is none of {', '.join(operators)}")
        if keys is not None and each.key not in keys:
            raise InvalidField(path, f"{each.key!r} is not a field that can be selected by; {', '.join(keys)} is")
        if strict and each.operator in ("Gt", "Lt") and (len(values) != 1 or integer(values[0]) is None):
            raise InvalidField(path, f"{each.operator} needs one integer, not {values}")
        if each.operator in ("In", "NotIn") and not values:
            raise InvalidField(path, f"{each.operator} needs values")
        result.append(Told(key=each.key, operator=each.operator, values=values))
    return result


def integer(text: str) -> int | None:
    """What Gt and Lt compare: the value of a decimal 64-bit integer, None if it is none. Python's own idea is wider."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"
    if len(digits) > _DIGITS:  # Python refuses to convert thousands of them
        return None
    value = -int(digits) if text[0] == "-" else int(digits)
    return value if -(2**63) <= value < 2**63 else None
