"""The allocation that is written into a claim's status."""

import json

import msgspec

from poseidon_py.devices.allocator import Grant
from poseidon_py.devices.inventory import Inventory
from poseidon_py.devices.objects import DeviceClass, ResourceClaim
from poseidon_py.devices.results import allocation, node_selector, written
from poseidon_py.kube.objects import RequiredTerms, Requirement, SelectorTerm
from tests.poseidon_py.devices.offers import DRIVER, device, option, slice_of

HERE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}


def listed(*devices, **target):
    inventory = Inventory()
    inventory.put_slice(slice_of(*devices, **target))
    return list(next(iter(inventory.pools())).devices)


def grant(given, label="r", class_name="class", consumed=None, **asked):
    return Grant(option(label=label, **asked)._replace(class_name=class_name), given, consumed)


def claim(**devices):
    return msgspec.json.decode(json.dumps({"spec": {"devices": devices}}), type=ResourceClaim)


def device_class(name, *parameters):
    config = [{"opaque": {"driver": DRIVER, "parameters": each}} for each in parameters]
    found = {"metadata": {"name": name}, "spec": {"config": config}}
    return msgspec.json.decode(json.dumps(found), type=DeviceClass)


def terms(*given):
    return RequiredTerms([SelectorTerm([Requirement(key, "In", [value]) for key, value in given])])


def written_for(given, grants, *classes, shares=()):
    found = {each.metadata.name: each for each in classes}
    return allocation(given, grants, "n", found, shares, "2026-01-01T00:00:00Z")


def test_a_device_of_one_node():
    (one,) = listed(device("one"))
    assert written_for(claim(), [grant(one)]) == {
        "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "pool", "device": "one"}]},
        "nodeSelector": HERE,
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    }


def test_what_a_result_says_of_the_device_and_its_request():
    given = claim(
        requests=[
            {
                "name": "r",
                "firstAvailable": [{"name": "a"}, {"name": "b", "tolerations": [{"key": "k", "operator": "Exists"}]}],
            },
            {"name": "s", "exactly": {"tolerations": [{"key": "other"}]}},
            {"name": "t", "tolerations": [{"effect": "NoExecute"}]},  # as in v1beta1
        ]
    )
    one, two, three = listed(
        device("one", binding_conditions=["Ready"], failure_conditions=["Failed"], all_nodes=True),
        device("two", shareable=True, capacity={"memory": "8", f"{DRIVER}/slots": "3"}),
        device("three", failure_conditions=["Failed"]),
    )
    taken = {f"{DRIVER}/memory": 2 * 10**9, f"{DRIVER}/slots": 15 * 10**8}
    found = written_for(
        given,
        [
            grant(one, "r/b"),
            grant(two, "s", consumed=taken),
            grant(two, "s", consumed={}),
            grant(three, "t", admin=True),
        ],
        shares=["first", "second"],
    )
    first, second, third, fourth = found["devices"]["results"]
    assert first["tolerations"] == [{"key": "k", "operator": "Exists"}]
    assert (first["bindingConditions"], first["bindingFailureConditions"]) == (["Ready"], ["Failed"])
    assert second["tolerations"] == [{"key": "other"}]
    assert second["shareID"] == "first"
    assert second["consumedCapacity"] == {"memory": "2", f"{DRIVER}/slots": "1500000000n"}
    assert third["shareID"] == "second"
    assert "consumedCapacity" not in third
    assert fourth["adminAccess"] is True
    assert fourth["tolerations"] == [{"effect": "NoExecute"}]
    assert "bindingConditions" not in fourth
    assert written(taken, two.written) == second["consumedCapacity"]


def test_the_nodes_that_reach_all_devices():
    (everywhere,) = listed(device("one"), all_nodes=True)
    (east,) = listed(device("one"), node_selector=terms(("zone", "east"), ("rack", "1")))
    (rack,) = listed(device("one"), node_selector=terms(("rack", "1"), ("row", "2")))
    (bound,) = listed(device("one", binds_to_node=True), all_nodes=True)
    (local,) = listed(device("one"))
    named = RequiredTerms([SelectorTerm(fields=[Requirement("metadata.name", "In", ["a", "b"])])])
    (by_name,) = listed(device("one"), node_selector=named)
    assert node_selector([grant(everywhere)], "n") is None
    assert node_selector([], "n") is None
    assert node_selector([grant(everywhere), grant(east), grant(rack)], "n") == terms(
        ("zone", "east"), ("rack", "1"), ("row", "2")
    )
    assert node_selector([grant(by_name)], "n") == named
    for last in (bound, local):
        found = node_selector([grant(east), grant(last)], "n")
        assert found == RequiredTerms([SelectorTerm(fields=[Requirement("metadata.name", "In", ["n"])])])


def test_configuration_is_of_the_classes_and_then_of_the_claim_as_far_as_it_concerns_what_was_chosen():
    opaque = [{"opaque": {"driver": DRIVER, "parameters": {"at": at}}} for at in range(5)]
    given = claim(
        config=[
            opaque[0],
            {"requests": ["r"], **opaque[1]},
            {"requests": ["s/a"], **opaque[2]},
            {"requests": ["s/b", "r"], **opaque[3]},
            {"requests": ["s"], **opaque[4]},
        ]
    )
    one, two, three = listed(device("one"), device("two"), device("three"))
    found = written_for(
        given,
        [grant(one, "r", "plain"), grant(two, "s/b", "fast"), grant(three, "t", "plain")],
        device_class("fast", {"speed": 1}, {"speed": 2}),
        device_class("plain", {"speed": 0}),
        device_class("unused", {"speed": 3}),
    )
    assert [
        (each["source"], each.get("requests"), each["opaque"]["parameters"]) for each in found["devices"]["config"]
    ] == [
        ("FromClass", ["r", "t"], {"speed": 0}),
        ("FromClass", ["s/b"], {"speed": 1}),
        ("FromClass", ["s/b"], {"speed": 2}),
        ("FromClaim", None, {"at": 0}),
        ("FromClaim", ["r"], {"at": 1}),
        ("FromClaim", ["s/b", "r"], {"at": 3}),  # once, though it concerns two requests
        ("FromClaim", ["s"], {"at": 4}),
    ]


def test_a_class_that_is_gone_by_now_configures_nothing():
    (one,) = listed(device("one"))
    assert "config" not in written_for(claim(), [grant(one)])["devices"]
