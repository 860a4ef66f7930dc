"""What a service asks of who calls it, and how a call ends without a reply: the same over gRPC and without it."""

from enum import StrEnum
from typing import Protocol


class Status(StrEnum):
    """Why a call has failed, by the names that gRPC has for it."""

    CANCELLED = "CANCELLED"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNKNOWN = "UNKNOWN"


class FailedCall(Exception):
    """Raised by a service: what a call ends with instead of a reply."""

    def __init__(self, status: Status, details: str) -> None:
        super().__init__(details)
        self.status = status


class BrokenStream(Exception):
    """Raised to a service that reads the messages of a call: the caller has gone before their end."""


class Caller(Protocol):
    """Who waits for the reply to a call."""

    def is_active(self) -> bool:
        """Whether the caller still waits."""
        ...
