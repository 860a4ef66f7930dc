"""The kinds of jobs, and the controllers that a test starts."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import View
from tests.e2e.backends import Backend
from tests.e2e.conftest import judge_output
from tests.e2e.jobs.manifests import BATCH, COMMANDS, GROUPS, POLICIES, Start
from tests.e2e.objects import condition
from tests.e2e.processes import POSEIDON, Process
from tests.paths import ROOT

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def definitions(server: Backend) -> Iterator[None]:
    """The kinds of deploy/chart/definitions/jobs.yaml."""
    items = list(yaml.safe_load_all((ROOT / "deploy" / "chart" / "definitions" / "jobs.yaml").read_text()))
    server.create(*items)
    view = View(server.api, DEFINITIONS)
    view.until(lambda found: all(condition(item, "Established").get("status") == "True" for item in found))
    yield
    names = {item["metadata"]["name"] for item in items}
    server.delete(DEFINITIONS, *names)
    view.until(lambda found: not names & {item["metadata"]["name"] for item in found})  # others create them again
    view.stop()


@pytest.fixture
def jobs(backend: Backend, definitions: None) -> Iterator[View]:
    """The jobs of a test."""
    view = View(backend.api, BATCH)
    yield view
    view.stop()
    for path in (BATCH, COMMANDS, GROUPS, POLICIES):
        names = [item["metadata"]["name"] for item in backend.api("GET", path)["items"]]
        backend.delete(path, *names)


@pytest.fixture
def start(backend: Backend, jobs: View, tmp_path: Path) -> Iterator[Start]:
    """Starts `poseidon jobs run`, any number of times; each must exit cleanly when it is stopped."""
    started: list[Process] = []

    def run(*flags: str) -> Process:
        given = ["--kubeconfig", str(backend.kubeconfig), "--health-port", "0", *flags]
        if "--leader-elect" not in flags:
            given.append("--no-leader-elect")
        process = Process([*POSEIDON, "jobs", "run", *given], tmp_path / f"jobs-{len(started)}.log")
        started.append(process)
        return process

    yield run
    for process in started:
        code = process.end()
        assert code in (0, -signal.SIGKILL), f"exit code {code}:\n{process.output[-5000:]}"
        judge_output(process.output)
        assert "which its machine does not have" not in process.output
