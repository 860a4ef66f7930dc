"""Of each device it is said what it fails first."""

from poseidon_py.devices.objects import ClassSpec, DeviceClass, DeviceSelector, Expression
from poseidon_py.kube.objects import Metadata
from poseidon_py.state.devices.account import device_account
from tests.poseidon_py.devices.offers import device, slice_of, taint
from tests.poseidon_py.state.devices.test_gate import Fleet, claim

ONLY_A = 'device.attributes["gpu.example.com"].model == "a"'


def test_what_becomes_of_all_devices():
    fleet = Fleet(nodes=1)
    gate = fleet.gate
    gate.put_class(DeviceClass(Metadata(name="gpu"), ClassSpec([DeviceSelector(Expression(ONLY_A))])))
    listed = (
        device("d0", model="a"),
        device("used", model="a"),
        device("other", model="b"),
        device("odd"),
        device("broken", model="a", taints=[taint()]),
        device("part", model="a", uses={"x": 2}),
    )
    gate.put_slice(slice_of(*listed, name="s0", pool="n0", node_name="n0", of=2))
    gate.put_slice(slice_of(name="c0", pool="n0", of=2, counters={"x": 1}))
    gate.put_slice(slice_of(device("late"), name="late", pool="late", of=2, node_name="n0"))
    gate.put_claim(claim("other", on="n0", users=["someone"]))
    gate.put_claim(claim("c"))
    known = fleet.pod("a", "c")
    (found,) = device_account(gate, known, {"n0": {}})
    assert found["devices"] == {
        "its pool is incomplete or invalid": 1,
        "the selectors have an error": 1,
        "not selected": 1,
        "tainted": 1,
        "in use": 1,
        "too few counters left": 1,
        "free": 1,
    }
    assert (found["claim"], found["request"], found["nodes_with_enough"]) == ("default/c", "r", 1)


def test_a_claim_with_devices_says_which():
    fleet = Fleet(nodes=1)
    fleet.gate.put_claim(claim("c", on="n0", users=["a", "b"]))
    (found,) = device_account(fleet.gate, fleet.pod("a", "c"), {})
    assert found == {"claim": "default/c", "devices": ["gpu.example.com/n0/d0"], "users": 2}


def test_what_a_claim_cannot_ask_for_is_said():
    fleet = Fleet(nodes=1)
    fleet.gate.put_claim(claim("c", class_name="fpga"))
    (found,) = device_account(fleet.gate, fleet.pod("a", "c"), {})
    assert found == {"claim": "default/c", "problem": "request r: device class fpga does not exist"}
