"""Reports problems of pods: invalid specifications, volumes that block them, annotations that are ignored.

Every replica records these problems, but only the leader reports them; a new leader reports all of them.
"""

from poseidon_py.report import messages
from poseidon_py.report.events import Reporter
from poseidon_py.rounds.leadership import Leadership
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store

_MAX_PUBLISHED = 10_000


class ProblemReports:
    """A ProblemListener of the store."""

    def __init__(self, store: Store, reporter: Reporter, leadership: Leadership) -> None:
        self._store = store
        self._reporter = reporter
        self._leadership = leadership
        self._published: dict[tuple[str, str], None] = {}
        """Owners, or pods without one, and what was said of their pods."""
        self._attempts = store.metrics.attempts

    def invalid(self, namespace: str, name: str, uid: str, problem: str) -> None:
        """Publishes an event, and the condition if the pod has one of our scheduler names."""
        if not self._leadership.leads:
            return
        known = self._store.pods.get(uid)
        if known is not None and known.schedulable:
            self._reporter.failed(known, messages.cannot_use(problem))
        else:
            self._reporter.invalid(namespace, name, uid, problem)

    def annotation_ignored(self, known: PodRecord) -> None:
        if self._leadership.leads and known.schedulable and known.described.ignored:
            self._reporter.remark(known, "InvalidAnnotation", known.described.ignored)

    def not_honoured(self, known: PodRecord) -> None:
        """Published once for the pods of an owner, which have a template in common."""
        if not (self._leadership.leads and known.schedulable):
            return
        for text in known.described.reported:
            key = (known.owner or known.uid, text)
            if key not in self._published:
                self._published[key] = None
                self._reporter.remark(known, "NotHonoured", text)
        while len(self._published) > _MAX_PUBLISHED:
            del self._published[next(iter(self._published))]

    def blocked(self, known: PodRecord) -> None:
        if not self._leadership.leads or not known.blocked:
            return
        known.attempts += 1
        self._attempts.labels("unschedulable", known.observed.scheduler).inc()
        message = messages.blocked(len(self._store.nodes), known.blocked, known.volumes.blocked_anywhere)
        self._reporter.unschedulable(known, message)

    def lead(self) -> None:
        """Reports what was observed while another replica was the leader."""
        store = self._store
        for uid, (namespace, name, problem) in list(store.problems.invalid.items()):
            self.invalid(namespace, name, uid, problem)
        for known in list(store.waiting()):
            self.annotation_ignored(known)
            self.not_honoured(known)
            if known.blocked:
                store.touch_pod(known.uid)
                self.blocked(known)
