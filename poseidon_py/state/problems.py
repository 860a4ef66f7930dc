"""The problems of pods and nodes: an invalid node, and each problem of a pod, is logged, counted and reported once."""

import logging

from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.listeners import ProblemListener
from poseidon_py.state.records import PodRecord

log = logging.getLogger(__name__)


class Problems:
    """`of_pod` and `of_node` while they exist, `pod_gone` and `node_gone` after that, `pod_valid` in between."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._listeners: list[ProblemListener] = []
        self.invalid: dict[str, tuple[str, str, str]] = {}
        """Invalid pods, by UID: namespace, name, problem."""
        self._reported: dict[str, str] = {}
        """UID of a pod -> the problem that was reported last."""
        self._invalid_nodes: set[str] = set()
        """UIDs."""

    def subscribe(self, listener: ProblemListener) -> None:
        """Notified of the problems of pods."""
        self._listeners.append(listener)

    def of_pod(self, namespace: str, name: str, uid: str, problem: str) -> None:
        """A pod is invalid."""
        self.invalid[uid] = namespace, name, problem
        if self._reported.get(uid) == problem:
            return
        self._reported[uid] = problem
        self._warn("pod", f"{namespace}/{name}", problem)
        for listener in self._listeners:
            listener.invalid(namespace, name, uid, problem)

    def pod_valid(self, uid: str) -> None:
        """As far as is known: the flow service may still reject its class, which is reported once all the same."""
        self.invalid.pop(uid, None)

    def pod_gone(self, uid: str) -> None:
        self.invalid.pop(uid, None)
        self._reported.pop(uid, None)

    def of_node(self, uid: str, name: str, problem: str) -> None:
        """A node is invalid. `uid`: its name if it has none."""
        if uid not in self._invalid_nodes:
            self._invalid_nodes.add(uid)
            self._warn("node", name, problem)

    def node_gone(self, uid: str) -> None:
        self._invalid_nodes.discard(uid)

    def nodes_listed(self, uids: set[str]) -> None:
        """No other nodes exist."""
        self._invalid_nodes &= uids

    def _warn(self, kind: str, name: str, problem: str) -> None:
        log.warning("skipping %s %s: %s", kind, name, problem)
        self._metrics.invalid.labels(kind).inc()

    def set_ignored(self, known: PodRecord, ignored: str) -> None:
        """Sets the problems of the pod's optional annotations, which are ignored; empty: none."""
        if ignored != known.described.ignored:
            known.described.ignored = ignored
            for listener in self._listeners:
                listener.annotation_ignored(known)

    def set_reported(self, known: PodRecord, reported: tuple[str, ...]) -> None:
        """Sets what is said of the pod's labels and annotations that have no effect."""
        if reported != known.described.reported:
            known.described.reported = reported
            for listener in self._listeners:
                listener.not_honoured(known)

    def blocked(self, known: PodRecord) -> None:
        """The pod is blocked by its volumes, or the reason has changed."""
        for listener in self._listeners:
            listener.blocked(known)
