"""Devices of one value for all pods of a gang: which value, and when another one."""

import pytest

from poseidon_py.devices.objects import Attribute, SliceDevice
from poseidon_py.kube.objects import InvalidField
from poseidon_py.state.claim_use import TakenError
from tests.poseidon_py.devices.offers import DRIVER, slice_of
from tests.poseidon_py.state.devices.test_gate import Fleet, claim

KEY = "poseidon.io/gang-match-attribute"
RAIL = f"{DRIVER}/rail"


def fleet_of(*nodes, **kinds):
    """Nodes with devices of these rails each."""
    fleet = Fleet(nodes=len(nodes))
    for at, rails in enumerate(nodes):
        devices = [SliceDevice(name=f"d{n}", attributes={"rail": value(each)}) for n, each in enumerate(rails)]
        fleet.gate.put_slice(slice_of(*devices, name=f"s{at}", pool=f"n{at}", node_name=f"n{at}"))
        fleet.describe(fleet.store.nodes[f"n{at}"])
    return fleet


def value(given):
    if isinstance(given, bool):
        return Attribute(truth=given)
    if isinstance(given, int):
        return Attribute(whole=given)
    return Attribute(version=given[1:]) if given.startswith("v") else Attribute(text=given)


def member(fleet, name, gang=7, count=1, attribute=RAIL):
    fleet.gate.put_claim(claim(name, count=count))
    known = fleet.pod(name, name, annotations={KEY: attribute})
    known.gang.id = gang
    return known


def describe(fleet, *pods):
    for known in pods:
        assert fleet.gate.demands_of(known).blocked == ""


def rails(fleet, *pods):
    """The rails of the devices that pods have."""
    found = []
    for known in pods:
        for holding in fleet.gate.book.holdings.of(f"uid-{known.name}"):
            pool = fleet.gate.book.inventory.pool_of_device(holding.device)
            (device,) = (each for each in pool.devices if each.id == holding.device)
            found += [content for _, content in device.attributes[RAIL]]
    return found


@pytest.mark.parametrize(
    ("given", "other"), [(1, 2), ('quoted"\\', "b"), (True, False), ("v1.2.3", "v1.2.4")], ids=repr
)
async def test_members_get_devices_of_one_value_on_different_nodes(given, other):
    """Of the other value there are two devices for three pods."""
    fleet = fleet_of([other, given], [given, other], [given])
    pods = [member(fleet, name) for name in "abc"]
    describe(fleet, *pods)
    describe(fleet, *pods)  # until then it is not known how many they are
    for known, node in zip(pods, ("n0", "n1", "n2"), strict=True):
        fleet.place(known, node)
    assert len(set(rails(fleet, *pods))) == 1
    assert len(rails(fleet, *pods)) == 3


def test_of_the_values_that_suffice_the_one_with_the_fewest_devices_is_taken():
    fleet = fleet_of(["a", "a", "a"], ["b", "b"], ["c"])
    first, second = member(fleet, "x"), member(fleet, "y")
    describe(fleet, first, second)
    fleet.touched()
    describe(fleet, first, second)
    assert fleet.touched() == set()
    chosen = fleet.gate.match._chosen[7, RAIL]
    assert chosen == (("string", "b"), 2)


def test_a_value_with_which_no_round_places_them_is_followed_by_the_next_until_all_were_tried():
    fleet = fleet_of(["a", "a"], ["b", "b", "b"])
    known = member(fleet, "x", count=2)
    seen = []
    for _ in range(4):
        describe(fleet, known)
        seen.append(fleet.gate.match._chosen[7, RAIL][0][1])
        fleet.gate.fits_nowhere(known)
    assert seen == ["a", "b", "b", "b"]
    fleet.gate.put_claim(claim("other", on="n0"))  # what is in use has changed
    fleet.gate.fits_nowhere(known)
    describe(fleet, known)
    assert fleet.gate.match._chosen[7, RAIL][0][1] == "a"


async def test_a_member_that_comes_later_gets_the_value_of_those_that_have_devices():
    fleet = fleet_of(["a"], ["b", "b"], ["a"])
    first = member(fleet, "x")
    describe(fleet, first)
    fleet.place(first, "n0")
    late = member(fleet, "y")
    describe(fleet, late)
    assert late.devices.columns
    with pytest.raises(TakenError):
        fleet.place(late, "n1")
    other = member(fleet, "z")
    describe(fleet, other)
    fleet.place(other, "n2")
    assert rails(fleet, first, other) == ["a", "a"]


async def test_a_pod_in_no_gang_is_one_of_its_own():
    fleet = fleet_of(["a", "b", "b"])
    pair, single = member(fleet, "x", gang=0, count=2), member(fleet, "y", gang=0)
    describe(fleet, pair, single)
    fleet.place(pair, "n0")
    fleet.place(single, "n0")
    assert (rails(fleet, pair), rails(fleet, single)) == (["b", "b"], ["a"])


def test_where_no_device_has_the_attribute_nothing_fits():
    fleet = fleet_of(["a"])
    known = member(fleet, "x", attribute=f"{DRIVER}/none")
    describe(fleet, known)
    (column,) = (name for name, _ in known.devices.columns if name != "devices:gpu")
    assert dict(fleet.gate.offers.of("n0", {}, {})).get(column, 0) == 0


def test_a_pod_without_claims_is_refused():
    with pytest.raises(InvalidField, match="is for devices of claims, and the pod has none"):
        Fleet().pod("a", annotations={KEY: RAIL})


@pytest.mark.parametrize("name", ["rail", "Gpu.example.com/rail", "gpu.example.com/", 'x/"] == 1', "a/b/c"])
def test_what_names_no_attribute_is_refused(name):
    with pytest.raises(InvalidField, match="is no name of an attribute"):
        member(Fleet(), "x", attribute=name)
