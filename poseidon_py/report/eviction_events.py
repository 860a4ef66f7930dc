"""Events on pods that are evicted: victims of preemption, also those that are announced, pods that move, and pods of
queues that drain."""

from poseidon_py.describe.annotations.preemption_terms import Announcement
from poseidon_py.report.events import Reporter
from poseidon_py.state.records import PodRecord


class EvictionEvents:
    """Publishes the outcomes of evictions by a Reporter."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def preempted(self, known: PodRecord, preemptor: PodRecord | None, node: str) -> None:
        """The bound pod is deleted, so that another one fits on its node. None: one that an earlier leader knew."""
        by = f"pod {preemptor.uid}" if preemptor is not None else "a pod of higher priority"
        message = f"Preempted by {by} on node {node}"
        self._reporter.about(known, "Preempted", message, action="Preempting", related=preemptor)

    def announced(self, known: PodRecord, announcement: Announcement) -> None:
        """The bound pod will be evicted, so that another one fits."""
        message = f"Will be evicted at {announcement.time}, so that pod {announcement.preemptor} fits"
        self._reporter.about(known, "EvictionAnnounced", message, action="Preempting")

    def retracted(self, known: PodRecord) -> None:
        """The bound pod keeps running, although its eviction was announced."""
        message = "Keeps running: the announced eviction is not needed any more"
        self._reporter.about(known, "EvictionCancelled", message, action="Preempting")

    def drained(self, known: PodRecord, queue: str) -> None:
        """The bound pod is evicted, because its queue drains."""
        message = f"{self._reporter.component}: evicted from node {known.node}: queue {queue} drains"
        self._reporter.about(known, "QueueDrained", message, action="Draining")

    def migrated(self, known: PodRecord, node: str, target: str, needed_by: str) -> None:
        """The bound pod is evicted from its node by a plan of moves, so that another pod fits, or because another node
        costs less."""
        less, fits = f", because node {target} costs less", f" for node {target}, so that pod {needed_by} fits"
        why = f" for node {target}: {known.planned}" if known.planned else fits if needed_by else less
        message = f"{self._reporter.component}: evicted from node {node}{why}"
        self._reporter.about(known, "Migrated", message, action="Migrating")

    def remark(self, known: PodRecord, reason: str, message: str) -> None:
        """An additional event on the pod."""
        self._reporter.remark(known, reason, message)

    def failed(self, known: PodRecord, message: str) -> None:
        """A preemption for the pending pod has failed."""
        self._reporter.failed(known, message)
