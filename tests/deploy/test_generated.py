"""What is generated is up to date, and the kustomize files are what the chart renders."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import generate
from deploy.generate import CHART, KUSTOMIZE
from deploy.kustomize_files import VARIANTS, key_of, rendered, template
from tests.paths import ROOT


def test_a_change_of_any_source_is_noticed_without_helm(tmp_path, monkeypatch):
    copy = tmp_path / "chart"
    for path in (path for path in CHART.rglob("*") if path.is_file()):
        target = copy / path.relative_to(CHART)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text(encoding="utf-8"))
    monkeypatch.setattr(generate, "CHART", copy)
    assert generate.stale() == []
    (copy / "templates" / "service.yaml").write_text("")
    assert generate.stale() == ["deploy/kustomize"]


def test_each_page_and_schema_is_compared(monkeypatch):
    monkeypatch.setattr(generate, "written", lambda: {ROOT / "docs" / "rbac.md": "other"})
    assert generate.stale() == ["docs/rbac.md"]


def test_the_files_are_those_that_helm_renders(newest: Path):
    files = {str(path.relative_to(KUSTOMIZE)): path.read_text() for path in KUSTOMIZE.rglob("*.yaml")}
    assert files == rendered(newest / "helm", CHART)


def built(kubectl: Path, folder: Path) -> dict[Any, Any]:
    ran = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, check=True)
    return {key_of(item): item for item in yaml.load_all(ran.stdout, yaml.CSafeLoader)}


def test_the_base_is_the_chart_with_default_values(both: Path):
    chart = {key_of(item): item for item in template(both / "helm", CHART)}
    assert built(both / "kubectl", KUSTOMIZE / "base") == chart


@pytest.mark.parametrize("folder", VARIANTS)
def test_a_variant_is_the_chart_with_its_values(newest: Path, folder: str, tmp_path: Path):
    variant = VARIANTS[folder]
    place = KUSTOMIZE / folder
    if variant.component:
        (tmp_path / "kustomize").symlink_to(KUSTOMIZE)
        place = tmp_path / "overlay"
        place.mkdir()
        found = {"resources": ["../kustomize/base"], "components": [f"../kustomize/{folder}"]}
        (place / "kustomization.yaml").write_text(yaml.safe_dump(found))
    chart = {key_of(item): item for item in template(newest / "helm", CHART, variant.values)}
    assert built(newest / "kubectl", place) == chart
