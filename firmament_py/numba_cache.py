"""numba's compiler, with a cache on disk that notices a change of any module of the package that is compiled.

Numba checks only the file that contains a function, but compiled code includes constants and inlined functions of other
modules: with an old layout of an array it would read the wrong memory. So cache files are named after a hash of all
sources. Files of former sources remain until the cache is cleared.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

_F = TypeVar("_F", bound=Callable[..., Any])


_INNER: Any = {"no_cpython_wrapper": True}
"""For functions that Python does not call, which compile faster without an entry for it; numba's type stubs lack it."""


def compiled(function: _F) -> _F:
    """Compiles a function that Python calls, at its first use."""
    return _named(function, njit(cache=True))


def inner(function: _F) -> _F:
    """Compiles a function that only compiled code calls."""
    return _named(function, njit(cache=True, **_INNER))


def inlined(function: _F) -> _F:
    """Compiles a function into each of its callers, which are compiled code."""
    return _named(function, njit(cache=True, forceinline=True, **_INNER))


def _named(function: _F, compiler: Any) -> _F:
    function.__qualname__ += f"_{_hash_of(Path(function.__code__.co_filename).parent)}"  # numba names files after it
    dispatcher: _F = compiler(function)
    return dispatcher


@cache
def _hash_of(folder: Path) -> str:
    """A hash of the modules in a folder, and of this one."""
    digest = hashlib.sha256()
    for path in (*sorted(folder.glob("*.py")), Path(__file__)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
