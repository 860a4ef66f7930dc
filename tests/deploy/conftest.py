"""Helm and kubectl, of the newest version and of the last one of Helm 3."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deploy.generate import CHART
from deploy.kustomize_files import template
from deploy.tools import RELEASES, ToolsError, tools
from tests.effort import NO_HELM

Json = dict[str, Any]
Render = Callable[..., list[Json]]


def pytest_itemcollected(item: pytest.Item) -> None:
    if {"both", "newest"} & set(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.slow)


def tools_or_skip(release: str) -> Path:
    try:
        return tools(release)
    except ToolsError as error:
        pytest.skip(NO_HELM + str(error))


@pytest.fixture(scope="session", params=RELEASES)
def both(request: pytest.FixtureRequest) -> Path:
    """The folder of each release in turn."""
    return tools_or_skip(request.param)


@pytest.fixture(scope="session")
def newest() -> Path:
    return tools_or_skip("helm-4.3.1")


@pytest.fixture
def render(newest: Path) -> Render:
    """The objects of the chart with values, such as {"replicaCount": 1}."""

    def rendered(values: dict[str, object] | None = None, *flags: str) -> list[Json]:
        return template(newest / "helm", CHART, values, *flags)

    return rendered


@pytest.fixture
def refusal(newest: Path) -> Callable[..., str]:
    """What Helm says about values that it refuses."""

    def refused(values: dict[str, object]) -> str:
        with pytest.raises(subprocess.CalledProcessError) as info:
            template(newest / "helm", CHART, values)
        return str(info.value.stderr)

    return refused


def of_kind(items: list[Json], kind: str) -> list[Json]:
    return [item for item in items if item["kind"] == kind]


def the(items: list[Json], kind: str) -> Json:
    (item,) = of_kind(items, kind)
    return item
