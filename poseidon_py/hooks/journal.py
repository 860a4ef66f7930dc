"""Writes changes to the store in batches.

New records are urgent: they are written at once, with all others that are reported while the store is busy or was
written a moment ago. What may be lost without harm is late: after a failure a delivery that was acknowledged is sent
once more, and an attempt is counted once less. So the number of writes has a limit, however many transitions there are.
"""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from poseidon_py.hooks.clock import Clock
from poseidon_py.hooks.records import Record, Totals
from poseidon_py.hooks.storage.store import Store, StoreError
from poseidon_py.util.backoff import Backoff

log = logging.getLogger(__name__)

MIN_INTERVAL = 0.05
"""Seconds between the starts of two writes."""
REMOVAL_SECONDS = 1.0
"""Seconds after which an acknowledged delivery is removed."""
PROGRESS_SECONDS = 15.0
"""Seconds after which the number of attempts is written."""
_RETRY_FIRST, _RETRY_LONGEST = 0.2, 30.0

Value = Record | Totals | None
_encode = msgspec.json.Encoder().encode


class Journal:
    """`run` in a task of its own. `on_written` gets the records of each write, once they are durable."""

    def __init__(
        self, store: Store, clock: Clock, on_written: Callable[[list[Record]], None], on_write: Callable[[str], None]
    ) -> None:
        """`on_write`: called with the result of each write: written or failed."""
        self._store = store
        self._clock = clock
        self._on_written = on_written
        self._on_write = on_write
        self._urgent: dict[str, Value] = {}
        self._late: dict[str, Value] = {}
        self._late_due = 0.0
        self._wake = asyncio.Event()
        self._put = 0
        self._durable = 0
        self._changed = asyncio.Event()  # replaced at every write
        self._stopping = False

    def put(self, key: str, value: Value) -> None:
        """Write at once; None: remove."""
        self._late.pop(key, None)
        self._urgent[key] = value
        self._put += 1
        self._wake.set()

    def remove(self, key: str) -> None:
        self._defer(key, None, REMOVAL_SECONDS)

    def progress(self, record: Record) -> None:
        """Write the number of attempts of a record, some time."""
        self._defer(record.key, record, PROGRESS_SECONDS)

    def put_late(self, key: str, value: Record | Totals) -> None:
        """Write with the next removals."""
        self._defer(key, value, REMOVAL_SECONDS)

    def _defer(self, key: str, value: Value, delay: float) -> None:
        if key in self._urgent:
            self._urgent[key] = value
            return
        due = self._clock.monotonic() + delay
        if not self._late or due < self._late_due:
            self._late_due = due
            self._wake.set()
        self._late[key] = value

    def __len__(self) -> int:
        """Changes that are not yet being written."""
        return len(self._urgent) + len(self._late)

    async def written(self) -> None:
        """Until all that was put so far is durable."""
        number = self._put
        while self._durable < number:
            await self._changed.wait()

    async def run(self) -> None:
        """Until `stop`. Raises StoreTakenError."""
        backoff = Backoff(_RETRY_FIRST, _RETRY_LONGEST)
        while True:
            await self._next()
            if self._stopping and not len(self):
                return
            started = self._clock.monotonic()
            try:
                await self._write()
            except StoreError as error:
                self._on_write("failed")
                if backoff.attempts == 0:
                    log.warning("cannot store deliveries of hooks: %s; trying again", error)
                await self._clock.sleep(backoff.next())
                continue
            self._on_write("written")
            if backoff.attempts:
                log.info("deliveries of hooks are stored again")
            backoff.reset()
            pause = started + MIN_INTERVAL - self._clock.monotonic()
            if pause > 0 and not self._stopping:
                await self._clock.sleep(pause)

    def stop(self) -> None:
        """`run` returns when all changes are written."""
        self._stopping = True
        self._wake.set()

    async def _next(self) -> None:
        """Until there is something to write."""
        while not (self._urgent or self._stopping):
            delay = self._late_due - self._clock.monotonic() if self._late else None
            if delay is not None and delay <= 0:
                return
            self._wake.clear()
            await self._clock.wait(self._wake, delay)

    async def _write(self) -> None:
        taken, number = self._urgent, self._put
        self._urgent = {}
        if self._late and (self._stopping or self._late_due <= self._clock.monotonic()):
            taken = {**self._late, **taken}
            self._late = {}
        try:
            await self._store.write(
                {key: None if value is None else _encode(value).decode() for key, value in taken.items()}
            )
        except BaseException:
            # in front of what was put meanwhile: records of a job become durable in their order
            again = {key: self._urgent.pop(key, self._late.pop(key, value)) for key, value in taken.items()}
            self._urgent = {**again, **self._urgent}
            raise
        self._durable = number
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        self._on_written([value for value in taken.values() if isinstance(value, Record)])
