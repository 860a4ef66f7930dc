"""Code that numba caches on disk is reused, but never after a change of any module that it was compiled from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from firmament_py import numba_cache

pytestmark = pytest.mark.xdist_group("numba")  # compiles once, not in every worker


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one process runs all tests")
def test_tests_that_compile_run_in_one_worker(request):
    assert request.node.nodeid.endswith("@numba")


CONSTANT = "HEAD = {value}\n"
USER = """
from kept.numba_cache import compiled
from kept.layout import HEAD

@compiled
def head():
    return HEAD
"""
ASK = "from kept.user import head; print(head(), sum(head.stats.cache_hits.values()))"


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "user.py").write_text(USER)
    assert numba_cache.__file__ is not None
    shutil.copy(numba_cache.__file__, folder)
    return folder


def ask(package: Path, value: int) -> tuple[int, int]:
    """The result of the compiled function, and the number of cache hits, in a separate process."""
    (package / "layout.py").write_text(CONSTANT.format(value=value))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    words = [sys.executable, "-B", "-c", ASK]  # Python's own bytecode would miss a second change within a second
    done = subprocess.run(
        words, cwd=package.parent, env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    answer, hits = map(int, done.stdout.split())
    return answer, hits


@pytest.mark.slow
def test_a_change_of_a_constant_elsewhere_is_noticed(package):
    assert ask(package, 1) == (1, 0)
    assert ask(package, 1) == (1, 1)
    assert ask(package, 2) == (2, 0)


def test_without_a_writable_folder_code_is_compiled_in_memory(monkeypatch, caplog):
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])

    @numba_cache.compiled
    def double(x):
        return 2 * x

    assert double(21) == 42
    assert "set NUMBA_CACHE_DIR to a writable folder" in caplog.text
