"""Durations and timestamps, to the nanosecond."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import total_ordering
from zoneinfo import ZoneInfo

from poseidon_py.devices.cel.comparison import register_order
from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.overload import overload
from poseidon_py.devices.cel.values import INT_MAX, INT_MIN, ListValue, Value, register

SECOND = 10**9
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
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = int((datetime(1, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
_LAST = int((datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - _EPOCH).total_seconds())


def _decimals(nanos: int) -> str:
    """A fraction of a second, without zeros at its end."""
    return f".{nanos:09d}".rstrip("0").rstrip(".")


@total_ordering
@dataclass(frozen=True, slots=True)
class Duration:
    nanos: int

    def __lt__(self, other: "Duration") -> bool:
        return self.nanos < other.nanos

    def __str__(self) -> str:
        whole, fraction = divmod(abs(self.nanos), SECOND)
        return f"{'-' if self.nanos < 0 else ''}{whole}{_decimals(fraction)}s"


@total_ordering
@dataclass(frozen=True, slots=True)
class Timestamp:
    nanos: int
    """Since 1970."""

    def __lt__(self, other: "Timestamp") -> bool:
        return self.nanos < other.nanos

    def __str__(self) -> str:
        return f"{self.at(UTC):%Y-%m-%dT%H:%M:%S}{_decimals(self.nanos % SECOND)}Z".rjust(20, "0")

    def at(self, zone: timezone | ZoneInfo) -> datetime:
        """The whole second."""
        return (_EPOCH + timedelta(seconds=self.nanos // SECOND)).astimezone(zone)


for _kind in (Duration, Timestamp):
    register(_kind, f"google.protobuf.{_kind.__name__}")
    register_order(_kind)


def duration(nanos: int) -> Duration:
    if not INT_MIN <= nanos <= INT_MAX:
        raise EvaluationError("duration out of range")
    return Duration(nanos)


def timestamp(nanos: int) -> Timestamp:
    if not _FIRST <= nanos // SECOND <= _LAST:
        raise EvaluationError("timestamp out of range")
    return Timestamp(nanos)


def duration_from(text: str) -> Duration:
    """`1h30m` in Go's notation."""
    if not _DURATION.fullmatch(text) or len(text) > 200:
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
        moment = datetime.strptime(found[1] + found[3].replace("Z", "+00:00"), "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        raise EvaluationError(f"cannot parse {text[:60]!r} as a timestamp") from None
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    return timestamp(seconds * SECOND + int(f"{found[2] or '':0<9}"[:9]))


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
    overload("duration(string) -> duration", duration_from),
    overload("duration(duration) -> duration", _same),
    overload("duration(int) -> duration", duration),
    overload("timestamp(string) -> timestamp", timestamp_from),
    overload("timestamp(timestamp) -> timestamp", _same),
    overload("timestamp(int) -> timestamp", lambda seconds: timestamp(seconds * SECOND)),
    overload("int(timestamp) -> int", lambda moment: moment.nanos // SECOND),
    overload("int(duration) -> int", lambda span: span.nanos),
    overload("string(timestamp) -> string", str),
    overload("string(duration) -> string", str),
    overload("-_(duration) -> duration", lambda span: duration(-span.nanos)),
    overload("_+_(duration, duration) -> duration", lambda left, right: duration(left.nanos + right.nanos)),
    overload("_+_(timestamp, duration) -> timestamp", lambda left, right: timestamp(left.nanos + right.nanos)),
    overload("_+_(duration, timestamp) -> timestamp", lambda left, right: timestamp(left.nanos + right.nanos)),
    overload("_-_(duration, duration) -> duration", lambda left, right: duration(left.nanos - right.nanos)),
    overload("_-_(timestamp, duration) -> timestamp", lambda left, right: timestamp(left.nanos - right.nanos)),
    overload("_-_(timestamp, timestamp) -> duration", lambda left, right: duration(left.nanos - right.nanos)),
    *(
        overload(f"timestamp::{name}({zone}) -> int", _field(function))
        for name, function in _FIELDS.items()
        for zone in ("", "string")
    ),
    overload("timestamp::getMilliseconds() -> int", _milliseconds),
    overload("timestamp::getMilliseconds(string) -> int", _milliseconds),
    *(overload(f"duration::{name}() -> int", _whole(unit)) for name, unit in _SPANS.items()),
    overload("duration::getMilliseconds() -> int", _whole(10**6)),
    overload("list(duration)::sum() -> duration", _sum),
]
