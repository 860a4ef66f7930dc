"""The rules of each kind of resource.k8s.io, by group and kind, for the tables of all kinds."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.cluster.api.device_rules import allocation_rules, claim_rules, class_rules, slice_rules
from benchmarks.cluster.api.validation import Causes, Json
from benchmarks.cluster.store.device_kinds import (
    ADMIN_LABEL,
    CLAIM_TEMPLATES,
    DEVICE_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    TAINT_RULES,
)
from benchmarks.cluster.store.kinds import Kind

_What = tuple[str, str]


def _of(kind: Kind) -> _What:
    return kind.group, kind.kind


_CLAIM, _TEMPLATE, _SLICE, _CLASS, _RULE = map(
    _of, (RESOURCE_CLAIMS, CLAIM_TEMPLATES, RESOURCE_SLICES, DEVICE_CLASSES, TAINT_RULES)
)

DEVICE_DEFAULTS: dict[_What, Callable[[Json], None]] = {
    _CLAIM: claim_rules.default_claim,
    _TEMPLATE: claim_rules.default_template,
    _SLICE: slice_rules.default_slice,
    _RULE: class_rules.default_rule,
}
"""Set at each write."""
DEVICE_CHECKS: dict[_What, Callable[[Json], Causes]] = {
    _CLAIM: claim_rules.claim,
    _TEMPLATE: claim_rules.template,
    _SLICE: slice_rules.resource_slice,
    _CLASS: class_rules.device_class,
    _RULE: class_rules.taint_rule,
}
"""Of the whole object."""
DEVICE_UPDATE_CHECKS: dict[_What, Callable[[Json, Json], Causes]] = {
    _CLAIM: claim_rules.fixed_spec,
    _TEMPLATE: claim_rules.fixed_spec,
    _SLICE: slice_rules.fixed_slice,
}
"""Of a change: (new, old)."""
FIXED_SPECS = frozenset((_CLAIM, _TEMPLATE))
"""Kinds whose specification is checked at creation only, since it never changes."""
DEVICE_STATUS_CHECKS: dict[_What, Callable[[Json, Json], Causes]] = {
    _CLAIM: allocation_rules.claim_status,
    _RULE: class_rules.rule_status,
}
"""Of a change of the status: (new, old)."""
PREPARE: dict[tuple[_What, str], Callable[[Json, Json], None]] = {
    (_CLAIM, "status"): allocation_rules.prepare_status,
    (_RULE, ""): class_rules.prepare_rule,
}
"""(kind, subresource) to what the server itself changes in an update: (new, old)."""
WITH_EMPTY_STATUS = frozenset((_CLAIM, _RULE))
"""Kinds that begin with an empty status, whatever a client sends."""


def refused_admin_access(what: _What, new: Json, old: Json | None, namespace_labels: dict[str, str]) -> Causes:
    """Administrative access that the labels of the namespace do not allow: in a new claim or template, or (with `old`)
    in an allocation."""
    if what == _CLAIM and old is not None:
        return allocation_rules.admin_results(new, old, namespace_labels, ADMIN_LABEL)
    if what in FIXED_SPECS and old is None:
        return claim_rules.admin_access(new, namespace_labels, ADMIN_LABEL)
    return []
