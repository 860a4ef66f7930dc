"""Every test with the fixture `backend` runs against the synthetic cluster and, if available, a real API server."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.backends import Backend, Synthetic
from tests.e2e.processes import Process, Scheduler
from tests.e2e.real_backend import Real, gate_flags, why_not_real
from tests.effort import NO_SERVER

SYNTHETIC = pytest.mark.parametrize("server", ["synthetic"], indirect=True)
"""For what needs faults on demand, kubelets or controllers."""
REAL = pytest.mark.parametrize("server", ["real"], indirect=True)


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.e2e)
    item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)  # after pytest has brought the tests of a server together
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}{os.sep}"
    mine = [at for at, item in enumerate(items) if str(item.path).startswith(here)]
    # those that share a scheduler follow each other, so that it is started once
    in_order = sorted((items[at] for at in mine), key=turn_of)
    for at, item in zip(mine, in_order, strict=True):
        items[at] = item


def turn_of(item: pytest.Item) -> tuple[str, bool, tuple[str, ...]]:
    flags = shared_flags(item)
    return server_of(item), flags is None, flags or ()


def server_of(item: pytest.Item) -> str:
    parameters = getattr(item, "callspec", None)
    return str(parameters.params.get("server", "")) if parameters else ""


def shared_flags(item: pytest.Item) -> tuple[str, ...] | None:
    """The flags of the shared scheduler that a test uses; None: it uses none."""
    if "scheduler" not in getattr(item, "fixturenames", ()):
        return None
    marker = item.get_closest_marker("flags")
    return marker.args if marker else ()


@pytest.fixture(scope="session", params=["synthetic", "real"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """One server for all tests, which leave it empty, because starting a real one is slow."""
    folder = tmp_path_factory.mktemp(request.param)
    backend: Backend
    if request.param == "real":
        if problem := why_not_real():
            pytest.skip(NO_SERVER + problem)
        assets = Path(os.environ["KUBEBUILDER_ASSETS"])
        backend = Real(assets, folder, flags=gate_flags(assets))
    else:
        backend = Synthetic(folder)
    yield backend
    backend.close()


@pytest.fixture
def backend(server: Backend) -> Iterator[Backend]:
    """An empty cluster, whose invariants are checked when the test has passed."""
    server.begin()
    try:
        yield server
        server.check()
    finally:
        server.finish()


@pytest.fixture
def synthetic(backend: Backend) -> Synthetic:
    """For tests that only the synthetic cluster supports, parametrised with SYNTHETIC."""
    assert isinstance(backend, Synthetic)
    return backend


class SharedScheduler:
    """One `poseidon run`, shared by tests with the same flags; stopped while a test starts its own."""

    def __init__(self, server: Backend, folder: Path) -> None:
        self._server, self._folder = server, folder
        self._running: Scheduler | None = None
        self._flags: tuple[str, ...] = ()

    def running(self, flags: tuple[str, ...]) -> Scheduler:
        if self._flags != flags:
            self.end()
        if self._running is None:
            log = self._folder / "poseidon.log"
            self._running, self._flags = Scheduler(self._server.kubeconfig, *flags, log=log).ready(), flags
        return self._running

    def give_up(self) -> None:
        """Stops it after a failed test: the next test gets a new one."""
        if self._running is not None:
            self._running.end(signal.SIGKILL)
            self._running = None

    def end(self) -> None:
        if self._running is not None:
            ended, self._running = self._running, None
            check([ended])


@pytest.fixture(scope="session")
def shared_scheduler(server: Backend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedScheduler]:
    shared = SharedScheduler(server, tmp_path_factory.mktemp("scheduler"))
    yield shared
    shared.end()


@pytest.fixture
def scheduler(
    request: pytest.FixtureRequest, backend: Backend, shared_scheduler: SharedScheduler
) -> Iterator[Scheduler]:
    """A scheduler that has run for some time, in an emptied cluster; it must survive the test. `pytest.mark.flags`
    gives its flags."""
    shared = shared_scheduler.running(shared_flags(request.node) or ())
    shared.until_knows(0, 0)
    shared.begin_test()
    yield shared
    try:
        assert shared.popen.poll() is None, shared.output[-5000:]
        judge_output(shared.output_of_test)
    except AssertionError:
        shared_scheduler.give_up()
        raise


@pytest.fixture
def schedule(backend: Backend, shared_scheduler: SharedScheduler, tmp_path: Path) -> Iterator[Callable[..., Scheduler]]:
    """Starts `poseidon run` with flags, any number of times; each must exit cleanly when it is stopped."""
    shared_scheduler.end()
    started: list[Scheduler] = []

    def start(*arguments: str, ready: bool = True) -> Scheduler:
        scheduler = Scheduler(backend.kubeconfig, *arguments, log=tmp_path / f"poseidon-{len(started)}.log")
        started.append(scheduler)
        return scheduler.ready() if ready else scheduler

    with ExitStack() as stack:
        stack.callback(lambda: check(started))
        yield start


def check(started: Sequence[Process]) -> None:
    """Stops the processes; none may have exited unexpectedly or logged a traceback."""
    codes = [(process, process.end()) for process in started]
    for process, code in codes:
        assert code in process.expected, f"exit code {code}:\n{process.output[-5000:]}"
        judge_output(process.output)


def judge_output(output: str) -> None:
    for bad in ("Traceback", "a defect", "never awaited", "Unclosed", "Task exception"):
        assert bad not in output, output[-5000:]
