"""The names that the conventions define, as data."""

from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).parent / "schemas"

NAMES = sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def entries(name: str) -> list[dict[str, Any]]:
    text = (_FOLDER / f"{name}.yaml").read_text()
    found: list[dict[str, Any]] = yaml.load(text, Loader=yaml.CSafeLoader)
    return found


def kinds(name: str) -> dict[tuple[str, str, str], set[str]]:
    """Group, kind and version, with the fields."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for entry in entries(name):
        for version in (entry["versions"] or [""]) if "kind" in entry else ():
            found.setdefault((entry["group"], entry["kind"], version), set()).update(entry["fields"])
    return found


def keys(name: str, what: str) -> dict[str, set[str]]:
    """Annotations or labels, each with what it is set on."""
    found: dict[str, set[str]] = {}
    for entry in entries(name):
        for key, places in entry.get(what, {}).items():
            found.setdefault(key, set()).update(places)
    return found
