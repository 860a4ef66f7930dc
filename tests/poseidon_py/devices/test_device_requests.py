"""What a claim asks for, read from all versions of the API."""

import json

import msgspec
import pytest

from poseidon_py.devices.device_requests import (
    Constraint,
    DeviceToleration,
    MissingClassError,
    requests_of,
    selectors_of,
)
from poseidon_py.devices.objects import ClaimDevices, DeviceClass, DeviceSelector, Expression
from poseidon_py.kube.objects import InvalidField
from tests.poseidon_py.devices.offers import taint


def device_class(*expressions):
    given = {"spec": {"selectors": [{"cel": {"expression": each}} for each in expressions]}}
    return msgspec.json.decode(json.dumps(given), type=DeviceClass)


CLASSES = {"gpu": device_class("of the class"), "any": DeviceClass()}


def asked(*requests, constraints=()):
    given = {"requests": list(requests), "constraints": list(constraints)}
    return requests_of(msgspec.json.decode(json.dumps(given), type=ClaimDevices), CLASSES)


def one(**exactly):
    (request,) = asked({"name": "r", "exactly": {"deviceClassName": "gpu"} | exactly}).requests
    (found,) = request.alternatives
    return found


# -- requests ---------------------------------------------------------------------------------------------------------


def test_v1beta1_has_the_fields_of_a_request_beside_its_name():
    exactly = {
        "deviceClassName": "gpu",
        "selectors": [{"cel": {"expression": "its own"}}],
        "allocationMode": "ExactCount",
        "count": 2,
        "adminAccess": True,
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "capacity": {"requests": {"memory": "1"}},
    }
    assert asked({"name": "r", **exactly}) == asked({"name": "r", "exactly": exactly})
    found = one(**exactly)
    assert found.selection.selectors == ("of the class", "its own")
    assert found.selection.tolerations == (DeviceToleration("k", "Exists", "", ""),)
    assert (found.label, found.class_name, found.number, found.admin) == ("r", "gpu", 2, True)
    assert found.capacity == (("memory", 10**9),)


def test_alternatives_are_in_their_order_and_named_after_the_request():
    subs = [{"name": "a", "deviceClassName": "gpu", "count": 2}, {"name": "b", "deviceClassName": "any"}]
    (request,) = asked({"name": "r", "firstAvailable": subs}).requests
    assert [(each.label, each.class_name, each.number) for each in request.alternatives] == [
        ("r/a", "gpu", 2),
        ("r/b", "any", 1),
    ]


@pytest.mark.parametrize(
    ("exactly", "number"),
    [({}, 1), ({"allocationMode": ""}, 1), ({"count": 3}, 3), ({"allocationMode": "All"}, 0)],
)
def test_numbers_of_devices(exactly, number):
    assert one(**exactly).number == number


def test_equal_requests_are_one_kind_whatever_the_order_of_what_has_none():
    tolerations = [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]
    capacity = {"requests": {"memory": "1Gi", "slots": 2}}
    turned = {"requests": {"slots": "2", "memory": "1024Mi"}}
    first, second = one(tolerations=tolerations, capacity=capacity), one(tolerations=tolerations[::-1], capacity=turned)
    assert first == second
    assert hash(first) == hash(second)


def test_a_class_that_does_not_exist_is_named():
    with pytest.raises(MissingClassError, match="request r: device class tpu does not exist"):
        one(deviceClassName="tpu")
    with pytest.raises(MissingClassError, match="request r/a: device class tpu"):
        asked({"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "tpu"}]})


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"deviceClassName": ""}, "spec.devices.requests[0].exactly.deviceClassName"),
        ({"allocationMode": "Some"}, "spec.devices.requests[0].exactly.allocationMode"),
        ({"selectors": [{}]}, "spec.devices.requests[0].exactly.selectors[0]"),
        ({"capacity": {"requests": {"m": "much"}}}, "spec.devices.requests[0].exactly.capacity.requests[m]"),
    ],
)
def test_what_is_not_known_is_refused_with_its_place(given, path):
    with pytest.raises(InvalidField) as caught:
        one(**given)
    assert path in str(caught.value)


def test_what_is_not_known_in_an_alternative_is_refused_with_its_place():
    with pytest.raises(InvalidField) as caught:
        asked({"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "any", "allocationMode": "Some"}]})
    assert "spec.devices.requests[0].firstAvailable[0].allocationMode" in str(caught.value)


def test_selectors_of_another_kind_are_refused():
    with pytest.raises(InvalidField, match=r"spec\.selectors\[1\]"):
        selectors_of([DeviceSelector(Expression("true")), DeviceSelector()], "spec")


# -- constraints ------------------------------------------------------------------------------------------------------


def test_constraints_concern_requests_and_alternatives_by_name():
    given = asked(
        {
            "name": "r",
            "firstAvailable": [{"name": "a", "deviceClassName": "any"}, {"name": "b", "deviceClassName": "any"}],
        },
        {"name": "s", "exactly": {"deviceClassName": "any"}},
        constraints=[
            {"matchAttribute": "d/numa"},
            {"distinctAttribute": "d/rail", "requests": ["s", "r"]},
            {"matchAttribute": "d/numa", "requests": ["r/b"]},
        ],
    )
    assert given.constraints == (
        Constraint("d/numa", False, ()),
        Constraint("d/rail", True, ("r", "s")),
        Constraint("d/numa", False, ("r/b",)),
    )
    request = given.requests[0]
    first, second = request.alternatives
    assert [each.concerns(request, first) for each in given.constraints] == [True, True, False]
    assert [each.concerns(request, second) for each in given.constraints] == [True, True, True]
    assert not given.constraints[2].concerns(given.requests[1], given.requests[1].alternatives[0])


def test_a_constraint_of_an_unknown_kind_is_refused():
    with pytest.raises(InvalidField, match=r"spec\.devices\.constraints\[1\]"):
        asked(constraints=[{"matchAttribute": "d/numa"}, {"requests": ["r"]}])


# -- tolerations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "value": "v"}, True),  # Equal is the default
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "k", "operator": "Equal"}, False),
        ({"value": "v"}, True),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, False),
        ({"key": "k", "operator": "Later", "value": "v"}, False),
    ],
)
def test_tolerations(toleration, covered):
    selection = one(tolerations=[toleration]).selection
    assert selection.tolerates([taint("NoSchedule", "k", "v")]) == covered


def test_every_taint_that_keeps_pods_away_has_to_be_tolerated():
    selection = one(tolerations=[{"key": "k", "operator": "Exists"}]).selection
    assert selection.tolerates([taint("None", "other"), taint("Later", "other"), taint("NoExecute", "k")])
    assert not selection.tolerates([taint("NoExecute", "k"), taint("NoExecute", "other")])
    assert not one().selection.tolerates([taint("NoSchedule")])
    assert one().selection.tolerates([])
