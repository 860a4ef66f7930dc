"""Who listens to the store: small protocols that it calls as it takes what the watches report."""

from typing import Protocol

from poseidon_py.state.records import PodRecord


class SettledListener(Protocol):
    """Learns that a pod needs no node any more."""

    def settled(self, known: PodRecord) -> None:
        """The watch reports the pod bound, or gone."""
        ...


class ProblemListener(Protocol):
    """Learns why pods cannot be scheduled as they are."""

    def invalid(self, namespace: str, name: str, uid: str, problem: str) -> None:
        """The pod cannot be described; called once for each pod."""
        ...

    def annotation_ignored(self, known: PodRecord) -> None:
        """`known.described.ignored` has changed."""
        ...

    def blocked(self, known: PodRecord) -> None:
        """The pod cannot be placed because of its volumes, or for another reason than before."""
        ...
