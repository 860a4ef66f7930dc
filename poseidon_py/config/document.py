"""PoseidonConfiguration, the documented form of a configuration file: sections of camelCase keys, durations as `15s`,
and profiles, each a scheduler name with its policy.

    apiVersion: poseidon.io/v1
    kind: PoseidonConfiguration
    profiles:
    - schedulerName: poseidon
      policy: {name: load-spreading, options: {by: requested}}
    leaderElection: {leaseDuration: 15s}

Decoding is strict, and reports all problems at once, each with the path of its field.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import durationpy

from poseidon_py.config.conversion import OptionError, converted_strictly, policy_option
from poseidon_py.config.fields import FIELDS, Field
from poseidon_py.config.layout import API_VERSION, KIND, LAYOUT, PLACES, PROFILES
from poseidon_py.config.names import DocumentValues
from poseidon_py.config.settings import Settings
from poseidon_py.util.quoting import quoted
from poseidon_py.util.yaml_file import parse_yaml

_TOP = ("apiVersion", "kind", PROFILES, *LAYOUT)
_PROFILE = ("schedulerName", "policy")
_POLICY = ("name", "options")


def read_document(content: Mapping[Any, Any], file: str) -> DocumentValues:
    """The values of a PoseidonConfiguration by field of Settings, converted. `file`: its name, for messages. Raises
    OptionError with all problems."""
    if str(content.get("apiVersion")).startswith("kubescheduler.config.k8s.io/"):
        raise OptionError(
            f"{file} is a configuration of kube-scheduler, which is not read; give apiVersion {API_VERSION} and kind "
            f"{KIND}: leaderElection (without resourceLock), clientConnection (without acceptContentTypes and "
            "contentType) and profiles[].schedulerName have the same names, and plugins have no counterpart"
        )
    reader = _Reader(file)
    for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if content.get(key) != expected:
            reader.problems.append(f"{key} in {file} is {quoted(content.get(key))}; give {expected}")
    if reader.problems:  # it is something else
        raise OptionError(*reader.problems)
    reader.section({key: value for key, value in content.items() if key not in _TOP[:3]}, LAYOUT, (), _TOP)
    if PROFILES in content:
        reader.profiles(content[PROFILES])
    if reader.problems:
        raise OptionError(*reader.problems)
    return reader.values


class _Reader:
    """Collects the values and the problems of one document."""

    def __init__(self, file: str) -> None:
        self.values = DocumentValues()
        self.problems: list[str] = []
        self._file = file

    def section(
        self, content: Any, layout: Mapping[str, Any], above: tuple[str, ...], known: tuple[str, ...] = ()
    ) -> None:
        """The settings of a mapping and of those in it. `known`: its keys in messages; empty: those of `layout`."""
        for key, value in self._items(content, ".".join(above)):
            path = (*above, str(key))
            at = layout.get(str(key))
            if at is None:
                self._unknown(path, known or tuple(layout))
            elif isinstance(at, str):
                self._take(at, value, path)
            elif value is not None:  # a section of which all lines are comments
                self.section(value, at, path)

    def profiles(self, content: Any) -> None:
        """Scheduler names, and the policy that all of them have."""
        if not isinstance(content, list) or not content:
            self._problem(PROFILES, content, "give a list of at least one profile, such as `- schedulerName: poseidon`")
            return
        names: dict[str, int] = {}
        policies: list[tuple[str, Any]] = []
        for number, profile in enumerate(content):
            at = f"{PROFILES}[{number}]"
            for key, value in self._items(profile, at):
                if key not in _PROFILE:
                    self._unknown((at, str(key)), _PROFILE)
                elif key == "policy" and value is not None:
                    policies.append((f"{at}.policy", value))
            if not isinstance(profile, dict):
                continue
            name = profile.get("schedulerName")
            if not isinstance(name, str) or not name:
                self._problem(f"{at}.schedulerName", name, "give the spec.schedulerName of pods")
            elif names.setdefault(name, number) != number:
                self._problem(f"{at}.schedulerName", name, f"it is that of {PROFILES}[{names[name]}]; drop one")
        self.values["scheduler_name"] = tuple(names)
        if policies:
            self._policy(*policies[0])
        for at, value in policies[1:]:
            if value != policies[0][1]:
                self.problems.append(
                    f"{at} in {self._file} differs from {policies[0][0]}; all profiles of a process have one policy, "
                    "since one network has the costs of all pods: run a second scheduler with the other one"
                )

    def _policy(self, at: str, content: Any) -> None:
        for key, value in self._items(content, at):
            if key == "name":
                self._take("policy", value, (at, "name"))
            elif key == "options":
                self._options(value, f"{at}.options")
            else:
                self._unknown((at, str(key)), _POLICY)

    def _options(self, content: Any, at: str) -> None:
        name = f"{at} in {self._file}"
        try:
            self.values["policy_option"] = tuple(policy_option(*item, name) for item in self._items(content, at))
        except OptionError as error:
            self.problems.extend(error.problems)

    def _take(self, name: str, value: Any, path: tuple[str, ...]) -> None:
        try:
            self.values[name] = converted_strictly(FIELDS[name], value, f"{'.'.join(path)} in {self._file}")
        except OptionError as error:
            self.problems.extend(error.problems)

    def _items(self, content: Any, at: str) -> list[tuple[Any, Any]]:
        if not isinstance(content, dict):
            self._problem(at, content, "give a mapping")
            return []
        return list(content.items())

    def _problem(self, at: str, value: Any, remedy: str) -> None:
        self.problems.append(f"{at} in {self._file} is {quoted(value)}; {remedy}")

    def _unknown(self, path: tuple[str, ...], known: tuple[str, ...]) -> None:
        self.problems.append(f"{'.'.join(path)} in {self._file} is unknown; {_suggestion(path[-1], known)}")


def _suggestion(key: str, known: tuple[str, ...]) -> str:
    """What a key that is unknown in its place may have been meant to be."""
    flag = PLACES.get(key.replace("-", "_"))
    meant = [flag] if flag else [place for place in PLACES.values() if place[-1] == key]
    close = [".".join(place) for place in meant] or get_close_matches(key, known, n=1)
    return f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(known)}"


def document_of(given: Settings) -> dict[str, Any]:
    """The settings as a PoseidonConfiguration, without those that have no value."""
    policy = {"name": given.policy, "options": _options(given.policy_option)}
    profile = {key: value for key, value in policy.items() if value}
    document: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    document[PROFILES] = [
        {"schedulerName": name, **({"policy": profile} if profile else {})} for name in given.scheduler_name
    ]
    for name, place in PLACES.items():
        value = shown(FIELDS[name], getattr(given, name))
        if value is not None:
            within = document
            for key in place[:-1]:
                within = within.setdefault(key, {})
            within[place[-1]] = value
    return document


def changes_of(given: Settings, defaults: Settings | None = None) -> dict[str, Any]:
    """The settings that differ from the defaults: path in the document -> value; None: it has no value."""
    own, other = (dict(_leaves(document_of(each))) for each in (given, defaults or Settings()))
    return {path: own.get(path) for path in {**other, **own} if own.get(path) != other.get(path)}


def _leaves(document: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def shown(field: Field, value: Any) -> Any:
    """A value of Settings as documents have it; None: no value."""
    if value is None or (value == "" and "" not in field.words):
        return None
    if field.is_switch:
        return value == "on"
    if field.in_seconds and isinstance(value, (int, float)):
        return durationpy.to_str(timedelta(seconds=value)) if value else "0s"
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else dict(value) if isinstance(value, Mapping) else value


def _options(given: tuple[str, ...]) -> dict[str, Any]:
    """K=V as a mapping: numbers and booleans where they are written like these."""
    found: dict[str, Any] = {}
    for option in given:
        key, _, text = option.partition("=")
        value = parse_yaml(text) if text else ""
        alike = isinstance(value, (bool, int, float)) and policy_option(key, value, "") == option
        found[key] = value if alike else text
    return found
