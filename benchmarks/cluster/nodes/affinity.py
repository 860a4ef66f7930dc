"""Whether a pod's selector and affinity match a node, and whether it tolerates the node's taints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.cluster.store.selectors import Requirement

Json = dict[str, Any]


def selects(spec: Mapping[str, Any], node_name: str, labels: Mapping[str, str]) -> bool:
    """nodeSelector and required node affinity."""
    for key, value in (spec.get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return not required or selector_holds(required, node_name, labels)


def selector_holds(selector: Mapping[str, Any], node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether a NodeSelector matches a node."""
    return any(_term(term, node_name, labels) for term in selector.get("nodeSelectorTerms") or ())


def _term(term: Mapping[str, Any], node_name: str, labels: Mapping[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False  # an empty term selects nothing
    named = {"metadata.name": node_name}
    return all(_requirement(one).holds(labels) for one in expressions) and all(
        _requirement(one).holds(named) for one in fields
    )


def _requirement(expression: Mapping[str, Any]) -> Requirement:
    return Requirement(expression["key"], expression["operator"], frozenset(expression.get("values") or ()))


def tolerates(tolerations: Sequence[Mapping[str, Any]], taint: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The toleration that covers the taint, if there is one."""
    for toleration in tolerations:
        if toleration.get("effect") not in (None, "", taint.get("effect")):
            continue
        key = toleration.get("key") or ""
        if key and key != taint.get("key"):
            continue
        if toleration.get("operator") == "Exists":
            return toleration
        if key and (toleration.get("value") or "") == (taint.get("value") or ""):
            return toleration
    return None
