"""Dead letters of one hook: deliveries that are not attempted again unless a user asks for it."""

from collections import OrderedDict
from collections.abc import Callable

from poseidon_py.hooks.records import Record


class DeadLetters:
    """The oldest are dropped above `limit`; `dropped` is called for each of these."""

    def __init__(self, limit: int, dropped: Callable[[Record], None]) -> None:
        self._limit = limit
        self._dropped = dropped
        self._records: OrderedDict[str, Record] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def add(self, record: Record) -> None:
        self._records[record.key] = record
        while len(self._records) > self._limit:
            self._dropped(self._records.popitem(last=False)[1])

    def take(self, key: str) -> Record | None:
        """Remove and return a dead letter; None: there is none with that key."""
        return self._records.pop(key, None)
