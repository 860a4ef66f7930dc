"""Listeners of the store: protocols that it calls for changes that the watches report."""

from collections.abc import Container
from typing import Protocol

from poseidon_py.kube.objects import Pod
from poseidon_py.state.records import PodRecord


class PodListener(Protocol):
    """Is told what the watch of pods reports, of deleted ones before the store forgets them. Pods of all schedulers,
    and ended ones."""

    def observed(self, pod: Pod) -> None:
        """The pod exists."""
        ...

    def removed(self, pod: Pod) -> None:
        """The pod was deleted. `pod`: its last state, or its metadata alone."""
        ...

    def listed(self, uids: Container[str]) -> None:
        """These pods exist, and no others."""
        ...


class SettledListener(Protocol):
    """Is notified when a pod is no longer pending."""

    def settled(self, known: PodRecord) -> None:
        """The watch reports the pod bound or deleted."""
        ...


class ProblemListener(Protocol):
    """Is notified of problems that prevent pods from being scheduled."""

    def invalid(self, namespace: str, name: str, uid: str, problem: str) -> None:
        """The pod cannot be described; called once for each problem."""
        ...

    def annotation_ignored(self, known: PodRecord) -> None:
        """`known.described.ignored` has changed."""
        ...

    def not_honoured(self, known: PodRecord) -> None:
        """`known.described.reported` has changed."""
        ...

    def blocked(self, known: PodRecord) -> None:
        """The pod cannot be placed because of its volumes; also called when the reason changes."""
        ...
