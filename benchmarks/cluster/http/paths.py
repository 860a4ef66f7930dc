"""Parsing of request paths and queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from benchmarks.cluster.store.errors import no_such_path
from benchmarks.cluster.store.kinds import Kind, Kinds

EMPTY: Mapping[str, str] = {}


class Target(NamedTuple):
    """What a resource path names; `name` is empty for a collection."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def split_query(raw_path: str) -> tuple[str, Mapping[str, str]]:
    """The path, and the query's first value per name."""
    path, mark, query = raw_path.partition("?")
    if not mark or not query:
        return path, EMPTY
    values: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        values.setdefault(name, value)
    return path, values


def parse_path(kinds: Kinds, path: str) -> Target:
    """The target of /api/v1/... or /apis/GROUP/VERSION/..., or 404."""
    if "%" in path:
        path = unquote(path)
    parts = path.split("/")
    if path.startswith("/api/"):
        group, segments = "", parts[2:]
    elif path.startswith("/apis/") and len(parts) > 3:
        group, segments = parts[2], parts[3:]
    else:
        raise no_such_path()
    if segments and not segments[-1]:
        segments = segments[:-1]  # a trailing slash
    version, segments = segments[0], segments[1:]
    namespace = ""
    if len(segments) >= 3 and segments[0] == "namespaces" and segments[2] not in ("status", "finalize"):
        namespace, segments = segments[1], segments[2:]
    if not segments or len(segments) > 3 or not all(segments):
        raise no_such_path()
    kind = kinds.find(group, version, segments[0])
    if kind is None:
        raise no_such_path()
    name = segments[1] if len(segments) > 1 else ""
    subresource = segments[2] if len(segments) > 2 else ""
    if bool(namespace) is not kind.namespaced and (namespace or name):
        raise no_such_path()
    if subresource and subresource not in kind.subresources:
        raise no_such_path()
    return Target(kind, namespace, name, subresource)
