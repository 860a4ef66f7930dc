"""Checks of single fields of device objects, with the API server's messages: names, quantities, bounded lists.

A quantity that does not parse raises ValueError, since a real server fails to decode it (400).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import orjson

from benchmarks.cluster.api.validation import SUBDOMAIN, SUBDOMAIN_SAID, Causes, Json, labels, unsupported
from benchmarks.cluster.store.errors import cause, invalid_value, required
from benchmarks.cluster.store.quantities import parse

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_SAID = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IDENTIFIER_SAID = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
MAX_NAME, MAX_SUBDOMAIN, MAX_IDENTIFIER = 63, 253, 32
"""Bytes of a DNS label and of a driver's name, of a DNS subdomain, and of the name of an attribute or a capacity."""


def too_many(field: str, count: int, limit: int) -> Json:
    """The cause `field: Too many: ...`."""
    return cause(field, f"Too many: {count}: must have at most {limit} item{'s' * (limit != 1)}", "FieldValueTooMany")


def too_long(field: str, limit: int) -> Json:
    """The cause `field: Too long: ...`."""
    return cause(field, f"Too long: may not be more than {limit} bytes", "FieldValueTooLong")


def duplicate(field: str, value: Any) -> Json:
    """The cause `field: Duplicate value: ...`."""
    return cause(field, f"Duplicate value: {orjson.dumps(value).decode()}", "FieldValueDuplicate")


def dns_label(value: str, field: str) -> Causes:
    """A DNS label: names of devices, requests, counters."""
    causes: Causes = []
    if len(value) > MAX_NAME:
        causes.append(invalid_value(field, value, f"must be no more than {MAX_NAME} bytes"))
    if not _LABEL.fullmatch(value):
        dots = SUBDOMAIN.fullmatch(value) is not None
        causes.append(invalid_value(field, value, "must not contain dots" if dots else _LABEL_SAID))
    return causes


def dns_subdomain(value: str, field: str) -> Causes:
    """A DNS subdomain: names of classes, claims and nodes."""
    causes: Causes = []
    if len(value) > MAX_SUBDOMAIN:
        causes.append(invalid_value(field, value, f"must be no more than {MAX_SUBDOMAIN} bytes"))
    if not SUBDOMAIN.fullmatch(value):
        causes.append(invalid_value(field, value, SUBDOMAIN_SAID))
    return causes


def driver_name(value: str | None, field: str) -> Causes:
    """The name of a driver: a DNS subdomain, in which capitals are accepted."""
    if not value:
        return [required(field)]
    causes = [too_long(field, MAX_NAME)] if len(value) > MAX_NAME else []
    if not SUBDOMAIN.fullmatch(value.lower()):
        causes.append(invalid_value(field, value, SUBDOMAIN_SAID))
    return causes


def pool_name(value: str | None, field: str) -> Causes:
    """The name of a pool: DNS subdomains, with slashes between them."""
    if not value:
        return [required(field)]
    causes = [too_long(field, MAX_SUBDOMAIN)] if len(value) > MAX_SUBDOMAIN else []
    for part in value.split("/"):
        causes += dns_subdomain(part, field)
    return causes


def qualified_name(value: str, field: str, *, whole: bool = False) -> Causes:
    """The name of an attribute or a capacity; `whole`: it must have its domain."""
    causes: Causes = []
    domain, slash, name = value.partition("/")
    if slash and "/" not in name:  # a second slash is accepted, as in Kubernetes up to 1.37
        if not domain:
            causes.append(invalid_value(field, "", "the domain must not be empty"))
        else:
            causes += driver_name(domain, field)
        if not name:
            causes.append(invalid_value(field, "", "the name must not be empty"))
        else:
            causes += _identifier(name, field)
    elif not slash:
        causes += _identifier(value, field)
        if whole:
            why = "a fully qualified name must be a domain and a name separated by a slash"
            causes.append(invalid_value(field, value, why))
    return causes


