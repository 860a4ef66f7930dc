"""Bandwidth requests of pods and capacities of links, as the bridge sends them."""

import json
from typing import Any

import msgspec
import pytest

from poseidon_py.config import loading
from poseidon_py.config.configuration_file import key_of as setting_of
from poseidon_py.config.conversion import OptionError
from poseidon_py.describe.bandwidth import Bandwidth
from poseidon_py.describe.node import describe_node, node_key
from poseidon_py.describe.pod_class import describe_class, key_of
from poseidon_py.describe.task_classes import Classes
from poseidon_py.kube.objects import InvalidField, Node, Pod
from tests.poseidon_py.builders import node_json, pod, pod_json

COUNTED = Bandwidth(counted=True)
IN, OUT = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
OWN_IN, OWN_OUT = "poseidon.io/ingress-bandwidth", "poseidon.io/egress-bandwidth"
M, G = 10**6, 10**9


def annotated(annotations: dict[str, str], **fields: Any) -> Pod:
    body = pod_json(**fields)
    body["metadata"]["annotations"] = annotations
    return msgspec.json.decode(json.dumps(body), type=Pod)


def a_node(*, annotations: dict[str, str] | None = None, **fields: Any) -> Node:
    body = node_json(**fields)
    body["metadata"]["annotations"] = annotations or {}
    return msgspec.json.decode(json.dumps(body), type=Node)


def links(amounts):
    return {name.removeprefix("bandwidth."): n for name, n in amounts.items() if name.startswith("bandwidth.")}


@pytest.mark.parametrize(
    ("annotations", "extended", "requested"),
    [
        pytest.param({}, {}, {}, id="nothing"),
        pytest.param({IN: "10M"}, {}, {"ingress": 10 * M}, id="ingress"),
        pytest.param({IN: "10M", OUT: "1G"}, {}, {"ingress": 10 * M, "egress": G}, id="both"),
        pytest.param({IN: "1k", OUT: "1P"}, {}, {"ingress": 1000, "egress": 10**15}, id="the-bounds"),
        pytest.param({IN: "1Mi"}, {}, {"ingress": 2**20}, id="binary"),
        pytest.param({IN: "1000500m"}, {}, {"ingress": 1001}, id="rounds-up"),
        pytest.param({}, {OWN_OUT: "2G"}, {"egress": 2 * G}, id="extended-resource"),
        pytest.param({OUT: "3G"}, {OWN_OUT: "2G"}, {"egress": 3 * G}, id="the-larger-is-annotated"),
        pytest.param({OUT: "1G"}, {OWN_OUT: "2G"}, {"egress": 2 * G}, id="the-larger-is-requested"),
    ],
)
def test_bandwidth_requests_of_a_pod(annotations, extended, requested):
    message = describe_class(annotated(annotations, requests={"cpu": "1", **extended}), bandwidth=COUNTED)
    assert links(message.requests) == requested
    assert links(describe_class(annotated(annotations, requests={"cpu": "1", **extended})).requests) == {}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("999", id="below-1k"),
        pytest.param("1000001G", id="above-1P"),
        pytest.param("-5M", id="negative"),
        pytest.param("fast", id="no-quantity"),
        pytest.param("", id="empty"),
    ],
)
def test_an_invalid_annotation(text):
    """It blocks a pending pod, with an event; of a running pod the other requests still count."""
    with pytest.raises(InvalidField, match=r"kubernetes.io/egress-bandwidth"):
        describe_class(annotated({OUT: text}), bandwidth=COUNTED)
    assert describe_class(annotated({OUT: text})).requests["cpu"] == 100
    running = describe_class(annotated({OUT: text, IN: "5M"}, node="n"), bandwidth=COUNTED)
    assert running.requests["cpu"] == 100
    assert links(running.requests) == {"ingress": 5 * M}


