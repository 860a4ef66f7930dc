"""The image installs locked versions that satisfy the project; what the Dockerfile copies is in the context."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.paths import ROOT

LOCK = (ROOT / "deploy" / "requirements.lock").read_text()
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()


def entries() -> list[Requirement]:
    lines = [line.removesuffix("\\").strip() for line in LOCK.splitlines() if re.match(r"[a-z0-9]", line, re.I)]
    return [Requirement(line) for line in lines]


def locked(python: str) -> dict[str, str]:
    """Package -> version, for a version of Python on Linux."""
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    found = [each for each in entries() if each.marker is None or each.marker.evaluate(environment)]
    versions: dict[str, str] = {canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in found}
    assert len(versions) == len(found)
    return versions


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_the_lock_satisfies_the_project(python):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    versions = locked(python)
    for each in map(Requirement, needed):
        found = versions.get(canonicalize_name(each.name))
        assert found is not None, f"{each.name} is not in deploy/requirements.lock; run `make lock`"
        assert each.specifier.contains(found), f"{each.name} {found} does not satisfy {each}; run `make lock`"


def test_each_version_has_hashes():
    assert LOCK.count("\\\n    --hash=sha256:") >= len(entries())
    blocks = re.split(r"\n(?=[a-z0-9])", LOCK, flags=re.I)[1:]
    assert [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_the_base_has_a_version_and_the_user_no_privileges():
    assert re.search(r"^ARG BASE=python:\d+\.\d+\.\d+-\S+$", DOCKERFILE, re.M)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)) == {"${BASE}"}
    assert re.search(r"^USER 65532:65532$", DOCKERFILE, re.M)
    assert "--require-hashes" in DOCKERFILE


def test_what_is_copied_is_not_ignored():
    lines = (ROOT / ".dockerignore").read_text().split()
    kept_back = [line for line in lines if not line.startswith("!")]
    taken = {line.removeprefix("!") for line in lines if line.startswith("!")}
    sources = {
        source
        for line in DOCKERFILE.splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    }
    assert sources == taken
    assert kept_back[0] == "**"
    assert any(fnmatch("poseidon_py/__pycache__", pattern) for pattern in kept_back[1:])
