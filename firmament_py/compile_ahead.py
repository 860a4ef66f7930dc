"""Compiles what rounds need before they need it: in another process, of the lowest priority.

Compilation takes some 50 seconds of a core, once for an installation: numba keeps the results on disk, and a marker
beside them tells later starts that they are complete. A process that finds another one compiling waits for it.
"""

import fcntl
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from firmament_py.source_hash import source_hash

log = logging.getLogger(__name__)

_FOLDERS = [Path(__file__).parent / name for name in ("eviction", "packing", "queues")]

_COMMAND = (sys.executable, "-P", "-m", "firmament_py.compile_ahead")
"""-P: nothing is imported from the present folder."""

PATIENCE_SECONDS = 180.0
"""After so long a round that needs a search compiles it itself: on a busy machine the other process hardly runs."""


class Ahead:
    """The other process: `start`, `end`; `over` tells rounds whether they need not wait for it."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._monotonic = monotonic
        self._started = 0.0

    def start(self) -> None:
        """Starts the process, unless everything is compiled already."""
        self._started = self._monotonic()
        if not _marker().exists():
            self._process = subprocess.Popen(_COMMAND, stdin=subprocess.DEVNULL)

    def over(self) -> bool:
        """Whether it has ended, whatever the outcome, or takes too long."""
        if self._process is None or self._process.poll() is not None:
            return True
        return self._monotonic() - self._started >= PATIENCE_SECONDS

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def main() -> None:
    os.nice(19)
    marker = _marker()
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        with (marker.parent / f"{marker.name}.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not marker.exists():  # another process has compiled meanwhile
                compile_all()
                marker.touch()
    except OSError as error:  # nowhere to write
        log.debug("not compiled ahead: %s", error)


def compile_all() -> None:
    """Compiles the searches, and the order of admission by queues."""
    from firmament_py.eviction import compilation as eviction
    from firmament_py.packing import compilation as packing
    from firmament_py.queues import compilation as queues

    for package in (eviction, packing, queues):
        package.compile_all()


def _marker() -> Path:
    folder = os.environ.get("NUMBA_CACHE_DIR")
    sources = "-".join(source_hash(each, Path(__file__).parent / "numba_cache.py") for each in _FOLDERS)
    return (Path(folder) if folder else _FOLDERS[0] / "__pycache__") / f"searches-{sources}.compiled"


if __name__ == "__main__":
    main()
