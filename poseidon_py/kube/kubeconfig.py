"""Whether a kubeconfig has the form that its loader relies on: of one that has not, the loader only says what Python
says of the value that it stumbles over."""

import os
import re
from pathlib import Path
from typing import Any

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
    cluster: _Cluster | None = None


class _NamedUser(msgspec.Struct):
    user: _User | None = None


class _NamedContext(msgspec.Struct):
    context: dict[str, Any] | None = None


class _Kubeconfig(msgspec.Struct):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


def wrong_form(path: Path) -> str:
    """Of the first of these files (as $KUBECONFIG, path may be several) that has the wrong form: its name, the key,
    what was found and what to give. Empty: none has, as far as it can be read."""
    for file in str(path).split(os.pathsep):
        try:
            content = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError, yaml.YAMLError):
            continue  # what the loader says of these is clear
        try:
            msgspec.convert(content, _Kubeconfig)
        except msgspec.ValidationError as error:
            return f"{file}: {_in_words(str(error))}"
    return ""


def _in_words(message: str) -> str:
    found = _WRONG_TYPE.fullmatch(message)
    if found is None:
        return message
    wanted, got, key = found.groups()
    first = next(kind for kind in wanted.split(" | ") if kind != "null")
    return f"{key or 'all of it'} is {_KINDS.get(got, got)}; give {_KINDS.get(first, first)}"
