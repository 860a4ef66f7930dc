"""Folders of killed processes are removed by the next one, those of living ones are not."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from poseidon_py.util.process.child_process import PYTHON
from poseidon_py.util.process.private_folder import PrivateFolder

PREFIX = "poseidon-test-"
OTHER = f"""
import sys
from poseidon_py.util.process.private_folder import PrivateFolder
print(PrivateFolder({PREFIX!r}).path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_only_this_user_may_look_into_it():
    folder = PrivateFolder(PREFIX)
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.remove()
    folder.remove()
    assert not folder.path.exists()


def test_a_folder_that_is_kept_stays():
    folder = PrivateFolder(PREFIX)
    folder.keep()
    folder.remove()
    PrivateFolder(PREFIX).remove()
    assert folder.path.exists()


def test_the_folder_of_a_killed_process_is_removed_by_the_next(tmp_path):
    process = subprocess.Popen(
        [*PYTHON, "-c", OTHER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    with process:
        assert process.stdout is not None
        others = Path(process.stdout.readline().strip())
        PrivateFolder(PREFIX).remove()
        assert others.exists()  # its process lives
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert others.exists()
    own = PrivateFolder(PREFIX)
    assert not others.exists()
    own.remove()


def test_folders_of_others_are_left_alone(tmp_path):
    """One without a lock, and one that only looks like such a folder."""
    (tmp_path / f"{PREFIX}unlocked").mkdir()
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / ".lock").touch()
    (tmp_path / f"{PREFIX}link").symlink_to(target)
    PrivateFolder(PREFIX).remove()
    assert (tmp_path / f"{PREFIX}unlocked").exists()
    assert target.exists()
