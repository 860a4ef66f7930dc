"""Workloads of live benchmarks: the constraints of their pods, as the bridge describes them."""

import msgspec
import pytest

from benchmarks.loads.workloads import GANG, demands
from poseidon_py.describe.task_classes import Classes
from poseidon_py.kube.objects import Pod

CONTAINER = {"name": "main", "image": "i"}


def described(workload):
    """The class of a pod, as described by the bridge."""
    labels, spec = demands(workload, "a", 0)
    metadata = {"name": "p", "namespace": "default", "uid": "u", "labels": labels}
    raw = msgspec.json.encode({"metadata": metadata, "spec": {"containers": [CONTAINER], **spec}, "status": {}})
    classes = Classes(None)
    return classes.get(classes.of(msgspec.json.decode(raw, type=Pod)))


@pytest.mark.parametrize(
    ("workload", "field"),
    [
        ("node-affinity", "node_affinity"),
        ("affinity", "affinity"),
        ("anti-affinity", "anti_affinity"),
        ("spread", "spread"),
    ],
)
def test_a_workload_has_the_constraints_of_its_name(workload, field):
    assert getattr(described(workload), field)
    assert described(workload) != described("basic")


def test_groups_have_their_size():
    groups = [demands("gang", "a", number)[0] for number in range(3 * GANG)]
    names = [labels["pod-group.scheduling.x-k8s.io/name"] for labels in groups]
    assert [names.count(name) for name in sorted(set(names))] == [GANG] * 3
    assert {labels["pod-group.scheduling.x-k8s.io/min-available"] for labels in groups} == {str(GANG)}


def test_an_unknown_workload_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown workload 'x'; choose one of: basic, .*gang"):
        demands("x", "a", 0)
