"""Follows what pods' annotations say about delayed preemptions, as long as no component of this process writes it."""

from collections.abc import Callable

from poseidon_py.describe.annotations.preemption_terms import announcement_of, is_privileged
from poseidon_py.kube.objects import Pod
from poseidon_py.state.records import PodRecord


class Announced:
    """`observe` each pod; `pods_listed` after all of them."""

    def __init__(self) -> None:
        self.follows = True
        """Whether the annotations have the truth; otherwise the leader, which writes them."""
        self.listed = False
        """Whether all pods have been listed once."""
        self.on_list: Callable[[], None] = lambda: None
        """Called when all pods have been listed, after the start and again later."""

    def observe(self, known: PodRecord, pod: Pod) -> None:
        if self.follows:
            known.announced = announcement_of(pod) if known.node else None
            known.privileged = not known.node and is_privileged(pod)

    def pods_listed(self) -> None:
        self.listed = True
        self.on_list()
