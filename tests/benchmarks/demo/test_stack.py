"""The processes of a demo, and their order."""

import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.demo import stack
from benchmarks.demo.children import ChildError
from firmament_py.cli.logs import TextFormatter


class Processes:
    """Stands in for Child: notes which modules are started and stopped."""

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.slow = ""
        """A module that never gets ready."""
        self.dead = ""
        """A module that ends at once, with an error."""

    def child(self, name: str, arguments: Sequence[str], log: Path) -> "Process":
        return Process(self, arguments[0])


class Process:
    def __init__(self, processes: Processes, module: str) -> None:
        self._processes, self._module = processes, module

    async def start(self) -> None:
        self._processes.noted.append(f"start {self._module}")

    @property
    def running(self) -> bool:
        return self._module != self._processes.dead

    async def until(self, ready: Callable[[], bool], seconds: float) -> None:
        if self._module in (self._processes.slow, self._processes.dead):
            raise ChildError("not ready")

    async def stop(self) -> None:
        self._processes.noted.append(f"stop {self._module}")


async def test_the_folder_is_removed_unless_it_is_kept():
    for preserved in (False, True):
        async with stack.Stack() as demo:
            (demo.folder / "scheduler.log").write_text("a complaint")
            if preserved:
                demo.keep_logs()
        assert (demo.folder / "scheduler.log").exists() is preserved
        stack.Stack()._private.remove()  # a later start takes none of it for that of a killed process
        assert demo.folder.exists() is preserved
    shutil.rmtree(demo.folder)


async def test_errors_of_the_scheduler_and_of_its_flow_service_are_complaints():
    """Each once, although rounds repeat them, in the words of the log."""
    dropped = "dropped 1 placements that failed the independent check: ['pod \"a\" exceeds cpu on n']"
    log = TextFormatter()
    records = [
        logging.LogRecord(name, level, "", 0, text, None, None)
        for name, level, text in (
            ("poseidon_py.rounds.loop", logging.INFO, "round placed=3 level=error msg=1"),
            ("firmament_py.engine.scheduler", logging.ERROR, dropped),
            ("firmament_py.engine.scheduler", logging.ERROR, dropped),
            ("poseidon_py.app.bridge", logging.WARNING, "a warning"),
        )
    ]
    async with stack.Stack() as demo:
        (demo.folder / "scheduler.log").write_text("\n".join(map(log.format, records)))
        assert demo.complaints() == [dropped]
