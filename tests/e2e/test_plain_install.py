"""An installation without extras, and one without the benchmark suite, as in the container image.

Both are simulated: every Python process that the tests start fails to import the modules that would be missing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.backends import Backend
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.objects import node, pod
from tests.e2e.processes import FIRMAMENT, POSEIDON, Scheduler, run

EXTRAS = ("orjson", "jsonpatch", "jsonpointer", "matplotlib", "jinja2")
IMAGE = (*EXTRAS, "benchmarks")
BENCH = (POSEIDON[0], "-m", "poseidon_py.cli.bench")

_REFUSE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refuse())
"""


@pytest.fixture
def without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[tuple[str, ...]], None]:
    """Hides these modules from the processes that the test starts from now on."""

    def remove(missing: tuple[str, ...]) -> None:
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "sitecustomize.py").write_text(_REFUSE.format(missing=missing))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
        for name in missing:
            done = run(POSEIDON[0], "-c", f"import {name}")
            assert f"No module named '{name}'" in done.stderr

    return remove


@SYNTHETIC
@pytest.mark.parametrize("missing", [EXTRAS, IMAGE], ids=["no extras", "image"])
def test_the_scheduler_runs(
    backend: Backend,
    without: Callable[[tuple[str, ...]], None],
    schedule: Callable[..., Scheduler],
    missing: tuple[str, ...],
) -> None:
    backend.create(*(node(f"n{at}") for at in range(2)))
    without(missing)
    scheduler = schedule()
    backend.create(*(pod(f"p{at}") for at in range(4)))
    assert sorted(backend.until_bound(4).values()) == ["n0", "n0", "n1", "n1"]
    done = run(*POSEIDON, "status", "--address", scheduler.address)
    assert done.returncode == 0, done.stderr
    assert "2 nodes" in done.stdout
    for command in (POSEIDON, FIRMAMENT):
        done = run(*command, "policies")
        assert done.returncode == 0, done.stderr
        assert "load-spreading" in done.stdout


@pytest.mark.parametrize(
    ("missing", "command", "code", "text"),
    [
        (EXTRAS, (*POSEIDON, "demo", "--nodes", "5"), 1, "demo is not installed here: there is no module orjson"),
        (EXTRAS, (*POSEIDON, "cluster", "--port", "0"), 1, "cluster is not installed here: there is no module orjson"),
        (IMAGE, (*POSEIDON, "demo"), 1, "demo is not installed here: there is no module benchmarks"),
        (EXTRAS, (*BENCH, "run", "end-to-end", "--quick"), 2, "suite end-to-end needs the module orjson"),
        (IMAGE, (*BENCH, "list"), 2, "there is no module benchmarks"),
    ],
)
def test_a_missing_module_is_one_line(
    without: Callable[[tuple[str, ...]], None],
    missing: tuple[str, ...],
    command: tuple[str, ...],
    code: int,
    text: str,
) -> None:
    without(missing)
    done = run(*command)
    assert done.returncode == code, done.stderr
    assert text in done.stderr
    assert "pip install '.[benchmarks]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_suites_are_listed_without_extras(without: Callable[[tuple[str, ...]], None]) -> None:
    without(EXTRAS)
    done = run(*BENCH, "list")
    assert done.returncode == 0, done.stderr
    assert "end-to-end" in done.stdout
    assert "service-memory" in done.stdout
