"""Processes that a benchmark starts, and their CPU time and memory. Each is always ended, by its own pid."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.harness.runner import CannotMeasureError
from poseidon_py.util.process.child_process import PYTHON

_STOP_SECONDS = 10.0


@contextmanager
def child(arguments: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs `python -m arguments...` until the end of the block, with its output in the file `log`."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*PYTHON, "-m", *arguments], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()


def wait_for_file(process: subprocess.Popen[bytes], path: Path, log: Path, seconds: float) -> str:
    """The content of a file that `process` writes when it is ready. Raises CannotMeasureError with its output."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            output = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
            raise CannotMeasureError(f"process {process.pid} did not start; its output:\n{output}")
        time.sleep(0.02)
    return path.read_text().strip()


def peak_mib(pid: int) -> float:
    """The peak resident memory of a process, in MiB. Requires /proc (Linux)."""
    return _status(pid, "VmHWM")


def reset_peak() -> None:
    """Lets the peak memory of this process begin anew with what it uses now, where Linux permits that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def resident_mib(pid: int) -> float:
    """The resident memory of a process, in MiB."""
    return _status(pid, "VmRSS")


def family(pid: int) -> list[int]:
    """A process and those that it has started, and these in turn."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _status(pid: int, field: str) -> float:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    except OSError as error:
        raise CannotMeasureError(
            f"cannot read the memory of a process from /proc: {error}; run this benchmark on Linux"
        ) from error
    raise CannotMeasureError(f"/proc/{pid}/status has no {field}; run this benchmark on Linux")
