"""What the devices of pods count as in the quotas of queues.

A claim that several pods name counts for one of them: the first of those that run, or else the one that is placed
first. When that one ends, it counts for the next. So the quota of a queue holds what its pods have, each device once.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from poseidon_py.devices.book import DeviceBook
from poseidon_py.devices.device_quotas import DeviceQuotas, NoQuotaError, devices_given
from poseidon_py.devices.device_requests import MissingClassError
from poseidon_py.kube.objects import InvalidField
from poseidon_py.state.devices.claim_cache import ClaimCache, ClaimKey
from poseidon_py.state.devices.extended import extended_claim
from poseidon_py.state.records import PodRecord


class QuotaUse:
    """See the module."""

    def __init__(
        self,
        book: DeviceBook,
        cache: ClaimCache,
        pods: Mapping[str, PodRecord],
        quotas: Callable[[], DeviceQuotas],
    ) -> None:
        self._book = book
        self._cache = cache
        self._pods = pods
        self._quotas = quotas

    def problem_of(self, known: PodRecord) -> str:
        """Why a pod waits in its queue, whatever its quota; empty: it is in none, or its devices can be counted."""
        quotas = self._quotas()
        if not known.queue.id or not (quotas.exclusive or quotas.resource_of):
            return ""
        try:
            for entry in known.devices.entries:
                claim = self._cache.claims.get((known.namespace, entry.claim))
                quotas.check_entry(entry.claim, generated=entry.generated)
                if claim is not None:
                    quotas.check(self._book.requests_of(claim), entry.claim)
            for resource, name in self._extended(known):
                why = quotas.uncounted.get(name)
                if quotas.exclusive and why:
                    raise NoQuotaError(f"extended resource {resource}: device class {name} has no quota: {why}")
        except NoQuotaError as error:
            return str(error)
        except (MissingClassError, InvalidField):
            return ""  # blocks the pod already
        return ""

    def amounts_of(self, known: PodRecord) -> dict[str, int]:
        """What the devices of a pod count as, by resource; without those that count by the resources it requests."""
        quotas = self._quotas()
        found: Counter[str] = Counter()
        if not quotas.resource_of:
            return found
        for entry in known.devices.entries:
            key = known.namespace, entry.claim
            claim = self._cache.claims.get(key)
            if claim is None or self._counted_for(key) is not known:
                continue
            try:
                requests = self._book.requests_of(claim)
            except (MissingClassError, InvalidField):
                continue
            found += quotas.amounts(requests, devices_given(claim))
        serving = self._book.class_serving
        for resource, request in extended_claim(known.devices.extended, serving).by_resource:
            for asked in request.alternatives:
                if name := quotas.counts_as(resource, asked.class_name):
                    found[name] += asked.number
        return found

    def _extended(self, known: PodRecord) -> list[tuple[str, str]]:
        """Extended resources of a pod that devices serve, each with the class that does."""
        found = ((each.resource, self._book.class_serving(each.resource)) for each in known.devices.extended)
        return [(resource, serving.metadata.name) for resource, serving in found if serving is not None]

    def _counted_for(self, key: ClaimKey) -> PodRecord | None:
        """The pod as part of which the devices of a claim count in the quotas; None: none does yet."""
        users = (self._pods.get(uid) for uid in self._cache.users.get(key, ()))
        present = [each for each in users if each is not None and (each.node or each.assumed or each.schedulable)]
        return min(
            present,
            key=lambda each: (not each.node, not each.assumed, -each.described.priority, each.created_us, each.uid),
            default=None,
        )
