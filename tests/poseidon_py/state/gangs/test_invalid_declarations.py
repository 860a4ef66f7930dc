"""Invalid declarations of gangs: the message names the field, the value and the remedy."""

import pytest

from poseidon_py.state.gangs.by_annotation import BatchAnnotations, Kueue, LeaderWorkerSet, LightLabels, YuniKorn
from poseidon_py.state.gangs.by_owner import Own, Percent
from poseidon_py.state.gangs.by_pod_group import (
    COSCHEDULING,
    KAI,
    NATIVE,
    VOLCANO,
    Coscheduling,
    Kai,
    Native,
    Volcano,
)
from poseidon_py.state.gangs.model import Invalid, Owner, number_of
from tests.poseidon_py.state.gangs.builders import JOB, Objects, hints, owner_or_group

LIGHT, MIN = "pod-group.scheduling.x-k8s.io/name", "pod-group.scheduling.x-k8s.io/min-available"
NAME, NUMBER = "scheduling.k8s.io/group-name", "scheduling.k8s.io/group-pod-num"
REQUIRED, PREFERRED = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"
KUEUE, COUNT = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"
TASK, TASKS = "yunikorn.apache.org/task-group-name", "yunikorn.apache.org/task-groups"
APP = "yunikorn.apache.org/app-id"
LWS = "leaderworkerset.sigs.k8s.io"
GROUPS = '[{"name": "driver", "minMember": 1}, {"name": "executor", "minMember": 4, "minResource": {"cpu": 1}}]'
RS = Owner("ReplicaSet", "r", "uid-r", "apps")
STS = Owner("StatefulSet", "t", "uid-t", "apps")
DEPLOYMENT = Owner("Deployment", "d", "uid-d", "apps")


BROKEN = [
    (LightLabels, {LIGHT: "g"}, {}, {}, f"label {MIN}: is missing; give the number of pods that the group needs"),
    (
        LightLabels,
        {LIGHT: "g", MIN: "two"},
        {},
        {},
        f"label {MIN}: 'two' is not valid; give a whole number from 1 to 2147483647",
    ),
    (
        LightLabels,
        {LIGHT: "g", MIN: "0"},
        {},
        {},
        f"label {MIN}: '0' is not valid; give a whole number from 1 to 2147483647",
    ),
    (
        BatchAnnotations,
        {},
        {NAME: "g", NUMBER: "-1"},
        {},
        f"annotation {NUMBER}: '-1' is not valid; give a whole number from 0 to 2147483647",
    ),
    (Kueue, {KUEUE: "g"}, {}, {}, f"annotation {COUNT}: is missing; give the number of pods of the group"),
    (
        Kueue,
        {KUEUE: "g"},
        {COUNT: "1", REQUIRED: "rack", PREFERRED: "rack"},
        {},
        f"annotation {PREFERRED}: {REQUIRED} is set as well; set one of them",
    ),
    (
        LeaderWorkerSet,
        {},
        {f"{LWS}/size": "3"},
        {},
        f"label {LWS}/group-index: is missing, and so is {LWS}/group-key; set one of them",
    ),
    (YuniKorn, {}, {TASK: "x"}, {}, f"label {APP}: is missing; give the application"),
    (YuniKorn, {APP: "a"}, {TASK: "x", TASKS: "{"}, {}, f"annotation {TASKS}: "),
    (YuniKorn, {APP: "a"}, {TASK: "x", TASKS: '[{"name": "x", "y": ' + "[" * 5000}, {}, f"annotation {TASKS}: "),
    (
        YuniKorn,
        {APP: "a"},
        {TASK: "x", TASKS: GROUPS},
        {},
        "'x' is not among the task groups driver, executor; give one of them",
    ),
    (
        Percent,
        {},
        {"firmament-gang-scheduling": "50"},
        {},
        "the pod has no owner; declare its gang with poseidon.io/gang instead",
    ),
    (
        Percent,
        {},
        {"firmament-gang-scheduling": "101"},
        {"owner": JOB},
        "'101' is not valid; give a percentage from 1 to 100",
    ),
    (Own, {}, {"poseidon.io/gang": "2"}, {}, "the pod has no owner; name its gang with poseidon.io/gang-name"),
    (
        Own,
        {},
        {"poseidon.io/gang": "all"},
        {"owner": Owner("X", "x", "u")},
        "'all' needs an owner with a known number of pods; give a number",
    ),
    (
        Own,
        {},
        {"poseidon.io/gang": "some"},
        {"owner": JOB},
        "'some' is not valid; give all, none or a whole number from 1 to 2147483647",
    ),
    (
        Own,
        {},
        {"poseidon.io/gang": "2", "poseidon.io/gang-max": "0", "poseidon.io/gang-name": "x"},
        {},
        "annotation poseidon.io/gang-max: '0' is not valid; give a whole number from 1 to 2147483647",
    ),
]


