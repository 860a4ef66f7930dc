"""How much a request takes of a device's capacities, by their policies."""

import pytest

from poseidon_py.devices.capacity import consumption, fits
from poseidon_py.kube.quantity import nanos
from tests.poseidon_py.devices.offers import DRIVER, device, node_with, option, policy

MEMORY = f"{DRIVER}/memory"
IN_STEPS = policy("1", minimum="1", maximum="8", step="2")
"""1, 3, 5, 7."""
IN_HALVES = policy("1500m", minimum="500m", step="500m")


def one(**capacity):
    (found,) = node_with(device("one", shareable=True, capacity=capacity)).devices
    return found


def asking(**amounts):
    capacity = tuple((name.replace("__", "/"), nanos(amount)) for name, amount in amounts.items())
    return option()._replace(capacity=capacity)


@pytest.mark.parametrize(
    ("rule", "asked", "taken"),
    [
        (None, None, "8"),  # all of it
        (None, "0", "0"),
        (None, "3", "3"),
        (None, "8", "8"),
        (None, "9", None),
        (policy("2"), None, "2"),
        (policy("2"), "3", "3"),
        (policy("9"), None, None),
        (policy("2", values=["2", "4"]), None, "2"),
        (policy("2", values=["2", "4"]), "0", "2"),
        (policy("2", values=["2", "4"]), "3", "4"),
        (policy("2", values=["2", "4"]), "4", "4"),
        (policy("2", values=["2", "4"]), "5", None),
        (policy("2", values=["2", "10"]), "5", None),  # more than there is
        (policy("1", minimum="1"), "0", "1"),
        (policy("1", minimum="1"), "1500m", "1500m"),
        (policy("1", minimum="1", maximum="4"), "4", "4"),
        (policy("1", minimum="1", maximum="4"), "5", None),
        (IN_STEPS, None, "1"),
        (IN_STEPS, "1", "1"),
        (IN_STEPS, "2", "3"),
        (IN_STEPS, "2500m", "3"),
        (IN_STEPS, "7", "7"),
        (IN_STEPS, "8", None),  # 9 is above the maximum
        # steps count in whole numbers, whatever they are: so kube-scheduler takes 1 where 1 would be a half too many
        (IN_HALVES, "100m", "500m"),
        (IN_HALVES, "700m", "1"),
        (IN_HALVES, "2", "2"),
        (IN_HALVES, "1500m", "1500m"),  # the default
        (IN_HALVES, "2500m", "3"),
        (policy("1", minimum="1", step="0"), "2", "2"),
    ],
)
def test_what_a_request_takes(rule, asked, taken):
    found = consumption(one(memory=("8", rule)), asking(**({} if asked is None else {"memory": asked})))
    assert found == (None if taken is None else {MEMORY: nanos(taken)})


def test_names_of_capacities_may_have_their_domain():
    given = one(memory="8", slots=("4", policy("1")))
    assert consumption(given, option()._replace(capacity=((MEMORY, nanos("2")),))) == {
        MEMORY: nanos("2"),
        f"{DRIVER}/slots": nanos("1"),
    }


def test_a_capacity_that_the_device_lacks_cannot_be_asked_for():
    assert consumption(one(memory="8"), asking(cores="1")) is None
    assert consumption(one(), asking(cores="0")) is None
    assert consumption(one(), asking()) == {}


def test_every_capacity_has_to_suffice():
    given = one(memory="8", slots="2")
    used = {MEMORY: nanos("4"), f"{DRIVER}/slots": nanos("2")}
    assert fits(given, used, {MEMORY: nanos("4"), f"{DRIVER}/slots": 0})
    assert not fits(given, used, {MEMORY: nanos("1"), f"{DRIVER}/slots": nanos("1m")})
    assert not fits(given, used, {MEMORY: nanos("4001m"), f"{DRIVER}/slots": 0})
