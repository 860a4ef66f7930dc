"""JSON, merge, strategic merge and apply patches."""

from __future__ import annotations

import pytest
from kubernetes.client import models

from benchmarks.cluster.api.patches import (
    MERGE_KEYS,
    PORT_KEYS,
    apply_merge,
    json_patch,
    merge_patch,
    strategic_merge_patch,
)
from benchmarks.cluster.api.schema import fields_of
from benchmarks.cluster.store.errors import ApiError

POD = {
    "metadata": {"name": "p", "labels": {"a": "1", "b": "2"}, "finalizers": ["x/y"]},
    "spec": {
        "containers": [
            {"name": "one", "image": "a", "env": [{"name": "K", "value": "1"}, {"name": "L", "value": "2"}]},
            {"name": "two", "image": "b", "ports": [{"containerPort": 80, "name": "http"}]},
        ],
        "tolerations": [{"key": "k"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}


@pytest.mark.parametrize(
    ("patch", "path", "expected"),
    [
        pytest.param({"metadata": {"labels": {"a": None}}}, ("metadata", "labels"), {"b": "2"}, id="null deletes"),
        pytest.param(
            {"spec": {"containers": [{"name": "two", "image": "c"}]}},
            ("spec", "containers", 1),
            {"name": "two", "image": "c", "ports": [{"containerPort": 80, "name": "http"}]},
            id="containers merge by name",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "one", "env": [{"name": "L", "value": "9"}]}]}},
            ("spec", "containers", 0, "env"),
            [{"name": "K", "value": "1"}, {"name": "L", "value": "9"}],
            id="env merges by name",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "one", "$patch": "delete"}]}},
            ("spec", "containers", 0, "name"),
            "two",
            id="element deleted",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "two", "ports": [{"containerPort": 81}]}]}},
            ("spec", "containers", 1, "ports"),
            [{"containerPort": 80, "name": "http"}, {"containerPort": 81}],
            id="ports merge by containerPort",
        ),
        pytest.param({"spec": {"tolerations": [{"key": "z"}]}}, ("spec", "tolerations"), [{"key": "z"}], id="atomic"),
        pytest.param({"spec": {"taints": [{"key": "t"}]}}, ("spec", "taints"), [{"key": "t"}], id="taints atomic"),
        pytest.param({"metadata": {"finalizers": ["z"]}}, ("metadata", "finalizers"), ["x/y", "z"], id="set"),
        pytest.param(
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/y"]}}, ("metadata", "finalizers"), [], id="set-"
        ),
        pytest.param(
            {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}},
            ("spec", "volumes"),
            [{"name": "v", "hostPath": {"path": "/"}}],
            id="retain keys",
        ),
        pytest.param({"metadata": {"$patch": "replace", "name": "q"}}, ("metadata",), {"name": "q"}, id="replace map"),
        pytest.param(
            {"spec": {"containers": [{"$patch": "replace"}, {"name": "new"}]}},
            ("spec", "containers"),
            [{"name": "new"}],
            id="replace list",
        ),
        pytest.param(
            {"spec": {"$setElementOrder/containers": [{"name": "two"}, {"name": "one"}]}},
            ("spec", "containers", 0, "name"),
            "two",
            id="order",
        ),
    ],
)
def test_strategic_merge(patch, path, expected):
    before = repr(POD)
    value = strategic_merge_patch(POD, patch)
    for part in path:
        value = value[part]
    assert value == expected
    assert repr(POD) == before


def test_merge_patch_replaces_lists_and_deletes_nulls():
    patched = merge_patch({"a": [1, 2], "b": {"c": 1, "d": 2}}, {"a": [3], "b": {"c": None}, "e": {"f": None}})
    assert patched == {"a": [3], "b": {"d": 2}, "e": {}}


def test_apply_merges_maps_and_keyed_lists():
    applied = {"spec": {"containers": [{"name": "one", "image": "z"}]}, "metadata": {"labels": {"c": "3"}}}
    merged = apply_merge(POD, applied)
    assert [one["image"] for one in merged["spec"]["containers"]] == ["z", "b"]
    assert merged["metadata"]["labels"] == {"a": "1", "b": "2", "c": "3"}


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3], "b": {"x/y": 1}}),
        ([{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1, 2], "b": {"x/y": 1}}),
        ([{"op": "remove", "path": "/a/1"}], {"a": [1], "b": {"x/y": 1}}),
        ([{"op": "replace", "path": "/b/x~1y", "value": 2}], {"a": [1, 2], "b": {"x/y": 2}}),
        ([{"op": "test", "path": "/a/0", "value": 1}, {"op": "move", "from": "/a", "path": "/c"}],
         {"b": {"x/y": 1}, "c": [1, 2]}),
        ([{"op": "copy", "from": "/a", "path": "/d"}], {"a": [1, 2], "b": {"x/y": 1}, "d": [1, 2]}),
    ],
)  # fmt: skip
def test_json_patch(operations, expected):
    assert json_patch({"a": [1, 2], "b": {"x/y": 1}}, operations) == expected


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([{"op": "test", "path": "/a", "value": 2}], 422),
        ([{"op": "remove", "path": "/z"}], 422),
        ([{"op": "replace", "path": "/z", "value": 1}], 422),
        ([{"op": "frob", "path": "/a"}], 400),
        ({"op": "add"}, 400),
        ([{"op": "add", "path": "a", "value": 1}], 400),
        ([{"op": "add", "path": 5, "value": 1}], 400),
        ([{"op": ["add"], "path": "/a", "value": 1}], 400),
        ([{"op": "add", "path": "/b"}], 400),
        ([{"op": "copy", "path": "/b"}], 400),
        ([{"op": "copy", "path": "/b", "from": 5}], 400),
        ([5], 400),
        ([{"op": "test", "path": "/a", "value": True}], 422),
        ([{"op": "remove", "path": ""}], 422),
        ([{"op": "add", "path": "/c/\u00b2", "value": 1}], 422),
        ([{"op": "add", "path": "/c/-1", "value": 1}], 422),
        ([{"op": "add", "path": "/a/b", "value": 1}], 422),
        ([{"op": "move", "from": "/c", "path": "/c/0"}], 422),
        ([{"op": "test", "path": "/a", "value": 1}] * 10_001, 413),
    ],
)
def test_json_patches_that_do_not_apply(operations, code):
    with pytest.raises(ApiError) as refused:
        json_patch({"a": 1, "c": [1]}, operations)
    assert refused.value.code == code


def test_copies_of_copies_are_bounded():
    doubling = [{"op": "copy", "from": "/a", "path": f"/a/{at}"} for at in range(40)]
    with pytest.raises(ApiError, match="copy operations") as refused:
        json_patch({"a": {"text": "x" * 100}}, doubling)
    assert refused.value.code == 413


def test_the_table_of_merge_keys_names_fields_that_exist():
    lists = {
        (name, element)
        for model in dir(models)
        if model.startswith("V1")
        for name, type_ in fields_of(model).items()
        if type_.name == "list" and type_.of is not None
        for element in fields_of(type_.of.name)
    }
    keys = [*MERGE_KEYS.items(), *(("ports", key) for key in PORT_KEYS)]
    assert [pair for pair in keys if pair not in lists] == []
