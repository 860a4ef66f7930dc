"""The processes of a demo, and their order."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks.demo import stack
from benchmarks.demo.children import ChildError


class Processes:
    """Stands in for Child: notes which modules are started and stopped."""

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.slow = ""
        """A module that never gets ready."""

    def child(self, name: str, arguments: Sequence[str], log: Path) -> "Process":
        return Process(self, arguments[0])


class Process:
    def __init__(self, processes: Processes, module: str) -> None:
        self._processes, self._module = processes, module

    async def start(self) -> None:
        self._processes.noted.append(f"start {self._module}")

    async def until(self, ready: Callable[[], bool], seconds: float) -> None:
        if self._module == self._processes.slow:
            raise ChildError("not ready")

    async def stop(self) -> None:
        self._processes.noted.append(f"stop {self._module}")


@pytest.mark.parametrize("slow", ["", "firmament_py.compile_ahead"], ids=["compiled", "not compiled in time"])
async def test_searches_are_compiled_before_the_scheduler_starts(monkeypatch: pytest.MonkeyPatch, slow: str):
    processes = Processes()
    processes.slow = slow
    monkeypatch.setattr(stack, "Child", processes.child)
    async with stack.Stack() as demo:
        await demo.start_scheduler(Path("kubeconfig"), "poseidon", "")
    compiler = "firmament_py.compile_ahead"
    assert processes.noted == [f"start {compiler}", f"stop {compiler}", "start poseidon_py", "stop poseidon_py"]
