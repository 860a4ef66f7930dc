"""Searches are compiled once for an installation, by one process at a time."""

import fcntl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from firmament_py import compile_ahead
from firmament_py.compile_ahead import compile_all
from firmament_py.eviction import insertion
from firmament_py.eviction import search as eviction_search
from firmament_py.packing import relaxation, rounding, ruin_recreate
from firmament_py.packing.pack import pack
from firmament_py.packing.problem import Packing
from tests.firmament_py.eviction.evictions import random_problem as random_eviction
from tests.firmament_py.packing.packings import random_problem


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A cache folder of its own; what was compiled."""
    calls: list[str] = []
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_ahead, "compile_all", lambda: calls.append("all"))
    monkeypatch.setattr("os.nice", lambda _: 0)
    return calls


@pytest.mark.xdist_group("numba")
def test_every_search_is_compiled(monkeypatch: pytest.MonkeyPatch):
    called = set()
    functions = (
        (eviction_search, "_improve"),
        (eviction_search, "insert_all"),
        (ruin_recreate, "_search"),
        (rounding, "_fill"),
        (rounding, "_round"),
        (relaxation, "_add_by_group"),
    )
    for module, name in functions:
        search = getattr(module, name)

        def noted(*args, name=name, search=search):
            called.add(name)
            return search(*args)

        monkeypatch.setattr(module, name, noted)
    compile_all()
    assert called == {name for _, name in functions}


@pytest.mark.xdist_group("numba")
def test_nothing_is_compiled_later():
    """Every search takes arrays of one type, whatever their lengths."""
    compile_all()
    problem = random_problem(1, nodes=30, classes=12, demand=1.2)
    pack(problem, Packing.empty(problem))
    random_eviction(3).solve()
    searches: list[Any] = [eviction_search._improve, insertion.insert_all, ruin_recreate._search]
    searches += [rounding._fill, rounding._round, relaxation._add_by_group]
    assert [len(search.signatures) for search in searches] == [1] * 6


def test_what_is_compiled_is_not_compiled_again(compiled: list[str]):
    compile_ahead.main()
    compile_ahead.main()
    assert compiled == ["all"]


def test_a_second_process_waits_for_the_first(compiled: list[str], tmp_path: Path):
    compile_ahead.main()
    [marker] = (tmp_path / "cache").glob("*.compiled")
    marker.unlink()
    with ThreadPoolExecutor() as threads:
        with marker.with_name(f"{marker.name}.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            second = threads.submit(compile_ahead.main)
            marker.touch()
        second.result()
    assert compiled == ["all"]


class Process:
    """One that ends when the test says so."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.killed = False

    def poll(self) -> int | None:
        return self.code

    def kill(self) -> None:
        self.killed = True

    def wait(self) -> int:
        return 0


@pytest.fixture
def process(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> Process:
    process = Process()
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: command[0] == sys.executable and process)
    return process


@pytest.mark.parametrize("code", [0, 1], ids=["compiled", "failed"])
def test_rounds_wait_until_the_process_has_ended(process: Process, code: int):
    ahead = compile_ahead.Ahead()
    ahead.start()
    assert not ahead.over()
    process.code = code
    assert ahead.over()


def test_rounds_wait_for_a_limited_time(process: Process):
    now = 1000.0
    ahead = compile_ahead.Ahead(lambda: now)
    ahead.start()
    now += compile_ahead.PATIENCE_SECONDS - 1
    assert not ahead.over()
    now += 1
    assert ahead.over()
    ahead.end()
    assert process.killed


def test_rounds_do_not_wait_if_everything_is_compiled(process: Process):
    compile_ahead.main()
    ahead = compile_ahead.Ahead()
    ahead.start()
    assert ahead.over()
    ahead.end()
    assert not process.killed


def test_without_a_writable_folder_nothing_is_compiled(
    compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    compile_ahead.main()
    assert compiled == []


def test_a_failure_leaves_no_marker(compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail() -> None:
        raise RuntimeError

    monkeypatch.setattr(compile_ahead, "compile_all", fail)
    with pytest.raises(RuntimeError):
        compile_ahead.main()
    assert not list((tmp_path / "cache").glob("*.compiled"))
