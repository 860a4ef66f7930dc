"""The device claims of pods that are only supposed: those of their manifest, then those of the cluster."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

import msgspec

from poseidon_py.devices.objects import GROUP, DeviceClaimSpec
from poseidon_py.kube.objects import InvalidField
from poseidon_py.state.devices.claim_cache import ClaimKey
from poseidon_py.state.devices.supposed import ClaimSpecs

Json = dict[str, Any]
_TEMPLATE = "resourceClaimTemplateName"


async def claim_specs(
    objects: Iterable[object], namespace: str, read: Callable[[ClaimKey], Awaitable[DeviceClaimSpec | None]]
) -> ClaimSpecs:
    """What the claims and templates ask for that a manifest has, or names templates of. `namespace`: of objects that
    name none. `read`: a template of the cluster; None: there is none. Raises InvalidField."""
    listed = list(_flat(objects))
    found = ClaimSpecs({}, {})
    for item in listed:
        kind = item.get("kind")
        if not str(item.get("apiVersion", "")).startswith(f"{GROUP}/"):
            continue
        key = _key(item, namespace)
        if kind == "ResourceClaim":
            found.claims[key] = _spec(item.get("spec"), f"ResourceClaim {key[1]}: spec")
        elif kind == "ResourceClaimTemplate":
            inner = item.get("spec")
            spec = inner.get("spec") if isinstance(inner, dict) else None
            found.templates[key] = _spec(spec, f"ResourceClaimTemplate {key[1]}: spec.spec")
    for item in listed:
        for name in sorted(set(_named(item))):
            key = (_key(item, namespace)[0], name)
            if key not in found.templates and (spec_read := await read(key)) is not None:
                found.templates[key] = spec_read
    return found


def _key(item: Json, namespace: str) -> ClaimKey:
    metadata = item.get("metadata")
    stated = metadata if isinstance(metadata, dict) else {}
    return str(stated.get("namespace") or namespace), str(stated.get("name") or "")


def _spec(given: object, path: str) -> DeviceClaimSpec:
    try:
        return msgspec.convert(given, DeviceClaimSpec)
    except msgspec.ValidationError as error:
        raise InvalidField(path, str(error)) from error


def _flat(items: Iterable[object]) -> Iterator[Json]:
    for item in items:
        if isinstance(item, dict) and str(item.get("kind", "")).endswith("List"):
            inner = item.get("items")
            yield from _flat(inner if isinstance(inner, list) else ())
        elif isinstance(item, dict):
            yield item


def _named(value: object) -> Iterator[str]:
    """The templates that pods and pod templates name, at any depth."""
    if isinstance(value, dict):
        name = value.get(_TEMPLATE)
        if isinstance(name, str) and name:
            yield name
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _named(each)
