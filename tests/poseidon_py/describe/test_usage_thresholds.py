"""Koordinator's thresholds of measured usage, from which on a node takes no pods."""

import json

import msgspec
import pytest

from poseidon_py.describe.annotations.usage_thresholds import ANNOTATION, thresholds_of
from poseidon_py.describe.pod_class import describe_class, key_of
from poseidon_py.feed.update_rows import node_message
from poseidon_py.kube.objects import InvalidField, Node
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import node_json, pod

GIB = 2**30


def node(annotation):
    body = node_json("n")
    body["status"]["allocatable"] = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    body["metadata"]["annotations"] = {ANNOTATION: json.dumps(annotation)} if annotation is not None else {}
    return msgspec.json.decode(json.dumps(body), type=Node)


BOTH = {"usageThresholds": {"memory": 95, "cpu": 65}}


@pytest.mark.parametrize(
    ("annotation", "used", "why"),
    [
        pytest.param(None, {}, "", id="no annotation"),
        pytest.param({}, {}, "", id="no thresholds"),
        pytest.param({"usageThresholds": {"cpu": 0, "example.com/x": 5}}, {}, "", id="zero, and of nothing"),
        # 64.4% of 16 cpus is 10.304, and rounds to 64; 64.5% rounds to 65
        pytest.param(BOTH, {"cpu": 10_304, "memory": 1}, "", id="below"),
        pytest.param(BOTH, {"cpu": 10_320, "memory": 1}, "cpu usage at 65% or more", id="at"),
        pytest.param(BOTH, {"cpu": 1, "memory": 64 * GIB}, "memory usage at 95% or more", id="the other resource"),
        pytest.param(BOTH, {"cpu": 1}, "memory usage unknown", id="not measured"),
        pytest.param({"usageThresholds": {"pods": 50}}, {"cpu": 1}, "pods usage unknown", id="never measured"),
        pytest.param({"prodUsageThresholds": {"cpu": 9}}, {"cpu": 0}, "prodUsageThresholds is not read", id="prod"),
        pytest.param(
            {**BOTH, "aggregatedUsage": {"usageThresholds": {"cpu": 9}, "usageAggregationType": "p95"}},
            {"cpu": 0, "memory": 0},
            "aggregatedUsage is not read",
            id="aggregated, which would take precedence",
        ),
    ],
)
def test_when_a_node_takes_no_pods(annotation, used, why):
    store = Store(["poseidon"])
    store.observe_node(node(annotation))
    known = store.nodes["n"]
    known.used = used
    message = node_message(store, known)
    assert message is not None
    taints = [(each.key, each.value, each.effect) for each in message.taints]
    assert taints == ([(ANNOTATION, why, "NoSchedule")] if why else [])


def test_a_change_of_usage_is_a_change_of_the_description_only_across_a_threshold():
    store = Store(["poseidon"])
    store.observe_node(node(BOTH))
    known, keys = store.nodes["n"], []
    for cpu in (1000, 2000, 16_000, 15_000, 1000):
        known.used = {"cpu": cpu, "memory": 0}
        node_message(store, known)
        keys.append(known.key)
    assert [keys.index(key) for key in keys] == [0, 0, 2, 2, 0]


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        ({"usageThresholds": {"cpu": 101}}, r"usageThresholds\[cpu\].*101 is not valid; give 0 to 100"),
        ({"usageThresholds": {"cpu": "65"}}, "usage-thresholds"),
        ([], "usage-thresholds"),
    ],
)
def test_an_invalid_annotation(annotation, problem):
    with pytest.raises(InvalidField, match=problem):
        thresholds_of(node(annotation))


def test_pods_of_daemon_sets_tolerate_busy_nodes():
    one, daemon = pod("a", owner="u"), pod("b", owner="u")
    assert daemon.metadata.owners
    daemon.metadata.owners[0].kind = "DaemonSet"
    assert [toleration.key for toleration in describe_class(daemon).tolerations] == [ANNOTATION]
    assert list(describe_class(one).tolerations) == []
    assert key_of(one) != key_of(daemon)
