"""Devices with equal values of an attribute for all pods of a gang: `poseidon.io/gang-match-attribute`.

The constraints of a claim hold within it. Here the pods of a gang are restricted to the devices of one value, which is
chosen before they are placed: of the values with so many unused devices that the gang can have its own, the one with
the fewest; where no round places the gang with that, the next, until all were tried, and then anew when devices are
freed or appear. So all of a gang have one value, or none of it is placed. A pod in no gang is one of its own.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from poseidon_py.devices.allocator import SelectionError
from poseidon_py.devices.book import DeviceBook
from poseidon_py.devices.device_requests import Alternative, ClaimRequests, Selection
from poseidon_py.devices.holdings import Held
from poseidon_py.devices.inventory import ListedDevice
from poseidon_py.kube.objects import InvalidField, Pod, annotations_with
from poseidon_py.state.devices.claim_cache import ClaimCache
from poseidon_py.state.records import PodRecord

ANNOTATION = "poseidon.io/gang-match-attribute"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z_][A-Za-z0-9_]*")
_LITERALS: dict[str, Callable[[object], str]] = {
    "int": str,
    "bool": lambda value: str(value).lower(),
    "string": json.dumps,
}

Value = tuple[str, object]
"""Type of an attribute, and its value."""
_GangKey = tuple[int | str, str]
"""Id of a gang, or UID of a pod without one; and the attribute."""


def match_attribute(pod: Pod, *, has_claims: bool) -> str:
    """The attribute; empty: none. Raises InvalidField."""
    found = annotations_with(pod.metadata, ANNOTATION.encode()).get(ANNOTATION, "")
    if found and _NAME.fullmatch(found) is None:
        raise InvalidField(
            f"metadata.annotations[{ANNOTATION}]",
            f"{found!r} is no name of an attribute; give one like resource.kubernetes.io/pcieRoot",
        )
    if found and not has_claims:
        raise InvalidField(
            f"metadata.annotations[{ANNOTATION}]",
            "is for devices of claims, and the pod has none; add them, or remove it",
        )
    return found


class GangMatch:
    """See the module."""

    def __init__(
        self,
        book: DeviceBook,
        cache: ClaimCache,
        pods: Mapping[str, PodRecord],
        touch: Callable[[Iterable[str]], None],
    ) -> None:
        """`touch`: have pods described again."""
        self._touch = touch
        self._book = book
        self._cache = cache
        self._pods = pods
        self._members: dict[_GangKey, dict[str, None]] = {}
        """UIDs of pods."""
        self._chosen: dict[_GangKey, tuple[Value | None, int]] = {}
        """The value, and for how many members it was chosen."""
        self._tried: dict[_GangKey, list[Value]] = {}

    def restricted(self, known: PodRecord, claim: ClaimRequests) -> ClaimRequests:
        """What a claim of a pod asks for, of the devices of its gang's value."""
        attribute = known.devices.match
        if not attribute:
            return claim
        key = known.gang.id or known.uid, attribute
        self._members.setdefault(key, {})[known.uid] = None
        value = self._held_by(key)
        if value is None:
            value = self._choose(key, claim)
        expression = _expression(attribute, value)
        requests = tuple(
            request._replace(alternatives=tuple(_with(expression, each) for each in request.alternatives))
            for request in claim.requests
        )
        return claim._replace(requests=requests)

    def _choose(self, key: _GangKey, claim: ClaimRequests) -> Value | None:
        """The value for a gang of which none has devices: chosen again when it has more members than were known."""
        members = self._members[key]
        before, number = self._chosen.get(key, (None, 0))
        if number >= len(members):
            return before
        value = next(self._candidates(key, claim), None)
        self._chosen[key] = value, len(members)
        if number and value != before:
            self._touch(list(members))
        return value

    def failed(self, known: PodRecord) -> None:
        """No node takes a pod of the gang with its value: another one is chosen if there is one that was not tried."""
        key = known.gang.id or known.uid, known.devices.match
        value, _ = self._chosen.get(key, (None, 0))
        if value is None or self._held_by(key) is not None:
            return
        tried = self._tried.setdefault(key, [])
        if value not in tried:
            tried.append(value)
        if not set(self._values(key[1])) <= set(tried):
            del self._chosen[key]
            self._touch(list(self._members[key]))

    def devices_changed(self) -> None:
        """Other devices are free than before: values that failed may do."""
        self._tried.clear()

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        for key in [key for key, members in self._members.items() if uid in members]:
            del self._members[key][uid]
            if not self._members[key]:
                del self._members[key]
                self._chosen.pop(key, None)
                self._tried.pop(key, None)

    def _held_by(self, key: _GangKey) -> Value | None:
        """The value of the devices that pods of a gang have; None: they have none."""
        gang, attribute = key
        for uid in self._members.get(key, ()):
            known = self._pods.get(uid)
            if known is None or (known.gang.id or known.uid) != gang:
                continue
            for entry in known.devices.entries:
                claim = self._cache.claims.get((known.namespace, entry.claim))
                holding = self._book.holdings.of(claim.metadata.uid) if claim is not None else ()
                for value in self._values_of(holding, attribute):
                    return value
        return None

    def _values_of(self, holding: Iterable[Held], attribute: str) -> Iterator[Value]:
        for each in holding:
            pool = self._book.inventory.pool_of_device(each.device)
            for device in pool.devices if pool is not None else ():
                if device.id == each.device:
                    yield from sorted(device.attributes.get(attribute, ()), key=repr)

    def _values(self, attribute: str) -> Counter[Value]:
        """How many devices have each value."""
        pools = self._book.inventory.pools()
        return Counter(value for pool in pools for each in pool.devices for value in each.attributes.get(attribute, ()))

    def _candidates(self, key: _GangKey, claim: ClaimRequests) -> Iterator[Value]:
        """Values, the best first; those that were tried come last."""
        asked = [each for request in claim.requests for each in request.alternatives[:1]]
        free: Counter[Value] = Counter()
        for pool in self._book.inventory.pools():
            for device in pool.devices if pool.complete and not pool.problem else ():
                unused = device.shareable or not self._book.holdings.use.is_used(device.id)
                if unused and any(self._suits(each, device) for each in asked):
                    free.update(device.attributes.get(key[1], ()))
        needed = len(self._members[key]) * sum(max(each.number, 1) for each in asked)
        tried = self._tried.get(key, ())
        yield from sorted(free, key=lambda value: (value in tried, _rank(free[value], needed), repr(value)))

    def _suits(self, asked: Alternative, device: ListedDevice) -> bool:
        try:
            return self._book.selectors.suits(asked.selection, device.shape)
        except SelectionError:
            return False


def _rank(free: int, needed: int) -> tuple[bool, int]:
    """Those that suffice first, of which the smallest; of others the largest."""
    return (False, free) if free >= needed else (True, -free)


def _with(expression: str, asked: Alternative) -> Alternative:
    if asked.admin:
        return asked
    selectors, tolerations = asked.selection
    return asked._replace(selection=Selection((*selectors, expression), tolerations))


def _expression(attribute: str, value: Value | None) -> str:
    """Selects the devices with a value; without one, those that have the attribute, of which there are none."""
    domain, _, name = attribute.rpartition("/")
    place = f"device.attributes[{json.dumps(domain)}]"
    has = f"{json.dumps(name)} in {place}"
    if value is None:
        return has
    kind, content = value
    if kind == "version":
        same = f"{place}.{name}.compareTo(semver({json.dumps(content)})) == 0"
    else:
        same = f"{place}.{name} == {_LITERALS[kind](content)}"
    return f"{has} && {same}"
