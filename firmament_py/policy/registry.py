"""Finds policies: every class that an installed distribution registers under the entry point group
`firmament.policies`; ours are registered in the same way.

A policy class is called with its options as keyword arguments. The annotated parameters of its constructor are its
options; the first line of its docstring is what `policies` prints. An option is a bool, int, float, str or one of a
Literal's texts; a ValueError that the constructor raises is shown to the user as it is. A class with `api_version = N`
is refused by releases with another version of the interface.
"""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, get_args, get_origin

from firmament_py.policy.api import API_VERSION, Policy, rack_labels
from firmament_py.policy.validation import FAILURES, failure

GROUP = "firmament.policies"
DEFAULT_POLICY = "load-spreading"


class UnknownPolicyError(ValueError):
    """No policy, or no option of a policy, has that name, or its value is not valid; the message lists the choices."""


@dataclass(frozen=True, slots=True)
class PolicyInfo:
    """Name, one line of summary, and the options: name -> type and default as text, "FLOAT  [default: 0.2]"."""

    name: str
    summary: str
    options: dict[str, str]
    error: str = ""  # why it cannot be loaded


def available() -> list[PolicyInfo]:
    """All registered policies, by name; one that cannot be loaded is listed with its error."""
    registered = entry_points(group=GROUP)
    return [_describe(name, registered) for name in sorted(entry.name for entry in registered)]


def load(name: str, options: Mapping[str, str]) -> Policy:
    """The policy `name`; `options` are texts, each converted to the type of its parameter.

    Raises UnknownPolicyError with a message for the user.
    """
    factory = _factory(name, entry_points(group=GROUP))
    parameters = _parameters(name, factory)
    values: dict[str, Any] = {}
    for option, text in options.items():
        parameter = parameters.get(option.replace("-", "_"))
        if parameter is None:
            known = ", ".join(p.replace("_", "-") for p in parameters) or "none"
            raise UnknownPolicyError(f"policy {name} has no option {option!r}; it has: {known}")
        values[parameter.name] = _value(name, option, parameter, text)
    missing = [p.name for p in parameters.values() if p.default is p.empty and p.name not in values]
    if missing:
        names = ", ".join(option.replace("_", "-") for option in missing)
        raise UnknownPolicyError(f"policy {name} needs a value for: {names}; give it with --policy-option")
    try:
        policy: Policy = factory(**values)
    except ValueError as error:
        raise UnknownPolicyError(f"policy {name}: {error}") from error
    except FAILURES as error:
        raise UnknownPolicyError(
            f"policy {name} cannot be created: {failure(error)}; report it to its author"
        ) from error
    if _defines_price(type(policy)):
        raise UnknownPolicyError(_outdated(name, 1))
    if not isinstance(getattr(policy, "name", None), str) or not callable(getattr(policy, "costs", None)):
        raise UnknownPolicyError(f"policy {name} is not a policy: it needs a text `name` and a method costs(view)")
    try:
        rack_labels(policy)
    except TypeError as error:
        raise UnknownPolicyError(f"policy {name} is not a policy: its {error}") from error
    return policy


def _factory(name: str, registered: Iterable[EntryPoint]) -> Any:
    found = [entry for entry in registered if entry.name == name]
    if not found:
        names = sorted(entry.name for entry in registered)
        close = get_close_matches(name, names, 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise UnknownPolicyError(f"there is no policy {name!r}{hint}; there are: {', '.join(names)}")
    sources = {entry.value for entry in found}
    if len(sources) > 1:
        raise UnknownPolicyError(f"policy {name!r} is registered more than once: {', '.join(sorted(sources))}")
    try:
        factory = found[0].load()
    except FAILURES as error:
        raise UnknownPolicyError(f"policy {name} cannot be loaded: {failure(error)}") from error
    if not callable(factory):
        raise UnknownPolicyError(f"policy {name} cannot be loaded: {found[0].value} is not a class")
    version = getattr(factory, "api_version", API_VERSION)
    if not isinstance(version, int):
        raise UnknownPolicyError(f"policy {name} cannot be loaded: its api_version is {version!r}; give a whole number")
    if version > API_VERSION:
        raise UnknownPolicyError(
            f"policy {name} needs version {version} of the policy interface, and this release has {API_VERSION}: "
            f"install a newer poseidon-firmament, or an older release of the package that has the policy"
        )
    if version < API_VERSION:
        raise UnknownPolicyError(_outdated(name, version))
    return factory


def _outdated(name: str, version: int) -> str:
    remedy = "install a newer release of the package that has the policy, or rename what docs/policies.md lists"
    return f"policy {name} was written for version {version} of the policy interface, not {API_VERSION}: {remedy}"


def _defines_price(cls: type) -> bool:
    """Whether the nearest class that has either method defines `price`, which was that of version 1, and no `costs`."""
    methods = (vars(base).keys() & {"price", "costs"} for base in cls.__mro__)
    return next(filter(None, methods), None) == {"price"}


def _parameters(name: str, factory: Any) -> dict[str, inspect.Parameter]:
    """The options: named parameters of the constructor, if the class defines one."""
    try:
        try:
            signature = inspect.signature(factory, eval_str=True)
        except FAILURES:  # an annotation that only type checkers can evaluate
            signature = inspect.signature(factory)
    except FAILURES as error:
        raise UnknownPolicyError(
            f"policy {name} cannot be loaded: its options cannot be read: {failure(error)}"
        ) from error
    return {
        name: parameter
        for name, parameter in signature.parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }


def _value(policy: str, option: str, parameter: inspect.Parameter, text: str) -> Any:
    kind = parameter.annotation
    if get_origin(kind) is Literal and text not in get_args(kind):
        raise UnknownPolicyError(
            f"policy {policy}: option {option} is {text!r}; give one of: {', '.join(map(str, get_args(kind)))}"
        )
    try:
        if kind in (bool, "bool"):
            return {"true": True, "false": False}[text.lower()]
        if kind in (int, "int"):
            return int(text)
        if kind in (float, "float"):
            return float(text)
    except (KeyError, ValueError):
        expected = kind if isinstance(kind, str) else kind.__name__
        raise UnknownPolicyError(
            f"policy {policy}: option {option} is {text!r}; give a value of type {expected}"
        ) from None
    return text


def _describe(name: str, registered: Iterable[EntryPoint]) -> PolicyInfo:
    try:
        factory = _factory(name, registered)
        parameters = _parameters(name, factory)
    except UnknownPolicyError as error:
        return PolicyInfo(name, "", {}, str(error))
    summary = (inspect.getdoc(factory) or "").partition("\n")[0]
    options = {p.name.replace("_", "-"): f"{_kind(p.annotation)}  [{_default(p)}]" for p in parameters.values()}
    return PolicyInfo(name, summary, options)


def _kind(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return "|".join(map(str, get_args(annotation)))
    name = str(getattr(annotation, "__name__", annotation))
    return {"str": "TEXT", "int": "INTEGER", "float": "FLOAT", "bool": "BOOLEAN"}.get(name, name)


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return "required"
    return f"default: {'none' if parameter.default in ('', None) else parameter.default}"
