"""Refusal of a message: the invalid field, what was found, and the remedy."""

from collections.abc import Iterator
from contextlib import contextmanager

from firmament_py.service.calls.caller import FailedCall, Status


class InvalidField(ValueError):
    """A field of a message is invalid. reason: what was found, and what to give instead."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field = field
        self.reason = reason


@contextmanager
def invalid_argument(subject: str = "") -> Iterator[None]:
    """Ends the call with INVALID_ARGUMENT if a field of its message is invalid. subject: what the message describes."""
    try:
        yield
    except InvalidField as invalid:
        raise FailedCall(Status.INVALID_ARGUMENT, f"{subject}: {invalid}" if subject else str(invalid)) from invalid
