"""Values of flags and files, converted to the types of settings."""

import math
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import inspect

from poseidon_py.config.fields import Field
from poseidon_py.util.durations import go_seconds_of, seconds_of
from poseidon_py.util.quoting import quoted
from poseidon_py.util.yaml_file import parse_yaml

_BOOLEANS = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}
"""Those of YAML 1.1, which older files have, in lower case."""


class OptionError(Exception):
    """The configuration is invalid; each problem names the key, the value and the remedy."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def converted(field: Field, value: Any, name: str) -> Any:
    """A value of a flag, or of a file whose keys are named like flags, as the type of the field. Raises OptionError.

    `name`: the option in messages.
    """
    value = _normalised(field, value, name)
    if isinstance(value, float) and not math.isfinite(value):
        raise OptionError(f"{name} is {value}; give a finite number")
    try:
        return msgspec.convert(value, field.hint, dec_hook=_path)
    except (msgspec.ValidationError, OverflowError) as error:  # an integer may have any number of digits
        raise OptionError(f"{name} is {quoted(value)}; give {field.expected}") from error


def converted_strictly(field: Field, value: Any, name: str) -> Any:
    """A value of a PoseidonConfiguration: durations have a unit, texts are no numbers. Raises OptionError."""
    refused = OptionError(f"{name} is {quoted(value)}; give {field.expected_in_document}")
    if field.is_switch:
        if not isinstance(value, bool):
            raise refused
        return "on" if value else "off"
    if field.in_seconds and value is not None and value not in field.words:
        value = go_seconds_of(value) if isinstance(value, str) else None
        if value is None:
            raise refused
    elif field.takes(inspect.VarTupleType) and not isinstance(value, list):
        raise refused
    try:
        return msgspec.convert(value, field.hint, dec_hook=_path)
    except (msgspec.ValidationError, OverflowError):
        raise refused from None


def _normalised(field: Field, value: Any, name: str) -> Any:
    """A value in the form that can be converted, of the several forms in which it may be written."""
    if isinstance(value, str):
        boolean = _BOOLEANS.get(value.lower())
        if boolean is not None and (field.takes(inspect.BoolType) or ("on" if boolean else "off") in field.words):
            return boolean if field.takes(inspect.BoolType) else "on" if boolean else "off"
        if field.in_seconds and (found := seconds_of(value)) is not None:
            return found
        if field.takes(inspect.DictType) or field.takes(inspect.FloatType):
            value = _parsed(value, name)  # JSON or a number, as a flag has it
    if isinstance(value, bool):  # YAML reads on and off as booleans
        word = "on" if value else "off"
        return word if word in field.words else value
    if not field.takes(inspect.VarTupleType):
        return value
    if field.name == "policy_option" and isinstance(value, dict):
        return [policy_option(option, each, name) for option, each in value.items()]
    items = value if isinstance(value, (list, tuple)) else [value]
    return [str(item) if isinstance(item, (int, float)) else item for item in items]


def _parsed(text: str, name: str) -> Any:
    try:
        return parse_yaml(text)
    except (yaml.YAMLError, ValueError) as error:
        raise OptionError(f"{name} is not YAML: {' '.join(str(error).split())}") from error


def _path(kind: type[Any], value: Any) -> Any:
    if kind is Path and isinstance(value, (str, Path)):
        return Path(value)
    raise ValueError("not a path")


def policy_option(option: Any, value: Any, name: str) -> str:
    """An entry of a mapping as K=V, the form of the flag. Raises OptionError."""
    if isinstance(value, bool):
        value = str(value).lower()
    if not isinstance(value, (str, int, float)):
        raise OptionError(f"{name}: {option} is {quoted(value)}; give a text, a number, true or false")
    return f"{option}={value}"
