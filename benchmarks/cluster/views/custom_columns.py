"""Columns of custom resources, from their definitions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from benchmarks.cluster.views.columns import AGE, NAME, Column, age

Json = dict[str, Any]

_STEP = re.compile(r"\.((?:[^.\[\\]|\\.)+)|\[(\d+)\]|\[['\"]([^'\"]+)['\"]\]|\[\?\(@\.(\w+)==['\"]([^'\"]*)['\"]\)\]")


def custom_columns(stated: Sequence[Json]) -> Sequence[Column]:
    """Name and the additionalPrinterColumns, or Name and Age if there are none."""
    if not stated:
        return (NAME, AGE)
    columns = [NAME]
    for one in stated:
        path, type_ = one.get("jsonPath", ""), one.get("type", "string")

        def cell(obj: Json, path: str = path, type_: str = type_) -> Any:
            value = find(obj, path)
            if type_ == "date":
                return age(value)
            return value

        columns.append(Column(one["name"], cell, type_, one.get("priority", 0)))
    return columns


def find(obj: Any, path: str) -> Any:
    """The value at a simple JSON path (.a.b[0], .a[?(@.type=="b")].c); None if it is absent."""
    for step in _STEP.finditer(path):
        name, index, quoted, field, value = step.groups()
        key = quoted or (name.replace("\\.", ".") if name else None)
        if key is not None:
            obj = obj.get(key) if isinstance(obj, dict) else None
        elif field is not None:
            among = obj if isinstance(obj, list) else ()
            obj = next((each for each in among if isinstance(each, dict) and each.get(field) == value), None)
        else:
            obj = obj[int(index)] if isinstance(obj, list) and int(index) < len(obj) else None
    return obj
