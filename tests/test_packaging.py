"""Building the distribution: `make demo` installs the tree first, and pip shows every warning of the build."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.paths import ROOT

FILES = ("pyproject.toml", "README.md", "LICENSE")


def build(folder: Path, form: str) -> Path:
    """Builds a wheel of the tree in `folder`, with every warning an error."""
    command = f"from setuptools.build_meta import build_{form}; build_{form}('wheel')"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    (wheel,) = (folder / "wheel").glob("*.whl")
    return wheel


@pytest.mark.slow
def test_an_editable_install_warns_about_nothing(tmp_path):
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path)
    for package in ROOT.glob("*/__init__.py"):
        (tmp_path / package.parent.name).mkdir()
        (tmp_path / package.parent.name / "__init__.py").touch()
    assert build(tmp_path, "editable").stat().st_size


@pytest.mark.slow
def test_the_image_gets_the_scheduler_and_nothing_synthetic(tmp_path):
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    for *sources, _ in (line.split()[1:] for line in lines if line.startswith("COPY ") and "--from" not in line):
        for name in sources:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, tmp_path)
    with zipfile.ZipFile(build(tmp_path, "wheel")) as wheel:
        inside = wheel.namelist()
    assert {name.partition("/")[0] for name in inside if ".dist-info/" not in name} == {
        "firmament_py",
        "policies",
        "poseidon_py",
        "protos",
    }
    page = "poseidon_py/dashboard/static/index.html"
    for name in ("poseidon_py/cli/bench.py", "protos/flow.proto", "poseidon_py/py.typed", page):
        assert name in inside
