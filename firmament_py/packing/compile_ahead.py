"""Compiles the searches of this package before a round needs them: in another process, of the lowest priority.

Compilation takes some 40 seconds of a core, once for an installation: numba keeps the results on disk, and a marker
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

import numpy as np

from firmament_py.source_hash import source_hash

log = logging.getLogger(__name__)

_FOLDER = Path(__file__).parent


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
            self._process = subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.DEVNULL)

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
    """Runs every search on a small problem."""
    from firmament_py.packing.clearing import Arrivals
    from firmament_py.packing.eviction import Residents, evict
    from firmament_py.packing.pack import pack
    from firmament_py.packing.problem import Packing, Problem
    from firmament_py.packing.relaxation import Relaxation
    from firmament_py.packing.rounding import rounded

    one, two = np.ones(1, np.int64), np.array([[2]])
    zeros, everywhere = np.zeros(1, np.int64), np.ones((1, 1), np.bool_)
    evict(
        Arrivals(two, one, one, everywhere, everywhere[0], home=-one),
        Residents(zeros, zeros, one, two, zeros, one, np.ones(1), np.ones((1, 0), np.bool_)),
        np.zeros((1, 1), np.int64),
        np.zeros(0, np.int64),
    )
    count = np.array([2, 3])
    problem = Problem(
        requests=np.array([[2], [3]]),
        free=np.full((2, 1), 5),
        suitable=np.ones((2, 2), np.bool_),
        slots=np.array([[2, 2], [1, 1]]),
        count=count,
        value=np.ones(2),
        level=np.zeros(2, np.int64),
    )
    pack(problem, Packing.of(problem, np.zeros((2, 2), np.int64)))
    relaxation = Relaxation(problem)
    if (relaxed := relaxation.solve(problem.value)) is not None:  # what so small a problem does not need
        rounded(problem, relaxation.on_nodes(relaxed))


def _marker() -> Path:
    folder = os.environ.get("NUMBA_CACHE_DIR")
    name = f"packing-{source_hash(_FOLDER, _FOLDER.parent / 'numba_cache.py')}.compiled"
    return (Path(folder) if folder else _FOLDER / "__pycache__") / name


if __name__ == "__main__":
    main()
