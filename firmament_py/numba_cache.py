"""numba's compiler, with a cache on disk that notices a change of any module of the package that is compiled.

Numba checks only the file that contains a function, but compiled code includes constants and inlined functions of other
modules: with an old layout of an array it would read the wrong memory. So cache files are named after a hash of all
sources. Files of former sources remain until the cache is cleared.
"""

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

from firmament_py.source_hash import source_hash

log = logging.getLogger(__name__)

_F = TypeVar("_F", bound=Callable[..., Any])


_INNER: Any = {"no_cpython_wrapper": True}
"""For functions that Python does not call, which compile faster without an entry for it; numba's type stubs lack it."""

_IN_PLACE: Any = {"_nrt": False}
"""Without counting the references to arrays. That takes twice as long as the work of a search, and ten times where
arrays come in tuples. numba refuses what allocates."""


def compiled(function: _F) -> _F:
    """Compiles a function that Python calls, at its first use."""
    return _compiled(function, {})


def compiled_in_place(function: _F) -> _F:
    """Compiles a function that Python calls and that allocates nothing."""
    return _compiled(function, _IN_PLACE)


def inner(function: _F) -> _F:
    """Compiles a function that only compiled code calls and that allocates nothing."""
    return _compiled(function, {**_IN_PLACE, **_INNER})


def inner_allocating(function: _F) -> _F:
    """Compiles a function that only compiled code calls and that returns an array, or needs one for a while."""
    return _compiled(function, _INNER)


def inlined(function: _F) -> _F:
    """Compiles a small function that allocates nothing into its callers: a call takes as long as a few of its lines."""
    return _compiled(function, {"forceinline": True, **_IN_PLACE, **_INNER})


def _compiled(function: _F, options: dict[str, Any]) -> _F:
    function.__qualname__ += (
        f"_{source_hash(Path(function.__code__.co_filename).parent, Path(__file__))}"  # numba names files after it
    )
    dispatcher: _F
    try:
        dispatcher = njit(cache=True, **options)(function)
    except RuntimeError as error:  # numba has no better name for: no folder for the cache is writable
        _warn(str(error))
        dispatcher = njit(**options)(function)
    return dispatcher


@cache
def _warn(error: str) -> None:
    log.warning("compiling at every start, for seconds: set NUMBA_CACHE_DIR to a writable folder (%s)", error)
