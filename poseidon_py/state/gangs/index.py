"""The gangs and pods to resolve again when an object changes or becomes known."""

from collections.abc import Iterable

from poseidon_py.state.gangs.model import Owner, OwnerOrGroup, Resource

_MAX_UNDECLARED = 100_000


class NoObjects:
    """The lookups before anything is watched: no PodGroups, no owners."""

    def find(self, resource: Resource, namespace: str, name: str) -> OwnerOrGroup | None:
        return None

    def owner(self, owner: Owner, namespace: str) -> OwnerOrGroup | None:
        return None

    def has_owner(self, uid: str) -> bool:
        return False

    def known_owner(self, uid: str) -> OwnerOrGroup | None:
        return None


class Index:
    """Gangs by the objects that declare them; pods by the lookups that they wait for; owners that declare nothing."""

    def __init__(self) -> None:
        self._gangs: dict[object, set[int]] = {}
        self._of_gang: dict[int, set[object]] = {}
        self._unknown: dict[str, set[str]] = {}
        self.plain: dict[str, Owner] = {}
        """Owners that declare no gang, nor do their own owners; by UID."""

    def link(self, gang_id: int, key: object) -> None:
        """Record that a gang depends on an object: resource, namespace, name of a PodGroup, or the UID of an owner."""
        self._gangs.setdefault(key, set()).add(gang_id)
        self._of_gang.setdefault(gang_id, set()).add(key)

    def forget(self, gang_id: int) -> None:
        for key in self._of_gang.pop(gang_id, ()):
            gangs = self._gangs[key]
            gangs.discard(gang_id)
            if not gangs:
                del self._gangs[key]

    def gangs_of(self, resource: Resource, owner_or_group: OwnerOrGroup) -> set[int]:
        return {
            *self._gangs.get((resource, owner_or_group.namespace, owner_or_group.name), ()),
            *self._gangs.get(owner_or_group.uid, ()),
        }

    def wait(self, uid: str, what: str) -> None:
        """Record that a pod waits for a lookup."""
        self._unknown.setdefault(what, set()).add(uid)

    def stop_waiting(self, uid: str, what: str) -> None:
        waiting = self._unknown.get(what)
        if waiting is not None:
            waiting.discard(uid)
            if not waiting:
                del self._unknown[what]

    def take_waiting(self, what: str) -> Iterable[str]:
        """The UIDs of the pods that waited for a lookup; they wait no longer."""
        return self._unknown.pop(what, ())

    def note_plain(self, owner: Owner) -> None:
        if len(self.plain) >= _MAX_UNDECLARED:
            self.plain.clear()  # kinds that are not watched: their deletion is never seen
        self.plain[owner.uid] = owner

    def not_plain(self, owner_or_group: OwnerOrGroup, *, and_below: bool) -> dict[str, Owner]:
        """Owners to resolve again because this one now declares a gang. and_below: it may own other owners."""
        if and_below:
            found, self.plain = self.plain, {}
            return found
        owner = self.plain.pop(owner_or_group.uid, None)
        return {owner.uid: owner} if owner is not None else {}
