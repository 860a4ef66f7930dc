"""Reads a configuration file: a PoseidonConfiguration, or a mapping whose keys are named like the flags."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from poseidon_py.config.conversion import OptionError
from poseidon_py.config.document import read_document
from poseidon_py.config.fields import FIELDS
from poseidon_py.util.quoting import quoted
from poseidon_py.util.yaml_file import YamlError, read_yaml

_ALIASES = {"policyOptions": "policy_option", "policy_options": "policy_option"}


def read_file(path: Path) -> dict[str, Any]:
    """The values of a YAML file by field of Settings; those of a mapping of flags are not converted yet. Raises
    OptionError."""
    try:
        content = read_yaml(path)
    except YamlError as error:
        raise OptionError(str(error)) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise OptionError(
            f"the configuration {path} is {quoted(content)}, not a mapping; give lines like `policy: load-spreading`"
        )
    if "apiVersion" in content or "kind" in content:
        return read_document(content, str(path))
    return _of_flags(content, path)


def _of_flags(content: Mapping[Any, Any], path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in content.items():
        key = key_of(str(name), str(path))
        if key in found:
            raise OptionError(f"{name!r} in {path} sets {key.replace('_', '-')} a second time; keep one of the two")
        found[key] = value
    return found


def key_of(name: str, where: str) -> str:
    """The field of Settings for a key with dashes or underscores. Raises OptionError."""
    key = name.replace("-", "_")
    key = _ALIASES.get(key, key)
    if key not in FIELDS:
        close = get_close_matches(key, FIELDS, n=1)
        hint = f"did you mean {close[0].replace('_', '-')!r}?" if close else "see `poseidon run --help`"
        raise OptionError(f"unknown key {name!r} in {where}; {hint}")
    return key
