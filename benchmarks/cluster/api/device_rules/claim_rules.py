"""ResourceClaims and ResourceClaimTemplates: defaults, and what a specification may hold."""

from __future__ import annotations

from typing import Any

from benchmarks.cluster.api.device_rules.field_checks import (
    dns_label,
    dns_subdomain,
    driver_name,
    each,
    exactly_one,
    label_key,
    label_value,
    qualified_name,
    raw_object,
    same,
    too_long,
)
from benchmarks.cluster.api.validation import Causes, Json, unsupported
from benchmarks.cluster.store.errors import forbidden_field, invalid_value, required
from benchmarks.cluster.store.quantities import parse

MAX_REQUESTS, MAX_ALTERNATIVES, MAX_SELECTORS, MAX_CONFIGS, MAX_CONSTRAINTS = 32, 8, 32, 32, 32
MAX_EXPRESSION, MAX_PARAMETERS = 10 * 1024, 10 * 1024
"""Bytes of a CEL expression, and of the parameters of a driver."""
EFFECTS = ["NoExecute", "NoSchedule", "None"]
_NO_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
_ONE_FORM = "exactly one of `exactly` or `firstAvailable` is required"
IMMUTABLE = "field is immutable"


def default_claim(obj: Json) -> None:
    """The defaults of a claim."""
    _default_spec(obj.setdefault("spec", {}))


def default_template(obj: Json) -> None:
    """The defaults of a template."""
    _default_spec(obj.setdefault("spec", {}).setdefault("spec", {}))


def _default_spec(spec: Json) -> None:
    for request in spec.setdefault("devices", {}).get("requests") or ():
        exactly = request.get("exactly")
        for one in (*([exactly] if isinstance(exactly, dict) else []), *(request.get("firstAvailable") or ())):
            one.setdefault("allocationMode", "ExactCount")
            if one["allocationMode"] == "ExactCount" and not one.get("count"):
                one["count"] = 1
            for toleration in one.get("tolerations") or ():
                toleration.setdefault("operator", "Equal")


def claim(obj: Json) -> Causes:
    """A new claim."""
    return claim_spec(obj.get("spec") or {}, "spec")


def template(obj: Json) -> Causes:
    """A new template."""
    return claim_spec((obj.get("spec") or {}).get("spec") or {}, "spec.spec")


def fixed_spec(new: Json, old: Json) -> Causes:
    """A change of a claim or a template: nothing of its specification."""
    if same(new.get("spec"), old.get("spec")):
        return []
    return [invalid_value("spec", new.get("spec"), IMMUTABLE)]


def claim_spec(spec: Json, field: str) -> Causes:
    """The specification of a claim."""
    devices = spec.get("devices") or {}
    known = request_names(devices)
    place = f"{field}.devices"

    def constraint(one: Json, at: str) -> Causes:
        return _constraint(one, at, known)

    def config(one: Json, at: str) -> Causes:
        return request_references(one.get("requests"), f"{at}.requests", known) + configuration(one, at)

    return [
        *each(devices.get("requests"), MAX_REQUESTS, f"{place}.requests", _request, lambda one: one.get("name")),
        *each(devices.get("constraints"), MAX_CONSTRAINTS, f"{place}.constraints", constraint),
        *each(devices.get("config"), MAX_CONFIGS, f"{place}.config", config),
    ]


def request_names(devices: Json) -> frozenset[str]:
    """How a constraint, a configuration or a result may name a request: `request`, or `request/alternative`."""
    found: set[str] = set()
    for request in devices.get("requests") or ():
        name = request.get("name") or ""
        found.add(name)
        found.update(f"{name}/{one.get('name') or ''}" for one in request.get("firstAvailable") or ())
    return frozenset(found)


def request_references(names: Any, field: str, known: frozenset[str]) -> Causes:
    """A list of names of requests, each once."""
    return each(names, MAX_REQUESTS, field, lambda name, at: request_reference(name, at, known), lambda name: name)


def request_reference(name: str, field: str, known: frozenset[str]) -> Causes:
    """The name of a request of the claim."""
    parts = name.split("/")
    if len(parts) > 2:
        return [invalid_value(field, name, _NO_REQUEST)]
    causes = [one for part in parts for one in dns_label(part, field)]
    return causes if name in known else [*causes, invalid_value(field, name, _NO_REQUEST)]


