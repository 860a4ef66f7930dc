"""What a wheel and a source distribution of the package contain."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from firmament_py.compile_ahead import PACKAGES
from firmament_py.compiled_folder import COMPILED, folder_of

ROOT = Path(__file__).parent.parent
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BUILD = "from firmament_py.build_backend import {hook}; print({hook}('dist'))"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, with what is compiled: that of this version is not compiled again."""
    folder = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("firmament_py", "poseidon_py", "policies", "protos", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def built(copy: Path, hook: str) -> Path:
    """The file that a hook of the build backend writes, without an environment of its own."""
    (copy / "dist").mkdir(exist_ok=True)
    words = [sys.executable, "-c", BUILD.format(hook=hook)]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(words, cwd=copy, env=environment, capture_output=True, text=True, timeout=240, check=True)
    return copy / "dist" / done.stdout.splitlines()[-1]


def test_a_wheel_contains_what_is_compiled_for_its_platform(copy: Path):
    """And for its version of Python, whatever an earlier build and other versions have left."""
    others = "eviction-0123456789ab-cpython-39-numba-0.68.1-linux-x86_64", "packing-0123456789ab-graalpy-1"
    before = copy / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}" / "firmament_py"
    for parent, name in zip((copy / "firmament_py", before), others, strict=True):
        (parent / "compiled" / name).mkdir(parents=True)
        (parent / "compiled" / name / "search._improve-search.nbi").write_bytes(b"")
    wheel = built(copy, "build_wheel")
    python, platform = f"cp{sys.version_info[0]}{sys.version_info[1]}", sysconfig.get_platform().replace("-", "_")
    assert f"-{python}-" in wheel.name
    assert wheel.name.endswith(f"-{platform.replace('.', '_')}.whl")
    with zipfile.ZipFile(wheel) as found:
        names = found.namelist()
    folders = {name.split("/")[2] for name in names if name.startswith("firmament_py/compiled/")}
    assert folders == {folder_of(COMPILED.parent / name).name for name in PACKAGES}
    assert sum(name.endswith(".nbi") for name in names) == 9, "one for each function that Python calls"
    assert "firmament_py/packing/pack.py" in names
    assert "protos/flow.proto" in names


def test_a_source_distribution_contains_nothing_that_is_compiled(copy: Path):
    with tarfile.open(built(copy, "build_sdist")) as found:
        names = found.getnames()
    assert any(name.endswith("/packing/pack.py") for name in names)
    assert not [name for name in names if name.endswith((".nbi", ".nbc"))]
