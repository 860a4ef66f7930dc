"""Every test that asks for `backend` runs against the synthetic cluster and, where there is one, a real API server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.backends import Backend, Real, Synthetic, why_not_real
from tests.e2e.processes import Scheduler
from tests.effort import NO_SERVER

SYNTHETIC = pytest.mark.parametrize("server", ["synthetic"], indirect=True)
"""For what needs faults on demand, kubelets or controllers."""
REAL = pytest.mark.parametrize("server", ["real"], indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", params=["synthetic", "real"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """One server for all tests, which leave it empty: starting a real one takes its time."""
    folder = tmp_path_factory.mktemp(request.param)
    backend: Backend
    if request.param == "real":
        if problem := why_not_real():
            pytest.skip(NO_SERVER + problem)
        backend = Real(Path(os.environ["KUBEBUILDER_ASSETS"]), folder)
    else:
        backend = Synthetic(folder)
    yield backend
    backend.close()


@pytest.fixture
def backend(server: Backend) -> Iterator[Backend]:
    """An empty cluster; what happened in it is judged when the test has passed."""
    server.begin()
    try:
        yield server
        server.check()
    finally:
        server.finish()


@pytest.fixture
def synthetic(backend: Backend) -> Synthetic:
    """For tests of what only the synthetic cluster can do; they are parametrised with SYNTHETIC."""
    assert isinstance(backend, Synthetic)
    return backend


@pytest.fixture
def schedule(backend: Backend, tmp_path: Path) -> Iterator[Callable[..., Scheduler]]:
    """Starts `poseidon run` with flags, as often as a test likes; each must end cleanly when it is asked to."""
    started: list[Scheduler] = []

    def start(*arguments: str, ready: bool = True) -> Scheduler:
        scheduler = Scheduler(backend.kubeconfig, *arguments, log=tmp_path / f"poseidon-{len(started)}.log")
        started.append(scheduler)
        return scheduler.ready() if ready else scheduler

    with ExitStack() as stack:
        stack.callback(lambda: judge(started))
        yield start


def judge(started: list[Scheduler]) -> None:
    """Ends the processes; none may have had an unexpected end, or have lost its head on the way."""
    codes = [(scheduler, scheduler.end()) for scheduler in started]
    for scheduler, code in codes:
        assert code in scheduler.expected, f"exit code {code}:\n{scheduler.output[-5000:]}"
        for bad in ("Traceback", "a defect", "never awaited", "Unclosed", "Task exception"):
            assert bad not in scheduler.output, scheduler.output[-5000:]