def _request(request: Json, field: str) -> Causes:
    causes = dns_label(request.get("name") or "", f"{field}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if exactly is None and not alternatives:
        return [*causes, required(field, _ONE_FORM)]
    if exactly is not None and alternatives:
        return [*causes, invalid_value(field, None, f"{_ONE_FORM}, but multiple fields are set")]
    if exactly is not None:
        return causes + _demand(exactly, f"{field}.exactly")
    return causes + each(
        alternatives, MAX_ALTERNATIVES, f"{field}.firstAvailable", _alternative, lambda one: one.get("name")
    )


def _alternative(alternative: Json, field: str) -> Causes:
    return dns_label(alternative.get("name") or "", f"{field}.name") + _demand(alternative, field)


def _demand(demand: Json, field: str) -> Causes:
    """What `exactly` and an alternative have in common."""
    name = demand.get("deviceClassName") or ""
    place = f"{field}.deviceClassName"
    causes = dns_subdomain(name, place) if name else [required(place)]
    causes += selectors(demand.get("selectors"), f"{field}.selectors")
    mode, count = demand.get("allocationMode"), demand.get("count") or 0
    if mode == "All":
        if count:
            causes.append(invalid_value(f"{field}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount":
        if count <= 0:
            causes.append(invalid_value(f"{field}.count", count, "must be greater than zero"))
    else:
        causes.append(unsupported(f"{field}.allocationMode", mode or "", ["All", "ExactCount"]))
    for quantity in ((demand.get("capacity") or {}).get("requests") or {}).values():
        parse(quantity)  # the names are not checked
    return causes + each(demand.get("tolerations"), -1, f"{field}.tolerations", _toleration)


def selectors(given: Any, field: str) -> Causes:
    """Selectors of devices. The expressions are not compiled here."""
    return each(given, MAX_SELECTORS, field, _selector)


def _selector(selector: Json, field: str) -> Causes:
    cel = selector.get("cel")
    if cel is None:
        return [required(f"{field}.cel")]
    place = f"{field}.cel.expression"
    expression = cel.get("expression") or ""
    if len(expression.encode()) > MAX_EXPRESSION:
        return [too_long(place, MAX_EXPRESSION)]
    if not expression.strip():
        return [invalid_value(place, expression, "compilation failed: ERROR: <input>:1:1: Syntax error")]
    return []


def _toleration(toleration: Json, field: str) -> Causes:
    causes = label_key(toleration["key"], f"{field}.key") if toleration.get("key") else []
    operator, value = toleration.get("operator"), toleration.get("value")
    if operator == "Exists" and value:
        causes.append(invalid_value(f"{field}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        causes += label_value(value, f"{field}.value")
    else:
        causes += exactly_one(operator, ["Equal", "Exists"], f"{field}.operator")
    return causes + exactly_one(toleration.get("effect"), EFFECTS, f"{field}.effect", may_be_unset=True)


def _constraint(constraint: Json, field: str, known: frozenset[str]) -> Causes:
    causes = request_references(constraint.get("requests"), f"{field}.requests", known)
    for name in ("matchAttribute", "distinctAttribute"):
        if constraint.get(name) is not None:
            return causes + qualified_name(constraint[name], f"{field}.{name}", whole=True)
    why = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    return [*causes, required(field, why)]


def configuration(config: Json, field: str) -> Causes:
    """The configuration of devices, in a claim, a class or an allocation."""
    opaque = config.get("opaque")
    if opaque is None:
        return [required(f"{field}.opaque")]
    place = f"{field}.opaque"
    return [
        *driver_name(opaque.get("driver"), f"{place}.driver"),
        *raw_object(opaque.get("parameters"), f"{place}.parameters", MAX_PARAMETERS),
    ]


def admin_access(obj: Json, namespace_labels: dict[str, str], label: str) -> Causes:
    """Of a new claim or template: administrative access needs a label of the namespace."""
    spec = obj.get("spec") or {}
    requests = ((spec.get("spec") or spec).get("devices") or {}).get("requests") or ()
    for at, request in enumerate(requests):
        if (request.get("exactly") or {}).get("adminAccess"):
            return refused_admin(f"spec.devices.requests[{at}].adminAccess", namespace_labels, label)
    return []


def refused_admin(field: str, namespace_labels: dict[str, str], label: str) -> Causes:
    """The refusal of administrative access, unless the namespace has the label."""
    if namespace_labels.get(label) == "true":
        return []
    why = f"admin access to devices requires the `{label}: true` label on the containing namespace"
    return [forbidden_field(field, why)]
