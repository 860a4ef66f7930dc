"""How many pods of a kind fit on a node: what searching node by node says, with one search for nodes that are alike."""

import random
from typing import Any

import pytest

from poseidon_py.devices.allocator import DeviceUse, SelectionError, allocate
from poseidon_py.devices.copies import MOST_COPIES, CopyCounter
from poseidon_py.devices.inventory import DeviceId
from tests.poseidon_py.devices.offers import DRIVER, claim, device, node_with, one_of, option, request, suits, taint


def searched(node, use, seen=None):
    """A search on a node, which notes for how many claims it was asked."""

    def search(many):
        if seen is not None:
            seen.append(len(many))
        return allocate(many, node, use, suits)

    return search


def one_by_one(claims, node, use):
    """By trying one copy more until none fits."""
    copies = 0
    while copies < MOST_COPIES and allocate(claims * (copies + 1), node, use, suits) is not None:
        copies += 1
    return copies


def in_use(node, *names):
    return DeviceUse({each.id for each in node.devices if each.id.name in names})


@pytest.mark.parametrize("seed", range(60))
def test_nodes_that_are_alike_have_the_answer_of_a_search(seed):
    rng = random.Random(seed)
    counter = CopyCounter()
    kinds = [
        (claim(request(number=2), same="rail"),),
        (claim(request("model=a", number=1)), claim(request(number=1))),
        (claim(request(number=3), distinct="rail"),),
        (claim(one_of("r", option("model=a", number=2), option("model=b", number=1))),),
        (claim(request(number=0)),),
        (claim(request(admin=True), request("model=b", name="s")),),
    ]
    for _ in range(12):
        devices = [
            device(
                f"d{at}",
                rail=rng.randrange(3),
                model=rng.choice("ab"),
                taints=[taint()] if rng.random() < 0.1 else None,
            )
            for at in range(rng.randint(1, 6))
        ]
        node = node_with(*devices)
        use = in_use(node, *(each.name for each in devices if rng.random() < 0.3))
        claims = rng.choice(kinds)
        assert counter.copies(claims, node, use, suits, searched(node, use)) == one_by_one(claims, node, use)


def test_a_node_like_another_is_not_searched_again_whatever_its_devices_are_called():
    counter, claims = CopyCounter(), (claim(request(number=2), same="rail"),)
    for names, expected in (("abcd", True), ("efgh", False)):
        node = node_with(*(device(name, rail=at // 2) for at, name in enumerate(names)))
        seen: list[int] = []
        assert counter.copies(claims, node, DeviceUse(), suits, searched(node, DeviceUse(), seen)) == 2
        assert bool(seen) is expected
    used = in_use(node, "e")
    assert counter.copies(claims, node, used, suits, searched(node, used)) == 1, "of another state of use"


def test_no_more_copies_are_tried_than_there_are_devices_for():
    node = node_with(*(device(f"d{at}", rail=at // 2) for at in range(10)))
    claims, seen = (claim(request(number=2), same="rail"),), list[int]()
    assert CopyCounter().copies(claims, node, DeviceUse(), suits, searched(node, DeviceUse(), seen)) == 5
    assert max(seen) == 5, "six would take twelve devices"


@pytest.mark.parametrize("special", ["shareable", "consumes", "capacity"])
def test_devices_that_are_shared_or_partitions_are_searched_for_each_node(special):
    counter, claims, found = CopyCounter(), (claim(request()),), []
    if special == "capacity":
        claims = (claim(request(memory=40)),)
    for amount in (80, 20):
        every: dict[str, dict[str, Any]] = {
            "shareable": {"shareable": True, "capacity": {"memory": amount}},
            "consumes": {"uses": {"slices": 60}},
            "capacity": {"capacity": {"memory": amount}},
        }
        node = node_with(device("d", **every[special]), counters={"slices": amount} if special == "consumes" else None)
        found.append(counter.copies(claims, node, DeviceUse(), suits, searched(node, DeviceUse())))
    assert found == ([1, 1] if special == "shareable" else [1, 0])


def test_a_selector_with_an_error_excludes_the_node():
    def broken(selection, device):
        raise SelectionError("no such key")

    node = node_with(device("d"))
    claims = (claim(request()),)
    assert CopyCounter().copies(claims, node, DeviceUse(), broken, searched(node, DeviceUse())) == 0


def test_devices_in_use_are_told_apart_by_pool_and_driver():
    node = node_with(device("d"))
    claims, other = (claim(request()),), DeviceUse({DeviceId(DRIVER, "another", "d")})
    assert CopyCounter().copies(claims, node, other, suits, searched(node, other)) == 1
