"""What a pod requests of each resource, exactly as kube-scheduler counts it.

    containers        sum of the regular containers and of the restartable init containers (sidecars)
    init containers   each with its own requests and those of the sidecars started before it
    pod               the larger of the two, resource by resource
    spec.resources    replaces that for cpu, memory and huge pages, if it has requests
    overhead          is added
    pods              1

A container that is being resized in place counts with the largest of its spec, its allocated resources and its
resources in force; if the node has reported the resize as infeasible, the spec does not count.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Raw
from msgspec.json import encode

from poseidon_py.kube.objects import (
    NOTHING,
    Amounts,
    Container,
    ContainerStatus,
    InvalidField,
    Pod,
    PodSpec,
    ResourceRequirements,
    decode,
)
from poseidon_py.kube.quantity import PODS, QuantityError, nanos, offered, requested, schedulable

_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"
_EXAMPLE = "give RESOURCE=AMOUNT pairs like cpu=16,memory=64Gi"
_NAMES = "cpu, memory, ephemeral-storage, hugepages-SIZE, or a name with a domain like nvidia.com/gpu"

Sums = dict[str, int]
"""Resource -> billionths of its unit."""


def requests(pod: Pod) -> dict[str, int]:
    """Resource -> amount in the engine's units: millicores, bytes, pieces. Raises InvalidField."""
    total = _of_containers(pod)
    own = decode(pod.spec.resources, ResourceRequirements, "spec.resources")
    if own is not None and own.requests:
        stated = _amounts(own.requests, "spec.resources.requests")
        if pod.status.resources is not NOTHING and bytes(pod.status.resources) not in (b"", b"null"):
            in_force = decode(pod.status.resources, ResourceRequirements, "status.resources")
            actual = _amounts((in_force.requests if in_force else None) or {}, "status.resources.requests")
            allocated = _amounts(decode(pod.status.allocated, Amounts, "status.allocatedResources") or {}, "status")
            stated_now = _effective(pod, stated, actual, allocated)
            stated = {name: stated_now.get(name, 0) for name in stated}
        for name, amount in stated.items():
            if name in _POD_LEVEL or name.startswith(_HUGE_PAGES):
                total[name] = amount
    overhead = decode(pod.spec.overhead, Amounts, "spec.overhead")
    if overhead:
        _add(total, _amounts(overhead, "spec.overhead"))
    counted = {name: requested(name, amount) for name, amount in total.items() if schedulable(name)}
    counted = {name: amount for name, amount in counted.items() if amount}
    counted[PODS] = 1
    return counted


def requests_of_template(spec: Raw, path: str) -> dict[str, int]:
    """What a pod of a template's spec will request, as `requests`: the API server gives containers their limits as
    requests where these are missing. Raises InvalidField."""
    stated_spec = decode(spec, dict[str, Any], path) or {}
    for kind in ("containers", "initContainers"):
        for container in stated_spec.get(kind) or ():
            resources = container.get("resources") or {}
            container["resources"] = {
                "requests": {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
            }
    return requests(Pod(spec=decode(Raw(encode(stated_spec)), PodSpec, path) or PodSpec()))


def _of_containers(pod: Pod) -> Sums:
    spec = pod.spec
    if not spec.containers:
        raise InvalidField("spec.containers", "is empty; give at least one container")
    statuses = {s.name: s for s in (*(pod.status.containers or ()), *(pod.status.init_containers or ()))}
    total: Sums = {}
    for at, container in enumerate(spec.containers):
        _add(total, _of_container(pod, container, statuses, f"spec.containers[{at}]"))
    sidecars: Sums = {}
    least: Sums = {}
    for at, container in enumerate(spec.init_containers or ()):
        path = f"spec.initContainers[{at}]"
        if container.restart_policy == "Always":
            needs = _of_container(pod, container, statuses, path)
            _add(total, needs)
            _add(sidecars, needs)
        else:
            needs = _of_container(pod, container, {}, path)  # only sidecars can be resized
            _add(needs, sidecars)
            _raise(least, needs)
    _raise(total, least)
    return total


def _of_container(pod: Pod, container: Container, statuses: Mapping[str, ContainerStatus], path: str) -> Sums:
    stated = decode(container.resources, ResourceRequirements, f"{path}.resources")
    stated_requests = _amounts((stated.requests if stated else None) or {}, f"{path}.resources.requests")
    status = statuses.get(container.name)
    if status is None or bytes(status.resources) in (b"", b"null"):
        return stated_requests
    in_force = decode(status.resources, ResourceRequirements, f"status of {container.name}")
    actual = _amounts((in_force.requests if in_force else None) or {}, f"status of {container.name}")
    allocated = _amounts(decode(status.allocated, Amounts, f"status of {container.name}") or {}, "allocatedResources")
    return _effective(pod, stated_requests, actual, allocated)


def _effective(pod: Pod, stated: Sums, actual: Sums, allocated: Sums) -> Sums:
    largest: Sums = {}
    if not _resize_is_infeasible(pod):
        _raise(largest, stated)
    _raise(largest, actual)
    _raise(largest, allocated)
    return largest


def _resize_is_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _amounts(given: Amounts, path: str) -> Sums:
    return {name: _amount(value, f"{path}[{name}]") for name, value in given.items()}


def _amount(value: str | int | float | None, path: str) -> int:
    try:
        amount = nanos(str(value)) if value is not None else 0
    except QuantityError as error:
        raise InvalidField(path, f"{error}; give one like 500m or 2Gi") from error
    if amount < 0:
        raise InvalidField(path, f"{value!r} is negative; give 0 or more")
    return amount


def _add(sums: Sums, added: Mapping[str, int]) -> None:
    for name, amount in added.items():
        sums[name] = sums.get(name, 0) + amount


def _raise(sums: Sums, least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        if amount > sums.get(name, -1):
            sums[name] = amount


def offered_by(allocatable: Iterable[tuple[str, str | int | float | None]]) -> dict[str, int]:
    """A node's allocatable amounts in the engine's units, without unschedulable resources. Raises InvalidField."""
    return {
        name: offered(name, _amount(value, f"status.allocatable[{name}]"))
        for name, value in allocatable
        if schedulable(name)
    }


def stated(text: str, field: str) -> dict[str, int]:
    """Resource -> amount, as `requests`, of a pod with requests that a user writes like cpu=16,memory=64Gi.

    `field`: the name of the text in errors. Raises InvalidField.
    """
    found: dict[str, int] = {}
    for pair in text.split(","):
        name, equals, amount = (part.strip() for part in pair.partition("="))
        if not (name and equals and amount):
            raise InvalidField(field, f"{pair.strip()[:64]!r} is not a request; {_EXAMPLE}")
        if name == PODS or not schedulable(name):
            raise InvalidField(field, f"{name[:64]!r} is not a resource that pods request; give {_NAMES}")
        if name in found:
            raise InvalidField(field, f"{name} is given twice; give each resource once")
        try:
            found[name] = requested(name, nanos(amount))
        except QuantityError as error:
            raise InvalidField(field, f"the amount of {name}: {error}; give one like 500m or 2Gi") from error
        if found[name] <= 0:
            raise InvalidField(field, f"the amount of {name} is {amount}; give more than 0")
    return found | {PODS: 1}
