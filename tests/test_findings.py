"""The form of findings/: what a script of it promises before anyone runs it. They run outside CI."""

from __future__ import annotations

import itertools
import os
import re
import subprocess

import pytest

from tests.paths import ROOT

FOLDER = ROOT / "findings"
SCRIPTS = sorted(FOLDER.glob("*.sh"))
REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][0-9A-Za-z.]*")
LINK = re.compile(r"https?://|--(?:extra-)?index-url|--find-links|--trusted-host")


def requirements(text: str) -> list[str]:
    """What the `pip install` commands of a script name, options and their values left out."""
    found: list[str] = []
    for command in re.findall(r'/pip" install ((?:[^\n]*\\\n)*[^\n]*)', text):
        command = re.sub(r'--target "[^"]*"', "", command)
        found += [word for word in command.replace("\\\n", " ").split() if not word.startswith("-")]
    return found


def faults(text: str) -> list[str]:
    """What is wrong with the text of a script."""
    lines = text.splitlines()
    head = list(itertools.takewhile(lambda line: line.startswith("#"), lines[1:]))
    pins = requirements(text)
    wrong = [f"not an exact version: {pin}" for pin in pins if not REQUIREMENT.fullmatch(pin)]
    rules = {
        "no shebang of bash": not lines or lines[0] != "#!/usr/bin/env bash",
        "a head comment of 3 to 8 lines": not 3 <= len(head) <= 8,
        "no set -euo pipefail after the head": lines[len(head) + 1 : len(head) + 2] != ["set -euo pipefail"],
        "no temporary folder that an exit removes": not {"folder=$(mktemp -d)", "trap 'rm -rf \"$folder\"' EXIT"}
        <= set(lines),
        "installs nothing": not pins,
        "names an index, a host or a page": LINK.search(text) is not None,
        "is not bounded": not re.search(r"^timeout \d+ ", text, re.MULTILINE),
        "cannot fail": "sys.exit(" not in text,
    }
    return wrong + [rule for rule, broken in rules.items() if broken]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_has_the_form(script):
    assert faults(script.read_text()) == []
    assert os.access(script, os.X_OK), "not executable"
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", script.stem)
    subprocess.run(["bash", "-n", script], check=True, timeout=20)


def test_the_table_lists_every_script_with_its_versions():
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| [^|]+ \|$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert [name for name, _ in rows] == [script.stem for script in SCRIPTS]
    for name, packages in rows:
        pins = requirements((FOLDER / f"{name}.sh").read_text())
        first, version = packages.split(",")[0].split()
        assert f"{first}=={version}" in pins, name


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("==", ">=", "not an exact version"),
        ("set -euo pipefail", "set -eu", "no set -euo pipefail"),
        ("timeout ", "", "is not bounded"),
        ("-qq", "-qq --index-url x", "names an index"),
        ("trap ", "# trap ", "no temporary folder"),
        ("EXIT", "INT", "no temporary folder"),
        ("sys.exit(", "print(", "cannot fail"),
    ],
)
def test_a_broken_form_is_found(old, new, fault):
    text = SCRIPTS[0].read_text()
    assert old in text
    assert any(line.startswith(fault) for line in faults(text.replace(old, new)))
