"""Durations and timestamps, to the nanosecond."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from functools import total_ordering
from zoneinfo import ZoneInfo

from poseidon_py.devices.cel.comparison import register_order
from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.values import INT_MAX, INT_MIN, register

SECOND = 10**9
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = int((datetime(1, 1, 1, tzinfo=UTC) - EPOCH).total_seconds())
_LAST = int((datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - EPOCH).total_seconds())


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
    offset: int = field(default=0, compare=False)
    """Minutes from UTC, in which the moment was written, and is written again."""

    def __lt__(self, other: "Timestamp") -> bool:
        return self.nanos < other.nanos

    def __str__(self) -> str:
        moment = self.at(timezone(timedelta(minutes=self.offset)))
        zone = moment.strftime("%z") if self.offset else "+0000"
        shown = "Z" if zone == "+0000" else f"{zone[:3]}:{zone[3:]}"
        return f"{moment.replace(tzinfo=None).isoformat()}{_decimals(self.nanos % SECOND)}{shown}"

    def at(self, zone: timezone | ZoneInfo) -> datetime:
        """The whole second."""
        try:
            return (EPOCH + timedelta(seconds=self.nanos // SECOND)).astimezone(zone)
        except OverflowError:
            raise EvaluationError("timestamp out of range") from None


for _kind in (Duration, Timestamp):
    register(_kind, f"google.protobuf.{_kind.__name__}")
    register_order(_kind)


def duration(nanos: int) -> Duration:
    if not INT_MIN <= nanos <= INT_MAX:
        raise EvaluationError("duration out of range")
    return Duration(nanos)


def timestamp(nanos: int, offset: int = 0) -> Timestamp:
    if not _FIRST <= nanos // SECOND <= _LAST:
        raise EvaluationError("timestamp out of range")
    return Timestamp(nanos, offset)


def moved(moment: Timestamp, nanos: int) -> Timestamp:
    return timestamp(moment.nanos + nanos, moment.offset)