def test_the_key_depends_on_bandwidth_only():
    one, other = annotated({IN: "1M", "x": "1"}), annotated({IN: "1M", "x": "2"})
    assert key_of(one, COUNTED) == key_of(other, COUNTED)
    assert key_of(one, COUNTED) != key_of(annotated({IN: "2M"}), COUNTED)
    assert key_of(one) == key_of(annotated({IN: "2M"}))
    classes = Classes()
    classes.bandwidth = COUNTED
    assert classes.of(one) == classes.of(other) != classes.of(annotated({}))
    assert Classes().of(one) == Classes().of(pod())


@pytest.mark.parametrize(
    ("annotations", "labels", "allocatable", "default", "offered"),
    [
        pytest.param({}, {}, {}, None, {}, id="no-limit"),
        pytest.param({}, {}, {}, 10 * G, {"ingress": 10 * G, "egress": 10 * G}, id="the-default"),
        pytest.param({OWN_IN: "1G"}, {}, {}, None, {"ingress": G}, id="annotation"),
        pytest.param({}, {OWN_OUT: "25G"}, {}, 10 * G, {"ingress": 10 * G, "egress": 25 * G}, id="label"),
        pytest.param({}, {}, {OWN_OUT: "5G"}, None, {"egress": 5 * G}, id="extended-resource"),
        pytest.param({OWN_OUT: "1G"}, {OWN_OUT: "2G"}, {OWN_OUT: "3G"}, None, {"egress": G}, id="annotation-first"),
        pytest.param({}, {OWN_OUT: "2G"}, {OWN_OUT: "3G"}, None, {"egress": 2 * G}, id="then-label"),
        pytest.param({OWN_OUT: "0"}, {}, {}, 10 * G, {"ingress": 10 * G, "egress": 0}, id="none-at-all"),
        pytest.param({OWN_OUT: "1500m"}, {}, {}, None, {"egress": 1}, id="rounds-down"),
    ],
)
def test_capacities_of_links(annotations, labels, allocatable, default, offered):
    node = a_node(annotations=annotations, labels=labels, allocatable={"cpu": "4", **allocatable})
    assert links(describe_node(node, "id", Bandwidth(True, default)).allocatable) == offered
    assert links(describe_node(node, "id", Bandwidth(False, default)).allocatable) == {}


def test_an_invalid_link_names_the_field():
    with pytest.raises(
        InvalidField, match=r"metadata.annotations\[poseidon.io/egress-bandwidth\]: 'ten' is not a quantity"
    ):
        describe_node(a_node(annotations={OWN_OUT: "ten"}), "id", COUNTED)
    with pytest.raises(InvalidField, match=r"metadata.labels\[poseidon.io/ingress-bandwidth\]: '2000T' is not within"):
        describe_node(a_node(labels={OWN_IN: "2000T"}), "id", COUNTED)


def test_a_changed_link_is_sent_again():
    before, after = a_node(annotations={OWN_OUT: "1G"}), a_node(annotations={OWN_OUT: "2G"})
    assert node_key(before, COUNTED) != node_key(after, COUNTED)
    assert node_key(before) == node_key(after)


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        pytest.param(
            {"bandwidth": "maybe"},
            "bandwidth in the configuration is 'maybe'; give one of on, off, auto",
            id="unknown-mode",
        ),
        pytest.param({"link-bandwidth": "ten"}, "link-bandwidth: 'ten' is not a quantity", id="no-quantity"),
        pytest.param({"link-bandwidth": "-1G"}, "link-bandwidth: '-1G' is not within", id="negative"),
    ],
)
def test_invalid_settings(config, complaint):
    with pytest.raises(OptionError, match=complaint):
        loading.settings({setting_of(key, "test"): value for key, value in config.items()}, {})


def test_the_default_link_is_a_quantity():
    assert loading.link_bandwidth(loading.settings({"link_bandwidth": "10G"}, {})) == 10 * G
    assert loading.link_bandwidth(loading.settings({}, {})) is None
