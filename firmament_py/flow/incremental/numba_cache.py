"""numba's compiler, with a cache on disk that notices a change of any module of this package.

Numba checks only the file that contains a function, but compiled code includes constants and inlined functions of other
modules: with an old layout of an array it would read the wrong memory. So cache files are named after a hash of all
sources. Files of former sources remain until the cache is cleared.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

_F = TypeVar("_F", bound=Callable[..., Any])


def _sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


_SOURCES = _sources()


def compiled(function: _F) -> _F:
    """Compiles a function at first use."""
    return _named(function, njit(cache=True))


def inlined(function: _F) -> _F:
    """Compiles a function into each of its callers; Python cannot call it."""
    options: dict[str, Any] = {"no_cpython_wrapper": True}  # numba's type stubs lack it
    return _named(function, njit(cache=True, forceinline=True, **options))


def _named(function: _F, compiler: Any) -> _F:
    function.__qualname__ += f"_{_SOURCES}"  # numba names files after it
    dispatcher: _F = compiler(function)
    return dispatcher
