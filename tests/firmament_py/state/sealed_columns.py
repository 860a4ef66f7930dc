"""Makes the columns of a state's tables read-only outside of the package state."""

import inspect
import pkgutil
from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

import firmament_py.state
from firmament_py.state.table import Table


class Sealed:
    """While a method of a class of the package state runs, the columns of all tables can be written to, else not.
    Rows can be allocated and released by these methods alone, too."""

    def __init__(self, monkeypatch: Any) -> None:
        self.tables: list[Table] = []
        self._depth = 0
        for module in pkgutil.iter_modules(firmament_py.state.__path__, "firmament_py.state."):
            for cls in vars(import_module(module.name)).values():
                if inspect.isclass(cls) and cls.__module__ == module.name:
                    for name, function in list(vars(cls).items()):
                        if inspect.isfunction(function):
                            monkeypatch.setattr(cls, name, self._unsealing(function))

    def watch(self, *tables: Table) -> None:
        """From now on these are sealed."""
        self.tables = [*tables]
        self._set(writeable=False)

    def _unsealing(self, function: Any) -> Any:
        @wraps(function)
        def unsealed(*args: Any, **options: Any) -> Any:
            self._depth += 1
            if self._depth == 1:
                self._set(writeable=True)
            try:
                return function(*args, **options)
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._set(writeable=False)

        return unsealed

    def _set(self, *, writeable: bool) -> None:
        for table in self.tables:
            for column in vars(table).values():
                if isinstance(column, np.ndarray) and column.base is None:
                    column.flags.writeable = writeable
