"""Which claim holds which devices.

A claim holds the devices of its status.allocation, or those that this process has chosen for it and not written yet.
Results of administrative access hold nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from poseidon_py.devices.allocator import DeviceUse, Grant
from poseidon_py.devices.inventory import DeviceId, PoolId
from poseidon_py.devices.objects import ResourceClaim
from poseidon_py.kube.quantity import QuantityError, nanos


@dataclass(frozen=True, slots=True)
class Held:
    """A device that a claim holds."""

    device: DeviceId
    consumed: tuple[tuple[str, int], ...] | None
    """Of a shared device, billionths of each qualified capacity; None: it is held as a whole."""


@dataclass(slots=True)
class Holdings:
    """By UID of the claim."""

    use: DeviceUse = field(default_factory=DeviceUse)
    """What follows for each device."""
    _of_claim: dict[str, tuple[Held, ...]] = field(default_factory=dict)
    _whole: Counter[DeviceId] = field(default_factory=Counter)
    _shares: Counter[DeviceId] = field(default_factory=Counter)

    def hold(self, claim: str, holding: Iterable[Held]) -> set[PoolId]:
        """A claim holds these devices, and no others. Returns the pools of which others are in use than before."""
        now, before = tuple(holding), self._of_claim.get(claim, ())
        if now == before:
            return set()
        for each, sign in (*((each, -1) for each in before), *((each, 1) for each in now)):
            self._count(each, sign)
        if now:
            self._of_claim[claim] = now
        else:
            self._of_claim.pop(claim, None)
        return {PoolId(each.device.driver, each.device.pool) for each in {*before} ^ {*now}}

    def of(self, claim: str) -> tuple[Held, ...]:
        return self._of_claim.get(claim, ())

    def claims(self) -> Mapping[str, tuple[Held, ...]]:
        return self._of_claim

    def _count(self, one: Held, sign: int) -> None:
        device, use = one.device, self.use
        if one.consumed is None:
            self._whole[device] += sign
            (use.whole.add if self._whole[device] > 0 else use.whole.discard)(device)
            return
        self._shares[device] += sign
        taken = use.shared.setdefault(device, {})
        for name, amount in one.consumed:
            taken[name] = taken.get(name, 0) + sign * amount
        if self._shares[device] <= 0:
            use.shared.pop(device, None)


def held_of(claim: ResourceClaim) -> tuple[Held, ...]:
    """What a claim's allocation holds."""
    allocated = claim.status.allocation
    found = []
    for each in (allocated.devices.results or ()) if allocated is not None else ():
        if each.admin:
            continue
        device = DeviceId(each.driver, each.pool, each.device)
        consumed = None
        if each.share is not None or each.consumed is not None:
            consumed = tuple(sorted(_qualified(each.driver, each.consumed or {})))
        found.append(Held(device, consumed))
    return tuple(found)


def held_by_grants(grants: Iterable[Grant]) -> tuple[Held, ...]:
    """What an allocation holds that is not written yet."""
    return tuple(
        Held(each.device.id, None if each.consumed is None else tuple(sorted(each.consumed.items())))
        for each in grants
        if not each.asked.admin
    )


def _qualified(driver: str, consumed: Mapping[str, object]) -> Iterable[tuple[str, int]]:
    for name, amount in consumed.items():
        try:
            yield (name if "/" in name else f"{driver}/{name}"), nanos(str(amount))
        except QuantityError:
            continue  # the API server has checked it
