"""The file that receives the results of a run. It is opened once before anything is measured, and written after each
case and at the end, also if the run is interrupted."""

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
    """Handles SIGTERM, which `timeout` and CI send, like Ctrl-C: the run cleans up and writes its results."""

    def end(_: int, frame: FrameType | None) -> None:
        interrupt = signal.getsignal(signal.SIGINT)  # an event loop sets its own, which cancels the main task
        if not callable(interrupt):  # SIGINT is ignored, as in a background job of a shell
            raise KeyboardInterrupt
        interrupt(signal.SIGINT, frame)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


class ResultsFile:
    """Writes results to a file, if one is given. Raises click.UsageError if it is not writable."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        if path is None:
            return
        self._whole = path.exists() and not path.is_file()  # a pipe or a device receives one document, at the end
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
        """Writes the results so far. A write error is reported by `finish`, if it persists."""
        if self._path is not None and not self._whole:
            with suppress(OSError):
                result.write(self._path)

    def finish(self, result: SuiteResult, missed: bool = False) -> int:
        """Writes the results, if there are any, and reports why they are incomplete. Returns the exit code.

        missed: a required target was missed.
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
