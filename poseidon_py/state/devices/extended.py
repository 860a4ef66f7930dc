"""The claim of a pod's extended resources, on a node where devices serve them.

Each container that runs on has a request of its own for each resource. Init containers use the devices of those that
start later; what they need beyond is a request of theirs. So the devices are as many as kube-scheduler counts.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from poseidon_py.devices.device_requests import Alternative, Request, Selection, selectors_of
from poseidon_py.devices.objects import DeviceClass
from poseidon_py.devices.pod_needs import ExtendedRequest

_LATER = 1 << 30
"""Beyond the position of any init container."""


class RequestMapping(NamedTuple):
    """An entry of status.extendedResourceClaimStatus.requestMappings."""

    container: str
    resource: str
    request: str


class ExtendedClaim(NamedTuple):
    requests: tuple[Request, ...]
    mappings: tuple[RequestMapping, ...]

    @property
    def by_resource(self) -> tuple[tuple[str, Request], ...]:
        """Each request with the resource that it is for."""
        resource = {mapping.request: mapping.resource for mapping in self.mappings}
        return tuple((resource[each.name], each) for each in self.requests)

    def among(self, served: Callable[[str], bool]) -> "ExtendedClaim":
        """The part for the resources that devices serve on a node."""
        mappings = tuple(each for each in self.mappings if served(each.resource))
        names = {each.request for each in mappings}
        return ExtendedClaim(tuple(each for each in self.requests if each.name in names), mappings)

    def spec(self, version: str) -> dict[str, Any]:
        """The spec of the claim, in a version of the API."""
        return {"devices": {"requests": [_written(each, version) for each in self.requests]}}


def extended_claim(needs: Iterable[ExtendedRequest], serving: Callable[[str], DeviceClass | None]) -> ExtendedClaim:
    """The claim for those of a pod's extended resources that a class serves, in the order of its containers."""
    requests: list[Request] = []
    mappings: list[RequestMapping] = []
    given: dict[str, list[tuple[str, int, int]]] = {}
    """Resource -> name of a request, amount, and the position before which init containers may use its devices."""
    ordered = sorted(needs, key=lambda each: (each.initial, each.position))
    number_of: dict[int, int] = {}
    for need in ordered:
        device_class = serving(need.resource)
        if device_class is None:
            continue
        missing, there = need.amount, given.setdefault(need.resource, [])
        if need.initial:
            for name, amount, runs_since in there:
                if missing > 0 and need.position < runs_since:
                    mappings.append(RequestMapping(need.container, need.resource, name))
                    missing -= amount
        if missing <= 0:
            continue
        at = number_of.get(need.position, 0)
        number_of[need.position] = at + 1
        name = f"container-{need.position}-request-{at}"
        selection = Selection(selectors_of(device_class.spec.selectors or (), "spec"))
        asked = Alternative(name, device_class.metadata.name, selection, missing, False, ())
        requests.append(Request(name, (asked,)))
        mappings.append(RequestMapping(need.container, need.resource, name))
        there.append((name, missing, need.position if need.sidecar else _LATER))
    return ExtendedClaim(tuple(requests), tuple(mappings))


def _written(request: Request, version: str) -> dict[str, Any]:
    (asked,) = request.alternatives
    exactly = {"deviceClassName": asked.class_name, "allocationMode": "ExactCount", "count": asked.number}
    return {"name": request.name} | (exactly if version == "v1beta1" else {"exactly": exactly})
