"""Starts and supervises a flow service.

The service listens on a unix socket in a private folder of this user, because any client that can connect can place
pods, and without gRPC, which neither of the two processes loads then. It is ready once it answers, and exits when its
standard input closes, so that it never outlives this process. A service that exits, also during its start, is restarted
with growing delays; the client then detects the new epoch and resynchronises. Only the process that was started here is
ever terminated here.
"""

import asyncio
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

from poseidon_py.feed.client import EngineError, wait_until_serving
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.util.backoff import Backoff
from poseidon_py.util.decoding import MalformedError, decode_json
from poseidon_py.util.process.child_process import PYTHON, ChildProcess, how_it_ended
from poseidon_py.util.process.private_folder import PrivateFolder
from poseidon_py.util.tasks import end_tasks
from protos.addresses import DIRECT

log = logging.getLogger(__name__)

_LIVED_LONG = 30.0
_END_SECONDS = 5.0
_LINE_BYTES = 1 << 20
"""Maximum length of a line of output; in JSON a complete traceback is one line."""
_SOCKET = "flow.sock"
_SOCKET_PATH_BYTES = 107
"""Longest path of a unix socket on Linux."""
_WRONG_USAGE = 2
"""Exit code of a service with invalid arguments, which is not restarted."""


class FirmamentError(Exception):
    """The service did not start; the message names the cause and the remedy. `usage`: its arguments are invalid."""

    def __init__(self, message: str, *, usage: bool = False) -> None:
        super().__init__(message)
        self.usage = usage


