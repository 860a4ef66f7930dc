"""No test compiles what is compiled ahead: a process that serves would, too."""

from collections.abc import Iterator
from typing import Any

import pytest
from numba.core import event


class _Refusing(event.Listener):
    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("firmament_py."):
            raise AssertionError(f"{function.__module__}.{function.__name__} is compiled; compile_all leaves it out")

    def on_end(self, event: Any) -> None:
        pass


@pytest.fixture(scope="session", autouse=True)
def nothing_is_compiled() -> Iterator[None]:
    with event.install_listener("numba:compile", _Refusing()):
        yield
