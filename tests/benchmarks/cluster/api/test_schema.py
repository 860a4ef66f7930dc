"""Objects with fields of the wrong type."""

from __future__ import annotations

import pytest

from benchmarks.cluster.api.schema import _type, conform, fields_of, model_of
from benchmarks.cluster.store.errors import ApiError


@pytest.mark.parametrize(
    ("kind", "obj", "place", "expected"),
    [
        ("Pod", [], "the body", "an object"),
        ("Pod", {"spec": "x"}, "field spec", "an object"),
        ("Pod", {"spec": {"containers": {}}}, "field spec.containers", "list"),
        ("Pod", {"spec": {"containers": [{}, {"name": 3}]}}, "field spec.containers[1].name", "string"),
        ("Pod", {"spec": {"containers": [None]}}, "field spec.containers[0]", "an object"),
        ("Pod", {"spec": {"hostNetwork": "yes"}}, "field spec.hostNetwork", "boolean"),
        ("Pod", {"spec": {"priority": True}}, "field spec.priority", "integer"),
        ("Pod", {"spec": {"priority": 1.5}}, "field spec.priority", "integer"),
        ("Pod", {"spec": {"priority": 2**63}}, "field spec.priority", "a 64-bit integer"),
        ("Pod", {"spec": {"overhead": {"cpu": True}}}, "field spec.overhead[cpu]", "quantity"),
        ("Pod", {"spec": {"overhead": {"cpu": None}}}, "field spec.overhead[cpu]", "quantity"),
        ("Pod", {"metadata": {"labels": {"a": 1}}}, "field metadata.labels[a]", "string"),
        ("Pod", {"metadata": {"creationTimestamp": 1}}, "field metadata.creationTimestamp", "time"),
        ("Service", {"spec": {"ports": [{"targetPort": []}]}}, "field spec.ports[0].targetPort", "number or string"),
    ],
)
def test_values_of_the_wrong_type(kind, obj, place, expected):
    with pytest.raises(ApiError) as refused:
        conform("v1", kind, obj)
    assert refused.value.code == 400
    assert refused.value.message.endswith(f" into {place}, which is {expected}")


def test_a_valid_object_is_unchanged():
    obj = {
        "metadata": {"name": "p", "labels": {"a": "b"}, "managedFields": [{"fieldsV1": {"f:x": {}}}]},
        "spec": {
            "containers": [
                {
                    "resources": {"requests": {"cpu": 1, "memory": "1Gi", "a/b": 0.5}},
                    "livenessProbe": {"httpGet": {"port": "http"}, "tcpSocket": {"port": 80}},
                }
            ],
            "priority": -(2**63),
        },
        "unknown": {"x": None},
    }
    before = repr(obj)
    conform("v1", "Pod", obj)
    assert repr(obj) == before


def test_missing_required_texts_of_conditions_are_empty():
    node = {"status": {"conditions": [{"reason": "x"}], "addresses": [{"type": "Hostname"}]}}
    conform("v1", "Node", node)
    assert node["status"] == {
        "conditions": [{"reason": "x", "type": "", "status": ""}],
        "addresses": [{"type": "Hostname", "address": ""}],
    }


def test_null_means_unset_and_a_missing_spec_is_added():
    obj = {"metadata": {"name": "p", "labels": None}, "spec": None, "unknown": None}
    conform("v1", "Pod", obj)
    assert obj == {"metadata": {"name": "p"}, "spec": {}, "unknown": None}
    data: dict[str, object] = {"data": {"a": "b"}}
    conform("v1", "ConfigMap", data)
    assert data == {"data": {"a": "b"}}


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("scheduling.k8s.io/v1alpha2", "PodGroup"),
        ("scheduling.volcano.sh/v1beta1", "PodGroup"),
        ("example.com/v1", "Pod"),
        ("batch.example.com/v1", "Job"),
        ("metrics.k8s.io/v1beta1", "NodeMetrics"),
    ],
)
def test_kinds_with_a_familiar_name_are_checked_by_metadata_only(api_version, kind):
    assert model_of(api_version, kind) is None
    obj = {"metadata": {"name": "x"}, "spec": ["anything", None]}
    conform(api_version, kind, obj)
    assert obj == {"metadata": {"name": "x"}, "spec": ["anything", None]}
    with pytest.raises(ApiError):
        conform(api_version, kind, {"metadata": {"labels": 3}})


def test_built_in_kinds_are_known_to_the_client():
    from benchmarks.cluster.store.kinds import BUILT_IN

    unknown = [kind.kind for kind in BUILT_IN if model_of(kind.api_version, kind.kind) is None]
    assert unknown == ["NodeMetrics", "PodMetrics"]
    assert "reportingController" in fields_of(model_of("events.k8s.io/v1", "Event") or "")
    assert "reportingComponent" in fields_of(model_of("v1", "Event") or "")


def test_how_clients_of_all_versions_write_types():
    for stated in ("list[V1Container]", "List[V1Container]"):
        many = _type("containers", stated)
        assert (many.name, many.of and many.of.name) == ("list", "V1Container")
    for stated in ("dict(str, list[str])", "Dict[str, List[str]]", "dict[str, list[str]]"):
        entries = _type("extra", stated)
        assert entries.name == "map"
        assert entries.of is not None
        assert (entries.of.name, entries.of.of and entries.of.of.name) == ("list", "string")
    assert fields_of("V1NoSuchThing") == {}
