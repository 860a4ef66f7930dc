"""Junk in any place of a manifest is accepted or rejected; it never breaks the server."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cluster.api.binding import bind, evict
from benchmarks.cluster.api.patches import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import BUILT_IN, NODES, PODS, Kind
from benchmarks.cluster.views.tables import Tables
from tests.benchmarks.cluster.builders import Still, budget, job, pod, replicated
from tests.effort import examples

junk: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "x", "-1", 0, -1, 1.5, 7, True, [], [None], ["x"], {}, {"x": "y"}, {"x": None}, [{}]]
)

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"a": "b"}},
    "spec": {"taints": [{"key": "k", "effect": "NoExecute"}], "unschedulable": True},
    "status": {"capacity": {"cpu": "1"}, "conditions": [{"type": "Ready", "status": "True"}]},
}
FULL_POD = pod(
    "p",
    cpu="1",
    labels={"app": "web"},
    annotations={"cluster.poseidon.io/run-seconds": "1", "cluster.poseidon.io/fail-first": "1"},
    ownerReferences=[{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}],
    finalizers=["a/b"],
    tolerations=[{"key": "k", "operator": "Exists", "tolerationSeconds": 3}],
    nodeSelector={"a": "b"},
    overhead={"cpu": "1m"},
    initContainers=[{"name": "i", "image": "i", "restartPolicy": "Always", "ports": [{"containerPort": 1}]}],
    schedulingGates=[{"name": "g"}],
    affinity={
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            }
        }
    },
)
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "c"},
    "spec": {"storageClassName": "", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "v"},
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "claimRef": {"name": "c"}},
}
MANIFESTS = [
    FULL_POD,
    NODE,
    job(completions=2, parallelism=1, completionMode="Indexed"),
    replicated("ReplicaSet"),
    replicated("Deployment", strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}),
    replicated("StatefulSet"),
    budget("b", "web", minAvailable=1),
    CLAIM,
    VOLUME,
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a manifest."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inner in items for found in [(*path, key), *places(inner, (*path, key))]]


def kind_of(manifest: dict[str, Any]) -> Kind:
    return next(k for k in BUILT_IN if (k.api_version, k.kind) == (manifest["apiVersion"], manifest["kind"]))


def use(still: Still, kind: Kind, manifest: Any) -> None:
    """Create the object, let time pass, patch it, show it."""
    namespace = "default" if kind.namespaced else ""
    record = still.api.create(kind, namespace, manifest)
    still.pass_time(0.5)
    still.bind_all()
    still.pass_time(60)
    for obj in still.pods():
        evict(still.api, "default", obj["metadata"]["name"], {})
    still.pass_time(60)
    for remaining in list(still.store.collection(kind).records()):
        Tables().table(kind, [remaining], {})
    for subresource in ("", "status"):
        if kind.has_status or not subresource:
            current = still.store.get(kind, namespace, record.name)
            if current is not None:
                still.api.update(
                    kind, namespace, record.name, {**manifest, "metadata": {"name": record.name}}, subresource
                )
    still.pass_time(60)


@pytest.mark.slow
@examples(150)
@given(st.data())
def test_manifests_with_junk(data):
    manifest = copy.deepcopy(data.draw(st.sampled_from(MANIFESTS)))
    path = data.draw(st.sampled_from([p for p in places(manifest) if p not in (("kind",), ("apiVersion",))]))
    inner = manifest
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = data.draw(junk)
    still = Still(nodes=1)
    refusal: ApiError | None = None
    try:
        use(still, kind_of(manifest if "kind" in manifest else {}), manifest)
    except ApiError as error:
        refusal = error
    assert refusal is None or 400 <= refusal.code < 500
    assert still.cluster.agenda.failures == 0
    assert sum(collection.deaf for collection in still.store.collections()) == 0


@pytest.mark.slow
@examples(100)
@given(
    kind=st.sampled_from([PODS, NODES]),
    path=st.lists(
        st.sampled_from(["metadata", "spec", "status", "labels", "containers", "conditions", "taints", "x"]), max_size=3
    ),
    value=junk,
    how=st.sampled_from([MERGE_PATCH, STRATEGIC_PATCH, JSON_PATCH]),
    subresource=st.sampled_from(["", "status"]),
)
def test_patches_with_junk(kind, path, value, how, subresource):
    still = Still(nodes=1)
    still.api.create(PODS, "default", pod("node-00000"))
    patch: Any = value
    if how == JSON_PATCH:
        patch = [{"op": "add", "path": "".join(f"/{part}" for part in path), "value": value}]
    else:
        for part in reversed(path):
            patch = {part: patch}
    namespace = "default" if kind.namespaced else ""
    refusal: ApiError | None = None
    try:
        still.api.patch(kind, namespace, "node-00000", patch, how, subresource)
        still.pass_time(60)
        for record in still.store.collection(kind).records():
            Tables().table(kind, [record], {})
        still.bind_all()
        still.pass_time(60)
    except ApiError as error:
        refusal = error
    assert refusal is None or 400 <= refusal.code < 500
    assert still.cluster.agenda.failures == 0
    assert sum(collection.deaf for collection in still.store.collections()) == 0


@pytest.mark.parametrize("act", [bind, evict])
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"metadata": None},
        {"target": None},
        {"target": "x"},
        {"metadata": []},
        {"deleteOptions": 3},
        {"metadata": {"name": 3}},
    ],
)
def test_bindings_and_evictions_with_junk(act, body):
    still = Still(nodes=1)
    still.api.create(PODS, "default", pod("p"))
    refusal: ApiError | None = None
    try:
        act(still.api, "default", "p", body)
    except ApiError as error:
        refusal = error
    assert refusal is None or 400 <= refusal.code < 500
