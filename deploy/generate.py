"""Writes what follows from other files: `make deploy`, or `python -m deploy.generate [--check]`.

    chart/values.schema.json      from values_schema.py and the settings of `poseidon run`
    chart/admission.yaml          from admission.py and the table of conventions
    ../docs/rbac.md               from chart/rights.yaml
    ../docs/metrics.md            from poseidon_py/metrics/
    ../docs/annotations.md        from poseidon_py/conventions/own_keys.py
    ../docs/events.md             from poseidon_py/conventions/event_reasons.py
    kustomize/                    from the chart, rendered by Helm

With `--check` nothing is written, and Helm is not needed: kustomize/.generated-from has the digests of the chart and of
what was rendered. tests/deploy/ renders both. The exit code is 1 if something is out of date.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

from deploy.admission import policies
from deploy.annotations_page import annotations_page
from deploy.events_page import events_page
from deploy.kustomize_files import rendered
from deploy.metrics_page import metrics_page
from deploy.rights_page import rights_page
from deploy.tools import ToolsError, tools
from deploy.values_schema import values_schema

HERE = Path(__file__).resolve().parent
CHART = HERE / "chart"
KUSTOMIZE = HERE / "kustomize"
DIGESTS = KUSTOMIZE / ".generated-from"
SCHEMA = CHART / "values.schema.json"
ADMISSION = CHART / "admission.yaml"
DOCS = HERE.parent / "docs"
PAGES = {
    "annotations.md": annotations_page,
    "events.md": events_page,
    "metrics.md": metrics_page,
    "rbac.md": rights_page,
}
REMEDY = "run `make deploy` and commit the result"


def written() -> dict[Path, str]:
    """Path -> content, of what is generated without Helm."""
    pages = {DOCS / name: page() for name, page in PAGES.items()}
    admission = yaml.safe_dump({"policies": policies()}, sort_keys=False, allow_unicode=True, width=120)
    head = "# Generated from deploy/admission.py and the table of conventions by `make deploy`.\n"
    return {SCHEMA: json.dumps(values_schema(), indent=1) + "\n", ADMISSION: head + admission} | pages


def digest(folder: Path, leave_out: Iterable[Path] = ()) -> str:
    """Of the names and contents of all files."""
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path not in leave_out):
        found.update(f"{path.relative_to(folder)}\0{path.read_text(encoding='utf-8')}\0".encode())
    return found.hexdigest()


def digests() -> str:
    """The content of `.generated-from`."""
    return f"chart {digest(CHART)}\nkustomize {digest(KUSTOMIZE, [DIGESTS])}\n"


def stale() -> list[str]:
    """What is out of date."""
    found = [str(path.relative_to(HERE.parent)) for path, text in written().items() if _read(path) != text]
    if _read(DIGESTS) != digests():
        found.append("deploy/kustomize")
    return found


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def write(helm: Path) -> None:
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
    files = rendered(helm, CHART)
    shutil.rmtree(KUSTOMIZE, ignore_errors=True)
    for name, text in files.items():
        path = KUSTOMIZE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    DIGESTS.write_text(digests(), encoding="utf-8")


def main() -> int:
    if "--check" in sys.argv[1:]:
        if found := stale():
            print(f"out of date: {', '.join(found)}; {REMEDY}", file=sys.stderr)
        return 1 if found else 0
    try:
        write(tools() / "helm")
    except ToolsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
