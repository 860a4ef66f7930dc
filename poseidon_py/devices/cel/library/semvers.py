"""Kubernetes' semver library: versions by Semantic Versioning 2.0.0, build metadata without effect on the order."""

import re
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Any

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.overload import overload, reads_first
from poseidon_py.devices.cel.values import UINT_MAX, register

_NUMBER = r"0|[1-9][0-9]*"
_IDENTIFIER = r"0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-((?:{_IDENTIFIER})(?:\.(?:{_IDENTIFIER}))*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)


LONGEST = 1000
"""Characters of a version; an attribute of a device has 64."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Semver:
    major: int
    minor: int
    patch: int
    release: tuple[Any, ...] = field(default=())
    """What the parts of the pre-release sort by; a release sorts behind all its pre-releases."""

    def __lt__(self, other: "Semver") -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[Any, ...]:
        return self.major, self.minor, self.patch, not self.release, self.release


register(Semver, "kubernetes.Semver")


def semver(text: str, normalize: bool = False) -> Semver:
    """The version; with `normalize`, "v1.02" is 1.2.0. Raises EvaluationError."""
    if len(text) > LONGEST:
        raise EvaluationError(f"a version has more than {LONGEST} characters")
    found = _VERSION.fullmatch(_normalized(text) if normalize else text)
    if found is None:
        raise EvaluationError(f"{text[:60]!r} is not a semantic version")
    if any(len(digits) > 20 for digits in re.findall(r"[0-9]+", text.partition("+")[0])):
        raise EvaluationError(f"{text[:60]!r} has a number that exceeds 64 bits")
    major, minor, patch = (int(part) for part in found.group(1, 2, 3))
    identifiers = found[4].split(".") if found[4] else []
    release = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in identifiers)
    if max(major, minor, patch, *(number for _, number, _ in release)) > UINT_MAX:
        raise EvaluationError(f"{text[:60]!r} has a number that exceeds 64 bits")
    return Semver(major, minor, patch, release)


def _normalized(text: str) -> str:
    """Without the "v" in front and leading zeros, with all three numbers."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1].isdigit() and stripped[:1].isascii() else f"0{stripped}"
    if len(parts) < 3 and set(parts[-1]) & {"+", "-"}:
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        semver(text, normalize)
    except EvaluationError:
        return False
    return True


OVERLOADS = [
    overload("semver(string) -> semver", semver, reads_first),
    overload("semver(string, bool) -> semver", semver, reads_first),
    overload("isSemver(string) -> bool", _is_semver, reads_first),
    overload("isSemver(string, bool) -> bool", _is_semver, reads_first),
    overload("semver::isGreaterThan(semver) -> bool", lambda left, right: left > right),
    overload("semver::isLessThan(semver) -> bool", lambda left, right: left < right),
    overload("semver::compareTo(semver) -> int", lambda left, right: (left > right) - (left < right)),
    overload("semver::major() -> int", lambda version: version.major),
    overload("semver::minor() -> int", lambda version: version.minor),
    overload("semver::patch() -> int", lambda version: version.patch),
]
