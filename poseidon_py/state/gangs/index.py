"""The gangs and pods to resolve again when an object changes or becomes known."""

from collections.abc import Iterable, Sequence

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

    def children(self, uid: str) -> Iterable[OwnerOrGroup]:
        return ()

    def unreadable(self, owner: Owner) -> str:
        return ""

    def serves(self, resource: Resource) -> bool:
        return False


class Index:
    """Gangs by the objects that declare them; pods by the lookups that they wait for; owners that declare nothing."""

    def __init__(self) -> None:
        self._gangs: dict[object, set[int]] = {}
        self._of_gang: dict[int, set[object]] = {}
        self._unknown: dict[str, set[str]] = {}
        self.plain: dict[str, Owner] = {}
        """Owners that declare no gang, nor do their own owners; by UID."""
        self._parents: dict[str, str | None] = {}
        """Their own owners, and the owners of these, by UID; empty: none; None: unknown, because the owner itself could
        not be read."""
        self._children: dict[str, set[str]] = {}
        self._others: dict[str, set[str]] = {}
        """Pods that another scheduler has bound and that declare nothing themselves, by the UID of their owner."""

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

    def has_gang(self, owner: str) -> bool:
        """Whether a gang depends on the owner with this UID."""
        return owner in self._gangs

    def note_other(self, owner: str, uid: str) -> None:
        """Record a pod that another scheduler has bound, whose owner may declare a gang."""
        self._others.setdefault(owner, set()).add(uid)

    def forget_other(self, owner: str, uid: str) -> None:
        there = self._others.get(owner)
        if there is not None:
            there.discard(uid)
            if not there:
                del self._others[owner]

    def take_others(self, owner: str) -> Iterable[str]:
        """Those of an owner that are recorded; they are recorded no more."""
        return self._others.pop(owner, ())

    def note_plain(self, owner: Owner, chain: Sequence[OwnerOrGroup]) -> None:
        """Record that the owner of pods declares no gang, nor do those above it. `chain`: it and these, as far as they
        can be read."""
        if len(self.plain) >= _MAX_UNDECLARED:  # kinds that are not watched: their deletion is never seen
            self.plain.clear()
            self._parents.clear()
            self._children.clear()
        self.plain[owner.uid] = owner
        uid = owner.uid
        for each in chain:
            parent = each.owner.uid if each.owner is not None else ""
            self._parents[uid] = parent
            if parent:
                self._children.setdefault(parent, set()).add(uid)
            uid = parent
        if uid:
            self._parents[uid] = None

    def forget_plain(self, uid: str) -> Owner | None:
        """Forget such an owner. Returns it, if it was recorded."""
        found = self.plain.pop(uid, None)
        while uid and uid not in self.plain and not self._children.get(uid):
            parent = self._parents.pop(uid, None) or ""
            if parent in self._children:
                self._children[parent].discard(uid)
                if not self._children[parent]:
                    del self._children[parent]
            uid = parent
        return found

    def not_plain(self, uid: str, *, declares: bool) -> dict[str, Owner]:
        """Owners of pods to resolve again because this object was observed, itself and those below it: if it declares a
        gang, or could not be read before."""
        if not (declares or (uid in self._parents and self._parents[uid] is None)):
            return {}
        below = [uid]
        for each in below:
            below += self._children.get(each, ())
        found = {each: self.forget_plain(each) for each in reversed(below)}
        return {each: owner for each, owner in found.items() if owner is not None}