def _identifier(value: str, field: str) -> Causes:
    causes = [too_long(field, MAX_IDENTIFIER)] if len(value) > MAX_IDENTIFIER else []
    if not _IDENTIFIER.fullmatch(value):
        causes.append(invalid_value(field, value, _IDENTIFIER_SAID))
    return causes


def share_id(value: str, field: str) -> Causes:
    """The UUID of a share of a device."""
    if _UUID.fullmatch(value):
        return []
    return [invalid_value(field, value, f"error validating uid: invalid UUID length: {len(value)}")]


def label_key(value: str | None, field: str) -> Causes:
    """The name of a label: keys of taints, and binding conditions."""
    causes = labels({value or "": ""}, field)
    return causes if value else [invalid_value(field, "", "name part must be non-empty"), *causes]


def label_value(value: str | None, field: str) -> Causes:
    """The value of a label."""
    return labels({"x": value}, field) if value else []


def node_selector(selector: Json, field: str) -> Causes:
    """A node selector."""
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        return [required(f"{field}.nodeSelectorTerms", "must have at least one node selector term")]
    causes: Causes = []
    for at, term in enumerate(terms):
        for group in ("matchExpressions", "matchFields"):
            for index, expression in enumerate(term.get(group) or ()):
                place = f"{field}.nodeSelectorTerms[{at}].{group}[{index}]"
                operator = expression.get("operator") or ""
                if operator not in _OPERATORS:
                    causes.append(invalid_value(f"{place}.operator", operator, "not a valid selector operator"))
                elif operator in ("In", "NotIn") and not expression.get("values"):
                    causes.append(required(f"{place}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
                if group == "matchExpressions":
                    causes += label_key(expression.get("key"), f"{place}.key")
    return causes


def exactly_one(value: Any, supported: list[str], field: str, *, may_be_unset: bool = False) -> Causes:
    """A value of a list of words."""
    if not value:
        return [] if may_be_unset else [required(field)]
    return [] if value in supported else [unsupported(field, value, supported)]


def each(
    items: Iterable[Any] | None,
    limit: int,
    field: str,
    check: Callable[[Any, str], Causes],
    key: Callable[[Any], Hashable] | None = None,
) -> Causes:
    """A list of at most `limit` items (-1: any number), which differ in `key`. A list that is too long is checked no
    further."""
    items = list(items or ())
    if 0 <= limit < len(items):
        return [too_many(field, len(items), limit)]
    causes = [one for at, item in enumerate(items) for one in check(item, f"{field}[{at}]")]
    seen: set[Hashable] = set()
    for at, item in enumerate(items if key is not None else ()):
        identity = key(item) if key is not None else None
        if identity in seen:
            causes.append(duplicate(f"{field}[{at}]", identity))
        seen.add(identity)
    return causes


def each_entry(
    entries: Mapping[str, Any] | None,
    limit: int,
    field: str,
    check_key: Callable[[str, str], Causes],
    check: Callable[[Any, str], Causes],
) -> Causes:
    """A map of at most `limit` entries (-1: any number)."""
    entries = entries or {}
    if 0 <= limit < len(entries):
        return [too_many(field, len(entries), limit)]
    return [one for key, item in entries.items() for one in (*check_key(key, field), *check(item, f"{field}[{key}]"))]


def quantity_value(item: Json, _: str) -> Causes:
    """A counter or a capacity: any quantity that parses."""
    parse(item.get("value", "0"))
    return []


def raw_object(value: Any, field: str, limit: int) -> Causes:
    """A free object of at most `limit` bytes as JSON."""
    if value is None:
        return [required(field)]
    if len(orjson.dumps(value)) > limit:
        return [too_long(field, limit)]
    if not isinstance(value, dict):
        return [cause(field, 'Invalid value: "<value omitted>": must be a valid JSON object')]
    return []


def same(one: Any, other: Any) -> bool:
    """Equality as the API server has it for immutable fields: what is empty is like what is missing."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(one.get(key), other.get(key)) for key in one.keys() | other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or (one in (None, [], {}) and other in (None, [], {}))
