"""The processes that the demo starts: each in a separate session, always stopped, by its pid.

A child does not receive the terminal's Ctrl-C: the parent stops its children in order. If the parent dies without
cleaning up, the kernel ends the child (Linux), and a child that reads its standard input sees it closed.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from poseidon_py.util.process.child_process import PYTHON

_PR_SET_PDEATHSIG = 1
_TUNABLES = "GLIBC_TUNABLES"
_LARGE_PAGES = "glibc.malloc.hugetlb"


def environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """`base`, with large pages for the heap unless `base` sets that tunable.

    A process that keeps thousands of new objects a second spends a fifth of its time on clearing and mapping pages of
    4 KiB, and more on a virtual machine. glibc 2.35 and later requests large pages if this tunable is set when a
    process starts; other C libraries, and kernels without large pages, ignore it.
    """
    tunables = base.get(_TUNABLES, "")
    if _LARGE_PAGES in tunables:
        return dict(base)
    return {**base, _TUNABLES: ":".join(filter(None, (tunables, f"{_LARGE_PAGES}=1")))}


class ChildError(Exception):
    """A child did not start, or exited unexpectedly; the message has the end of its output."""


class Child:
    """`python -P -m arguments...` with its output in the file `log`. program: what runs instead."""

    def __init__(
        self, name: str, arguments: Sequence[str], log: Path, program: Sequence[str] = (*PYTHON, "-m")
    ) -> None:
        self.name = name
        self._command = [*program, *arguments]
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The process id; start() must have been called."""
        assert self._process is not None, "call start() first"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process has been started and has not exited."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Starts the process; returns at once."""
        with self._log.open("ab") as out:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=out,
                stderr=out,
                env=environment(),
                start_new_session=True,
                preexec_fn=_end_with(os.getpid()) if sys.platform == "linux" else None,
            )

    async def until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Waits until `ready()`. Raises ChildError if the process exits first, or after `seconds`."""
        deadline = time.monotonic() + seconds
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise ChildError(f"{self.name} was not ready within {seconds:.0f} s{self.output_tail()}")
            await asyncio.sleep(0.02)

    def check(self) -> None:
        """Raises ChildError if the process has exited."""
        if self._process is not None and self._process.returncode is not None:
            raise ChildError(f"{self.name} exited with code {self._process.returncode}{self.output_tail()}")

    def output_tail(self, count: int = 5) -> str:
        """The last lines of its output, to append to a message."""
        try:
            lines = self._log.read_text(errors="replace").splitlines()[-count:]
        except OSError:
            lines = []
        return ":\n  " + "\n  ".join(lines) if lines else ""

    async def stop(self, seconds: float = 15.0) -> None:
        """Sends SIGTERM, and SIGKILL after `seconds`. Returns when the process has exited."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            process.kill()
            await process.wait()


def _end_with(parent: int) -> Callable[[], None]:
    """For preexec_fn: asks the kernel to end the child when its parent dies."""
    libc = ctypes.CDLL(None)  # loaded here: nothing should be loaded between fork and exec

    def request() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # the parent died in between
            os.kill(os.getpid(), signal.SIGTERM)

    return request
