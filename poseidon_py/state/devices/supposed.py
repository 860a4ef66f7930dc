"""What the devices of pods that are only supposed count as.

Nodes offer the columns of kinds that wait. Those of a supposed kind are offered from `columns_of` to `forget`.
"""

from itertools import count
from typing import NamedTuple

from poseidon_py.devices.columns import Kind
from poseidon_py.devices.device_quotas import NoQuotaError
from poseidon_py.devices.device_requests import ClaimRequests, MissingClassError, requests_of
from poseidon_py.devices.objects import ClaimDevices, DeviceClaimSpec
from poseidon_py.devices.pod_needs import ClaimEntry, claim_entries, extended_requests
from poseidon_py.kube.objects import InvalidField, Pod
from poseidon_py.state.devices.claim_cache import ClaimKey
from poseidon_py.state.devices.extended import extended_claim
from poseidon_py.state.devices.gate import DeviceGate

_numbers = count()
_PATH = "spec.resourceClaims"
_WITHOUT = "leave it out and ask without"


class ClaimSpecs(NamedTuple):
    """Claims and templates that are known besides those of the cluster's claims, by namespace and name."""

    claims: dict[ClaimKey, DeviceClaimSpec]
    templates: dict[ClaimKey, DeviceClaimSpec]


class SupposedPods:
    """Pods of one question."""

    def __init__(self, gate: DeviceGate, specs: ClaimSpecs, *, in_queue: bool) -> None:
        """`in_queue`: whether the quotas of a queue count for them."""
        self._gate = gate
        self._specs = specs
        self._in_queue = in_queue
        self._number = next(_numbers)
        self._joined: list[str] = []
        self.shared: dict[str, None] = {}
        """Claims that pods name, which several of them may share."""

    def columns_of(self, pod: Pod) -> dict[str, int]:
        """What a pod counts as. Raises InvalidField for claims of which that is not known."""
        gate, book = self._gate, self._gate.book
        entries = claim_entries(pod)
        if entries and gate.unreadable:
            raise InvalidField(_PATH, f"{gate.unreadable}; {_WITHOUT}")
        quotas = gate.device_quotas()
        requests, counted = [], dict[str, int]()
        for entry in entries:
            asked = self._requests_of(pod.metadata.namespace, entry)
            requests.append(asked)
            try:
                if self._in_queue:
                    quotas.check_entry(entry.claim, generated=entry.generated)
                    quotas.check(asked, entry.claim or entry.template)
            except NoQuotaError as error:
                raise InvalidField(_PATH, str(error)) from error
            for resource, amount in quotas.amounts(asked, {}).items():
                counted[resource] = counted.get(resource, 0) + amount
        extended = extended_claim(extended_requests(pod), book.class_serving)
        for resource, request in extended.by_resource:
            for each in request.alternatives:
                if name := quotas.counts_as(resource, each.class_name):
                    counted[name] = counted.get(name, 0) + each.number
        kind = Kind(tuple(requests), extended.by_resource)
        if kind == Kind():
            return counted
        book.count_sets(kind)
        amounts = book.amounts(kind)
        if kind.column in amounts:
            self._joined.append(f"supposed/{self._number}/{kind.column}")
            gate.offers.join(self._joined[-1], kind)
        return {**counted, **amounts}

    def _requests_of(self, namespace: str, entry: ClaimEntry) -> ClaimRequests:
        claim = self._gate.cache.claims.get((namespace, entry.claim)) if entry.named else None
        if entry.named:
            self.shared[entry.named] = None
        if claim is not None and self._gate.cache.allocation(claim) is not None:
            why = f"{entry.claim!r} has its devices, and its pods have no choice of nodes"
            raise InvalidField(_PATH, f"{why}; {_WITHOUT}")
        specs = self._specs.claims if entry.named else self._specs.templates
        spec = claim.spec if claim is not None else specs.get((namespace, entry.named or entry.template))
        if spec is None:
            what = f"claim {entry.claim!r}" if entry.named else f"template {entry.template!r}"
            raise InvalidField(_PATH, f"{what} does not exist; add it to the manifest, or {_WITHOUT}")
        try:
            return requests_of(spec.devices or ClaimDevices(), self._gate.book.classes)
        except MissingClassError as error:
            raise InvalidField(_PATH, str(error)) from error

    def forget(self) -> None:
        for name in self._joined:
            self._gate.offers.leave(name)
