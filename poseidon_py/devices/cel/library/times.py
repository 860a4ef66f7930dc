"""Functions of durations and timestamps."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.overload import overload
from poseidon_py.devices.cel.moments import EPOCH, SECOND, Duration, Timestamp, duration, timestamp
from poseidon_py.devices.cel.values import ListValue, Value

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT)(\d{1,2}:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def duration_from(text: str) -> Duration:
    """`1h30m` in Go's notation."""
    if len(text) > 200 or not _DURATION.fullmatch(text):
        raise EvaluationError(f"time: invalid duration {text[:60]!r}")
    total = 0
    for whole, fraction, unit in _PART.findall(text):
        total += int(whole or "0") * _UNITS[unit] + int(fraction or "0") * _UNITS[unit] // 10 ** len(fraction)
    return duration(-total if text.startswith("-") else total)


def timestamp_from(text: str) -> Timestamp:
    """RFC 3339."""
    found = _TIMESTAMP.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        written = found[1] + found[2].zfill(8) + found[4].replace("Z", "+00:00")
        moment = datetime.strptime(written, "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        raise EvaluationError(f"cannot parse {text[:60]!r} as a timestamp") from None
    seconds = (moment - EPOCH) // timedelta(seconds=1)
    offset = (moment.utcoffset() or timedelta()) // timedelta(minutes=1)
    return timestamp(seconds * SECOND + int(f"{found[3] or '':0<9}"[:9]), offset)


_OFFSET = re.compile(r"([+-]?)(\d{1,2}):(\d\d)", re.ASCII)


def _zone(name: str) -> timezone | ZoneInfo:
    found = _OFFSET.fullmatch(name)
    if found:
        minutes = int(found[2]) * 60 + int(found[3])
        return timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes))
    try:
        return UTC if name in ("", "UTC") else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name[:60]}") from None


_FIELDS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
}
_SPANS = {"getHours": 3600 * SECOND, "getMinutes": 60 * SECOND, "getSeconds": SECOND}


def _field(function: Callable[[datetime], int]) -> Callable[..., int]:
    return lambda moment, zone="UTC": function(moment.at(_zone(zone)))


def _zone_cost(_moment: Timestamp, zone: str = "") -> int:
    """A zone by name may be read from a file."""
    return 20 if zone else 1


def _towards_zero(nanos: int, unit: int) -> int:
    return nanos // unit if nanos >= 0 else -(-nanos // unit)


def _whole(unit: int) -> Callable[[Duration], int]:
    return lambda span: _towards_zero(span.nanos, unit)


def _milliseconds(moment: Timestamp, zone: str = "UTC") -> int:
    _zone(zone)
    return moment.nanos % SECOND // 10**6


def _sum(spans: ListValue) -> Duration:
    total = Duration(0)
    for each in spans:
        total = duration(total.nanos + each.nanos)
    return total


def _same(value: Value) -> Value:
    return value


OVERLOADS = [
    overload("duration(duration) -> duration", _same),
    overload("duration(int) -> duration", duration),
    overload("duration(string) -> duration", duration_from),
    overload("timestamp(timestamp) -> timestamp", _same),
    overload("timestamp(int) -> timestamp", lambda seconds: timestamp(seconds * SECOND)),
    overload("timestamp(string) -> timestamp", timestamp_from),
    overload("int(timestamp) -> int", lambda moment: moment.nanos // SECOND),
    overload("int(duration) -> int", lambda span: span.nanos),
    overload("string(timestamp) -> string", str),
    overload("string(duration) -> string", str),
    *(
        overload(f"timestamp::{name}({zone}) -> int", _field(function), _zone_cost)
        for name, function in _FIELDS.items()
        for zone in ("", "string")
    ),
    overload("timestamp::getMilliseconds() -> int", _milliseconds),
    overload("timestamp::getMilliseconds(string) -> int", _milliseconds, _zone_cost),
    *(overload(f"duration::{name}() -> int", _whole(unit)) for name, unit in _SPANS.items()),
    overload("duration::getMilliseconds() -> int", _whole(10**6)),
    overload("list(duration)::sum() -> duration", _sum),
]
