"""Which pods may be preempted, and after which notice.

What a pod's annotations say comes first, then its queue, then its PriorityClass and the settings.
"""

from dataclasses import dataclass
from typing import NamedTuple

from poseidon_py.describe.annotations.class_terms import opted_out
from poseidon_py.state.records import PodRecord

FOREVER_US = 2**63 - 1


class Exemption(NamedTuple):
    """Until `until_us`, microseconds since the epoch, only pods of the priority `least` or a higher one preempt a
    pod."""

    least: int = 0
    until_us: int = 0


NOT_EXEMPT = Exemption()


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
        described = known.described
        own = described.preemption.preemptible
        if own is not None:
            return own
        if not known.queue.preemptible or described.priority_class in self.protected_classes:
            return False
        return not opted_out(described.preemption.opt_outs, described.class_terms.opt_outs)

    def exemption(self, known: PodRecord) -> Exemption:
        """That of a bound pod by its class; it begins when the pod is bound."""
        described, terms = known.described, known.described.class_terms
        if not terms.seconds or described.preemption.preemptible:
            return NOT_EXEMPT
        ends = terms.seconds > 0 and described.scheduled_us > 0
        until_us = min(described.scheduled_us + terms.seconds * 1_000_000, FOREVER_US) if ends else FOREVER_US
        return Exemption(described.priority + 1 if terms.least is None else terms.least, until_us)

    def by_job(self, known: PodRecord) -> bool:
        """Whether its job is preempted entirely or not at all: it says that it may be preempted, or it gets a notice
        and its controller does not replace its pods one by one, as a Deployment does."""
        stated = known.described.preemption.preemptible is True
        return stated or (self.notice_of(known) > 0 and not known.described.lasting)
