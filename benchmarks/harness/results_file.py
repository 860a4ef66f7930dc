"""Where the results of a run go, so that none is lost: the file is tried before anything is measured, and written after
each case and at the end, also if the end comes early."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import click

from benchmarks.harness.results import SuiteResult, temporary
from benchmarks.harness.runner import INTERRUPTED

_FAILED, _NOT_MEASURED, _INTERRUPTED = 1, 2, 130


@contextmanager
def ended_cleanly() -> Iterator[None]:
    """SIGTERM, which `timeout` and CI send, ends what is within as Ctrl-C does: with everything cleaned up and kept."""

    def end(_: int, frame: FrameType | None) -> None:
        interrupt = signal.getsignal(signal.SIGINT)  # an event loop has one of its own, and ends its task first
        if not callable(interrupt):  # ignored, as in the background of a shell
            raise KeyboardInterrupt
        interrupt(signal.SIGINT, frame)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


class ResultsFile:
    """Keeps results in a file, or, without one, not at all. Raises click.UsageError if it could not."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        if path is None:
            return
        self._whole = path.exists() and not path.is_file()  # a pipe or a device takes one document
        try:
            if path.exists() and not os.access(path, os.W_OK):
                raise PermissionError("permission denied")
            if not self._whole:
                trial = temporary(path)
                trial.touch()
                trial.unlink()
        except OSError as error:
            why = error.strerror or error
            raise click.UsageError(f"--json {path}: {why}; choose a file in a writable folder") from error

    def keep(self, result: SuiteResult) -> None:
        """What there is so far. A failure is told at the end, when it is still one."""
        if self._path is not None and not self._whole:
            with suppress(OSError):
                result.write(self._path)

    def finish(self, result: SuiteResult, missed: bool = False) -> int:
        """Writes the results, if there are any, and says why they are not all. Returns the exit code.

        missed: a target that has to be met was not.
        """
        if result.stopped:
            click.echo(f"error: {result.stopped}", err=True)
        if self._path is not None and result.cases:
            try:
                result.write(self._path)
            except OSError as error:
                click.echo(f"error: cannot write results to {self._path}: {error}", err=True)
                return _NOT_MEASURED
        if result.stopped:
            return _INTERRUPTED if result.stopped == INTERRUPTED else _NOT_MEASURED
        return _FAILED if missed or not result.sound else 0
