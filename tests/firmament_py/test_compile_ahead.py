"""What rounds need is compiled before, for all processes; and again after a change of anything that it depends on."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numba.core import event

from firmament_py import compile_ahead, compiled_folder, numba_cache
from firmament_py.compile_ahead import PACKAGES, NotCompiledError, check, compile_stale, load, stale
from firmament_py.compiled_folder import folder_of
from firmament_py.eviction import insertion
from firmament_py.eviction import search as eviction_search
from firmament_py.packing import relaxation, rounding, ruin_recreate
from firmament_py.packing.pack import pack
from firmament_py.packing.problem import Packing
from firmament_py.queues import admission_order, water_filling
from tests.firmament_py.eviction.evictions import random_problem as random_eviction
from tests.firmament_py.packing.packings import random_problem

ROOT = Path(numba_cache.__file__).parent.parent
FUNCTIONS = (
    (eviction_search, "_improve"),
    (eviction_search, "insert_all"),
    (ruin_recreate, "_search"),
    (rounding, "_fill"),
    (rounding, "_round"),
    (relaxation, "_add_by_group"),
    (admission_order, "admit_in_order"),
    (water_filling, "divide"),
)


def test_every_function_that_python_calls_is_loaded():
    """And compiled before, since it is loaded by the same calls."""
    load()
    assert all(getattr(module, name).signatures for module, name in FUNCTIONS)
    assert {name for _, name in FUNCTIONS} == {
        function.__name__
        for package in PACKAGES
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith(f"firmament_py.{package}.")
        for function in vars(module).values()
        if hasattr(function, "signatures") and function.targetoptions.get("no_cpython_wrapper") is None
    }


def test_nothing_is_compiled_in_this_process():
    """Every search takes arrays of one type, whatever their lengths."""
    with event.install_recorder("numba:compile") as compilations:
        load()
        problem = random_problem(1, nodes=30, classes=12, demand=1.2)
        pack(problem, Packing.empty(problem))
        random_eviction(3).solve()
    assert not compilations.buffer
    searches: list[Any] = [eviction_search._improve, insertion.insert_all, ruin_recreate._search]
    searches += [rounding._fill, rounding._round, relaxation._add_by_group]
    assert [len(search.signatures) for search in searches] == [1] * 6


def test_nothing_is_stale_here():
    assert stale() == []
    check()


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder without compiled functions; only one package has any."""
    for module in (compile_ahead, compiled_folder):
        monkeypatch.setattr(module, "COMPILED", tmp_path / "compiled")
    monkeypatch.setattr(compile_ahead, "PACKAGES", ("packing",))
    folder_of.cache_clear()
    yield tmp_path / "compiled"
    monkeypatch.undo()
    folder_of.cache_clear()


def test_what_is_missing_is_named_with_the_remedy(empty: Path):
    with pytest.raises(NotCompiledError, match=r"functions of packing are missing.*run: firmament compile"):
        check()


class Process:
    """Compiles at once, or fails."""

    def __init__(self, code: int | None) -> None:
        self.returncode, self.args = code, "compile"
        self.killed = False

    def poll(self) -> int | None:
        return self.returncode

    def kill(self) -> None:
        self.killed = True

    def wait(self) -> int:
        return 0


def test_what_was_compiled_of_other_sources_is_removed(empty: Path, monkeypatch: pytest.MonkeyPatch):
    """What other versions of Python and numba use stays."""
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: Process(0))
    name, _, versions = folder_of(ROOT / "firmament_py" / "packing").name.split("-", 2)
    old, others, half = f"{name}-0123456789ab-{versions}", f"{name}-0123456789ab-cpython-399-numba-1", ".packing-x"
    for each in (old, others, half):
        (empty / each).mkdir(parents=True)
    lines: list[str] = []
    compile_stale(lines.append)
    assert lines == ["compiled: packing"]
    assert stale() == []
    assert {path.name for path in empty.iterdir()} == {others, half, folder_of(ROOT / "firmament_py" / "packing").name}
    compile_stale(lines.append)
    assert len(lines) == 1, "once"


def test_a_failure_leaves_nothing(empty: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: Process(1))
    with pytest.raises(subprocess.CalledProcessError):
        compile_stale()
    assert stale() == ["packing"]
    assert not list(empty.iterdir())


def test_an_interrupt_ends_the_compilation(empty: Path, monkeypatch: pytest.MonkeyPatch):
    process = Process(None)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: process)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        compile_stale()
    assert process.killed
    assert not list(empty.iterdir())


def test_a_folder_that_another_process_has_put_there_first_is_kept(empty: Path, monkeypatch: pytest.MonkeyPatch):
    place = folder_of(ROOT / "firmament_py" / "packing")

    def faster(*_: Any, **__: Any) -> Process:
        place.mkdir(parents=True, exist_ok=True)
        (place / "theirs").touch()
        return Process(0)

    monkeypatch.setattr(subprocess, "Popen", faster)
    compile_stale()
    assert [path.name for path in place.iterdir()] == ["theirs"]
    assert [path.name for path in empty.iterdir()] == [place.name]


# -- with numba -------------------------------------------------------------------------------------------------------

LAYOUT = "HEAD = {value}\n"
USER = """
from firmament_py.numba_cache import compiled, inner
from firmament_py.packing.layout import HEAD

@inner
def twice(x):
    return 2 * x

@compiled
def head():
    return twice(HEAD)
"""
COMPILATION = """
def compile_all():
    from firmament_py.packing.user import head
    head()
"""
ASK = "from firmament_py.packing.user import head; print(head(), sum(head.stats.cache_hits.values()))"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """One whose only compiled function depends on a constant of another module."""
    copy = tmp_path / "firmament_py"
    for name in PACKAGES:
        (copy / name).mkdir(parents=True)
        (copy / name / "__init__.py").touch()
        (copy / name / "compilation.py").write_text("def compile_all(): pass\n")
    (copy / "__init__.py").touch()
    for name in ("numba_cache", "compile_ahead", "compiled_folder"):
        shutil.copy(ROOT / "firmament_py" / f"{name}.py", copy)
    (copy / "packing" / "user.py").write_text(USER)
    (copy / "packing" / "compilation.py").write_text(COMPILATION)
    (copy / "packing" / "layout.py").write_text(LAYOUT.format(value=1))
    return copy


def run(package: Path, words: str, **environment: str) -> str:
    """What a separate process prints."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", words],
        cwd=package.parent,
        env={**os.environ, "PYTHONPATH": str(package.parent), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.strip()


COMPILE = "from firmament_py.compile_ahead import compile_stale; compile_stale()"


@pytest.mark.slow
def test_a_change_of_a_constant_elsewhere_is_noticed(package: Path):
    run(package, COMPILE)
    assert run(package, ASK) == "2 1"
    (package / "packing" / "layout.py").write_text(LAYOUT.format(value=2))
    assert run(package, ASK) == "4 0", "compiled in that process, and not kept"
    run(package, COMPILE, NUMBA_CPU_NAME="skylake-avx512")
    assert run(package, ASK) == "4 1", "for any processor, whatever the environment says"


@pytest.mark.slow
def test_without_rights_to_write_it_is_loaded_as_well(package: Path):
    run(package, COMPILE)
    compiled = package / "compiled"
    for path in (*compiled.rglob("*"), compiled):
        path.chmod(path.stat().st_mode & ~0o222)
    assert run(package, ASK, HOME="/nonexistent") == "2 1"
