"""The first and last lines of the log of a process."""

import json
import logging
import signal

import pytest

from poseidon_py import __version__
from poseidon_py.cli.process_log import ProcessLog
from poseidon_py.config.settings import Settings


@pytest.fixture
def lines(caplog):
    caplog.set_level("INFO")
    return lambda: [each.getMessage() for each in caplog.records]


def test_the_start_tells_the_version_and_what_differs_from_the_defaults(lines):
    ProcessLog("poseidon", Settings(scheduler_name=("batch", "ml"), lease_duration=30.0, preemption="off")).started()
    version, configuration = lines()
    assert version.startswith(f"poseidon {__version__} starts on Python 3.")
    assert json.loads(configuration.partition(": ")[2]) == {
        "profiles": [{"schedulerName": "batch"}, {"schedulerName": "ml"}],
        "leaderElection.leaseDuration": "30s",
        "preemption.enabled": False,
    }


def test_defaults_are_called_so(lines):
    ProcessLog("poseidon", Settings()).started()
    ProcessLog("poseidon jobs", Settings(lease_name="jobs"), Settings(lease_name="jobs")).started()
    assert lines()[1::2] == ["configuration: the defaults"] * 2


async def test_the_end_tells_why(lines):
    process = ProcessLog("poseidon", Settings())
    process.end_on([signal.SIGTERM])
    signal.raise_signal(signal.SIGTERM)
    await process.stop_requested.wait()
    process.ended()
    assert lines() == ["SIGTERM was received: ending", "poseidon has ended, because SIGTERM was received"]


@pytest.mark.parametrize(
    ("style", "printed", "logged"),
    [("text", "error: no space\n", []), ("json", "", [(logging.ERROR, "poseidon ends because of an error: no space")])],
)
def test_an_error_is_in_the_format_of_the_log(style, printed, logged, capsys, caplog):
    ProcessLog("poseidon", Settings(log_format=style)).failed("no space")
    assert capsys.readouterr().err == printed
    assert [(each.levelno, each.getMessage()) for each in caplog.records] == logged
