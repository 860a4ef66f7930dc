"""Processes that a test starts: a thread reads their output, and they are stopped by pid."""

from __future__ import annotations

import atexit
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.api import PATIENCE

POSEIDON = (sys.executable, "-m", "poseidon_py")
FIRMAMENT = (sys.executable, "-m", "firmament_py")


_HOME = tempfile.TemporaryDirectory(prefix="poseidon-home-")
"""kubectl keeps what it has discovered there."""


def environment() -> dict[str, str]:
    """The environment without a kubeconfig of the user who runs the tests."""
    remaining = {name: value for name, value in os.environ.items() if not name.startswith(("KUBE", "POSEIDON"))}
    return remaining | {"PYTHONUNBUFFERED": "1", "HOME": _HOME.name, "COLUMNS": "200", "NO_COLOR": "1"}


def run(*command: str, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=environment())


class Process:
    """A running process and its output."""

    def __init__(self, command: Sequence[str], log: Path | None = None) -> None:
        self.command = list(command)
        self.expected = {0}
        """Exit codes that are no defect."""
        self.lines: list[str] = []
        self._first_of_test = 0
        self._output_lock = threading.Condition()
        self._ended = False
        self.popen = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment(),
            start_new_session=True,
        )
        atexit.register(self._leave_nothing)
        self._log = log
        self._reader = threading.Thread(target=self._read, name=f"output of {self.pid}", daemon=True)
        self._reader.start()

    def _leave_nothing(self) -> None:
        """Kills the process, after a test that failed before it stopped it."""
        if self.popen.poll() is None:
            self.popen.kill()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        with self.popen.stdout as output:
            for line in output:
                with self._output_lock:
                    self.lines.append(line.rstrip("\n"))
                    self._output_lock.notify_all()
                if self._log is not None:
                    with self._log.open("a") as log:
                        log.write(line)
        with self._output_lock:
            self._ended = True
            self._output_lock.notify_all()

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def output(self) -> str:
        with self._output_lock:
            return "\n".join(self.lines)

    def begin_test(self) -> None:
        """Lines from here on are those of the next test."""
        with self._output_lock:
            self._first_of_test = len(self.lines)

    @property
    def output_of_test(self) -> str:
        with self._output_lock:
            return "\n".join(self.lines[self._first_of_test :])

    def until_says(self, pattern: str, *, after: int | None = None, seconds: float = PATIENCE) -> re.Match[str]:
        """Waits for a line, from line number `after` on; by default from the first of the test."""
        end, at = time.monotonic() + seconds, self._first_of_test if after is None else after
        with self._output_lock:
            while True:
                for line in self.lines[at:]:
                    if found := re.search(pattern, line):
                        return found
                at = len(self.lines)
                if self._ended or time.monotonic() >= end:
                    raise AssertionError(f"{self.command} never said {pattern!r}:\n" + "\n".join(self.lines[-40:]))
                self._output_lock.wait(max(0.0, end - time.monotonic()))

    def end(self, number: int = signal.SIGTERM, seconds: float = PATIENCE) -> int:
        """Sends a signal and waits for the end; returns the exit code."""
        if self.popen.poll() is None:
            self.popen.send_signal(number)
        return self.wait(seconds)

    def wait(self, seconds: float = PATIENCE) -> int:
        try:
            code = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise AssertionError(f"{self.command} did not end:\n" + "\n".join(self.lines[-40:])) from None
        self._reader.join(PATIENCE)
        return code


class Scheduler(Process):
    """`poseidon run`."""

    def __init__(self, kubeconfig: Path, *arguments: str, log: Path | None = None) -> None:
        given = ("run", "--kubeconfig", str(kubeconfig), "--health-port", "0", *arguments)
        if "--leader-elect" not in arguments:
            given += ("--no-leader-elect",)
        super().__init__([*POSEIDON, *given], log)

    @property
    def address(self) -> str:
        """The answer of the health port."""
        return self.until_says(r"health and metrics on http://([\w.:]+)", after=0)[1]

    def ready(self) -> Scheduler:
        """Waits until the flow service is synchronised."""
        self.until_says(r"synchronised the flow service \(policy \S+\)")
        return self

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def status(self) -> dict[str, Any]:
        code, body = self.get("/status")
        assert code == 200, body
        found: dict[str, Any] = json.loads(body)
        return found

    def until_knows(self, nodes: int, pods: int, seconds: float = PATIENCE) -> None:
        """Waits until the flow service has this many nodes, and this many pods on nodes."""
        end = time.monotonic() + seconds
        while (seen := self._seen()) != (nodes, pods):
            assert time.monotonic() < end, f"knows {seen} and not {(nodes, pods)} nodes and pods on them"
            time.sleep(0.02)

    def _seen(self) -> tuple[int, int]:
        status = self.status()
        return status["nodes"], status["pods"].get("bound", 0)

    def until_shows(self, line: str, seconds: float = PATIENCE) -> str:
        """Waits until a line is among the metrics; returns them all."""
        end = time.monotonic() + seconds
        while True:
            code, text = self.get("/metrics")
            assert code == 200
            if line in text.splitlines():
                return text
            assert time.monotonic() < end, f"the metrics never had {line}:\n{text}"
            time.sleep(0.02)

    @property
    def firmament_pid(self) -> int:
        """The pid of the newest flow service that it started."""
        self.until_says(r"flow service started: pid=\d+", after=0)
        return int(re.findall(r"flow service started: pid=(\d+)", self.output)[-1])

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of a metric that have these labels."""
        samples = re.findall(rf"^{name}({{[^}}]*}})? (\S+)$", self.get("/metrics")[1], re.MULTILINE)
        asked = [f'{label}="{value}"' for label, value in labels.items()]
        found = [value for of, value in samples if all(each in of for each in asked)]
        assert found, f"there is no metric {name}"
        return sum(map(float, found))


def kill_and_see(pid: int, number: int = signal.SIGKILL) -> None:
    """Sends a signal to a process that is not our child, and waits for its end."""
    handle = os.pidfd_open(pid)
    try:
        os.kill(pid, number)
        until_gone(pid, handle)
    finally:
        os.close(handle)


def until_gone(pid: int, handle: int = -1) -> None:
    """Waits for the end of a process that is not our child."""
    own = handle < 0
    if own:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
    try:
        ready, _, _ = select.select([handle], [], [], PATIENCE)
        assert ready, f"process {pid} did not end"
    finally:
        if own:
            os.close(handle)
