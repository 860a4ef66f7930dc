"""A queue of keys whose work is to bring the rest of the world up to date with the newest state of the key.

Its promises:

1. Per key in order, and never in two hands: a key that somebody works on is not handed out again before `done`.
2. Adds coalesce: a key added several times before it is handed out is handed out once.
3. Nothing is lost: a key added while it is in work is handed out again after `done`.
4. Fair: keys are handed out in the order in which they became ready, those that can wait after the others.
5. In batches: a worker takes up to N ready keys at once; it never waits for the N-th.
6. Again later: `retry` adds a key after a delay that grows with each attempt until `forget`.
7. Those that can wait do: an add that need not come `soon` wakes nobody. The key goes out with the next that is to
   come soon, or after `linger` seconds. While `held` says that there is better to do it does neither, but goes out
   after a hundred times as long.
8. Shutdown drains: after `shut_down` no key is taken in, those that are ready are still handed out, then every
   `get` returns an empty batch.

The queue holds keys, not events: whoever takes a key looks at the newest state. Hence an event can be coalesced
away, a state cannot.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import Generic, TypeVar

from poseidon_py.util.metrics import Metrics

K = TypeVar("K", bound=Hashable)

_MOST_LINGERS = 100


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
        metrics: Metrics | None = None,
    ) -> None:
        metrics = metrics if metrics is not None else Metrics()
        self._first_delay = first_delay
        self._most_delay = most_delay
        self._linger = linger
        self._call_later = call_later
        self.held: Callable[[], bool] = lambda: False
        """Asked whether keys that can wait have to."""
        self._ready: deque[K] = deque()  # to be handed out now; each once; none of them in work
        self._resting: dict[K, None] = {}  # the same, but they can wait
        self._dirty: set[K] = set()  # to be handed out: ready, resting, and those to become so at done
        self._patient: set[K] = set()  # those of the dirty ones that were added to come when they come
        self._lingering = False  # whether a timer runs for those that rest
        self._lingers = 0  # how often it has run while they were held
        self._working: set[K] = set()
        self._attempts: dict[K, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._depth = metrics.queue_depth.labels(name)
        self._adds = metrics.queue_adds.labels(name)
        self._retries = metrics.queue_retries.labels(name)
        self._depth.set_function(lambda: len(self._ready) + len(self._resting))

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
        """The state of `key` has changed; not `soon`: that can wait, see promise 7."""
        if self._closed:
            return
        if key in self._dirty:
            if soon and key in self._patient:
                self._patient.discard(key)
                if key in self._resting:
                    del self._resting[key]
                    self._present(key)
            return
        self._adds.inc()
        self._dirty.add(key)
        if not soon:
            self._patient.add(key)
        if key not in self._working:
            self._present(key)

    def _present(self, key: K) -> None:
        """The key can be handed out."""
        if key not in self._patient or not self._linger or self._closed:
            self._ready.append(key)
            self._wake()
            return
        self._resting[key] = None
        if not self._lingering:
            self._lingering, self._lingers = True, 0
            self._later(self._linger, self._lingered)

    def _lingered(self) -> None:
        self._lingers += 1
        if self._resting and self._lingers < _MOST_LINGERS and self.held():
            self._later(self._linger, self._lingered)
            return
        self._lingering = False
        self._end_rest()

    def _end_rest(self) -> None:
        self._ready.extend(self._resting)
        self._resting.clear()
        if self._ready:
            self._wake()

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
        while not self._ready:
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
        ready, resting = self._ready, self._resting
        batch = [ready.popleft() for _ in range(min(most, len(ready)))]
        if resting and len(batch) < most and not self.held():
            along = list(islice(resting, most - len(batch)))
            for key in along:
                del resting[key]
            batch += along
        self._dirty.difference_update(batch)
        self._patient.difference_update(batch)
        self._working.update(batch)
        if ready:
            self._wake()
        return batch

    def done(self, keys: Iterable[K]) -> None:
        """The work on `keys`, which came from one `get`, has ended, well or not."""
        for key in keys:
            self._working.discard(key)
            if key in self._dirty:
                self._present(key)

    def shut_down(self) -> None:
        """See promise 8."""
        self._closed = True
        self._end_rest()
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
