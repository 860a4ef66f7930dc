"""Starts a flow service of our own and keeps it running.

The service writes its port into a file when it serves, and ends when its standard input ends: whatever kills us,
it does not stay behind. One that dies is started again with growing delays; whoever uses it notices by its new
epoch and tells it everything again. Only the process that was started here is ever ended here.
"""

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from poseidon_py.util.backoff import Backoff
from poseidon_py.util.decoding import MalformedError, decode_json
from poseidon_py.util.metrics import Metrics

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.02
_LIVED_LONG = 30.0
_END_SECONDS = 5.0
_LINE_BYTES = 1 << 20
"""Of the longest line that the service may say: as JSON a whole traceback is one."""


class FirmamentError(Exception):
    """The service did not start; the message says why and what to do. `usage`: the configuration is wrong."""

    def __init__(self, message: str, *, usage: bool = False) -> None:
        super().__init__(message)
        self.usage = usage


class Supervisor:
    """`start` once, then `run` in a task of its own, `stop` at the end."""

    def __init__(
        self,
        *,
        policy: str,
        policy_options: Sequence[str],
        moved: Callable[[str], Awaitable[None]],
        more: Sequence[str] = (),
        log_level: str = "info",
        log_format: str = "text",
        startup_timeout: float = 60.0,
        command: Sequence[str] = (sys.executable, "-m", "firmament_py", "serve"),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        metrics: Metrics | None = None,
    ) -> None:
        self._arguments = [*command, "--address", "127.0.0.1:0", "--exit-with-parent"]
        self._arguments += ["--log-level", log_level, "--log-format", log_format]
        if policy:
            self._arguments += ["--policy", policy]
        for option in policy_options:
            self._arguments += ["--policy-option", option]
        self._arguments += more
        self._json = log_format == "json"
        self._moved = moved
        self._metrics = metrics if metrics is not None else Metrics()
        self._timeout = startup_timeout
        self._sleep = sleep
        self._process: asyncio.subprocess.Process | None = None
        self._started = 0.0
        self._errors: list[str] = []
        self._serving = False
        self._reader: asyncio.Task[None] | None = None
        self._stopping = False
        self.address = ""

    @property
    def pid(self) -> int | None:
        """Of the running service."""
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        """Returns when the service serves. Raises FirmamentError."""
        # a folder for each start: what cleans up temporary files may take one that is kept
        with tempfile.TemporaryDirectory(prefix="poseidon-", ignore_cleanup_errors=True) as folder:
            process, port = await self._serve(Path(folder) / "port")
        self.address = f"127.0.0.1:{port}"
        self._serving = True
        for line in self._errors:
            self._pass_on(line)
        log.info("flow service started: pid=%d address=%s", process.pid, self.address)
        await self._moved(self.address)

    async def _serve(self, port_file: Path) -> tuple[asyncio.subprocess.Process, str]:
        """The service as a process, and the port that it wrote down."""
        self._process = process = await asyncio.create_subprocess_exec(
            *self._arguments,
            "--port-file",
            str(port_file),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
        )
        self._metrics.firmament_starts.inc()
        self._errors, self._serving = [], False
        self._reader = asyncio.create_task(self._pass_on_errors(process), name="firmament's log")
        self._started = time.monotonic()
        while not (port := _port(port_file)):
            if process.returncode is not None:
                await asyncio.gather(self._reader, return_exceptions=True)
                raise FirmamentError(self._last_words(), usage=process.returncode == 2)
            if time.monotonic() - self._started > self._timeout:
                await self._end()
                raise FirmamentError(f"the flow service did not start within {self._timeout:.0f} s")
            await asyncio.sleep(_POLL_SECONDS)
        return process, port

    def _last_words(self) -> str:
        words = [line for line in self._errors if line.startswith("Error:")] or self._errors[-1:]
        return "the flow service ended: " + (words[0].removeprefix("Error:").strip() if words else "without a word")

    async def _pass_on_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        # what nobody reads any more stops the service in the middle of a line, and us as we wait for its end
        while line := await _line(process.stderr):
            text = line.decode(errors="replace").rstrip()
            if self._serving:
                self._pass_on(text)
            else:
                # of a service that does not start, one line is worth telling: its caller does
                self._errors = [*self._errors[-99:], text]

    def _pass_on(self, line: str) -> None:
        """As it is; if JSON was asked for, what does not come from the service's log (a library's words, the traceback
        of its end) goes into ours, for one line that is no JSON is enough to confuse who collects them."""
        if self._json and not _is_object(line):
            log.warning("the flow service says: %s", line)
        else:
            sys.stderr.write(f"{line}\n")

    async def run(self) -> None:
        """Starts the service again whenever it ends."""
        backoff = Backoff(0.2, 10.0)
        while not self._stopping:
            process = self._process
            code = await process.wait() if process is not None else None
            if self._stopping:
                return
            if time.monotonic() - self._started > _LIVED_LONG:
                backoff.reset()
            delay = backoff.next()
            log.error("the flow service (pid %s) ended with code %s; again in %.1f s", self.pid, code, delay)
            await self._sleep(delay)
            try:
                await self.start()
            except (FirmamentError, OSError) as error:
                log.error("%s", error)

    async def stop(self) -> None:
        """Ends the service."""
        self._stopping = True
        await self._end()
        if self._reader is not None:
            await asyncio.gather(self._reader, return_exceptions=True)

    async def _end(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()  # it takes this for its parent's end
        try:
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _line(stream: asyncio.StreamReader) -> bytes:
    """The next line, b"" at the end; of one that is too long, what it begins with."""
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
    """Whether it is a JSON object: a service that is killed may leave half of one."""
    try:
        decode_json(line, dict, "log line")
    except MalformedError:
        return False
    return True


def _port(file: Path) -> str:
    """What the service wrote down; empty: nothing yet."""
    return file.read_text().strip() if file.exists() else ""
