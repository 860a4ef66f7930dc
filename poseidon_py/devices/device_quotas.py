"""What devices count as in the quotas of queues.

A quota names a resource, and so do the quotas of devices: a class counts as one, `deviceclass.resource.kubernetes.io/`
with its name, or what the configuration of the queues maps it to. Each device that a request asks for counts one of it,
whichever device it gets.

What a request will take has to be known before a pod is placed. So requests for all devices that suit, or for the first
alternative that fits, are refused where their class counts; once they have devices, these count.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from poseidon_py.devices.device_requests import Alternative, ClaimRequests, Request
from poseidon_py.devices.objects import IMPLICIT_RESOURCE, ResourceClaim


class NoQuotaError(ValueError):
    """A claim asks for devices in a way that quotas cannot count."""


@dataclass(frozen=True)
class DeviceQuotas:
    resource_of: Mapping[str, str] = field(default_factory=dict)
    """Class -> the resource that its devices count as."""
    uncounted: Mapping[str, str] = field(default_factory=dict)
    """Class -> why its devices cannot be counted."""
    exclusive: bool = False
    """Whether devices need a quota: pods of queues wait that name a claim, which others may share, or ask for devices
    of a class that counts as nothing; and extended resources count as the class does that serves them (Kueue)."""

    @cached_property
    def classes_of(self) -> dict[str, tuple[str, ...]]:
        """Resource -> the classes that count as it."""
        found: dict[str, tuple[str, ...]] = {}
        for name, resource in sorted(self.resource_of.items()):
            found[resource] = (*found.get(resource, ()), name)
        return found

    def replaced(self, served: Mapping[str, str]) -> set[str]:
        """The extended resources that count as something else. `served`: extended resource by the class that serves
        it."""
        if not self.exclusive:
            return set()
        counted = ((served.get(name), resource) for name, resource in self.resource_of.items())
        return {named for named, resource in counted if named is not None and named != resource}

    def counts_as(self, extended: str, class_name: str) -> str:
        """What an extended resource counts as, besides itself; empty: nothing. `class_name`: what serves it."""
        if not self.exclusive or extended.startswith(IMPLICIT_RESOURCE):
            return ""
        resource = self.resource_of.get(class_name, "")
        return resource if resource != extended else ""

    def check_entry(self, name: str, *, generated: bool) -> None:
        """Raises NoQuotaError for a claim that other pods may share, where devices need a quota."""
        if self.exclusive and not generated:
            raise NoQuotaError(f"resourceclaim {name} has no quota, as other pods may share it; use a template")

    def check(self, claim: ClaimRequests, name: str) -> None:
        """Raises NoQuotaError if it is not known what the claim will take of what counts."""
        for request in claim.requests:
            for asked in request.alternatives:
                self._check(f"claim {name}, request {asked.label}", request, asked)

    def _check(self, about: str, request: Request, asked: Alternative) -> None:
        if asked.admin:
            return
        if why := self.uncounted.get(asked.class_name):
            raise NoQuotaError(f"{about}: device class {asked.class_name} has no quota: {why}")
        if asked.class_name not in self.resource_of:
            if self.exclusive:
                raise NoQuotaError(
                    f"{about}: device class {asked.class_name} has no quota; name it in resources.deviceClassMappings"
                )
            return
        if asked.label != request.name:
            raise NoQuotaError(f"{about}: firstAvailable has no quota, as it is not known what it takes; use exactly")
        if not asked.number:
            raise NoQuotaError(f"{about}: All has no quota, as it is not known what it takes; give a count")

    def amounts(self, claim: ClaimRequests, given: Mapping[str, int]) -> Counter[str]:
        """What a claim counts as, by resource. `given`: how many devices it has for each alternative."""
        found: Counter[str] = Counter()
        for request in claim.requests:
            for asked in request.alternatives:
                resource = self.resource_of.get(asked.class_name)
                if resource is None or asked.admin:
                    continue
                known = asked.number and asked.label == request.name
                if number := asked.number if known else given.get(asked.label, 0):
                    found[resource] += number
        return found


NO_QUOTAS = DeviceQuotas()


def quotas_by_class(resources: Iterable[str]) -> DeviceQuotas:
    """Of queues that have quotas of these resources: each class counts as its own."""
    own = {each for each in resources if each.startswith(IMPLICIT_RESOURCE)}
    return DeviceQuotas({each.removeprefix(IMPLICIT_RESOURCE): each for each in own}) if own else NO_QUOTAS


def devices_given(claim: ResourceClaim) -> Counter[str]:
    """How many devices a claim has for each request, or alternative of one."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else None
    return Counter(each.request for each in results or ())
