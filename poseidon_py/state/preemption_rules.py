"""Which pods may be preempted, and after which notice.

What a pod's annotations say comes first, then its queue, then its PriorityClass and the settings.
"""

from dataclasses import dataclass

from poseidon_py.state.records import PodRecord


@dataclass(frozen=True, slots=True)
class PreemptionRules:
    """notice: seconds between the announcement of a preemption and the preemption, where neither the pod nor its queue
    gives a time. longest_notice: limit on what pods themselves give. protected_classes: PriorityClasses whose pods are
    not preempted."""

    notice: float = 0.0
    longest_notice: float = 3600.0
    protected_classes: frozenset[str] = frozenset()

    def notice_of(self, known: PodRecord) -> float:
        """Seconds; 0: its preemption is not announced."""
        own, of_queue = known.described.preemption.notice, known.queue.notice
        if own is not None:
            return min(own, self.longest_notice)
        return self.notice if of_queue is None else of_queue

    def preemptible(self, known: PodRecord) -> bool:
        own = known.described.preemption.preemptible
        return own if own is not None else known.queue.preemptible and not known.described.protected

    def by_job(self, known: PodRecord) -> bool:
        """Whether its job is preempted entirely or not at all: it says that it may be preempted, or it gets a notice
        and its controller does not replace its pods one by one, as a Deployment does."""
        stated = known.described.preemption.preemptible is True
        return stated or (self.notice_of(known) > 0 and not known.described.lasting)
