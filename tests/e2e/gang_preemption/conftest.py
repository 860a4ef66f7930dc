"""Kubernetes' PodGroups, defined once for all modules of the folder: a scheduler that runs on does not follow a
definition that is deleted and created again at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.backends import Backend
from tests.e2e.pod_groups import PodGroups, defined, served
from tests.e2e.preemption import define_priorities


@pytest.fixture(scope="package", autouse=True)
def _pod_groups(server: Backend) -> Iterator[None]:
    with defined(server):
        yield


@pytest.fixture
def groups(backend: Backend) -> Iterator[PodGroups]:
    define_priorities(backend)
    groups = PodGroups(backend, served(backend))
    try:
        yield groups
        groups.check()
    finally:
        groups.clean()
