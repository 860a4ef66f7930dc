"""The kustomize base and its components, rendered from the chart.

A component or overlay is the difference between the chart with other values and with the default ones: objects that it
adds, and JSON patches of objects that differ.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jsonpatch import make_patch


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text.rstrip("\n") else None
    ),
)

Json = dict[str, Any]
Key = tuple[str, str, str, str]

NAME, NAMESPACE = "poseidon", "kube-system"
"""Of the release that is rendered."""
_HEAD = "# Generated from deploy/chart by `make deploy`.\n"


class Variant(NamedTuple):
    """Values of the chart that differ from the default ones. `text`: what they are for."""

    text: str
    values: dict[str, object]
    component: bool = True
    """Whether it can be added to any overlay; else it is an overlay."""


VARIANTS = {
    "components/monitoring": Variant(
        "a ServiceMonitor and a PrometheusRule, for the Prometheus operator",
        {"serviceMonitor.enabled": True, "prometheusRule.enabled": True},
    ),
    "components/dashboards": Variant(
        "ConfigMaps that Grafana's sidecar finds by their label", {"grafanaDashboards.enabled": True}
    ),
    "components/jobs-controller": Variant(
        "the controller of Volcano's Jobs, and their definitions", {"jobsController.enabled": True}
    ),
    "overlays/default-scheduler": Variant(
        "in the place of kube-scheduler", {"schedulerName": "default-scheduler"}, component=False
    ),
}


def template(helm: Path, chart: Path, values: dict[str, object] | None = None, *flags: str) -> list[Json]:
    """The objects of the chart, without those of hooks such as tests. Raises subprocess.CalledProcessError."""
    sets = [f"--set-json={key}={json.dumps(value)}" for key, value in (values or {}).items()]
    command = [str(helm), "template", NAME, str(chart), "--namespace", NAMESPACE, "--no-hooks", *sets, *flags]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return [each for each in yaml.load_all(ran.stdout, yaml.CSafeLoader) if each]


def key_of(item: Json) -> Key:
    metadata = item["metadata"]
    return item["apiVersion"], item["kind"], metadata.get("namespace", ""), metadata["name"]


def rendered(helm: Path, chart: Path) -> dict[str, str]:
    """Path in the folder -> content."""
    base = {key_of(item): item for item in template(helm, chart)}
    files = {"base/poseidon.yaml": _documents(list(base.values()))}
    files["base/kustomization.yaml"] = _kustomization("Kustomization", {"resources": ["poseidon.yaml"]})
    for folder, variant in VARIANTS.items():
        changed = {key_of(item): item for item in template(helm, chart, variant.values)}
        assert base.keys() <= changed.keys(), f"{folder} leaves objects out, which a component cannot"
        content: Json = {} if variant.component else {"resources": ["../../base"]}
        if added := [item for key, item in changed.items() if key not in base]:
            files[f"{folder}/added.yaml"] = _documents(added)
            content.setdefault("resources", []).append("added.yaml")
        if patches := [_patch(base[key], changed[key]) for key in base if base[key] != changed[key]]:
            content["patches"] = patches
        kind = "Component" if variant.component else "Kustomization"
        files[f"{folder}/kustomization.yaml"] = _kustomization(kind, content, variant.text)
    return files


def _patch(before: Json, after: Json) -> Json:
    api_version, kind, namespace, name = key_of(before)
    group, _, version = api_version.rpartition("/")
    target = {"group": group, "version": version, "kind": kind, "name": name, "namespace": namespace}
    operations = sorted(make_patch(before, after), key=lambda each: str(each["path"]))
    return {
        "target": {key: value for key, value in target.items() if value},
        "patch": _dump(operations),
    }


def _documents(items: list[Json]) -> str:
    return _HEAD + "---\n".join(_dump(item) for item in items)


def _dump(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=120)


def _kustomization(kind: str, content: Json, text: str = "") -> str:
    version = "kustomize.config.k8s.io/v1alpha1" if kind == "Component" else "kustomize.config.k8s.io/v1beta1"
    about = f"# {text[0].upper()}{text[1:]}.\n" if text else ""
    return _HEAD + about + _dump({"apiVersion": version, "kind": kind, **content})
