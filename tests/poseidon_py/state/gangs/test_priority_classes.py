"""spec.priorityClassName of pod groups whose class no API server resolves: Volcano's and KAI's."""

import pytest

from poseidon_py.state.gangs.by_pod_group import KAI, PRIORITY_CLASSES, VOLCANO
from tests.poseidon_py.state.gangs.builders import owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig

GROUPS = pytest.mark.parametrize(
    ("resource", "annotation"),
    [
        pytest.param(VOLCANO, "scheduling.k8s.io/group-name", id="Volcano"),
        pytest.param(KAI, "pod-group-name", id="KAI"),
    ],
)


def a_class(name, value):
    return owner_or_group(PRIORITY_CLASSES, name, namespace="", value=value)


@GROUPS
def test_the_class_gives_all_pods_their_priority(resource, annotation):
    """Volcano: pkg/scheduler/cache/event_handlers.go sets the job's priority by the PodGroup's class."""
    rig = Rig()
    rig.put(PRIORITY_CLASSES, a_class("high", 70))
    rig.put(resource, owner_or_group(resource, spec={"minMember": 1, "priorityClassName": "high"}))
    rig.pod("a", annotations={annotation: "g"}, priority=3)
    assert rig.known("a").gang.priority == 70
    rig.put(resource, owner_or_group(resource, spec={"minMember": 1}))
    assert rig.known("a").gang.priority is None


@GROUPS
def test_a_class_that_does_not_exist_is_said_until_it_does(resource, annotation):
    rig = Rig()
    rig.put(resource, owner_or_group(resource, spec={"minMember": 1, "priorityClassName": "high"}))
    rig.pod("a", annotations={annotation: "g"})
    assert rig.gang("a") == (
        'pod group "ns/g": spec.priorityClassName: PriorityClass high does not exist; create it or name another'
    )
    rig.put(PRIORITY_CLASSES, a_class("high", 70))
    assert (rig.gang("a"), rig.known("a").gang.priority) == ((1, "ns/g"), 70)


def test_a_group_with_a_wish_that_cannot_be_kept_waits_until_it_is_gone():
    """Volcano's examples with networkTopology: placed anywhere, they would run against it."""
    rig = Rig()
    rig.put(VOLCANO, owner_or_group(VOLCANO, spec={"minMember": 1, "networkTopology": {"mode": "hard"}}))
    rig.pod("a", annotations={"scheduling.k8s.io/group-name": "g"})
    assert str(rig.gang("a")).startswith(
        'pod group "ns/g": spec.networkTopology.mode: tiers of HyperNodes are not read, so a hard network topology'
    )
    rig.put(VOLCANO, owner_or_group(VOLCANO, spec={"minMember": 1, "networkTopology": {"mode": "soft"}}))
    assert rig.gang("a") == (1, "ns/g")
