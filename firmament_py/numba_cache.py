"""numba's compiler, which runs when the package is built or installed (firmament_py/compile_ahead.py), not when it is
used: compiled functions are loaded from a folder of the package.

They are compiled for any processor of an architecture, not for the one at hand: instructions that only some have make
no search faster (docs/performance.md).

numba and what it loads are more than half of the memory of a flow service, so it is imported when a compiled function
is first called: not where all tasks fit and there are no queues.
"""

from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, TypeVar

from firmament_py.compiled_folder import COMPILED, folder_of

_F = TypeVar("_F", bound=Callable[..., Any])

into: dict[str, Path] = {}
"""Where the compiled functions of a package are being written, by its name."""

_INNER: Any = {"no_cpython_wrapper": True}
"""For functions that Python does not call, which compile faster without an entry for it; numba's type stubs lack it."""

_ENTRY: Any = {"nogil": True}
"""For functions that Python calls: rounds go on while a search runs in another thread."""

_IN_PLACE: Any = {"_nrt": False}
"""Without counting the references to arrays. That takes twice as long as the work of a search, and ten times where
arrays come in tuples. numba refuses what allocates."""


def compiled(function: _F) -> _F:
    """A compiled function that Python calls."""
    return _compiled(function, _ENTRY, stored=True)


def compiled_in_place(function: _F) -> _F:
    """A compiled function that Python calls and that allocates nothing."""
    return _compiled(function, {**_ENTRY, **_IN_PLACE}, stored=True)


def inner(function: _F) -> _F:
    """A function that only compiled code calls and that allocates nothing."""
    return _compiled(function, {**_IN_PLACE, **_INNER})


def inner_allocating(function: _F) -> _F:
    """A function that only compiled code calls and that returns an array, or needs one for a while."""
    return _compiled(function, _INNER)


def inlined(function: _F) -> _F:
    """A small function that allocates nothing, compiled into its callers: a call takes as long as some lines of it."""
    return _compiled(function, {"forceinline": True, **_IN_PLACE, **_INNER})


def _compiled(function: _F, options: dict[str, Any], *, stored: bool = False) -> _F:
    """stored: it is loaded from the folder of its package, or written there. What it calls is part of it."""
    package = Path(function.__code__.co_filename).parent
    stored = stored and (package.name in into or folder_of(package).is_dir())
    deferred: _F = Deferred(function, {"cache": stored, **options})  # type: ignore[assignment]
    return deferred


class Deferred:
    """A compiled function, which is loaded or compiled when it is first used. It has the attributes of numba's own
    object, and numba takes it for that."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function, self._options = function, options

    @cached_property
    def _dispatcher(self) -> Any:
        return _numba().njit(**self._options)(self._function)

    @property
    def _numba_type_(self) -> Any:
        """By which numba knows what a compiled function calls."""
        return _numba().types.Dispatcher(self._dispatcher)

    def __call__(self, *arguments: Any) -> Any:
        return self._dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._dispatcher, name)


@cache
def _numba() -> Any:
    """The package, told what to compile for, and where compiled functions are."""
    import numba
    from numba.core.caching import CacheImpl

    settings: Any = numba.config
    settings.CPU_NAME, settings.CPU_FEATURES = "generic", ""
    CacheImpl._locator_classes.insert(0, _Locator)
    return numba


class _Locator:
    """Tells numba where the compiled form of a function is. The name of the folder tells whether it is up to date."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        package = Path(file).parent
        self._folder = into.get(package.name) or folder_of(package)
        self._module = Path(file).stem

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> "_Locator | None":
        """None: the function is not one of this package, for which others look."""
        return cls(function, file) if COMPILED.parent in Path(file).parents else None

    def ensure_cache_path(self) -> None:
        """It need not be writable."""

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return self._module
