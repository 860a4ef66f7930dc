"""Devices for the pods of a gang that come to one node are chosen together."""

import asyncio

from poseidon_py.devices.objects import Attribute, DeviceConstraint, DeviceSelector, Expression, SliceDevice
from tests.poseidon_py.devices.offers import slice_of
from tests.poseidon_py.state.devices.test_gate import Fleet, claim

DRIVER = "gpu.example.com"


def described(name, numa, model="b"):
    return SliceDevice(name=name, attributes={"numa": Attribute(whole=numa), "model": Attribute(text=model)})


def fleet_of(*devices):
    fleet = Fleet(nodes=1)
    fleet.gate.put_slice(slice_of(*devices, name="s0", pool="n0", node_name="n0"))
    fleet.describe(fleet.store.nodes["n0"])
    return fleet


def a_pair_and_a_special_one():
    """`pair` needs two devices of one NUMA node, `special` the only one of model a. By itself, `pair` takes d1 and the
    special one, which are of one NUMA node."""
    fleet = fleet_of(described("d0", 0, "a"), described("d1", 0), described("d2", 1), described("d3", 1))
    pair = claim("pair", count=2)
    pair.spec.devices.constraints = [DeviceConstraint(match=f"{DRIVER}/numa")]
    special = claim("special")
    wish = Expression(f'device.attributes["{DRIVER}"].model == "a"')
    special.spec.devices.requests[0].exactly.selectors = [DeviceSelector(wish)]
    pods = []
    for item in (pair, special):
        fleet.gate.put_claim(item)
        pods.append(fleet.pod(f"p-{item.metadata.name}", item.metadata.name))
    for known in pods:
        assert not fleet.gate.demands_of(known).blocked
    return fleet, pods


def devices_of(fleet, name):
    return {each.device.name for each in fleet.gate.book.holdings.of(f"uid-{name}")}


async def test_the_first_takes_nothing_that_the_second_needs():
    fleet, pods = a_pair_and_a_special_one()
    fleet.chooser.choose_together([(known, "n0") for known in pods])
    for known in pods:
        fleet.place(known, "n0")
    assert (devices_of(fleet, "pair"), devices_of(fleet, "special")) == ({"d2", "d3"}, {"d0"})


async def test_pods_that_are_not_placed_after_all_leave_their_devices():
    """A process that no longer leads refuses the placements that it was about to carry out."""
    fleet, pods = a_pair_and_a_special_one()
    fleet.chooser.choose_together([(known, "n0") for known in pods])
    fleet.place(pods[0], "n0")
    await asyncio.sleep(0)
    assert (devices_of(fleet, "pair"), devices_of(fleet, "special")) == ({"d2", "d3"}, set())
    assert fleet.gate.demands_of(pods[1]).requests


async def test_a_flexible_request_leaves_devices_that_others_need():
    fleet = fleet_of(described("d0", 0, "a"), described("d1", 0))
    special = claim("special")
    wish = Expression(f'device.attributes["{DRIVER}"].model == "a"')
    special.spec.devices.requests[0].exactly.selectors = [DeviceSelector(wish)]
    fleet.gate.put_claim(special)
    fleet.gate.put_claim(claim("any"))
    known = fleet.pod("a", "any")
    fleet.gate.demands_of(known)
    fleet.place(known, "n0")
    assert devices_of(fleet, "any") == {"d1"}
