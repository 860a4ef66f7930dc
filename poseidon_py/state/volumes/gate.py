"""Which pods wait for their claims, and what claims demand of where the others go.

Everything here is driven by events: when a claim, a volume or a class changes, the pods that it concerns are
touched, which is to be described again (feed/update_rows.py), and nobody else is.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from poseidon_py.describe.reason_keys import VOLUME_NONE
from poseidon_py.describe.selectors import node_term
from poseidon_py.kube.objects import Requirement, SelectorTerm
from poseidon_py.kube.storage_objects import Claim, Volume
from poseidon_py.state.claim_use import ClaimUse
from poseidon_py.state.records import PodRecord
from poseidon_py.state.volumes.cache import SELECTED_NODE, ClaimKey, Storage, annotations, class_of
from poseidon_py.state.volumes.claims import ONE_POD, User, Verdict, attachments, judge, provisioning, waits_for_pod
from poseidon_py.state.volumes.matching import choose, usable_on

_NOT_LISTED = "not listed"


class VolumeError(Exception):
    """A pod's volumes cannot be had on the node that was chosen."""


class VolumeTakenError(VolumeError):
    """Because others were given them: there may be more on other nodes."""


@dataclass(slots=True)
class Plan:
    """What has to be done before a pod with these claims can be bound to a node."""

    node: str
    node_labels: Mapping[str, str]
    pairs: list[tuple[Claim, Volume]] = field(default_factory=list)
    """Volumes to give to claims."""
    made: list[Claim] = field(default_factory=list)
    """Claims for which a volume is to be made for the node."""


