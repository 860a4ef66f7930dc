"""Ends the service: on SIGTERM or SIGINT, and at the end of its standard input where the parent is watched."""

import os
import signal
import threading
from queue import SimpleQueue

_NUMBERS = (signal.SIGTERM, signal.SIGINT)


class Stopping:
    """What the main thread waits for.

    A signal handler runs between any two instructions of the main thread, also while that thread takes the lock of a
    `threading.Event` to wait for it; `set` in the handler would then wait for the thread that it interrupts. `put` of a
    `SimpleQueue` is reentrant.
    """

    def __init__(self) -> None:
        self._causes: SimpleQueue[int | None] = SimpleQueue()
        for number in _NUMBERS:
            signal.signal(number, lambda number, _frame: self._causes.put(number))

    def watch_input(self) -> None:
        """Stops at the end of the standard input, which a parent holds open as long as it lives."""
        threading.Thread(target=self._read_input, daemon=True).start()

    def wait(self) -> str:
        """Returns why the service ends."""
        number = self._causes.get()
        return "its parent has ended" if number is None else f"{signal.Signals(number).name} was received"

    def _read_input(self) -> None:
        # not sys.stdin, whose lock would be held during the wait: the interpreter aborts if it cannot take it at exit
        try:
            while os.read(0, 4096):
                pass
        except OSError:  # closed from the start
            pass
        self._causes.put(None)
