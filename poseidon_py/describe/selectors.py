"""Node selectors and label selectors as messages of the contract.

Both are validated: an unknown operator must not become a requirement that every node meets.
"""

from collections.abc import Iterable, Mapping

from poseidon_py.kube.object_details import LabelSelector
from poseidon_py.kube.objects import InvalidField, Requirement, SelectorTerm
from poseidon_py.kube.selector_matching import integer
from protos.gen import firmament_pb2

NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_FIELDS = ("metadata.name",)

RequirementMessage = firmament_pb2.NodeSelectorRequirement


def node_selector(terms: Iterable[SelectorTerm], path: str, *, strict: bool = False) -> firmament_pb2.NodeSelector:
    """A selector of alternative terms; without terms no node matches. Raises InvalidField.

    API servers accept Gt and Lt with a value that is not an integer. Unless `strict`, such a term matches nothing and
    does not affect the other alternatives, as in kube-scheduler.
    """
    return firmament_pb2.NodeSelector(
        nodeSelectorTerms=[node_term(term, f"{path}[{at}]", strict=strict) for at, term in enumerate(terms)]
    )


def node_term(term: SelectorTerm, path: str, *, strict: bool = True) -> firmament_pb2.NodeSelectorTerm:
    """Requirements that must all be met; an empty term matches nothing. Raises InvalidField."""
    return firmament_pb2.NodeSelectorTerm(
        matchExpressions=_requirements(term.labels or (), f"{path}.matchExpressions", NODE_OPERATORS, strict=strict),
        matchFields=_requirements(term.fields or (), f"{path}.matchFields", NODE_OPERATORS, _FIELDS, strict=strict),
    )


def on_node(name: str) -> firmament_pb2.NodeSelectorTerm:
    """A term that matches the node of that name."""
    return firmament_pb2.NodeSelectorTerm(
        matchFields=[RequirementMessage(key="metadata.name", operator="In", values=[name])]
    )


def label_requirements(selector: LabelSelector, path: str) -> list[RequirementMessage]:
    """Requirements that labels must all meet; none if the selector matches everything. Raises InvalidField."""
    exact = [
        RequirementMessage(key=key, operator="In", values=[value])
        for key, value in sorted((selector.labels or {}).items())
    ]
    return exact + _requirements(selector.expressions or (), f"{path}.matchExpressions", LABEL_OPERATORS)


def is_met(requirement: RequirementMessage, labels: Mapping[str, str]) -> bool:
    """Whether labels meet a requirement of label_requirements."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
    return value is None


def with_label_keys(
    requirements: list[RequirementMessage],
    labels: Mapping[str, str],
    match: Iterable[str],
) -> list[RequirementMessage]:
    """`requirements`, narrowed to pods with the same values of the labels `match`.

    `labels` are those of the pod that has the constraint. API servers do the same on admission, so that usually nothing
    is added.
    """
    added = [RequirementMessage(key=key, operator="In", values=[labels[key]]) for key in match if key in labels]
    known = {each.SerializeToString(deterministic=True) for each in requirements} if added else set()
    return requirements + [each for each in added if each.SerializeToString(deterministic=True) not in known]


def _requirements(
    given: Iterable[Requirement],
    path: str,
    operators: tuple[str, ...],
    keys: tuple[str, ...] | None = None,
    *,
    strict: bool = True,
) -> list[RequirementMessage]:
    result = []
    for each in given:
        values = each.values or []
        if each.operator not in operators:
            raise InvalidField(path, f"operator {each.operator!r} is not valid; give one of {', '.join(operators)}")
        if keys is not None and each.key not in keys:
            raise InvalidField(path, f"{each.key!r} cannot be selected by; give {', '.join(keys)}")
        if strict and each.operator in ("Gt", "Lt") and (len(values) != 1 or integer(values[0]) is None):
            raise InvalidField(path, f"{each.operator} has the values {values}; give one integer")
        if each.operator in ("In", "NotIn") and not values:
            raise InvalidField(path, f"{each.operator} has no values; give at least one")
        result.append(RequirementMessage(key=each.key, operator=each.operator, values=values))
    return result
