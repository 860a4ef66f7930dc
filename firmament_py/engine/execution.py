"""How work beside the rounds is carried out."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

POLL_US = 10_000
"""After which time the client asks again whether such work has ended."""

_NICENESS = 10
"""Of threads that nothing waits for, where the system knows that: rounds come first."""


def in_background(work: Callable[[], None], name: str, niceness: int = _NICENESS) -> threading.Thread:
    """Starts `work` in a thread that does not outlive the process, of low priority unless niceness is 0."""

    def beneath() -> None:
        with suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
        work()

    thread = threading.Thread(target=beneath, name=name, daemon=True)
    thread.start()
    return thread


class Execution(Protocol):
    """Carries out one piece of work at a time."""

    def start(self, work: Callable[[], None]) -> None: ...

    @property
    def running(self) -> bool: ...


class InThread:
    """An Execution in a thread. niceness: 0 where tasks wait for the work."""

    def __init__(self, name: str = "search", niceness: int = _NICENESS) -> None:
        self._name, self._niceness = name, niceness
        self._thread: threading.Thread | None = None

    def start(self, work: Callable[[], None]) -> None:
        self._thread = in_background(work, self._name, self._niceness)

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()
