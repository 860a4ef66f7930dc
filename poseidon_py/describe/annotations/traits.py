"""Traits of pods, for policies. Pure.

An annotation, or else a label:

    poseidon.io/interference-class   sheep, rabbit, devil or turtle; also the label taskType of the original Poseidon
    poseidon.io/program              a name shared by pods that do the same work
    poseidon.io/speed                relative speed by platform: "c5.xlarge=1.6, m5.large=1"

Other annotations are ignored, so that they do not make more classes. Invalid traits are ignored, too: traits only
improve placements.
"""

import re
from collections.abc import Callable, Mapping

from msgspec import Raw, Struct, field

from poseidon_py.kube.objects import NOTHING, InvalidField, Labels, Pod, decode

CLASSES = ("sheep", "rabbit", "devil", "turtle")
INTERFERENCE, PROGRAM, SPEED = "interference-class", "program", "speed"
_PREFIX = "poseidon.io/"
_PREFIX_BYTES = _PREFIX.encode()
_TASK_TYPE = "taskType"
_KEYS = tuple(f'"{_PREFIX}{trait}"'.encode() for trait in (INTERFERENCE, PROGRAM, SPEED))
_MAX_LENGTH = 253
_MAX_PLATFORMS = 64
_NUMBER = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


class _RawTraits(Struct, gc=False):
    """The traits in labels or annotations, undecoded."""

    interference: Raw = field(default=NOTHING, name=_PREFIX + INTERFERENCE)
    program: Raw = field(default=NOTHING, name=_PREFIX + PROGRAM)
    speed: Raw = field(default=NOTHING, name=_PREFIX + SPEED)
    task_type: Raw = field(default=NOTHING, name=_TASK_TYPE)


def traits_key(pod: Pod) -> tuple[object, ...] | None:
    """Equal keys mean equal traits; None: the pod has none. Called for every event of every pod."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    if not (_mentions(labels) or _mentions(annotations)):
        return None
    parts: list[object] = []
    for raw in (labels, annotations):
        try:
            undecoded = decode(raw, _RawTraits, "") or _RawTraits()
        except InvalidField:
            return (bytes(labels), bytes(annotations))
        fields = (undecoded.interference, undecoded.program, undecoded.speed, undecoded.task_type)
        parts += map(bytes, fields)
    return tuple(parts)


def traits_of(pod: Pod) -> dict[str, str]:
    """The valid traits of a pod."""
    return _read(pod)[0]


def problem_of(pod: Pod) -> str:
    """The error in the first invalid trait, and its remedy; empty: all are valid."""
    return _read(pod)[1]


def _read(pod: Pod) -> tuple[dict[str, str], str]:
    traits: dict[str, str] = {}
    wrong = ""
    for where, raw in (("labels", pod.metadata.labels), ("annotations", pod.metadata.annotations)):
        if not _mentions(raw):
            continue
        path = f"metadata.{where}"
        try:
            values = decode(raw, Labels, path) or {}
        except InvalidField as problem:
            wrong = wrong or str(problem)
            continue
        if where == "labels" and values.get(_TASK_TYPE, "").lower() in CLASSES:
            traits[INTERFERENCE] = values[_TASK_TYPE].lower()
        for trait, read in _READERS.items():
            if (key := _PREFIX + trait) in values:
                try:
                    traits[trait] = read(values[key], f"{path}[{key}]")
                except InvalidField as problem:
                    wrong = wrong or f"{problem}; it is ignored"
    return traits, wrong


def _mentions(raw: Raw) -> bool:
    """Whether undecoded labels or annotations may contain a trait."""
    if raw is NOTHING:
        return False
    data = bytes(raw)
    return b'"taskType"' in data or (_PREFIX_BYTES in data and any(key in data for key in _KEYS))


def _interference_class(text: str, path: str) -> str:
    if text.lower() not in CLASSES:
        raise InvalidField(path, f"{text!r} is not valid; give one of {', '.join(CLASSES)}")
    return text.lower()


def _program(text: str, path: str) -> str:
    if not text.strip() or len(text) > _MAX_LENGTH:
        raise InvalidField(path, f"has {len(text)} characters; give a name of 1 to {_MAX_LENGTH}")
    return text.strip()


def _speed(text: str, path: str) -> str:
    """In canonical form, so that equal speeds make one class: "c5.xlarge=1.6,m5.large=1"."""
    speeds: dict[str, float] = {}
    for part in text.split(","):
        platform, equals, number = (piece.strip() for piece in part.partition("="))
        if not (platform and equals and _NUMBER.fullmatch(number)) or not 0.01 <= float(number) <= 100:
            raise InvalidField(
                path, f"{part.strip()!r} is not valid; give PLATFORM=SPEED with a speed from 0.01 to 100"
            )
        if platform in speeds:
            raise InvalidField(path, f"has {platform!r} twice; keep one of the two")
        speeds[platform] = float(number)
    if len(speeds) > _MAX_PLATFORMS:
        raise InvalidField(path, f"has {len(speeds)} platforms; give at most {_MAX_PLATFORMS}")
    return ",".join(f"{platform}={speed:g}" for platform, speed in sorted(speeds.items()))


_READERS: Mapping[str, Callable[[str, str], str]] = {
    INTERFERENCE: _interference_class,
    PROGRAM: _program,
    SPEED: _speed,
}
