"""What Koordinator's annotation withholds of a node."""

import json

import msgspec
import pytest

from poseidon_py.describe.node import describe_node, node_key
from poseidon_py.kube.objects import InvalidField, Node
from tests.poseidon_py.builders import node_json

KEY = "node.koordinator.sh/reservation"
GIB = 2**30


def node(annotation=None):
    body = node_json("n")
    body["status"]["allocatable"] = {"cpu": "16", "memory": "64Gi", "pods": "110", "kubernetes.io/batch-cpu": "4000"}
    if annotation is not None:
        body["metadata"]["annotations"] = {KEY: annotation}
    return msgspec.json.decode(json.dumps(body), type=Node)


@pytest.mark.parametrize(
    ("annotation", "cpu", "memory"),
    [
        pytest.param(None, 16000, 64, id="none"),
        pytest.param("", 16000, 64, id="empty"),
        pytest.param('{"resources": {"cpu": "1500m", "memory": "4Gi"}}', 14500, 60, id="amounts"),
        pytest.param('{"resources": {"cpu": 20}}', 0, 64, id="more than there is"),
        pytest.param('{"resources": {"cpu": "9"}, "reservedCPUs": "0-3, 3,8"}', 11000, 64, id="processors come first"),
        pytest.param('{"resources": {"gpu": "1", "kubernetes.io/batch-cpu": "1"}}', 16000, 64, id="others"),
        pytest.param('{"reservedCPUs": "0-3", "applyPolicy": "ReservedCPUsOnly"}', 16000, 64, id="binding only"),
        pytest.param('{"reservedCPUs": "0-3", "applyPolicy": "Default"}', 12000, 64, id="by default"),
    ],
)
def test_what_is_left_for_pods(annotation, cpu, memory):
    found = describe_node(node(annotation), "id").allocatable
    assert dict(found) == {"cpu": cpu, "memory": memory * GIB, "pods": 110, "kubernetes.io/batch-cpu": 4000}
    assert (node_key(node(annotation)) == node_key(node())) is (annotation is None)


@pytest.mark.parametrize(
    ("annotation", "path"),
    [
        ("{", ""),
        ('{"resources": {"cpu": "much"}}', ".resources[cpu]: 'much' is not valid; give a quantity like 2 or 4Gi"),
        ('{"reservedCPUs": "0-"}', ".reservedCPUs: "),
        ('{"reservedCPUs": "a"}', ".reservedCPUs: 'a' is not valid; give a list like 0-3,8"),
        ('{"reservedCPUs": "0-99999999999"}', ".reservedCPUs: "),
    ],
)
def test_what_cannot_be_read_is_named(annotation, path):
    with pytest.raises(InvalidField) as error:
        describe_node(node(annotation), "id")
    assert str(error.value).startswith(f"metadata.annotations[{KEY}]{path}")
