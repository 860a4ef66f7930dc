"""What the registry of gangs announces; `app/gangs.py` listens."""

from poseidon_py.state.gangs.group import Group
from poseidon_py.state.records import PodRecord


class GangListener:
    """Ignores everything; subclasses override what concerns them."""

    def gang_blocked(self, known: PodRecord, why: str) -> None:
        """A pod is not sent to the engine, because its gang is unknown or invalid."""

    def gang_invalid(self, known: PodRecord, problem: str) -> None:
        """The gang that a pod declares is invalid, or part of the declaration is ignored."""

    def owner_unreadable(self, known: PodRecord, problem: str) -> None:
        """What an owner of a pod declares has no effect, because it may not be read."""

    def below_minimum(self, group: Group) -> None:
        """A complete gang has fallen below its minimum."""

    def gang_changed(self, group: Group) -> None:
        """A gang or the state of its members may have changed."""

    def half_bound(self, group: Group) -> None:
        """A gang that was never complete, or is broken, has bound members; announced often."""

    def preempted(self, group: Group) -> None:
        """All bound members of a gang are victims of preemption; announced often."""
