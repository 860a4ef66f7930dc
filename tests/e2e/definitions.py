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
        while not all(_shown(backend, kind)):
            assert time.monotonic() < end, f"{kind.kind} is not served"
            time.sleep(0.02)  # discovery cannot be watched
    try:
        yield
    finally:
        for kind in kinds:
            backend.api("DELETE", f"{DEFINITIONS}/{kind.resource.label}")
        for kind in kinds:
            while any(_shown(backend, kind)):
                assert time.monotonic() < end + PATIENCE, f"{kind.kind} is still served"
                time.sleep(0.02)


def remove_definitions(backend: Backend, *names: str) -> None:
    """Deletes definitions, and waits until they are gone: the next test may create them again."""
    backend.delete(DEFINITIONS, *names)
    end = time.monotonic() + PATIENCE
    while {item["metadata"]["name"] for item in backend.api("GET", DEFINITIONS)["items"]} & {*names}:
        assert time.monotonic() < end, f"{', '.join(names)}: not all are gone"
        time.sleep(0.02)


def _shown(backend: Backend, kind: OwnerKind) -> Iterator[bool]:
    """Whether objects are served, and whether discovery says so: a server does the one before the other."""
    yield _answer(backend, collection(kind)) is not None
    version = _answer(backend, f"/apis/{kind.resource.group}/{kind.resource.versions[0]}") or {"resources": []}
    yield kind.resource.plural in [each["name"] for each in version["resources"]]
    group = _answer(backend, f"/apis/{kind.resource.group}") or {"versions": []}
    yield kind.resource.versions[0] in [each["version"] for each in group["versions"]]


def _answer(backend: Backend, path: str) -> Json | None:
    """None: an error."""
    try:
        found: Json = backend.api("GET", path)
    except ApiError:
        return None
    return found


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
