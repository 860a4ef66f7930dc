"""Compiles the searches of this package before a round needs them: in another process, of the lowest priority.

Compilation takes some 20 seconds of a core, once for an installation: numba keeps the results on disk, and a marker
beside them tells later starts that they are complete. A process that finds another one compiling ends at once.
"""

import fcntl
import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from firmament_py.source_hash import source_hash

log = logging.getLogger(__name__)

_FOLDER = Path(__file__).parent


def start() -> "subprocess.Popen[bytes] | None":
    """Starts the other process; None: everything is compiled already."""
    if _marker().exists():
        return None
    return subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.DEVNULL)


def main() -> None:
    os.nice(19)
    marker = _marker()
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        with (marker.parent / f"{marker.name}.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            compile_all()
            marker.touch()
    except OSError as error:  # nowhere to write, or another process compiles
        log.debug("not compiled ahead: %s", error)


def compile_all() -> None:
    """Runs every search on a small problem."""
    from firmament_py.packing.eviction import Arrivals, Residents, evict
    from firmament_py.packing.pack import pack
    from firmament_py.packing.problem import Packing, Problem

    one, two = np.ones(1, np.int64), np.array([[2]])
    zeros, everywhere = np.zeros(1, np.int64), np.ones((1, 1), np.bool_)
    evict(
        Arrivals(two, one, one, everywhere, home=-one),
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


def _marker() -> Path:
    folder = os.environ.get("NUMBA_CACHE_DIR")
    name = f"packing-{source_hash(_FOLDER, _FOLDER.parent / 'numba_cache.py')}.compiled"
    return (Path(folder) if folder else _FOLDER / "__pycache__") / name


if __name__ == "__main__":
    main()
