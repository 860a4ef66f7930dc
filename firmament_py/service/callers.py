"""The engine's lock, for calls whose callers still wait for a reply.

Calls wait for the lock while a round runs. A client whose call times out meanwhile calls again, so calls accumulate
whose replies are never read: such a call is dropped when it gets the lock, before it changes anything.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from firmament_py.engine.engine import Engine


@contextmanager
def locked(engine: Engine, context: grpc.ServicerContext) -> Iterator[None]:
    """Holds the engine's lock. If the call was cancelled, its connection was lost or its deadline has passed, ends it
    with CANCELLED before anything is changed."""
    _drop_if_gone(context)
    with engine.lock:
        _drop_if_gone(context)
        yield


def _drop_if_gone(context: grpc.ServicerContext) -> None:
    if not context.is_active():
        context.abort(grpc.StatusCode.CANCELLED, "the caller no longer waits: nothing was changed; call again")
