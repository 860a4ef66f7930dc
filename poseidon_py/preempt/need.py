"""Whether evictions serve a purpose still: their preemptors come and go while victims get their notice."""

from poseidon_py.preempt.eviction import Eviction
from poseidon_py.preempt.permission import Permission
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store


class Need:
    """Of evictions, for pending pods."""

    def __init__(self, store: Store, permission: Permission) -> None:
        self._store = store
        self._permission = permission

    def is_over(self, eviction: Eviction) -> bool:
        """Whether no pod needs it any more, or this process may not carry it out."""
        if self._permission.halted or (eviction.gang is not None and eviction.gang.dropped):
            return True
        if eviction.decided:
            return False
        if eviction.announcement is not None and self._is_spared(eviction.known, eviction.preemptor):
            return True
        return not any(self.is_awaited(each) for each in eviction.together)

    def _is_spared(self, victim: PodRecord, preemptor: PodRecord | None) -> bool:
        """Whether it may not be preempted any more. In queues, the priority of the preemptor's whole job counts, which
        is not known here."""
        rules = self._store.preemption_rules
        if not rules.preemptible(victim):
            return True
        least, until_us = rules.exemption(victim, self._store.now_us())
        if preemptor is None or preemptor.queue.id:
            return False
        return preemptor.described.priority < least and self._store.now_us() < until_us

    def is_awaited(self, eviction: Eviction, without: PodRecord | None = None) -> bool:
        """Whether its preemptor, unless that is `without`, or another pod waits for the node."""
        preemptor, nominations = eviction.preemptor, self._store.nominations
        waiting = preemptor if preemptor is not without and _waits(preemptor) else None
        if eviction.announcement is None:
            return preemptor is None or waiting is not None or nominations.others_on(eviction.node, preemptor)
        # the decision may be old: nominations count
        nominated_elsewhere = eviction.for_quota and waiting is not None and bool(waiting.nominated)
        return nominated_elsewhere or nominations.others_on(eviction.node, without)

    def is_served(self, eviction: Eviction) -> bool:
        """Whether its preemptor is being bound, without the victim having left."""
        return eviction.preemptor is not None and eviction.preemptor.state is PodState.ASSUMED


def _waits(known: PodRecord | None) -> bool:
    """Whether the pod has no node yet."""
    return known is not None and known.schedulable and known.state in (PodState.WAITING, PodState.ASSUMED)