@pytest.mark.parametrize(("convention", "labels", "annotations", "extra", "text"), BROKEN)
def test_an_invalid_declaration_names_field_value_and_remedy(convention, labels, annotations, extra, text):
    with pytest.raises(Invalid) as caught:
        convention().read(hints(labels, annotations, **extra), Objects())
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("resource", "convention", "hint", "spec", "text"),
    [
        (
            COSCHEDULING,
            Coscheduling,
            {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
            {"minMember": "3"},
            "pod group \"ns/g\": spec.minMember: '3' is not valid; give a whole number from 1 to 2147483647",
        ),
        (
            VOLCANO,
            Volcano,
            {"annotations": {NAME: "g"}},
            {"minTaskMember": [1]},
            'pod group "ns/g": spec.minTaskMember: [1] is not valid; give a mapping',
        ),
        (
            VOLCANO,
            Volcano,
            {"annotations": {NAME: "g"}},
            {"minResources": {"cpu": "lots"}},
            "pod group \"ns/g\": spec.minResources[cpu]: 'lots' is not valid; give a quantity of 0 or more",
        ),
        (
            COSCHEDULING,
            Coscheduling,
            {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
            {"minResources": {"cpu": -1}},
            'pod group "ns/g": spec.minResources[cpu]: -1 is not valid; give a quantity of 0 or more',
        ),
        (
            KAI,
            Kai,
            {"annotations": {"pod-group-name": "g"}},
            {"subGroups": [{}]},
            "spec.subGroups: [{}] is not valid; give a list in which each item has a name",
        ),
        (
            NATIVE,
            Native,
            {"group": "g"},
            {"schedulingPolicy": {"x": {}}},
            "spec.schedulingPolicy: x is not valid; give gang or basic",
        ),
        (
            NATIVE,
            Native,
            {"group": "g"},
            {"schedulingPolicy": {"gang": {}}},
            "gang.minCount: is missing; give a whole number from 1",
        ),
        (
            NATIVE,
            Native,
            {"group": "g"},
            {"schedulingPolicy": {"basic": {}}, "priorityClassName": "c", "priority": "high"},
            "spec.priority: 'high' is not valid; give a whole number from -2147483648",
        ),
    ],
)
def test_an_invalid_object_is_named_with_field_value_and_remedy(resource, convention, hint, spec, text):
    with pytest.raises(Invalid) as caught:
        convention().read(hints(**hint), Objects((resource, owner_or_group(resource, spec=spec))))
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "is missing"),
        (True, "True is not valid"),
        (2**31, "2147483648 is not valid"),
        ("9" * 5000, "'99999999999999999999'... is not valid"),
        pytest.param(10**5000, "a number of too many digits is not valid", id="5001 digits"),
        ([1] * 100, f"[{'1, ' * 13}... is not valid"),
    ],
)
def test_a_number_in_an_object_is_quoted_briefly(value, found):
    with pytest.raises(Invalid) as caught:
        number_of(value, "spec.minMember", 1)
    assert str(caught.value) == f"spec.minMember: {found}; give a whole number from 1 to 2147483647"
