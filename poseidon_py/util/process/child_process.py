"""A child process with a pipe to its standard input and one from its standard error, for an event loop.

`asyncio.create_subprocess_exec` would do on asyncio's own loop. uvloop runs the interpreter's hooks after the fork in
the child, before the program; if the parent has other threads, these hooks may never return, and the parent waits for
the child forever. `subprocess.Popen` runs no Python code in the child.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

PYTHON = (sys.executable, "-P")
"""Begins the command of a child in Python; `-m MODULE` or `-c TEXT` follow. Without -P the present folder comes first
on the child's module path, so that a file numpy.py there, or another checkout, would be imported."""


class _Output(asyncio.StreamReaderProtocol):
    def eof_received(self) -> bool:
        super().eof_received()
        return False  # uvloop would keep the pipe open, in case there is something to write


class ChildProcess:
    """A running process; `start` makes one."""

    def __init__(self, popen: subprocess.Popen[bytes], stderr: asyncio.StreamReader) -> None:
        self._popen = popen
        self.stderr = stderr
        self._exited = asyncio.Event()
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._wait, args=(loop,), name=f"end of {self.pid}", daemon=True).start()

    @classmethod
    async def start(cls, command: Sequence[str], *, limit: int) -> ChildProcess:
        """Starts `command` without a standard output. `limit`: bytes of a line of `stderr`. Raises OSError.

        The signals of the terminal, such as Ctrl-C, reach this process alone, which ends the child in its turn.
        """
        popen = subprocess.Popen(  # noqa: ASYNC220 - does not wait for the program
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert popen.stderr is not None
        stderr = asyncio.StreamReader(limit)
        protocol = _Output(stderr)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, popen.stderr)
        return cls(popen, stderr)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """Exit code, or minus the number of the signal that killed the process; None while it runs."""
        return self._popen.returncode if self._exited.is_set() else None

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self._popen.wait()
        self.close_stdin()
        with contextlib.suppress(RuntimeError):  # the loop was closed before the process exited
            loop.call_soon_threadsafe(self._exited.set)

    async def wait(self) -> int:
        """Waits for the exit; returns the exit code."""
        await self._exited.wait()
        return self._popen.returncode

    def close_stdin(self) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.close()

    def kill(self) -> None:
        self._popen.kill()


def how_it_ended(code: int | None) -> str:
    """How a process with this return code ended, in words."""
    if code is None:
        return "did not run"
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
