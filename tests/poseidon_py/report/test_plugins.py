"""The names of kube-scheduler's plug-ins for reasons."""

from typing import Any

import pytest

from poseidon_py.metrics.table import TABLE
from poseidon_py.report import plugins
from poseidon_py.report.plugins import plugins_of
from protos.gen import flow_pb2

_REASON: Any = flow_pb2.Reason


def test_each_reason_has_a_plug_in_that_the_metric_lists():
    listed = {*TABLE["scheduler_unschedulable_pods"].labels[0].values}
    kinds = [kind for kind in _REASON.Kind.values() if kind != _REASON.KIND_UNSPECIFIED]
    found = {kind: plugins_of([_REASON(kind=kind)]) for kind in kinds}
    assert {name for names in found.values() for name in names} <= listed
    assert [_REASON.Kind.Name(kind) for kind, names in found.items() if names == ("Other",)] == []
    assert {*plugins.INVALID, *plugins.VOLUMES, *plugins.GANG} <= listed


@pytest.mark.parametrize(
    ("kind", "detail", "plugin"),
    [
        (_REASON.INSUFFICIENT_RESOURCE, "cpu", "NodeResourcesFit"),
        (_REASON.TOKEN_TAKEN, "TCP:80", "NodePorts"),
        (_REASON.TOKEN_TAKEN, "disk", "VolumeRestrictions"),
        (_REASON.OVER_QUOTA, "team", "Queue"),
    ],
)
def test_the_plug_in_of_a_reason(kind, detail, plugin):
    assert plugins_of([flow_pb2.Reason(kind=kind, detail=detail)] * 2) == (plugin,)
