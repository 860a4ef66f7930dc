"""The engine's lock, for calls whose callers still wait for a reply.

Calls wait for the lock while a round runs. A client whose call times out meanwhile calls again, so calls accumulate
whose replies are never read: such a call is dropped when it gets the lock, before it changes anything.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from firmament_py.engine.engine import Engine
from firmament_py.service.calls.caller import Caller, FailedCall, Status


@contextmanager
def locked(engine: Engine, caller: Caller) -> Iterator[None]:
    """Holds the engine's lock. If the call was cancelled, its connection was lost or its deadline has passed, ends it
    with CANCELLED before anything is changed."""
    _drop_if_gone(caller)
    with engine.lock:
        _drop_if_gone(caller)
        yield


def _drop_if_gone(caller: Caller) -> None:
    if not caller.is_active():
        raise FailedCall(Status.CANCELLED, "the caller no longer waits: nothing was changed; call again")


class Questions:
    """Limits the calls that compute on a copy of the state: each can take seconds of a core and much memory,
    while rounds go on."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._free = threading.BoundedSemaphore(at_once)

    @contextmanager
    def one(self, caller: Caller) -> Iterator[None]:
        """While it is computed. Ends the call with RESOURCE_EXHAUSTED at once if as many are computed already, and with
        CANCELLED if its caller has gone."""
        _drop_if_gone(caller)
        if not self._free.acquire(blocking=False):
            raise FailedCall(
                Status.RESOURCE_EXHAUSTED,
                f"{self._at_once} plans or trials are being computed; ask again in a few seconds",
            )
        try:
            yield
        finally:
            self._free.release()
