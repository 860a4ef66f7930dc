"""Kinds of other projects, defined for a test. Their controllers do not run: the tests act for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from poseidon_py.state.gangs.owner_kinds import OwnerKind
from tests.e2e.api import PATIENCE, ApiError, Json
from tests.e2e.backends import Backend

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@contextmanager
def defined(backend: Backend, *kinds: OwnerKind) -> Iterator[None]:
    """The kinds, each in its preferred version, until the test ends."""
    for kind in kinds:
        backend.create(_definition(kind))
    end = time.monotonic() + PATIENCE
    for kind in kinds:
        while not _served(backend, kind):
            assert time.monotonic() < end, f"{kind.kind} is not served"
            time.sleep(0.02)  # discovery cannot be watched
    try:
        yield
    finally:
        for kind in kinds:
            backend.api("DELETE", f"{DEFINITIONS}/{kind.resource.label}")
        for kind in kinds:
            while _served(backend, kind):
                assert time.monotonic() < end + PATIENCE, f"{kind.kind} is still served"
                time.sleep(0.02)


def remove_definitions(backend: Backend, *names: str) -> None:
    """Deletes definitions, and waits until they are gone: the next test may create them again."""
    backend.delete(DEFINITIONS, *names)
    end = time.monotonic() + PATIENCE
    while {item["metadata"]["name"] for item in backend.api("GET", DEFINITIONS)["items"]} & {*names}:
        assert time.monotonic() < end, f"{', '.join(names)}: not all are gone"
        time.sleep(0.02)


def _served(backend: Backend, kind: OwnerKind) -> bool:
    try:
        backend.api("GET", collection(kind))
    except ApiError:
        return False
    return True


def collection(kind: OwnerKind) -> str:
    """The path of the objects in the default namespace."""
    return f"/apis/{kind.resource.group}/{kind.resource.versions[0]}/namespaces/default/{kind.resource.plural}"


def _definition(kind: OwnerKind) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": kind.resource.versions[0], "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": kind.resource.label,
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": kind.resource.group,
            "scope": "Namespaced",
            "names": {"plural": kind.resource.plural, "kind": kind.kind},
            "versions": [version],
        },
    }


def owner(kind: OwnerKind, name: str, spec: Json, **metadata: object) -> Json:
    """An object of the kind."""
    version = f"{kind.resource.group}/{kind.resource.versions[0]}"
    return {"apiVersion": version, "kind": kind.kind, "metadata": {"name": name, **metadata}, "spec": spec}


def controlled_by(item: Json) -> Json:
    """The owner reference of what this object controls."""
    about = {"name": item["metadata"]["name"], "uid": item["metadata"]["uid"], "controller": True}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"]} | about
