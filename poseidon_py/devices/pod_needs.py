"""What a pod's object says about the devices that it needs. Pure."""

from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Raw, Struct, field

from poseidon_py.devices.columns import NO_KIND, Kind
from poseidon_py.devices.objects import IMPLICIT_RESOURCE, PodClaim, PodClaimStatus
from poseidon_py.kube.objects import NOTHING, Amounts, Container, InvalidField, Pod, ResourceRequirements, decode
from poseidon_py.kube.quantity import QuantityError, nanos, requested


class _SchedulingGroup(Struct):
    name: str | None = field(default=None, name="podGroupName")


class ClaimEntry(NamedTuple):
    """An entry of spec.resourceClaims."""

    name: str
    claim: str
    """Name of the claim; empty: it is not made yet."""
    generated: bool
    """Whether the claim is made from a template, for this pod or its group."""
    template: str = ""

    @property
    def named(self) -> str:
        """The claim that the pod itself names; empty: none."""
        return "" if self.generated else self.claim


class ExtendedRequest(NamedTuple):
    """What a container requests of an extended resource."""

    container: str
    position: int
    """Of the container, init containers first."""
    resource: str
    amount: int
    initial: bool
    """Whether the container ends before the regular ones start."""
    sidecar: bool = False
    """Whether it starts in its turn among the init containers, and runs on."""


@dataclass(slots=True)
class DeviceNeeds:
    """Devices of a pod."""

    entries: tuple[ClaimEntry, ...] = ()
    extended: tuple[ExtendedRequest, ...] = ()
    group: str = ""
    """The PodGroup of Kubernetes that the pod names."""
    match: str = ""
    """Attribute whose value is that of all devices of its gang; empty: none."""
    gang: int = 0
    """Id of its gang, as it was described last."""
    of_group: bool = False
    """Whether some of its claims are that group's, as it was described last."""
    blocked: str = ""
    """Why its claims exclude every node; empty: they do not."""
    kind: Kind = NO_KIND
    """What is to be allocated, as it was described last."""
    columns: tuple[tuple[str, int], ...] = ()
    """What it counts as in the engine, likewise."""

    @property
    def any(self) -> bool:
        return bool(self.entries or self.extended)

    @property
    def is_tied(self) -> bool:
        """Whether its successor has the same claims, which keep it where their devices are."""
        return self.of_group or any(not entry.generated for entry in self.entries)


NO_DEVICES = DeviceNeeds()
"""Those of all pods without claims. Never changed."""


def claim_entries(pod: Pod) -> tuple[ClaimEntry, ...]:
    """The claims of a pod, without those that it turned out not to need. Raises InvalidField."""
    if not pod.spec.resource_claims:
        return ()
    made = {}
    for status in decode(pod.status.claims, list[PodClaimStatus], "status.resourceClaimStatuses") or ():
        made[status.name] = status.claim
    found = []
    for at, raw in enumerate(pod.spec.resource_claims):
        entry = decode(raw, PodClaim, f"spec.resourceClaims[{at}]") or PodClaim()
        if entry.claim:
            found.append(ClaimEntry(entry.name, entry.claim, generated=False))
        elif not entry.template:
            raise InvalidField(
                f"spec.resourceClaims[{at}]",
                "names no claim; give resourceClaimName or resourceClaimTemplateName",
            )
        elif (name := made.get(entry.name, "")) is not None:
            found.append(ClaimEntry(entry.name, name, True, entry.template))
    return tuple(found)


def group_of(pod: Pod) -> str:
    """The name of its PodGroup; empty: it names none, or one that cannot be read, as is said of its gang."""
    try:
        found = decode(pod.spec.scheduling_group, _SchedulingGroup, "spec.schedulingGroup")
    except InvalidField:
        return ""
    return found.name or "" if found is not None else ""


def extended_requests(pod: Pod) -> tuple[ExtendedRequest, ...]:
    """What the containers request of resources with a domain, which devices may serve. Raises InvalidField."""
    found: list[ExtendedRequest] = []
    spec = pod.spec
    initial = list(spec.init_containers or ())
    for at, container in enumerate((*initial, *(spec.containers or ()))):
        raw = container.resources
        if raw is NOTHING or b"/" not in bytes(raw):
            continue
        sidecar = at < len(initial) and container.restart_policy == "Always"
        found += _of_container(raw, container, at, ends=at < len(initial) and not sidecar, sidecar=sidecar)
    return tuple(found)


def _of_container(raw: Raw, container: Container, index: int, *, ends: bool, sidecar: bool) -> list[ExtendedRequest]:
    stated = decode(raw, ResourceRequirements, f"container {container.name}: resources")
    amounts: Amounts = (stated.requests if stated is not None else None) or {}
    found = []
    for resource, value in sorted(amounts.items()):
        if "/" not in resource or (resource.partition("/")[0].endswith("kubernetes.io") and not _is_implicit(resource)):
            continue
        try:
            amount = requested(resource, nanos(str(value)))
        except QuantityError as error:
            raise InvalidField(f"container {container.name}: resources.requests[{resource}]", str(error)) from error
        if amount > 0:
            found.append(ExtendedRequest(container.name, index, resource, amount, ends, sidecar))
    return found


def _is_implicit(resource: str) -> bool:
    return resource.startswith(IMPLICIT_RESOURCE)
