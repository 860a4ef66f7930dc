"""How much a request takes of the capacities of a device that several may share (DRA consumable capacity).

    no request, with a policy    the policy's default
    no request, without one      all of it
    within a range               at least its minimum, rounded up to a whole number of steps; refused above its maximum
    of given values              the next of them that suffices; refused above the last
    otherwise                    what is requested

The same amounts are compared with a device that is not shared: it must offer them. As in kube-scheduler
(structured/internal/incubating/consumable_capacity.go).
"""

from collections.abc import Mapping

from poseidon_py.devices.device_requests import Alternative
from poseidon_py.devices.inventory import CapacityFacts, ListedDevice, qualified
from poseidon_py.devices.objects import RequestPolicy
from poseidon_py.kube.quantity import NANO, nanos

Consumption = Mapping[str, int]
"""Qualified name of a capacity -> billionths."""


def consumption(device: ListedDevice, asked: Alternative) -> dict[str, int] | None:
    """What a request takes of a device; None: the device does not have it, or its policy refuses it."""
    if not (asked.capacity or device.capacity):
        return {}
    requested = {qualified(name, device.id.driver): amount for name, amount in asked.capacity}
    if not requested.keys() <= device.capacity.keys():
        return None
    taken = {name: _taken(requested.get(name), facts) for name, facts in device.capacity.items()}
    found = {name: amount for name, amount in taken.items() if amount is not None}
    fits = len(found) == len(taken) and all(found[name] <= facts.value for name, facts in device.capacity.items())
    return found if fits else None


def fits(device: ListedDevice, used: Consumption, added: Consumption) -> bool:
    """Whether a shared device has so much left beside what is used of it."""
    return all(used.get(name, 0) + added.get(name, 0) <= facts.value for name, facts in device.capacity.items())


def _taken(requested: int | None, facts: CapacityFacts) -> int | None:
    policy = facts.policy
    if requested is None:
        return facts.value if policy is None or policy.default is None else nanos(str(policy.default))
    return requested if policy is None else _by_policy(requested, policy)


def _by_policy(requested: int, policy: RequestPolicy) -> int | None:
    if policy.default is not None and requested == nanos(str(policy.default)):
        return requested
    if policy.valid_range is not None:
        least = nanos(str(policy.valid_range.min))
        taken = max(requested, least)
        if policy.valid_range.step is not None:
            step, start = max(_whole(_nanos(policy.valid_range.step)), NANO), _whole(least)
            taken = least if requested < least else start - (start - _whole(taken)) // step * step
        greatest = policy.valid_range.max
        return None if greatest is not None and taken > nanos(str(greatest)) else taken
    if policy.valid_values:
        return min((value for value in map(_nanos, policy.valid_values) if value >= requested), default=None)
    return requested


def _whole(amount: int) -> int:
    """The next whole number, in billionths: steps count in whole numbers."""
    return -(-amount // NANO) * NANO


def _nanos(amount: object) -> int:
    return nanos(str(amount))
