"""Compiles the searches, and the arithmetic of queues: when a wheel is built, or by `firmament compile` in a checkout.

That takes some 40 seconds of two cores. No process that serves compiles anything.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from firmament_py.compiled_folder import COMPILED, folder_of

PACKAGES = ("eviction", "queues", "packing")
"""Each has a module `compilation`, whose `compile_all` calls every function that Python
calls, on small data."""

_HERE = Path(__file__).parent
_SAY_SECONDS = 5.0


class NotCompiledError(Exception):
    """The compiled functions are missing, or of another version; its text names the remedy."""


def stale() -> list[str]:
    """The packages whose compiled functions are missing, or of another version."""
    return [name for name in PACKAGES if not folder_of(_HERE / name).is_dir()]


def check() -> None:
    """Raises NotCompiledError if any package is stale."""
    if names := stale():
        raise NotCompiledError(
            f"the compiled functions of {', '.join(names)} are missing, or not those of this version of the code, of"
            " Python and of numba; run: firmament compile"
        )


def load() -> None:
    """Loads all compiled functions, which takes a second or two and 130 MB. Beside rounds, so that few wait for it."""
    for name in PACKAGES:
        import_module(f"firmament_py.{name}.compilation").compile_all()


def compile_stale(tell: Callable[[str], None] = lambda text: None) -> None:
    """Compiles the stale packages, all at the same time so that no core waits for the longest, and removes what is out
    of date. `tell` gets what it does, every few seconds. Raises OSError if the folder is not writable, and
    CalledProcessError if a compilation fails."""
    names = stale()
    if not names:
        return
    COMPILED.mkdir(exist_ok=True)
    started, told_at = time.monotonic(), 0.0
    running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
    with _ended(running):
        for name in names:
            folder = Path(mkdtemp(prefix=f".{name}-", dir=COMPILED))
            words = (sys.executable, "-P", "-m", "firmament_py.compile_ahead", name, str(folder))
            running[name] = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=_environment()), folder
        while running:
            time.sleep(0.05)
            for name, (process, folder) in list(running.items()):
                if process.poll() is None:
                    continue
                if process.returncode:
                    raise subprocess.CalledProcessError(process.returncode, process.args)
                _put(folder, folder_of(_HERE / name))
                del running[name]
                tell(f"compiled: {name}")
            seconds = time.monotonic() - started
            if running and seconds >= told_at + _SAY_SECONDS:
                told_at = seconds
                tell(f"compiling: {', '.join(running)} ({seconds:.0f} s so far)")
    _remove_others(COMPILED, {folder_of(_HERE / name) for name in PACKAGES})


@contextmanager
def _ended(running: dict[str, tuple[subprocess.Popen[bytes], Path]]) -> Iterator[None]:
    """Processes that still run at the end are stopped, and what they wrote is removed."""
    try:
        yield
    finally:
        for process, folder in running.values():
            process.kill()
            process.wait()
            rmtree(folder, ignore_errors=True)


def _environment() -> dict[str, str]:
    """Without settings of numba's that change what it compiles; with the modules that this process has."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return {**environment, "PYTHONPATH": os.pathsep.join([str(_HERE.parent), *filter(None, sys.path)])}


def _put(folder: Path, place: Path) -> None:
    """Moves a folder to its place, unless another process has been faster."""
    folder.chmod(0o755)
    try:
        folder.rename(place)
    except OSError:
        if not place.is_dir():
            raise
        rmtree(folder)


def _remove_others(parent: Path, current: set[Path]) -> None:
    """Removes what was compiled of other sources; what other versions of Python and numba need stays, and what other
    processes write."""
    parts = {tuple(path.name.split("-", 2)[::2]): path for path in current}  # name and versions, without the sources
    for path in parent.iterdir():
        same = parts.get(tuple(path.name.split("-", 2)[::2]))
        if same is not None and path != same:
            rmtree(path, ignore_errors=True)


def main(arguments: Sequence[str]) -> None:
    """Compiles one package into a folder, in a process of its own: NAME FOLDER."""
    from firmament_py import numba_cache

    name, folder = arguments
    numba_cache.into[name] = Path(folder)
    import_module(f"firmament_py.{name}.compilation").compile_all()


if __name__ == "__main__":
    main(sys.argv[1:])
