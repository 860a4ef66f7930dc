"""Field checks that several kinds share: names, labels, owners, quantities.

Only fields that matter to users of a scheduler are checked. Each check returns the causes of a 422; an empty list means
valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from benchmarks.cluster.store.errors import cause, invalid_value, required
from benchmarks.cluster.store.quantities import parse

Json = dict[str, Any]
Causes = list[Json]

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
SUBDOMAIN_SAID = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NAME_PART_SAID = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_SAID = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character"
)


def unsupported(field: str, value: Any, supported: list[str]) -> Json:
    """The cause `field: Unsupported value: ...`."""
    listed = ", ".join(f'"{one}"' for one in supported)
    message = f'Unsupported value: "{value}": supported values: {listed}'
    return cause(field, message, "FieldValueNotSupported")


def metadata(meta: Json) -> Causes:
    """Name, labels and annotations of any object."""
    causes: Causes = []
    name = meta.get("name") or ""
    if len(name) > 253 or not SUBDOMAIN.fullmatch(name):
        causes.append(invalid_value("metadata.name", name, SUBDOMAIN_SAID))
    causes += labels(meta.get("labels"), "metadata.labels")
    annotations = meta.get("annotations")
    if annotations is not None and not (
        isinstance(annotations, dict) and all(isinstance(value, str) for value in annotations.values())
    ):
        causes.append(invalid_value("metadata.annotations", annotations, "must be a map of strings"))
    finalizers = meta.get("finalizers")
    if finalizers is not None and not (
        isinstance(finalizers, list) and all(isinstance(one, str) and one for one in finalizers)
    ):
        causes.append(invalid_value("metadata.finalizers", finalizers, "must be a list of names"))
    return causes + owner_references(meta.get("ownerReferences"))


def owner_references(given: Any) -> Causes:
    """Owner references: each names its owner completely, and at most one is the controller."""
    if given is None:
        return []
    if not isinstance(given, list):
        return [invalid_value("metadata.ownerReferences", given, "must be a list")]
    causes: Causes = []
    for at, reference in enumerate(given):
        place = f"metadata.ownerReferences[{at}]"
        if not isinstance(reference, Mapping):
            causes.append(invalid_value(place, reference, "must be an object"))
            continue
        for name in ("apiVersion", "kind", "name", "uid"):
            if not isinstance(reference.get(name), str) or not reference[name]:
                causes.append(required(f"{place}.{name}"))
    if not causes and sum(reference.get("controller") is True for reference in given) > 1:
        causes.append(
            invalid_value("metadata.ownerReferences", given, "Only one reference can have Controller set to true.")
        )
    return causes


def labels(given: Any, field: str) -> Causes:
    """Label keys and values."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        return [invalid_value(field, given, "must be a map of strings")]
    causes: Causes = []
    for key, value in given.items():
        prefix, slash, name = key.rpartition("/")
        if len(name) > 63 or not _NAME_PART.fullmatch(name) or (slash and not SUBDOMAIN.fullmatch(prefix)):
            causes.append(invalid_value(field, key, _NAME_PART_SAID))
        if not isinstance(value, str) or len(value) > 63 or (value and not _NAME_PART.fullmatch(value)):
            causes.append(invalid_value(field, value, _LABEL_VALUE_SAID))
    return causes


def quantities(given: Any, field: str) -> Causes:
    """A resource list: every quantity parses and is not negative."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        return [invalid_value(field, given, "must be a map of quantities")]
    causes: Causes = []
    for name, quantity in given.items():
        try:
            value = parse(quantity)
        except (ValueError, TypeError) as error:
            causes.append(invalid_value(f"{field}[{name}]", quantity, str(error)))
            continue
        if value < 0:
            causes.append(invalid_value(f"{field}[{name}]", quantity, "must be greater than or equal to 0"))
    return causes