class VolumeGate:
    """`use` says which claims a pod has, `judge` what that means; `reserve` and `release` frame a placement."""

    def __init__(
        self,
        storage: Storage,
        pods: Mapping[str, PodRecord],
        touch: Callable[[str], None],
        touch_node: Callable[[str], None],
        touch_nodes: Callable[[], None],
    ) -> None:
        self._storage = storage
        self._pods = pods
        self._touch = touch
        self._touch_nodes = touch_nodes
        self._users: dict[ClaimKey, dict[str, None]] = {}
        self._waiting_in: dict[str, dict[str, None]] = {}
        self._shunned: dict[str, set[str]] = {}
        self._news: dict[ClaimKey, asyncio.Event] = {}
        self.on_first_claim: Callable[[], None] = lambda: None
        """Called once, when the first pod with a claim comes: from then on storage is watched."""
        self._asked = False
        storage.on_claim = self._claim_changed
        storage.on_class = self._class_changed
        storage.on_mode = self._mode_changed
        storage.on_node = touch_node
        storage.on_limited = self._limited_changed

    # -- who uses what ------------------------------------------------------------------------------------------

    def use(self, known: PodRecord, claims: tuple[ClaimUse, ...]) -> None:
        """The pod has these claims."""
        self._forget(known)
        known.claims = claims
        for key in self._keys(known):
            self._users.setdefault(key, {})[known.uid] = None
        if claims and not self._asked:
            self._asked = True
            self.on_first_claim()
        if known.node:
            self._touch_rivals(known)

    def settled(self, known: PodRecord) -> None:
        """The pod was bound, or is gone."""
        if not known.claims:
            return
        if known.node and not known.deleting:
            self._no_longer_waits(known.uid)
        else:
            self._forget(known)
        self._touch_rivals(known)

    def listed(self) -> None:
        """All storage objects are known."""
        self._storage.ready = True
        for users in list(self._users.values()):
            self._touch_all(users)
        self._touch_nodes()

    def _keys(self, known: PodRecord) -> list[ClaimKey]:
        return [(known.namespace, use.name) for use in known.claims]

    def _forget(self, known: PodRecord) -> None:
        for key in self._keys(known):
            users = self._users.get(key)
            if users is not None:
                users.pop(known.uid, None)
                if not users:
                    del self._users[key]
        self._no_longer_waits(known.uid)

    def _no_longer_waits(self, uid: str) -> None:
        for waiting in self._waiting_in.values():
            waiting.pop(uid, None)
        self._shunned.pop(uid, None)

    # -- what it means ------------------------------------------------------------------------------------------

    def judge(self, known: PodRecord) -> Verdict:
        """What the claims of a pod demand. Of one that runs: only what it holds."""
        storage = self._storage
        if known.node:
            found = (storage.claims.get(key) for key in self._keys(known))
            return Verdict(requests=attachments(storage, [claim for claim in found if claim is not None]))
        if not storage.ready:
            return Verdict(blocked=_NOT_LISTED)
        verdict = judge(
            storage,
            User(known.namespace, known.name, known.uid),
            known.claims,
            lambda key: self._is_taken(key, known),
        )
        for name in verdict.waits_in:
            self._waiting_in.setdefault(name, {})[known.uid] = None
        if shunned := self._shunned.get(known.uid):
            others = Requirement(key="metadata.name", operator="NotIn", values=sorted(shunned))
            verdict.demand(VOLUME_NONE, [node_term(SelectorTerm(fields=[others]), "")])
        if bool(verdict.blocked) != bool(known.blocked):
            self._touch_rivals(known)
        return verdict

    @staticmethod
    def is_news(verdict: Verdict) -> bool:
        """Whether there is a reason that people can act upon."""
        return verdict.blocked != _NOT_LISTED

    def _is_taken(self, key: ClaimKey, known: PodRecord) -> bool:
        """Whether another pod has a claim that only one may have, or is before us in the line for it."""
        for uid in self._users.get(key, ()):
            other = self._pods.get(uid)
            if other is None or other is known:
                continue
            ahead = (other.created_us, other.uid) < (known.created_us, known.uid)
            if ahead and other.wanted and not other.blocked:
                return True
        return self._is_held(key, known)

    def _is_held(self, key: ClaimKey, known: PodRecord) -> bool:
        """Whether another pod has a claim that only one may have."""
        others = (self._pods.get(uid) for uid in self._users.get(key, ()))
        return any(other is not None and other is not known and (other.node or other.assumed) for other in others)

    # -- placements ---------------------------------------------------------------------------------------------

    def reserve(self, known: PodRecord, node: str, node_labels: Mapping[str, str]) -> Plan | None:
        """Keeps volumes for a pod that was placed. None: all is there already. Raises VolumeError.

        The node is not tried again for the pod, when it turns out to be wrong, before some volume has changed.
        """
        storage, plan = self._storage, Plan(node, node_labels)
        claims = [storage.claims.get(key) for key in self._keys(known)]
        if None in claims:
            raise VolumeError("a persistentvolumeclaim went away")
        for key, claim in zip(self._keys(known), claims, strict=True):
            # who is before us may have come, or got its claim, while the round that placed us was on its way
            if claim is not None and ONE_POD in (claim.spec.access_modes or ()) and self._is_held(key, known):
                raise VolumeError(f'another pod was given persistentvolumeclaim "{claim.metadata.name}"')
        waiting = [claim for claim in claims if claim is not None and waits_for_pod(storage, claim)]
        if not waiting:
            return None
        chosen = [claim for claim in waiting if SELECTED_NODE in annotations(claim.metadata)]
        open_claims = [claim for claim in waiting if claim not in chosen]
        plan.pairs, left = choose(storage, open_claims, lambda volume: usable_on(volume, node_labels))
        plan.made = chosen + left
        for claim in left:
            topology, space = provisioning(storage, claim, storage.classes[class_of(claim)])
            if topology == [] or space == []:
                self._shunned.setdefault(known.uid, set()).add(node)
                raise VolumeTakenError("the volumes that it could use there were given to other pods")
        for claim, volume in plan.pairs:
            storage.reserved[volume.metadata.name] = (claim.metadata.namespace, claim.metadata.name)
            self._class_changed(class_of(claim))
        return plan

    def release(self, plan: Plan) -> None:
        """The placement has come to its end, well or not."""
        for claim, volume in plan.pairs:
            if self._storage.reserved.pop(volume.metadata.name, None) is not None:
                self._class_changed(class_of(claim))

    async def claim_news(self, claim: Claim) -> None:
        """Waits until something has changed about a claim or its volume."""
        key = (claim.metadata.namespace, claim.metadata.name)
        event = self._news.setdefault(key, asyncio.Event())
        event.clear()
        await event.wait()

    # -- events -------------------------------------------------------------------------------------------------

    def _claim_changed(self, key: ClaimKey) -> None:
        if (event := self._news.pop(key, None)) is not None:
            event.set()
        self._touch_all(self._users.get(key, ()))

    def _class_changed(self, name: str) -> None:
        self._touch_all(self._waiting_in.get(name, ()))

    def _mode_changed(self, name: str) -> None:
        """A class that is new makes claims wait for pods that were blocked so far."""
        for key, users in list(self._users.items()):
            claim = self._storage.claims.get(key)
            if claim is not None and class_of(claim) == name:
                self._touch_all(users)

    def _limited_changed(self) -> None:
        for users in list(self._users.values()):
            self._touch_all(users)
        self._touch_nodes()

    def _touch_all(self, uids: Iterable[str]) -> None:
        for uid in list(uids):
            self._shunned.pop(uid, None)
            self._touch(uid)

    def _touch_rivals(self, known: PodRecord) -> None:
        for key in self._keys(known):
            claim = self._storage.claims.get(key)
            if claim is not None and ONE_POD in (claim.spec.access_modes or ()):
                self._touch_all(uid for uid in self._users.get(key, ()) if uid != known.uid)
