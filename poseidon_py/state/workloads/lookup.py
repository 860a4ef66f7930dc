"""The workload of pods, and the pods of a workload.

The workload of a pod is the uppermost of its owners that can be suspended: the controller of a TrainJob decides whether
its JobSet is suspended, and that of the JobSet about its Jobs.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol

from poseidon_py.state.gangs.model import MAX_OWNERS, OwnerOrGroup
from poseidon_py.state.records import PodRecord


class Owners(Protocol):
    """The part of gangs.model.Objects that the lookup uses."""

    def known_owner(self, uid: str) -> OwnerOrGroup | None: ...
    def children(self, uid: str) -> Iterable[OwnerOrGroup]: ...


class Suspender(Protocol):
    """What suspends workloads in place of deletions of their pods."""

    def leaving(self, pods: Iterable[PodRecord]) -> Iterator[list[PodRecord]]:
        """Of these pods, which are to leave, those that can leave by the suspension of their workload, together."""

    async def suspend(self, pods: Collection[PodRecord], reason: str, why: str) -> bool:
        """Suspends the workload of these pods, which are all that it has; `reason`: in one word. False: it must not or
        cannot be done, and the pods are to be deleted."""


class NoSuspension:
    """A Suspender that suspends nothing."""

    def leaving(self, pods: Iterable[PodRecord]) -> Iterator[list[PodRecord]]:
        return iter(())

    async def suspend(self, pods: Collection[PodRecord], reason: str, why: str) -> bool:
        return False


class Workloads:
    """Looks workloads up."""

    def __init__(
        self,
        pods: Mapping[str, PodRecord],
        owned: Mapping[str, Collection[str]],
        owners: Callable[[], Owners],
    ) -> None:
        """`owned`: UID of a controller -> UIDs of its pods."""
        self._pods = pods
        self._owned = owned
        self._owners = owners

    def of(self, known: PodRecord) -> OwnerOrGroup | None:
        """The workload of a pod; None: none of its owners can be suspended, as far as they are known."""
        return self.above(known.owner)

    def above(self, uid: str) -> OwnerOrGroup | None:
        """The uppermost that can be suspended of an owner and those above it."""
        owners, found = self._owners(), None
        for _ in range(MAX_OWNERS):
            if not uid:
                break
            if (owner := owners.known_owner(uid)) is not None:
                found = owner if owner.suspension is not None else found
                uid = owner.owner.uid if owner.owner is not None else ""
            else:
                pod = self._pods.get(uid)  # the driver of a Spark application owns its executors
                uid = pod.owner if pod is not None else ""
        return found

    def owners_of(self, owner: OwnerOrGroup) -> list[OwnerOrGroup]:
        """The owner of an owner, the owner of that, and so on, as far as they are known."""
        owners, found = self._owners(), [owner]
        while (above := found[-1].owner) is not None and len(found) <= MAX_OWNERS:
            if (known := owners.known_owner(above.uid)) is None:
                break
            found.append(known)
        return found[1:]

    def pods_of(self, uid: str) -> Iterator[PodRecord]:
        """All pods of an owner, also those of the owners and pods below it."""
        owners, left, seen = self._owners(), [uid], {uid}
        while left:
            above = left.pop()
            below = [child.uid for child in owners.children(above)]
            for pod in self._owned.get(above, ()):
                yield self._pods[pod]
                below.append(pod)
            left += (each for each in below if each not in seen)
            seen.update(below)

    def whole(self, pods: Iterable[PodRecord]) -> Iterator[tuple[OwnerOrGroup, list[PodRecord]]]:
        """The workloads that lose all placed pods if these leave, each with its pods among them. Those that must not be
        suspended are left out."""
        found: dict[str, tuple[OwnerOrGroup, dict[str, PodRecord]]] = {}
        for known in pods:
            workload = self.of(known) if known.owner else None
            if workload is not None and not (workload.suspension is None or workload.suspension.refused):
                found.setdefault(workload.uid, (workload, {}))[1][known.uid] = known
        for workload, leaving in found.values():
            if all(known.uid in leaving or not _stays(known) for known in self.pods_of(workload.uid)):
                yield workload, list(leaving.values())


def _stays(known: PodRecord) -> bool:
    """Whether a pod has a node, and is not about to leave."""
    observed = known.observed
    return bool(known.node or known.assumed) and not (observed.deleting or (known.preempting and observed.disrupted))
