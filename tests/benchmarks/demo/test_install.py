"""`make demo` installs the tree first; pip shows every warning of the build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_an_editable_install_warns_about_nothing(tmp_path):
    for name in ("pyproject.toml", "README.md"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    for package in ROOT.glob("*/__init__.py"):
        (tmp_path / package.parent.name).mkdir()
        (tmp_path / package.parent.name / "__init__.py").touch()
    build = "from setuptools.build_meta import build_editable; build_editable('wheel')"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", build],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert list((tmp_path / "wheel").glob("*.whl"))
