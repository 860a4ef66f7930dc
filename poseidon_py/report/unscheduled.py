"""Turns the reasons of a round into a report on each pod that it did not place."""

from collections.abc import Callable, Iterable
from functools import cache

from poseidon_py.report import messages
from poseidon_py.report.plugins import plugins_of
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from protos.gen import flow_pb2

_GANG_REASONS = (flow_pb2.Reason.GANG_INCOMPLETE, flow_pb2.Reason.GANG_FULL)
"""Reasons that also apply in a larger cluster."""
_QUEUE_REASONS = (
    flow_pb2.Reason.OVER_QUOTA,
    flow_pb2.Reason.QUEUE_UNKNOWN,
    flow_pb2.Reason.QUEUE_STOPPED,
    flow_pb2.Reason.QUEUE_BEHIND,
)
"""The same, of queues. NO_FLAVOR is none of them: a new node may suit the pod."""


def waits_for_nodes(reasons: Iterable[flow_pb2.Reason]) -> bool:
    """Whether nodes matter to a pod that waits for these reasons: it waits neither for members of its gang nor for its
    queue."""
    return not any(why.kind in _GANG_REASONS or why.kind in _QUEUE_REASONS for why in reasons)


Report = Callable[[PodRecord, str], None]
"""A pod and the message about it."""


def terms_of(store: Store, gang: Group | None) -> messages.GangTerms:
    """What messages say of a gang; None: a single pod."""
    if gang is None:
        return messages.NO_TERMS
    key = gang.message.topology_key if gang.message is not None and gang.message.topology_required else ""
    absent = bool(key) and not any(node.base is not None and key in node.base.labels for node in store.nodes.values())
    return messages.GangTerms(gang.minimum, gang.missing()[1], key, absent)


class UnscheduledReports:
    """Formats the reasons once for each group of pods that share them."""

    def __init__(
        self,
        store: Store,
        unschedulable: Report,
        waits_for_gang: Report,
        waits_for_quota: Report,
        waits_for_queue: Report,
    ) -> None:
        """`waits_for_gang`: called with pods that wait for other members of their gang to be created, or to end.
        `waits_for_quota`: called with those that wait for quota, or whose queue takes no pods. `waits_for_queue`: with
        those whose queue does not exist, or is not known."""
        self._store = store
        self._unschedulable = unschedulable
        self._waits_for_gang = waits_for_gang
        self._waits_for_quota = waits_for_quota
        self._waits_for_queue = waits_for_queue
        self._attempts = cache(store.metrics.attempts.labels)
        self._durations = cache(store.metrics.attempt_seconds.labels)

    def report(self, groups: Iterable[flow_pb2.Unscheduled], seconds: float = 0.0) -> None:
        """`seconds`: how long the call of the round took."""
        for group in groups:
            refused_by = plugins_of(group.reasons)
            by_gang = any(why.kind in _GANG_REASONS for why in group.reasons)
            by_queue = any(why.kind in _QUEUE_REASONS for why in group.reasons)
            waits = self._waits_for_quota if by_queue else self._unschedulable
            if any(why.kind == flow_pb2.Reason.QUEUE_UNKNOWN for why in group.reasons):
                waits = self._waits_for_queue
            report = self._waits_for_gang if by_gang else waits
            message = ""
            for task in group.task_uid:
                known = self._store.pod_of_task(task)
                # a pod that its volumes block by now has a report on that
                if known is None or not known.schedulable or known.blocked:
                    continue
                if by_queue or not message:  # all pods of a group are in one gang, or none is; queues may differ
                    problem = self._store.queues.problem_of(known) if by_queue else ""
                    terms = terms_of(self._store, self._store.gangs.group_of(known))
                    covered = self._store.queues.covered(known) if by_queue else None
                    message = messages.unscheduled(
                        group.nodes, group.reasons, terms, queue_problem=problem, covered=covered
                    )
                known.attempts += 1
                known.unschedulable_by = refused_by
                of = "unschedulable", known.observed.scheduler
                self._attempts(*of).inc()
                self._durations(*of).observe(seconds)
                if not message and not known.nominated:
                    continue
                self._store.volumes.fits_nowhere(known)
                self._store.devices.fits_nowhere(known)
                report(known, messages.with_nomination(message, known.nominated) if known.nominated else message)
