"""What pods say of their nature, for policies. Pure.

An annotation, or else a label:

    poseidon.io/interference-class   sheep, rabbit, devil or turtle; also label taskType, as Poseidon knows it
    poseidon.io/program              a name that pods share which do the same work
    poseidon.io/speed                how fast it runs where: "c5.xlarge=1.6, m5.large=1" (platform=speed)

Nothing else is sent on, so that pods with other annotations stay of one class. What makes no sense is left out: a trait
only makes placements better.
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
_MARKS = tuple(f'"{_PREFIX}{trait}"'.encode() for trait in (INTERFERENCE, PROGRAM, SPEED))
_LONGEST = 253
_MOST_PLATFORMS = 64
_NUMBER = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


class _Said(Struct, gc=False):
    """What labels or annotations say of traits, undecoded."""

    interference: Raw = field(default=NOTHING, name=_PREFIX + INTERFERENCE)
    program: Raw = field(default=NOTHING, name=_PREFIX + PROGRAM)
    speed: Raw = field(default=NOTHING, name=_PREFIX + SPEED)
    task_type: Raw = field(default=NOTHING, name=_TASK_TYPE)


def traits_key(pod: Pod) -> tuple[object, ...] | None:
    """Equal keys mean equal traits; None: there are none. It is asked of every event of every pod."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    if not (_mentions(labels) or _mentions(annotations)):
        return None
    parts: list[object] = []
    for raw in (labels, annotations):
        try:
            said = decode(raw, _Said, "") or _Said()
        except InvalidField:
            return (bytes(labels), bytes(annotations))
        parts += (bytes(said.interference), bytes(said.program), bytes(said.speed), bytes(said.task_type))
    return tuple(parts)


def traits_of(pod: Pod) -> dict[str, str]:
    """The traits of a pod, without those that make no sense."""
    return _read(pod)[0]


def complaint(pod: Pod) -> str:
    """What is wrong with the first trait that makes no sense; empty: nothing."""
    return _read(pod)[1]


def _read(pod: Pod) -> tuple[dict[str, str], str]:
    found: dict[str, str] = {}
    wrong = ""
    for where, raw in (("labels", pod.metadata.labels), ("annotations", pod.metadata.annotations)):
        if not _mentions(raw):
            continue
        path = f"metadata.{where}"
        try:
            said = decode(raw, Labels, path) or {}
        except InvalidField as problem:
            wrong = wrong or str(problem)
            continue
        if where == "labels" and said.get(_TASK_TYPE, "").lower() in CLASSES:
            found[INTERFERENCE] = said[_TASK_TYPE].lower()
        for trait, read in _READERS.items():
            if (key := _PREFIX + trait) in said:
                try:
                    found[trait] = read(said[key], f"{path}[{key}]")
                except InvalidField as problem:
                    wrong = wrong or f"{problem}; it is ignored"
    return found, wrong


def _mentions(raw: Raw) -> bool:
    """Whether undecoded labels or annotations may hold a trait."""
    if raw is NOTHING:
        return False
    data = bytes(raw)
    return b'"taskType"' in data or (_PREFIX_BYTES in data and any(mark in data for mark in _MARKS))


def _interference_class(text: str, path: str) -> str:
    if text.lower() not in CLASSES:
        raise InvalidField(path, f"{text!r} is none of {', '.join(CLASSES)}")
    return text.lower()


def _program(text: str, path: str) -> str:
    if not text.strip() or len(text) > _LONGEST:
        raise InvalidField(path, f"has {len(text)} characters; give a name of 1 to {_LONGEST}")
    return text.strip()


def _speed(text: str, path: str) -> str:
    """In one form, so that pods that say the same are of one class: "c5.xlarge=1.6,m5.large=1"."""
    speeds: dict[str, float] = {}
    for part in text.split(","):
        platform, equals, number = (piece.strip() for piece in part.partition("="))
        if not (platform and equals and _NUMBER.fullmatch(number)) or not 0.01 <= float(number) <= 100:
            raise InvalidField(path, f"{part.strip()!r} is not PLATFORM=SPEED with a speed from 0.01 to 100")
        if platform in speeds:
            raise InvalidField(path, f"has {platform!r} twice")
        speeds[platform] = float(number)
    if len(speeds) > _MOST_PLATFORMS:
        raise InvalidField(path, f"has {len(speeds)} platforms; give at most {_MOST_PLATFORMS}")
    return ",".join(f"{platform}={speed:g}" for platform, speed in sorted(speeds.items()))


_READERS: Mapping[str, Callable[[str, str], str]] = {
    INTERFERENCE: _interference_class,
    PROGRAM: _program,
    SPEED: _speed,
}
