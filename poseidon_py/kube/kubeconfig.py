"""Checks the form of a kubeconfig, and reads its server, without touching credentials.

The loader reports an invalid value only by the Python error that it causes, and it starts credential plug-ins.
"""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import yaml

_WRONG_TYPE = re.compile(r"Expected `([^`]+)`, got `([^`]+)`(?: - at `\$\.?([^`]*)`)?")
_KINDS = {
    "array": "a list",
    "object": "a mapping",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "empty",
}


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None


class _User(msgspec.Struct, rename="kebab"):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None


class _NamedCluster(msgspec.Struct):
    name: Any = None
    cluster: _Cluster | None = None


class _NamedUser(msgspec.Struct):
    user: _User | None = None


class _NamedContext(msgspec.Struct):
    name: Any = None
    context: dict[str, Any] | None = None


class _Kubeconfig(msgspec.Struct, rename="kebab"):
    current_context: Any = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


def wrong_form(path: Path) -> str:
    """The error in the first file of `path` (several, as in $KUBECONFIG) with an invalid form: the file, the key, the
    value and the remedy. Empty: all readable files are valid."""
    for file in _files(path):
        try:
            msgspec.convert(_content(file), _Kubeconfig)
        except msgspec.ValidationError as error:
            return f"{file}: {_in_words(str(error))}"
        except _UNREADABLE:
            continue  # the loader's own message about these is clear
    return ""


def server_of(path: Path, context: str | None) -> str:
    """The URL of the API server of a context, in the form of Access.url. `context` None: the current one.

    The first of several files that defines a name counts. Empty: no file defines the server.
    """
    parts = _parts(path)
    cluster = _context(parts, context).get("cluster")
    clusters = [each.cluster for part in parts for each in part.clusters or () if each.name == cluster]
    return _normal(clusters[0].server or "") if clusters and clusters[0] is not None else ""


def namespace_of(path: Path, context: str | None) -> str:
    """The namespace of a context, None: the current one; empty: it has none."""
    found = _context(_parts(path), context).get("namespace")
    return found if isinstance(found, str) else ""


def context_names(path: Path) -> list[str]:
    """Of all contexts."""
    return sorted({str(each.name) for part in _parts(path) for each in part.contexts or () if each.name})


def _parts(path: Path) -> list[_Kubeconfig]:
    """The files that can be read."""
    parts = []
    for file in _files(path):
        try:
            parts.append(msgspec.convert(_content(file), _Kubeconfig))
        except (*_UNREADABLE, msgspec.ValidationError):
            continue
    return parts


def _context(parts: list[_Kubeconfig], name: str | None) -> dict[str, Any]:
    """The first with that name; None: that of the current context."""
    selected = name or next((part.current_context for part in parts if part.current_context), None)
    contexts = [each.context for part in parts for each in part.contexts or () if each.name == selected]
    return (contexts[0] or {}) if contexts else {}


_UNREADABLE = (OSError, ValueError, RecursionError, yaml.YAMLError)


def _files(path: Path) -> list[str]:
    """The files in a value of $KUBECONFIG."""
    return [file for file in str(path).split(os.pathsep) if file]


def _content(file: str) -> Any:
    return yaml.safe_load(Path(file).read_text(encoding="utf-8"))


def _normal(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return ""
    if not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/')}"


def _in_words(message: str) -> str:
    found = _WRONG_TYPE.fullmatch(message)
    if found is None:
        return message
    expected, got, key = found.groups()
    first = next(kind for kind in expected.split(" | ") if kind != "null")
    return f"{key or 'the file'} is {_KINDS.get(got, got)}; give {_KINDS.get(first, first)}"
