"""Turns at the engine for calls that somebody still waits for.

Calls wait for the engine's lock while a round runs. Who gave up meanwhile repeats what it asked for, so that calls
pile up of which nobody reads the answer: these are dropped when their turn comes, before they do anything.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from firmament_py.engine.engine import Engine


@contextmanager
def turn(engine: Engine, context: grpc.ServicerContext) -> Iterator[None]:
    """Holds the engine's lock. Ends the call with CANCELLED, with nothing done, if its caller has gone: it has
    cancelled the call or lost its connection, or the call's deadline has passed."""
    _drop_if_gone(context)
    with engine.lock:
        _drop_if_gone(context)
        yield


def _drop_if_gone(context: grpc.ServicerContext) -> None:
    if not context.is_active():
        context.abort(grpc.StatusCode.CANCELLED, "the caller has gone: nothing was done; call again")
