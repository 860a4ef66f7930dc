"""Requests to the API server that only the binding of gangs makes."""

from collections.abc import Callable

import msgspec

from poseidon_py.kube.client import Kube, KubeError, decode_answer, pod_path
from poseidon_py.kube.objects import InvalidField, micros
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.state.workloads.lookup import Suspender


class _Condition(msgspec.Struct):
    type: str = ""
    since: str | None = msgspec.field(default=None, name="lastTransitionTime")


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


class GangRequests:
    """Raises KubeError where a request fails."""

    def __init__(self, kube: Kube, store: Store, suspender: Suspender, holds_lease: Callable[[], bool]) -> None:
        self._kube = kube
        self._store = store
        self._suspender = suspender
        self._holds_lease = holds_lease

    async def evict(self, known: PodRecord) -> None:
        if not self._holds_lease():
            raise KubeError("the lease has run out and is not renewed yet")
        await self._kube.evict_pod(known.namespace, known.name, known.uid)

    async def suspend(self, pods: list[PodRecord], why: str) -> bool:
        """Suspends the workload whose pods these are, if disruption budgets permit their eviction. Whether it has."""
        if self._store.budgets.forbid(self._store.profiles.get(known.described.profile) for known in pods):
            return False
        return await self._suspender.suspend(pods, "GangUnwound", why)

    async def bound_since(self, known: PodRecord) -> int:
        """When the pod was bound, microseconds since the epoch; 0: unknown."""
        body = await self._kube.call("GET", pod_path(known.namespace, known.name))
        conditions = decode_answer(body, _Pod, f"pod {known.full_name}").status.conditions or ()
        try:
            return max((micros(c.since) for c in conditions if c.type == "PodScheduled"), default=0)
        except InvalidField as error:
            raise KubeError(f"the status of {known.full_name} is invalid: {error}") from error
