"""The engine's lock for calls whose callers still wait for a reply.

Calls wait for the lock while a round runs. A client that gives up meanwhile calls again, so that calls pile up whose
replies are never read: these are dropped when they get the lock, before they do anything.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from firmament_py.engine.engine import Engine


@contextmanager
def locked(engine: Engine, context: grpc.ServicerContext) -> Iterator[None]:
    """Holds the engine's lock. Ends the call with CANCELLED, with nothing done, if its caller has gone: the call was
    cancelled, its connection was lost, or its deadline has passed."""
    _drop_if_gone(context)
    with engine.lock:
        _drop_if_gone(context)
        yield


def _drop_if_gone(context: grpc.ServicerContext) -> None:
    if not context.is_active():
        context.abort(grpc.StatusCode.CANCELLED, "the caller has gone: nothing was done; call again")
