"""What PodGroups of Kubernetes declare, by version."""

import pytest

from poseidon_py.state.gangs.by_pod_group import NATIVE, Native
from tests.poseidon_py.state.gangs.builders import Objects, hints, owner_or_group

GANG_OF_2: dict[str, object] = {"schedulingPolicy": {"gang": {"minCount": 2}}}
SERVED: dict[
    str, dict[str, object]
] = {  # what the API server of a version answers for a gang that is disrupted as a whole
    "v1alpha2": {
        "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
        "disruptionMode": "PodGroup",
    },
    "v1alpha3": {"workloadRef": {"workloadName": "w", "templateName": "t"}, "disruptionMode": {"all": {}}},
    "v1beta1": {
        "parentCompositePodGroupName": None,
        "workloadRef": {"workloadName": "w", "templateName": "t"},
        "disruptionMode": {"all": {}},
        "preemptionPolicy": "Never",
    },
}


@pytest.mark.parametrize("version", SERVED)
def test_the_pod_group_of_each_version_of_kubernetes(version):
    spec = {**GANG_OF_2, "priorityClassName": "x", "priority": 1000, **SERVED[version]}
    declaration = Native().read(hints(group="g"), Objects((NATIVE, owner_or_group(NATIVE, spec=spec))))
    assert declaration is not None
    found = (declaration.minimum, declaration.priority, declaration.disrupted_whole, declaration.never_preempts)
    assert found == (2, 1000, True, version == "v1beta1")


@pytest.mark.parametrize("policy", [None, "PreemptLowerPriority"])
@pytest.mark.parametrize("priority", [-(2**31), -1, 0, None])
def test_a_pod_group_may_have_no_priority_and_may_preempt(priority, policy):
    spec = {**GANG_OF_2, "priorityClassName": "x", "priority": priority, "preemptionPolicy": policy}
    declaration = Native().read(hints(group="g"), Objects((NATIVE, owner_or_group(NATIVE, spec=spec))))
    assert declaration is not None
    assert (declaration.priority, declaration.never_preempts) == (priority, False)


@pytest.mark.parametrize("priority", [0, 7, None])
def test_the_priority_of_a_pod_group_without_a_class_is_nobodys_declaration(priority):
    """The admission of PodGroups sets 0 (plugin/pkg/admission/priority, admitPodGroup), so that the PodGroups that the
    Job controller makes have it. kube-scheduler 1.36 compares the priorities of pods (isPreemptionAllowed of the
    plugin DefaultPreemption): a pod of 50 evicts no pod of 100 of such a group."""
    spec = {**GANG_OF_2, "priority": priority}
    declaration = Native().read(hints(group="g"), Objects((NATIVE, owner_or_group(NATIVE, spec=spec))))
    assert declaration is not None
    assert declaration.priority is None


@pytest.mark.parametrize(
    ("mode", "whole"),
    [
        (None, False),
        ("Pod", False),
        ("PodGroup", True),
        # as later versions call it
        ("Single", False),
        ("All", True),
        ({"all": {}}, True),
        ({"single": {}}, False),
        (7, False),
    ],
)
def test_how_a_pod_group_may_be_disrupted(mode, whole):
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}, "disruptionMode": mode}
    declaration = Native().read(hints(group="g"), Objects((NATIVE, owner_or_group(NATIVE, spec=spec))))
    assert declaration is not None
    assert declaration.disrupted_whole is whole
