"""Gangs that PodGroups of Kubernetes declare: their priority, and how they may be disrupted."""

import pytest

from poseidon_py.state.gangs.by_pod_group import NATIVE
from tests.poseidon_py.state.gangs.builders import owner_or_group, pod
from tests.poseidon_py.state.gangs.rig import Rig


def native(mode, **spec):
    return owner_or_group(NATIVE, spec={"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": mode, **spec})


@pytest.mark.parametrize(
    ("of_group", "problem"),
    [
        (10, ""),
        (7, "its members have priority 10, but the pod group has 7, which applies"),
        (0, "its members have priority 10, but the pod group has 0, which applies"),
        (None, ""),
    ],
)
def test_members_should_have_the_priority_of_their_pod_group(of_group, problem):
    rig = Rig((NATIVE, native(None, priorityClassName="c", priority=of_group)))
    for name in ("a", "b"):
        rig.pod(name, priority=10, spec={"schedulingGroup": {"podGroupName": "g"}})
    rig.message("a")
    assert rig.known("a").gang.priority == of_group
    assert {text for _, text in rig.invalid} == ({f"pod group ns/g: {problem}"} if problem else set())


@pytest.mark.parametrize(
    ("mode", "leave", "broken"),
    [
        ("PodGroup", ("evicted",), True),
        ("PodGroup", ("evicted unseen",), True),
        ("PodGroup", ("ended",), False),
        ("Pod", ("evicted",), False),
        ("PodGroup", ("evicted", "replaced"), False),
        ("PodGroup", ("evicted", "replaced", "ended later"), False),
        ("PodGroup", ("evicted", "all gone"), False),
    ],
)
def test_a_gang_that_is_disrupted_as_a_whole_is_broken_by_an_eviction(mode, leave, broken):
    rig = Rig((NATIVE, native(mode)))
    group = {"spec": {"schedulingGroup": {"podGroupName": "g"}}}
    for name in ("a", "b"):
        rig.pod(name, node="n", **group)
    rig.halves.clear()
    found = rig.registry.group_of(rig.known("a"))
    assert found is not None
    assert not found.broken
    if "evicted" in leave:
        rig.pod("b", node="n", deleting=True, **group)
    if "evicted unseen" in leave:  # its end comes before anybody has looked at the mark
        rig.store.observe_pod(pod("b", node="n", deleting=True, **group))
    rig.gone("b")
    if "replaced" in leave:
        rig.pod("c", node="n", **group)
    if "ended later" in leave:  # which is no disruption
        rig.gone("c")
    if "all gone" in leave:
        rig.gone("a")
    assert found.broken is broken
    assert (rig.halves != []) is (mode == "PodGroup" and leave[0].startswith("evicted"))
