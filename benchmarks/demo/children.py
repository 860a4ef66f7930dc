"""The processes that the demo starts: each its own session, ended by its own pid, never left behind.

A child gets no Ctrl-C of the terminal: the parent decides in which order things end. Should the parent die without
a chance to clean up, the kernel ends the child (Linux), and so does the child's standard input, for those that look.
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

_PR_SET_PDEATHSIG = 1
_TUNABLES = "GLIBC_TUNABLES"
_LARGE_PAGES = "glibc.malloc.hugetlb"


def environment(own: Mapping[str, str] = os.environ) -> dict[str, str]:
    """`own`, and large pages for the heap unless `own` says something about them.

    A process that keeps thousands of new objects a second spends a fifth of its time on clearing and mapping pages of
    4 KiB, more so on a virtual machine whose host has to find each. glibc (2.35 and later) asks for large ones if it is
    told to when a process starts; other C libraries do not look, and kernels that have none ignore it.
    """
    said = own.get(_TUNABLES, "")
    if _LARGE_PAGES in said:
        return dict(own)
    return {**own, _TUNABLES: ":".join(filter(None, (said, f"{_LARGE_PAGES}=1")))}


class ChildError(Exception):
    """A child did not start, or ended on its own; the message has its last words."""


class Child:
    """`python -m arguments...` with its output in the file `log`."""

    def __init__(self, name: str, arguments: Sequence[str], log: Path) -> None:
        self.name = name
        self._arguments = list(arguments)
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None, "start() comes first"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Starts the process; returns at once."""
        with self._log.open("ab") as out:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=out,
                stderr=out,
                env=environment(),
                start_new_session=True,
                preexec_fn=_end_with(os.getpid()) if sys.platform == "linux" else None,
            )

    async def until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Waits until `ready()`. Raises ChildError if the process ends first, or after `seconds`."""
        deadline = time.monotonic() + seconds
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise ChildError(f"{self.name} was not ready within {seconds:.0f} s{self.last_words()}")
            await asyncio.sleep(0.02)

    def check(self) -> None:
        """Raises ChildError if the process has ended."""
        if self._process is not None and self._process.returncode is not None:
            raise ChildError(f"{self.name} exited with code {self._process.returncode}{self.last_words()}")

    def last_words(self, lines: int = 5) -> str:
        """The end of its output, to be put after a message."""
        try:
            said = self._log.read_text(errors="replace").splitlines()[-lines:]
        except OSError:
            said = []
        return ":\n  " + "\n  ".join(said) if said else ""

    async def stop(self, seconds: float = 15.0) -> None:
        """Ends the process: politely, then not. Returns when it is gone."""
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
    """What a child does before it becomes another program: asks the kernel to end it with its parent."""
    libc = ctypes.CDLL(None)  # loaded here: nothing should be loaded between fork and exec

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died in between
            os.kill(os.getpid(), signal.SIGTERM)

    return ask
