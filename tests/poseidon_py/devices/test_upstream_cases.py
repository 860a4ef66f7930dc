"""Kubernetes' own cases of its allocator, retold, and further ones in which it differs from ours."""

from collections import Counter

import msgspec
import pytest

from poseidon_py.devices.allocator import SelectionError, allocate
from poseidon_py.devices.book import DeviceBook
from poseidon_py.devices.device_requests import MissingClassError
from poseidon_py.devices.holdings import Held
from poseidon_py.devices.inventory import DeviceId
from poseidon_py.devices.results import allocation
from poseidon_py.kube.objects import InvalidField
from poseidon_py.kube.quantity import nanos
from tests.poseidon_py.devices.brute_force import as_found, is_valid
from tests.poseidon_py.devices.upstream_cases import WHY, read_cases

UPSTREAM, OWN = read_cases("upstream_cases.yaml"), read_cases("own_cases.yaml")
CASES = {**UPSTREAM, **OWN}

ERRORS = {
    "no such class": MissingClassError,
    "no class": InvalidField,
    "unknown selector": InvalidField,
    "unknown mode": InvalidField,
    "unknown constraint": InvalidField,
    "expression": SelectionError,
}
"""Kinds of errors in the table that are errors here, too."""
EXCLUDES_NODE = "invalid pool"
"""An error that concerns the one node there: here it has no devices, and says why."""


def book_of(case):
    book = DeviceBook()
    for each in case.classes:
        book.put_class(each)
    for each in case.slices:
        book.put_slice(each)
    holding = [Held(DeviceId(*each.split("/")), None) for each in case.used]
    for name, taken in case.taken.items():
        device = DeviceId(*name.split("/"))
        holding.append(Held(device, tuple((f"{device.driver}/{of}", nanos(amount)) for of, amount in taken.items())))
    book.hold("another claim", holding)
    return book


def given_in_upstream_order(case, book):
    """Allocations as they would be written; None: there are none."""
    asked, node = [book.requests_of(each) for each in case.claims], book.on(case.node, case.labels)
    left = book.counters_left(node)
    found = allocate(asked, node, book.holdings.use, book.known.suits, counters_left=left, rank=None)
    if found is None:
        return None
    return [
        allocation(claim, grants, case.node, book.classes, iter(["share"] * 99), "now")
        for claim, grants in zip(case.claims, found, strict=True)
    ]


def comparable(given):
    """Allocations with one notation of quantities, without the time."""
    found = msgspec.json.decode(msgspec.json.encode(given))
    for each in found or ():
        each.pop("allocationTimestamp", None)
        for result in each["devices"]["results"]:
            if "consumedCapacity" in result:
                taken = result["consumedCapacity"].items()
                result["consumedCapacity"] = {name: nanos(amount) for name, amount in taken}
    return found


@pytest.mark.parametrize("name", CASES)
def test_allocations_are_those_of_upstream_in_its_order(name):
    case = CASES[name]
    book = book_of(case)
    if not isinstance(case.here, dict):
        assert comparable(given_in_upstream_order(case, book)) == comparable(case.here)
    elif case.here["error"] == EXCLUDES_NODE:
        assert given_in_upstream_order(case, book) is None
        assert any("is invalid" in each for each in book.on(case.node, case.labels).problems)
    else:
        with pytest.raises(ERRORS[case.here["error"]]):
            given_in_upstream_order(case, book)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not isinstance(case.here, dict)])
def test_packed_allocations_exist_where_upstream_has_one_and_are_valid(name):
    case = CASES[name]
    book = book_of(case)
    asked = [book.requests_of(each) for each in case.claims]
    found = book.allocate(case.node, case.labels, asked)
    assert (found is None) == (case.here is None)
    if found is not None:
        node, suits = book.on(case.node, case.labels), book.known.suits
        others = [each for pool in book.inventory.pools() for each in pool.devices if each not in node.devices]
        assert is_valid(asked, as_found(asked, found), node, book.holdings.use, suits=suits, others=others)


def test_cases_that_differ_say_why():
    assert all((case.here != case.gives) == bool(case.why) for case in CASES.values())
    counts = Counter(case.why for case in UPSTREAM.values())
    assert counts == {"": 196, "gate": 13, "node": 5, "type": 3, "generation": 2}
    assert {case.why for case in CASES.values()} - {""} == WHY.keys()
