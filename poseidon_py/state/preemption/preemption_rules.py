"""Which pods may be preempted, and after which notice.

What a pod's annotations say comes first, then its queue, then its PriorityClass and the settings.
"""

from dataclasses import dataclass
from typing import NamedTuple

from poseidon_py.describe.annotations.class_terms import opted_out
from poseidon_py.state.records import PodRecord

FOREVER_US = 2**63 - 1
_NO_PRIORITY = 2**31 - 1
"""No pod has it."""


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

    def exemption(self, known: PodRecord, now_us: int) -> Exemption:
        """That of a bound pod by its class and its own word; it begins when the pod is bound. While both last, the
        stronger one counts until the longer one ends: see changes_us."""
        by_class, by_itself = self._exemptions(known)
        if now_us < min(by_class.until_us, by_itself.until_us):
            return Exemption(max(by_class.least, by_itself.least), max(by_class.until_us, by_itself.until_us))
        return max(by_class, by_itself, key=lambda each: (each.until_us, each.least))

    def changes_us(self, known: PodRecord, now_us: int) -> int:
        """When a pod's exemption becomes the weaker one, of its class; 0: never. Microseconds since the epoch."""
        by_class, by_itself = self._exemptions(known)
        weakens = now_us < by_itself.until_us < by_class.until_us and by_class.least < by_itself.least
        return by_itself.until_us if weakens else 0

    def _exemptions(self, known: PodRecord) -> tuple[Exemption, Exemption]:
        """By its class, and by itself; of priorities none exceeds that of the latter."""
        described, terms = known.described, known.described.class_terms
        own = described.preemption.protected
        if not (terms.seconds or own) or described.preemption.preemptible:
            return NOT_EXEMPT, NOT_EXEMPT
        least = described.priority + 1 if terms.least is None else terms.least
        by_class = (
            Exemption(least, self._until_us(described.scheduled_us, terms.seconds)) if terms.seconds else NOT_EXEMPT
        )
        by_itself = Exemption(_NO_PRIORITY, self._until_us(described.scheduled_us, own)) if own else NOT_EXEMPT
        return by_class, by_itself

    @staticmethod
    def _until_us(scheduled_us: int, seconds: float) -> int:
        ends = seconds > 0 and scheduled_us > 0
        return min(scheduled_us + int(seconds * 1_000_000), FOREVER_US) if ends else FOREVER_US

    def by_job(self, known: PodRecord) -> bool:
        """Whether its job is preempted entirely or not at all: it says that it may be preempted, or it gets a notice
        and its controller does not replace its pods one by one, as a Deployment does."""
        stated = known.described.preemption.preemptible is True
        return stated or (self.notice_of(known) > 0 and not known.described.lasting)
