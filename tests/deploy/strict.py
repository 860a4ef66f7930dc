"""Whether an API server takes an object with strict decoding: known fields of the right types. By the classes of the
Kubernetes client; kinds that it does not have are passed over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubernetes.client import models

Json = dict[str, Any]

_SCALARS = {"str": (str, int), "int": (int,), "bool": (bool,), "float": (int, float), "datetime": (str,)}
_TEXT_OR_NUMBER = re.compile(r"(requests|limits|sizeLimit|quantity)$")


def problems_of(item: Json) -> list[str]:
    """Empty: none. A problem begins with the path of a field."""
    group, _, version = item["apiVersion"].rpartition("/")
    model = getattr(models, f"{version[0].upper()}{version[1:]}{item['kind']}", None)
    if model is None:
        assert "." in group, f"{item['apiVersion']} {item['kind']} is a kind of Kubernetes"
        return []
    return list(_of_object(model, item, item["kind"]))


def _of_object(model: Any, item: Any, path: str) -> Iterator[str]:
    if not isinstance(item, dict):
        yield f"{path}: is not an object"
        return
    names = {name: attribute for attribute, name in model.attribute_map.items()}
    for name, value in item.items():
        if name not in names:
            yield f"{path}.{name}: unknown field"
        else:
            yield from _of_value(model.openapi_types[names[name]], value, f"{path}.{name}")


def _of_value(kind: str, value: Any, path: str) -> Iterator[str]:
    if many := re.fullmatch(r"[Ll]ist\[(.+)\]", kind):
        if not isinstance(value, list):
            yield f"{path}: is not a list"
            return
        for at, each in enumerate(value):
            yield from _of_value(many[1], each, f"{path}[{at}]")
    elif entries := re.fullmatch(r"[Dd]ict[\[(]str, (.+)[\])]", kind):
        if not isinstance(value, dict):
            yield f"{path}: is not a map"
            return
        for key, each in value.items():
            yield from _of_value(entries[1], each, f"{path}.{key}")
    elif kind == "object":
        return
    elif kind in _SCALARS:
        numbers = kind == "str" and isinstance(value, int) and not _TEXT_OR_NUMBER.search(path.rpartition(".")[0])
        odd = isinstance(value, bool) and kind != "bool"
        if not isinstance(value, _SCALARS[kind]) or odd or numbers:
            yield f"{path}: {value!r} is not {kind}"
    else:
        yield from _of_object(getattr(models, kind), value, path)
