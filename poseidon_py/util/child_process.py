"""A child process with a pipe to its standard input and one from its standard error, for an event loop.

`asyncio.create_subprocess_exec` would do on asyncio's own loop. uvloop runs the interpreter's hooks after the fork in
the child, before the program; if the parent has other threads, these hooks may never return, and the parent waits for
the child forever. `subprocess.Popen` runs no Python code in the child.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import Sequence


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
        """Starts `command` without a standard output. `limit`: bytes of a line of `stderr`. Raises OSError."""
        popen = subprocess.Popen(  # noqa: ASYNC220 - does not wait for the program
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0
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
