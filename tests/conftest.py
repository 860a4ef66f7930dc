"""Profiles of the property tests, see effort.py; last lines that say why tests ran twice and which did not run."""

import gc
import os
from collections.abc import Sequence
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, settings

from firmament_py.compile_ahead import compile_stale
from tests.effort import NO_HELM, NO_SERVER, QUARTER, THOROUGH

_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

settings.register_profile("default", _COMMON, max_examples=25, stateful_step_count=30, database=None)
settings.register_profile("ci", settings.get_profile("default"), phases=set(Phase) - {Phase.shrink})  # takes minutes
settings.register_profile("thorough", _COMMON, max_examples=1000, stateful_step_count=60)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_NEEDS = {NO_SERVER: "a real API server", NO_HELM: "Helm and kubectl, which cannot be downloaded"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--e2e-reruns", type=int, default=0, help="How often a failed test marked e2e is run again.")
    parser.addoption(
        "--half", action="store_true", help="Every second test marked e2e or slow; SEEDS_QUARTER says which."
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reruns = config.getoption("--e2e-reruns")
    for item in items:
        if reruns and item.get_closest_marker("e2e"):
            item.add_marker(pytest.mark.flaky(reruns=reruns))
    if config.getoption("--half") and not THOROUGH:
        others = [
            item
            for item in items
            if (item.get_closest_marker("e2e") or item.get_closest_marker("slow"))
            and crc32(item.nodeid.encode()) % 2 != QUARTER % 2
        ]
        config.hook.pytest_deselected(items=others)
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """The examples of the default profile follow from the quarter: a run can be repeated. What is compiled is compiled
    before, once for all workers."""
    if not THOROUGH and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(QUARTER)
    if not hasattr(config, "workerinput"):
        compile_stale(print)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What there is by now stays until the end, and no garbage collection looks at it again: with all tests collected
    one takes 2.5 s, and the suites of benchmarks begin each sample with one."""
    gc.collect()
    gc.freeze()


def pytest_report_header() -> str:
    seeds = "all seeds" if THOROUGH else f"quarter {QUARTER} of the seeds and examples"
    return f"profile {os.environ.get('HYPOTHESIS_PROFILE', 'default')}, {seeds}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for rerun in terminalreporter.stats.get("rerun", ()):
        crash = getattr(rerun.longrepr, "reprcrash", None)
        why = " ".join((crash.message if crash else str(rerun.longrepr)).split())
        why = why if len(why) <= 600 else f"{why[:200]} ... {why[-400:]}"
        terminalreporter.write_line(f"RERUN of {rerun.nodeid}: {why}", yellow=True)
    skipped: Sequence[pytest.TestReport] = terminalreporter.stats.get("skipped", ())
    for prefix, need in _NEEDS.items():
        reasons = [r.longrepr[2] for r in skipped if isinstance(r.longrepr, tuple) and prefix in r.longrepr[2]]
        if reasons:
            line = f"NOT RUN: {len(reasons)} cases need {need}; see tests/README.md"
            terminalreporter.write_line(line, yellow=True)
