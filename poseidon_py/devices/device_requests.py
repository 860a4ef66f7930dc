"""What claims ask for, with the selectors of their classes: hashable, so that equal pods are one kind.

A request has alternatives, in the order of preference: itself, or its sub-requests (`firstAvailable`).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from poseidon_py.devices.objects import (
    ClaimDevices,
    DeviceClass,
    DeviceSelector,
    DeviceTaint,
    ExactRequest,
    exact_of,
)
from poseidon_py.kube.objects import InvalidField
from poseidon_py.kube.quantity import QuantityError, nanos

_TAINTS_THAT_EXCLUDE = ("NoSchedule", "NoExecute")


class DeviceToleration(NamedTuple):
    key: str
    operator: str
    value: str
    effect: str

    def covers(self, taint: DeviceTaint) -> bool:
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        return self.operator == "Exists" or (self.operator == "Equal" and self.value == (taint.value or ""))


class Selection(NamedTuple):
    """Which devices suit, whatever is in use."""

    selectors: tuple[str, ...]
    """CEL, those of the class first. All must hold; the first that does not ends the evaluation."""
    tolerations: tuple[DeviceToleration, ...] = ()

    def tolerates(self, taints: Iterable[DeviceTaint]) -> bool:
        """Whether no taint keeps the device from being allocated; an effect that is unknown, or None, keeps none."""
        return all(
            taint.effect not in _TAINTS_THAT_EXCLUDE or any(each.covers(taint) for each in self.tolerations)
            for taint in taints
        )


class Alternative(NamedTuple):
    label: str
    """The request's name, or request/sub-request."""
    class_name: str
    selection: Selection
    number: int
    """Of devices; 0: all that suit, at least one."""
    admin: bool
    capacity: tuple[tuple[str, int], ...]
    """Name, qualified or not, and billionths."""


class Request(NamedTuple):
    name: str
    alternatives: tuple[Alternative, ...]


class Constraint(NamedTuple):
    attribute: str
    """Qualified name."""
    distinct: bool
    """Whether all values differ; else they are the same."""
    requests: tuple[str, ...]
    """Names of requests, or request/sub-request; empty: all."""

    def concerns(self, request: Request, chosen: Alternative) -> bool:
        return not self.requests or request.name in self.requests or chosen.label in self.requests


class ClaimRequests(NamedTuple):
    """What one claim asks for."""

    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...] = ()


class MissingClassError(LookupError):
    """A request names a class that does not exist. The text is kube-scheduler's."""


def requests_of(devices: ClaimDevices, classes: Mapping[str, DeviceClass]) -> ClaimRequests:
    """Raises MissingClassError, and InvalidField for what this version does not know."""
    found = []
    for at, request in enumerate(devices.requests or ()):
        path = f"spec.devices.requests[{at}]"
        given: list[tuple[str, str, ExactRequest]]
        if request.first_available:
            given = [
                (f"{request.name}/{each.name}", f"{path}.firstAvailable[{sub}]", each)
                for sub, each in enumerate(request.first_available)
            ]
        else:
            given = [(request.name, f"{path}.exactly", exact_of(request))]
        found.append(Request(request.name, tuple(_alternative(*each, classes) for each in given)))
    constraints = []
    for at, constraint in enumerate(devices.constraints or ()):
        attribute = constraint.match or constraint.distinct
        if not attribute:
            raise InvalidField(
                f"spec.devices.constraints[{at}]", "is of an unknown kind; give matchAttribute or distinctAttribute"
            )
        constraints.append(Constraint(attribute, not constraint.match, tuple(sorted(constraint.requests or ()))))
    return ClaimRequests(tuple(found), tuple(constraints))


def selectors_of(given: Iterable[DeviceSelector], path: str) -> tuple[str, ...]:
    """The expressions of selectors. Raises InvalidField for another kind of selector."""
    found = []
    for at, selector in enumerate(given):
        if selector.cel is None:
            raise InvalidField(f"{path}.selectors[{at}]", "is of an unknown kind; give cel.expression")
        found.append(selector.cel.expression)
    return tuple(found)


def _alternative(label: str, path: str, given: ExactRequest, classes: Mapping[str, DeviceClass]) -> Alternative:
    if not given.class_name:
        raise InvalidField(f"{path}.deviceClassName", "is missing; name a DeviceClass")
    device_class = classes.get(given.class_name)
    if device_class is None:
        raise MissingClassError(f"request {label}: device class {given.class_name} does not exist")
    if given.mode not in (None, "", "ExactCount", "All"):
        raise InvalidField(f"{path}.allocationMode", f"{given.mode!r} is not known; give ExactCount or All")
    number = 0 if given.mode == "All" else given.count or 1
    tolerations = {
        DeviceToleration(each.key or "", each.operator or "Equal", each.value or "", each.effect or "")
        for each in given.tolerations or ()
    }
    selectors = selectors_of(device_class.spec.selectors or (), f"device class {given.class_name}: spec")
    selection = Selection(selectors + selectors_of(given.selectors or (), path), tuple(sorted(tolerations)))
    capacity = []
    for name, amount in ((given.capacity.requests or {}) if given.capacity is not None else {}).items():
        try:
            capacity.append((name, nanos(str(amount))))
        except QuantityError as error:
            raise InvalidField(f"{path}.capacity.requests[{name}]", f"{error}; give one like 10Gi") from error
    return Alternative(label, given.class_name, selection, number, bool(given.admin), tuple(sorted(capacity)))