class Supervisor:
    """`start` once, then `run` in a separate task, `stop` at the end."""

    def __init__(
        self,
        *,
        policy: str,
        policy_options: Sequence[str],
        moved: Callable[[str], Awaitable[None]],
        extra_args: Sequence[str] = (),
        log_level: str = "info",
        log_format: str = "text",
        startup_timeout: float = 60.0,
        command: Sequence[str] = (*PYTHON, "-m", "firmament_py", "serve"),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        metrics: Metrics | None = None,
    ) -> None:
        self._arguments = [*command, "--exit-with-parent", "--log-level", log_level, "--log-format", log_format]
        if policy:
            self._arguments += ["--policy", policy]
        for option in policy_options:
            self._arguments += ["--policy-option", option]
        self._arguments += extra_args
        self._json = log_format == "json"
        self._moved = moved
        self._metrics = metrics if metrics is not None else Metrics()
        self._timeout = startup_timeout
        self._sleep = sleep
        self._process: ChildProcess | None = None
        self._backoff = Backoff(0.2, 10.0)
        self._folder: PrivateFolder | None = None
        self._started = 0.0
        self._errors: list[str] = []
        self._serving = False
        self._reader: asyncio.Task[None] | None = None
        self._stopping = False
        self.address = ""
        """direct:PATH."""

    @property
    def pid(self) -> int | None:
        """Process id of the service; None before the first start."""
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        """Starts the service and waits until it serves; restarts it if it exits before, until `startup_timeout`.

        Raises FirmamentError.
        """
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return await self._start_once(deadline - time.monotonic())
            except FirmamentError as error:
                delay = self._backoff.next()
                if error.usage or time.monotonic() + delay >= deadline:
                    raise
                log.error("the flow service does not start: %s; retry in %.1f s", error, delay)
            await self._sleep(delay)

    async def _start_once(self, timeout: float) -> None:
        """`timeout`: seconds. Raises FirmamentError."""
        self._remove_folder()
        self.address = self._make_address()
        process = await self._launch()
        serving = asyncio.create_task(wait_until_serving(self.address, timeout))
        ended = asyncio.create_task(process.wait())
        try:
            await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not serving.done():
                raise FirmamentError(await self._last_words(process), usage=process.returncode == _WRONG_USAGE)
            serving.result()
        except EngineError as error:
            await self._end()
            raise FirmamentError(
                f"the flow service did not start within {self._timeout:g} s; increase --startup-timeout"
            ) from error
        finally:
            await end_tasks(serving, ended)
        self._serving = True
        for line in self._errors:
            self._pass_on(line)
        log.info("flow service started: pid=%d address=%s", process.pid, self.address)
        await self._moved(self.address)

    def _make_address(self) -> str:
        """Address of a socket in a new private folder, for one start. Raises FirmamentError."""
        try:
            self._folder = PrivateFolder("poseidon-")
        except OSError as error:
            raise FirmamentError(
                f"cannot create a folder for the flow service's socket: {error}; set TMPDIR to a writable folder",
                usage=True,
            ) from error
        path = str(self._folder.path / _SOCKET)
        if len(os.fsencode(path)) > _SOCKET_PATH_BYTES:
            raise FirmamentError(
                f"the path of the flow service's socket, {path}, has more than {_SOCKET_PATH_BYTES} bytes; set TMPDIR "
                "to a shorter one",
                usage=True,
            )
        return f"{DIRECT}{path}"

    def _remove_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.remove()

    async def _launch(self) -> ChildProcess:
        """Starts the process. Raises FirmamentError."""
        try:
            command = [*self._arguments, "--address", self.address]
            self._process = process = await ChildProcess.start(command, limit=_LINE_BYTES)
        except OSError as error:
            raise FirmamentError(f"cannot start the flow service as {self._arguments[0]}: {error}") from error
        self._metrics.firmament_starts.inc()
        self._errors, self._serving = [], False
        self._reader = asyncio.create_task(self._pass_on_errors(process), name="firmament's log")
        self._started = time.monotonic()
        return process

    async def _last_words(self, process: ChildProcess) -> str:
        """The error of a service that exited before it served."""
        if self._reader is not None:
            await asyncio.gather(self._reader, return_exceptions=True)
        words = [line for line in self._errors if line.startswith("Error:")] or self._errors[-1:]
        message = words[0].removeprefix("Error:").strip() if words else "without an error message"
        return f"the flow service {how_it_ended(process.returncode)}: {message}"

    async def _pass_on_errors(self, process: ChildProcess) -> None:
        # read to the end, because a full pipe blocks the service
        while line := await _line(process.stderr):
            text = line.decode(errors="replace").rstrip()
            if self._serving:
                self._pass_on(text)
            else:
                # kept for the error message of a service that does not start
                self._errors = [*self._errors[-99:], text]

    def _pass_on(self, line: str) -> None:
        """Copies the line. With --log-format json, a line that is not JSON (a library's output, the traceback of a
        crash) is logged as a message instead, because log collectors expect JSON in every line."""
        if self._json and not _is_object(line):
            log.warning("output of the flow service: %s", line)
        else:
            sys.stderr.write(f"{line}\n")

    async def run(self) -> None:
        """Restarts the service whenever it exits."""
        while not self._stopping:
            process = self._process
            code = await process.wait() if process is not None else None
            if self._stopping:
                return
            if time.monotonic() - self._started > _LIVED_LONG:
                self._backoff.reset()
            delay = self._backoff.next()
            log.error("the flow service (pid %s) %s; restart in %.1f s", self.pid, how_it_ended(code), delay)
            await self._sleep(delay)
            try:
                await self._start_once(self._timeout)
            except FirmamentError as error:
                log.error("the flow service was not started again: %s", error)

    async def stop(self) -> None:
        """Stops the service."""
        self._stopping = True
        await self._end()
        if self._reader is not None:
            await asyncio.gather(self._reader, return_exceptions=True)
        self._remove_folder()

    async def _end(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.close_stdin()  # makes it exit (--exit-with-parent)
        try:
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _line(stream: asyncio.StreamReader) -> bytes:
    """The next line, cut to the limit; b"" at the end."""
    try:
        return await stream.readuntil()
    except asyncio.IncompleteReadError as end:
        return end.partial
    except asyncio.LimitOverrunError as error:
        begun = await stream.readexactly(error.consumed)
    while True:
        try:
            await stream.readuntil()
        except asyncio.IncompleteReadError:
            return begun
        except asyncio.LimitOverrunError as error:
            await stream.readexactly(error.consumed)
        else:
            return begun


def _is_object(line: str) -> bool:
    """Whether the line is a complete JSON object: a killed service may leave a part of one."""
    try:
        decode_json(line, dict, "log line")
    except MalformedError:
        return False
    return True
