"""Where deliveries are stored: the interface, and the implementation in memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Verb = Literal["retry", "drop"]


class StoreError(Exception):
    """The store cannot be read or written now; the same call may succeed later."""


class StoreTakenError(Exception):
    """Another process has taken over the store: this one must not send or write any longer."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks of a dead letter."""

    verb: Verb
    key: str
    """Key of its record."""


class Store(Protocol):
    """Texts by key, of one writer at a time. All methods raise StoreError and StoreTakenError."""

    async def load(self) -> dict[str, str]:
        """Take over the store. Returns all that is in it."""
        ...

    async def write(self, changes: Mapping[str, str | None]) -> None:
        """Set the text of each key, or remove it if it is None. When this returns, all changes are durable.

        After an error any of them may be; the same call may be repeated.
        """
        ...

    async def strays(self) -> dict[str, str]:
        """What a former writer has written after `load`; called some time after it."""
        ...

    async def requests(self) -> list[Request]:
        """What users ask for."""
        ...

    async def answered(self, requests: list[Request]) -> None:
        """Remove requests that were carried out."""
        ...


class MemoryStore:
    """A store that lasts as long as its object, for tests and for controllers without an API server."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.asked: list[Request] = []

    async def load(self) -> dict[str, str]:
        return dict(self.texts)

    async def write(self, changes: Mapping[str, str | None]) -> None:
        for key, text in changes.items():
            if text is None:
                self.texts.pop(key, None)
            else:
                self.texts[key] = text

    async def strays(self) -> dict[str, str]:
        return {}

    async def requests(self) -> list[Request]:
        return list(self.asked)

    async def answered(self, requests: list[Request]) -> None:
        self.asked = [request for request in self.asked if request not in requests]
