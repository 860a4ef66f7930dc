"""Pods whose eviction was refused: for a growing time they are not chosen again."""

import asyncio
import random
from collections.abc import Callable

from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.util.backoff import Backoff
from poseidon_py.util.timers import Timer

_FIRST, _MAX = 30.0, 600.0
"""Seconds."""


class Refusals:
    """`add` any number; `forget` deleted pods; `stop`."""

    def __init__(
        self,
        store: Store,
        mark: Callable[[PodRecord, bool], None],
        *,
        call_later: Callable[[float, Callable[[], None]], Timer] | None = None,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """`mark` sets whether the pod is left out of decisions; the engine learns it from the pod's row."""
        self._store = store
        self._mark = mark
        self._call_later = call_later
        self._rng = rng
        self._backoffs: dict[str, Backoff] = {}
        """By UID."""
        self._timers: dict[str, Timer] = {}
        """By UID: after which the pods can be chosen again."""

    def add(self, known: PodRecord) -> None:
        """Leaves the pod out of decisions for a while."""
        uid = known.uid
        if self._store.pods.get(uid) is not known:
            return

        def again() -> None:
            self._timers.pop(uid, None)
            self._mark(known, False)
            self._store.touch_pod(uid)

        if (timer := self._timers.pop(uid, None)) is not None:
            timer.cancel()
        self._mark(known, True)
        self._store.touch_pod(uid)
        delay = self._backoffs.setdefault(uid, Backoff(_FIRST, _MAX, self._rng)).next()
        self._timers[uid] = (self._call_later or asyncio.get_running_loop().call_later)(delay, again)

    def forget(self, uid: str) -> None:
        self._backoffs.pop(uid, None)
        if (timer := self._timers.pop(uid, None)) is not None:
            timer.cancel()

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
