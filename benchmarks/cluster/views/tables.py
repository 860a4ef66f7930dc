"""Tables: what `kubectl get` prints, one row per object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from benchmarks.cluster.store.kinds import Kind
from benchmarks.cluster.store.store import Record
from benchmarks.cluster.views.columns import Column, default_columns
from benchmarks.cluster.views.custom_columns import custom_columns
from benchmarks.cluster.views.forms import View
from benchmarks.cluster.views.kind_columns import COLUMNS

Json = dict[str, Any]


class Tables:
    """Makes tables of records."""

    def table(self, kind: Kind, records: Sequence[Record], metadata: Json, include: str = "Metadata") -> Json:
        """A whole table, with the column definitions."""
        columns = columns_of(kind)
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": [column.definition() for column in columns],
            "rows": [_row(columns, record, include) for record in records],
        }

    def row_view(self, kind: Kind, include: str = "Metadata") -> View:
        """Each record of a watch as a table of one row; only the first has the column definitions."""
        first = True

        def view(record: Record) -> bytes:
            nonlocal first
            table = self.table(kind, [record], {"resourceVersion": str(record.version)}, include)
            if not first:
                table["columnDefinitions"] = []
            first = False
            return orjson.dumps(table)

        return view


def columns_of(kind: Kind) -> Sequence[Column]:
    """The columns of a kind."""
    if kind.custom:
        return custom_columns(kind.extra_columns)
    found = COLUMNS.get((kind.group, kind.kind))
    if found is None and kind.stored_as is not None:
        found = COLUMNS.get((kind.stored_as.group, kind.stored_as.kind))
    return found or default_columns()


def _row(columns: Sequence[Column], record: Record, include: str) -> Json:
    obj = record.parse()
    row: Json = {"cells": [column.cell(obj) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj["metadata"],
        }
    return row
