"""Label and field selectors."""

from __future__ import annotations

import pytest

from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import NODES, PODS
from benchmarks.cluster.store.selectors import from_structured, parse_fields, parse_labels


@pytest.mark.parametrize(
    ("text", "labels", "holds"),
    [
        ("app=web", {"app": "web"}, True),
        ("app==web", {"app": "db"}, False),
        ("app!=web", {}, True),
        ("app", {"app": ""}, True),
        ("!app", {"app": "x"}, False),
        ("app in (web, db)", {"app": "db"}, True),
        ("app notin (web,db)", {"app": "db"}, False),
        ("app notin (web,db)", {}, True),
        ("app=web,tier in (a,b),!x", {"app": "web", "tier": "b"}, True),
        ("app=web,tier in (a,b),!x", {"app": "web", "tier": "b", "x": "1"}, False),
        ("example.com/n>3", {"example.com/n": "4"}, True),
        ("n<3", {"n": "x"}, False),
        ("app=", {"app": ""}, True),
    ],
)
def test_label_selectors(text, labels, holds):
    test = parse_labels(text)
    assert test is not None
    assert test(labels) is holds


@pytest.mark.parametrize("text", ["app in (a", "=x", "a b", "app=we b", "app in a,b"])
def test_bad_label_selectors_are_a_400(text):
    with pytest.raises(ApiError) as refused:
        parse_labels(text)
    assert refused.value.code == 400


def test_structured_selectors():
    assert not from_structured(None)({"a": "b"})
    assert from_structured({})({"a": "b"})
    both = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}
    assert from_structured(both)({"a": "b", "c": "d"})
    assert not from_structured(both)({"a": "b"})


def test_fields_that_are_not_indexed_are_a_400():
    assert len(parse_fields(PODS, "spec.nodeName!=,status.phase=Running")) == 2
    assert parse_fields(NODES, "metadata.name=a")[0].position == -1
    with pytest.raises(ApiError, match=r"field label not supported: spec\.foo"):
        parse_fields(PODS, "spec.foo=1")
