"""A queue of keys; the work on a key brings the rest of the system up to date with the key's newest state.

Guarantees:

1. Per-key order, one worker at a time: a key that is in work is not handed out again before `done`.
2. Adds coalesce: a key added several times before it is handed out is handed out once.
3. Nothing is lost: a key added while it is in work is handed out again after `done`.
4. Fairness: keys are handed out in the order in which they became ready, deferred keys after urgent ones.
5. Batches: a worker takes up to N ready keys at once and never waits for the N-th.
6. Retries: `retry` adds a key after a delay that grows with each attempt until `forget`.
7. Deferral: an add that is not `urgent` wakes no worker. The key goes out with the next urgent key, or after
   `defer_seconds`. While `extend_deferral` returns True it does neither, but goes out after at most a hundred times
   that delay.
8. Shutdown drains: after `shut_down` no key is accepted, ready keys are still handed out, then every `get` returns an
   empty batch.

The queue holds keys, not events: a worker that takes a key reads its newest state. An event can be coalesced away, a
state cannot.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import Generic, TypeVar

from poseidon_py.metrics.metrics import ProcessMetrics
from poseidon_py.util.waiters import Waiters

K = TypeVar("K", bound=Hashable)

_MAX_DEFERRALS = 100


class KeyedQueue(Generic[K]):
    """See the module. Belongs to one event loop; not for threads."""

    def __init__(
        self,
        name: str,
        *,
        first_delay: float = 0.05,
        max_delay: float = 30.0,
        defer_seconds: float = 0.1,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
        metrics: ProcessMetrics | None = None,
    ) -> None:
        metrics = metrics if metrics is not None else ProcessMetrics()
        self._first_delay = first_delay
        self._max_delay = max_delay
        self._defer_seconds = defer_seconds
        self._call_later = call_later
        self.extend_deferral: Callable[[], bool] = lambda: False
        """Whether deferred keys stay deferred; called when their delay ends and for each batch with space left."""
        self._ready: deque[K] = deque()  # handed out next; no duplicates, none in work
        self._deferred: dict[K, None] = {}  # the same, but not urgent
        self._dirty: set[K] = set()  # all keys to hand out: ready, deferred, and added again while in work
        self._deferrable: set[K] = set()  # the dirty keys of which no add was urgent
        self._timer_running = False  # whether the deferral timer runs
        self._deferrals = 0  # how often it was extended
        self._working: set[K] = set()
        self._attempts: dict[K, int] = {}
        self._getters = Waiters()
        self._closed = False
        self._depth = metrics.queue_depth.labels(name)
        self._adds = metrics.queue_adds.labels(name)
        self._retries = metrics.queue_retries.labels(name)
        self._depth.set_function(lambda: len(self._ready) + len(self._deferred))

    def __len__(self) -> int:
        """Number of keys to hand out."""
        return len(self._dirty)

    @property
    def working(self) -> int:
        """Number of keys in work."""
        return len(self._working)

    @property
    def urgent(self) -> int:
        """Number of urgent keys to hand out."""
        return len(self._dirty) - len(self._deferrable)

    def add(self, key: K, *, urgent: bool = True) -> None:
        """Record that the state of `key` has changed. A change that is not `urgent` is deferred, see guarantee 7."""
        if self._closed:
            return
        if key in self._dirty:
            if urgent and key in self._deferrable:
                self._deferrable.discard(key)
                if key in self._deferred:
                    del self._deferred[key]
                    self._make_ready(key)
            return
        self._adds.inc()
        self._dirty.add(key)
        if not urgent:
            self._deferrable.add(key)
        if key not in self._working:
            self._make_ready(key)

    def _make_ready(self, key: K) -> None:
        """Make a dirty key available to workers: at once if urgent, else after the deferral."""
        if key not in self._deferrable or not self._defer_seconds or self._closed:
            self._ready.append(key)
            self._getters.wake_one()
            return
        self._deferred[key] = None
        if not self._timer_running:
            self._timer_running, self._deferrals = True, 0
            self._later(self._defer_seconds, self._deferral_ended)

    def _deferral_ended(self) -> None:
        self._deferrals += 1
        if self._deferred and self._deferrals < _MAX_DEFERRALS and self.extend_deferral():
            self._later(self._defer_seconds, self._deferral_ended)
            return
        self._timer_running = False
        self._release_deferred()

    def _release_deferred(self) -> None:
        self._ready.extend(self._deferred)
        self._deferred.clear()
        if self._ready:
            self._getters.wake_one()

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        (self._call_later or asyncio.get_running_loop().call_later)(seconds, call)

    def add_after(self, key: K, seconds: float) -> None:
        """`add` after a delay."""
        if seconds <= 0:
            self.add(key)
        else:
            self._later(seconds, lambda: self.add(key))

    def retry(self, key: K, min_delay: float = 0.0) -> float:
        """`add` after a delay that doubles with each retry of this key, at least `min_delay`. Returns it in seconds."""
        attempts = self._attempts.get(key, 0)
        self._attempts[key] = attempts + 1
        self._retries.inc()
        delay = max(min_delay, min(self._max_delay, self._first_delay * 2.0 ** min(attempts, 40)))
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Reset the retry delay of a key, after a success."""
        if self._attempts:
            self._attempts.pop(key, None)

    async def get(self, max_items: int) -> list[K]:
        """Wait for ready keys, return 1 to `max_items`; none once shut down and drained. `done` must follow."""
        while not self._ready:
            if self._closed:
                return []
            await self._getters.wait()
        ready, deferred = self._ready, self._deferred
        batch = [ready.popleft() for _ in range(min(max_items, len(ready)))]
        if deferred and len(batch) < max_items and not self.extend_deferral():
            taken_along = list(islice(deferred, max_items - len(batch)))
            for key in taken_along:
                del deferred[key]
            batch += taken_along
        self._dirty.difference_update(batch)
        self._deferrable.difference_update(batch)
        self._working.update(batch)
        if ready:
            self._getters.wake_one()
        return batch

    def done(self, keys: Iterable[K]) -> None:
        """Record that the work on `keys`, which came from one `get`, has ended, successfully or not."""
        for key in keys:
            self._working.discard(key)
            if key in self._dirty:
                self._make_ready(key)

    def shut_down(self) -> None:
        """See guarantee 8."""
        self._closed = True
        self._release_deferred()
        self._getters.wake_all()
