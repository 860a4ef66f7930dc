"""Pending pods that contend for claims with access mode ReadWriteOncePod with the bound pods that use them.

Such a pod is sent to the engine, restricted to the node of these users. A token stands for each contended claim: the
users hold it, so that the pod does not fit there until they leave, and the engine finds them as victims.

    pod may preempt all users, which are bound to one node --> users' rows with tokens --> pod's row --> users leave

The pod's row follows those of the users, so that no round places it beside them. Only contended claims have tokens,
because each token is a column in the engine's tables, and splits the classes of the pods that hold it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from poseidon_py.describe.reason_keys import CLAIM_TOKEN
from poseidon_py.state.records import PodRecord
from poseidon_py.state.volumes.cache import ClaimKey


@dataclass(frozen=True, slots=True)
class Contention:
    """What a pending pod contends for: `claims`, with the bound pods `users` (UIDs), which are all on one node."""

    node: str
    claims: frozenset[ClaimKey]
    users: frozenset[str]

    @property
    def tokens(self) -> tuple[str, ...]:
        return tokens_of(self.claims)


def tokens_of(claims: Iterable[ClaimKey]) -> tuple[str, ...]:
    """The tokens that stand for claims, sorted. Names of claims and namespaces contain no colon."""
    return tuple(sorted(f"{CLAIM_TOKEN}{namespace}:{name}" for namespace, name in claims))


def contention(known: PodRecord, users: Mapping[ClaimKey, Collection[PodRecord]]) -> Contention | None:
    """What a pending pod contends for. `users`: for each claim that it cannot have, the pods because of which.

    None: it cannot preempt all of them, or not in one place, as victims are on the node of their preemptor.
    """
    others = [other for each in users.values() for other in each]
    nodes = {other.node for other in others}
    if known.described.never_preempts or _in_gang(known) or len(nodes) != 1:
        return None
    if not all(_can_preempt(known, other) for other in others):
        return None
    return Contention(nodes.pop(), frozenset(users), frozenset(other.uid for other in others))


def _can_preempt(known: PodRecord, other: PodRecord) -> bool:
    """Whether a pod may take the place of another, as the engine decides it; one that leaves anyway needs no victim."""
    if not other.node or other.described.priority >= known.described.priority:
        return False
    return other.observed.deleting or not (other.described.unevictable or _in_gang(other))


def _in_gang(known: PodRecord) -> bool:
    return bool(known.gang.id or known.gang.blocked)


class Contentions:
    """`begin` and `end` those of pending pods; `tokens_of_user`, `sent` for bound ones."""

    def __init__(
        self,
        pods: Mapping[str, PodRecord],
        users: Mapping[ClaimKey, Mapping[str, None]],
        touch: Callable[[str], None],
    ) -> None:
        """`users`: UIDs of the pods that name each claim. `touch`: has a pod described again."""
        self._pods = pods
        self._users = users
        self._touch = touch
        self._of_pod: dict[str, Contention] = {}

    def __contains__(self, uid: str) -> bool:
        """Whether that pending pod contends."""
        return uid in self._of_pod

    def begin(self, known: PodRecord, new: Contention) -> bool:
        """The pod contends. Returns whether the engine has the rows of all users with their tokens."""
        old = self._of_pod.get(known.uid)
        if old != new:
            self._of_pod[known.uid] = new
            self._touch_users(new.claims | (old.claims if old is not None else frozenset()))
        users = [self._pods[uid] for uid in new.users]
        return all({*new.tokens} & {*self.tokens_of_user(user)} <= {*user.volumes.sent_tokens} for user in users)

    def end(self, uid: str) -> None:
        """The pod does not contend, or not any more."""
        if (old := self._of_pod.pop(uid, None)) is not None:
            self._touch_users(old.claims)

    def tokens_of_user(self, known: PodRecord) -> tuple[str, ...]:
        """The tokens that a bound pod holds."""
        if not self._of_pod:
            return ()
        named = ((known.namespace, use.name) for use in known.volumes.claims)
        return tokens_of({key for key in named if self._is_contended(key)})

    def sent(self, known: PodRecord) -> None:
        """The engine has the row of a bound pod: those that contend with it may be sent, too."""
        volumes = known.volumes
        if volumes.sent_tokens == volumes.tokens:
            return
        volumes.sent_tokens = volumes.tokens
        for use in known.volumes.claims:
            for uid in self._users.get((known.namespace, use.name), ()):
                if uid in self._of_pod:
                    self._touch(uid)

    def _is_contended(self, key: ClaimKey) -> bool:
        found = (self._of_pod.get(uid) for uid in self._users.get(key, ()))
        return any(each is not None and key in each.claims for each in found)

    def _touch_users(self, claims: Iterable[ClaimKey]) -> None:
        for key in claims:
            for uid in list(self._users.get(key, ())):
                user = self._pods.get(uid)
                if user is not None and user.node and user.volumes.tokens != self.tokens_of_user(user):
                    self._touch(uid)
