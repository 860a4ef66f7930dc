"""`poseidon devices` and the body that it shows."""

import io

import pytest
from rich.console import Console

from poseidon_py.app.devices.answers import UnknownNode, count_devices, devices_answer
from poseidon_py.cli.listing.devices import print_devices
from tests.poseidon_py.devices.offers import device, slice_of, taint
from tests.poseidon_py.state.devices.test_gate import Fleet, claim


@pytest.fixture
def fleet():
    """Two nodes with two devices each, of which a claim has one and another is tainted; and half a pool."""
    found = Fleet()
    found.gate.put_slice(slice_of(device("d0"), device("d1", taints=[taint()]), name="s1", pool="n1", node_name="n1"))
    found.gate.put_slice(slice_of(device("late"), name="late", pool="half", of=2, node_name="n1"))
    found.gate.put_claim(claim("c", on="n0", users=["a"]))
    for record in found.store.nodes.values():
        found.describe(record)
    return found


def printed(body):
    text = io.StringIO()
    print_devices(body, Console(file=text, width=120))
    return [line.split() for line in text.getvalue().splitlines()]


def test_classes_and_pools(fleet):
    body = devices_answer(fleet.store, "")
    (gpu,) = body["classes"]
    assert gpu["devices"] == {"free": 2, "in use": 1, "tainted": 1, "not usable": 1}
    assert gpu["nodes_with_free"] == 2
    assert [(each["name"], each["problem"]) for each in body["pools"]] == [
        ("half", "is being updated"),
        ("n0", ""),
        ("n1", ""),
    ]
    lines = printed(body)
    assert ["gpu", "2", "1", "1", "1", "2"] in [[word for word in line if word not in "│|"] for line in lines]
    assert any(
        ("half" in " ".join(line) and "updated" in line[-7:]) or "is being updated" in " ".join(line) for line in lines
    )


def test_the_devices_of_a_node_and_who_has_them(fleet):
    found = {each["device"]: each for each in devices_answer(fleet.store, "n0")["devices"]}
    assert found["gpu.example.com/n0/d0"] == {
        "device": "gpu.example.com/n0/d0",
        "state": "in use",
        "claims": ["default/c"],
        "taints": [],
    }
    assert found["gpu.example.com/n0/d1"]["state"] == "free"
    (tainted,) = [each for each in devices_answer(fleet.store, "n1")["devices"] if each["taints"]]
    assert (tainted["state"], tainted["taints"]) == ("tainted", ["broken=:NoSchedule"])
    assert any("default/c" in line for line in printed(devices_answer(fleet.store, "n0")))


def test_an_unknown_node(fleet):
    with pytest.raises(UnknownNode, match="no node n9"):
        devices_answer(fleet.store, "n9")


def test_where_there_are_none():
    body = {"problem": "", "classes": [], "pools": []}
    assert printed(body) == [["no", "device", "classes"]]
    assert printed(body | {"devices": []}) == [["no", "devices"]]


def test_counts_for_metrics(fleet):
    driver = "gpu.example.com"
    assert count_devices(fleet.gate.book) == {
        (driver, "free"): 2,
        (driver, "in use"): 1,
        (driver, "tainted"): 1,
        (driver, "not usable"): 1,
    }
