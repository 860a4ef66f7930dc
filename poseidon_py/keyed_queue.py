"""A queue of keys whose work is to bring the rest of the world up to date with the newest state of the key.

Its promises:

1. Per key in order, and never in two hands: a key that somebody works on is not handed out again before `done`.
2. Adds coalesce: a key added several times before it is handed out is handed out once.
3. Nothing is lost: a key added while it is in work is handed out again after `done`.
4. Fair: keys are handed out in the order in which they became ready.
5. In batches: a worker takes up to N ready keys at once; it never waits for the N-th.
6. Again later: `retry` adds a key after a delay that grows with each attempt until `forget`.
7. Those that can wait do: an add that need not come `soon` wakes nobody. The key goes out with the next that is to
   come soon, or after `linger` seconds.
8. Shutdown drains: after `shut_down` no key is taken in, those that are ready are still handed out, then every
   `get` returns an empty batch.

The queue holds keys, not events: whoever takes a key looks at the newest state. Hence an event can be coalesced
away, a state cannot.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from poseidon_py.metrics import METRICS

K = TypeVar("K", bound=Hashable)


class KeyedQueue(Generic[K]):
    """See the module. Belongs to one event loop; not for threads."""

    def __init__(
        self,
        name: str,
        *,
        first_delay: float = 0.05,
        most_delay: float = 30.0,
        linger: float = 0.1,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._first_delay = first_delay
        self._most_delay = most_delay
        self._linger = linger
        self._call_later = call_later
        self._ready: deque[K] = deque()  # each once; none of them in work
        self._dirty: set[K] = set()  # to be handed out: the ready ones, and those to become ready at done
        self._patient: set[K] = set()  # those of the dirty ones that can wait
        self._due = False  # whether the ready ones are to be handed out now
        self._lingering = False  # whether a timer runs that makes them due
        self._working: set[K] = set()
        self._attempts: dict[K, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._depth = METRICS.queue_depth.labels(name)
        self._adds = METRICS.queue_adds.labels(name)
        self._retries = METRICS.queue_retries.labels(name)
        self._depth.set_function(lambda: len(self._ready))

    def __len__(self) -> int:
        """Keys that are to be handed out."""
        return len(self._dirty)

    @property
    def working(self) -> int:
        """Keys that are in work."""
        return len(self._working)

    @property
    def pressing(self) -> int:
        """Keys that are to be handed out soon."""
        return len(self._dirty) - len(self._patient)

    def add(self, key: K, *, soon: bool = True) -> None:
        """The state of `key` has changed; not `soon`: that can wait for `linger` seconds."""
        if self._closed:
            return
        if key in self._dirty:
            if soon and key in self._patient:
                self._patient.discard(key)
                if key not in self._working:
                    self._present(soon=True)
            return
        self._adds.inc()
        self._dirty.add(key)
        if not soon:
            self._patient.add(key)
        if key in self._working:
            return
        self._ready.append(key)
        self._present(soon)

    def _present(self, soon: bool) -> None:
        """A key has become ready."""
        if soon or not self._linger:
            self._due = True
            self._wake()
        elif not (self._due or self._lingering):
            self._lingering = True
            self._later(self._linger, self._lingered)

    def _lingered(self) -> None:
        self._lingering = False
        if self._ready:
            self._present(soon=True)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        (self._call_later or asyncio.get_running_loop().call_later)(seconds, call)

    def add_after(self, key: K, seconds: float) -> None:
        """`add`, later."""
        if seconds <= 0:
            self.add(key)
        else:
            self._later(seconds, lambda: self.add(key))

    def retry(self, key: K, rest: float = 0.0) -> float:
        """`add` after a delay that doubles with each retry of this key, at least `rest`; returns the seconds."""
        attempts = self._attempts.get(key, 0)
        self._attempts[key] = attempts + 1
        self._retries.inc()
        delay = max(rest, min(self._most_delay, self._first_delay * 2.0 ** min(attempts, 40)))
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """The key is well again: its next retry starts with the smallest delay."""
        if self._attempts:
            self._attempts.pop(key, None)

    async def get(self, most: int) -> list[K]:
        """Up to `most` ready keys, at least one; empty: shut down and drained. `done` must follow."""
        while not (self._ready and self._due):
            if self._closed:
                return []
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter.done() and not getter.cancelled():
                    self._wake()  # we were called and do not come: call the next
                raise
        ready = self._ready
        batch = [ready.popleft() for _ in range(min(most, len(ready)))]
        self._dirty.difference_update(batch)
        self._patient.difference_update(batch)
        self._working.update(batch)
        if ready:
            self._wake()
        else:
            self._due = self._closed
        return batch

    def done(self, keys: Iterable[K]) -> None:
        """The work on `keys`, which came from one `get`, has ended, well or not."""
        for key in keys:
            self._working.discard(key)
            if key in self._dirty:
                self._ready.append(key)
                self._present(key not in self._patient)

    def shut_down(self) -> None:
        """See promise 8."""
        self._closed = self._due = True
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return
