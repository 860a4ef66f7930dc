"""Which pods are blocked by their claims, and what claims require of the nodes of the others.

Driven by events: when a claim, a volume or a class changes, exactly the pods that it concerns are marked for a new
description (feed/update_rows.py).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from poseidon_py.describe.reason_keys import CLAIM_IN_USE, VOLUME_NONE
from poseidon_py.describe.selectors import node_term, on_node
from poseidon_py.kube.objects import Requirement, SelectorTerm
from poseidon_py.kube.storage_objects import Claim, Volume
from poseidon_py.state.claim_use import ClaimUse, PreparationError, TakenError
from poseidon_py.state.records import PodRecord
from poseidon_py.state.volumes.attachments import Attached, Attachments
from poseidon_py.state.volumes.cache import (
    SELECTED_NODE,
    ClaimKey,
    Storage,
    StorageListener,
    annotations,
    class_of,
)
from poseidon_py.state.volumes.claims import (
    ONE_POD,
    ONE_POD_CONFLICT,
    PodIdentity,
    VolumeDemands,
    attached_by,
    may_come_to,
    provisioning,
    slots,
    volume_demands,
    waits_for_pod,
)
from poseidon_py.state.volumes.contention import Contention, Contentions, contention
from poseidon_py.state.volumes.matching import choose, usable_on

_NOT_LISTED = "not listed"
_BEHIND = "behind a pod that names the same claim and is tried first"


class VolumeError(PreparationError):
    """The pod's volumes are not available on the chosen node."""


class VolumesTakenError(VolumeError, TakenError):
    """Other pods were given the volumes on this node; other nodes may still have some."""


class ProvisioningError(VolumeError):
    """The provisioner has given up on the chosen node."""


@dataclass(slots=True)
class Plan:
    """What has to be done before a pod with these claims can be bound to a node."""

    uid: str
    """Of the pod."""
    node: str
    node_labels: Mapping[str, str]
    pairs: list[tuple[Claim, Volume]] = field(default_factory=list)
    """Claims with the existing volumes to bind to them."""
    provision: list[Claim] = field(default_factory=list)
    """Claims whose volume has to be provisioned for the node."""


class VolumeGate(StorageListener):
    """`use` records the claims of a pod, `demands_of` evaluates them; `reserve` and `release` frame a placement."""

    def __init__(
        self,
        storage: Storage,
        pods: Mapping[str, PodRecord],
        touch: Callable[[str], None],
        touch_node: Callable[[str], None],
        touch_nodes: Callable[[], None],
        *,
        preemption: bool = True,
    ) -> None:
        """`touch`: has a pod described again. `preemption`: whether pods can be victims for a claim that they use."""
        self._storage = storage
        self._pods = pods
        self._touch = touch
        self._touch_node = touch_node
        self._touch_nodes = touch_nodes
        self._preemption = preemption
        self._users: dict[ClaimKey, dict[str, None]] = {}
        self._competing: set[str] = set()
        """UIDs of the pending pods that those behind them have to wait for, if they name the same ReadWriteOncePod
        claim."""
        self._tried: set[str] = set()
        """UIDs of pending pods that no node took, or that could not be bound: nobody waits for them any more. If
        several are placed then, the first one gets the claim."""
        self._contentions = Contentions(pods, self._users, touch)
        self._attachments = Attachments(storage, touch, touch_node)
        self._sharing: set[str] = set()
        """UIDs of pending pods with volumes that are attached to some node for others."""
        self._waiting_in: dict[str, dict[str, None]] = {}
        self._excluded_nodes: dict[str, set[str]] = {}
        """By UID: nodes without usable volumes, until some volume changes."""
        self._failed_nodes: dict[str, set[str]] = {}
        """By UID: nodes where no volume could be provisioned, until no other node takes the pod."""
        self._change_events: dict[ClaimKey, asyncio.Event] = {}
        self.in_use = asyncio.Event()
        """Set by the first pod with a claim: storage is watched from then on."""
        storage.listener = self

    # -- pods and their claims ----------------------------------------------------------------------------------

    def use(self, known: PodRecord, claims: tuple[ClaimUse, ...]) -> None:
        """Record the claims of a pod."""
        self._forget(known)
        known.volumes.claims = claims
        for key in self._keys(known):
            self._users.setdefault(key, {})[known.uid] = None
        if claims:
            self.in_use.set()
        if known.node:
            self._touch_rivals(known)

    def settled(self, known: PodRecord) -> None:
        """Record that the pod was bound or deleted."""
        if not known.volumes.claims:
            return
        if known.node and not known.observed.deleting:
            self._no_longer_waits(known.uid)
        else:
            self._forget(known)
            self._uses_nothing(known)
        self._touch_rivals(known)

    def released(self, known: PodRecord) -> None:
        """Record that the pod is not being bound any more."""
        self._note_tried(known)
        self._uses_nothing(known)
        self._touch_rivals(known)

    def sent(self, known: PodRecord) -> None:
        """Record that the engine has the row of the pod."""
        if known.node and known.volumes.claims:
            self._contentions.sent(known)

    def listed(self) -> None:
        """Record that all storage objects have been listed."""
        self._storage.ready = True
        for users in list(self._users.values()):
            self._touch_all(users)
        self._touch_nodes()

    def _keys(self, known: PodRecord) -> list[ClaimKey]:
        return [(known.namespace, use.name) for use in known.volumes.claims]

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
        self._excluded_nodes.pop(uid, None)
        self._failed_nodes.pop(uid, None)
        self._competing.discard(uid)
        self._tried.discard(uid)
        self._sharing.discard(uid)
        self._contentions.end(uid)

    # -- evaluation ---------------------------------------------------------------------------------------------

    def demands_of(self, known: PodRecord) -> VolumeDemands:
        """What the claims of a pod require of its node; for a bound pod, only what it occupies there."""
        storage = self._storage
        if known.node:
            found = (storage.claims.get(key) for key in self._keys(known))
            attached = attached_by(storage, [claim for claim in found if claim is not None])
            self._uses(known, known.node, attached)
            requests = slots(self._attachments.own(known.uid))
            return VolumeDemands(requests=requests, tokens=self._contentions.tokens_of_user(known))
        if not storage.ready:
            return VolumeDemands(blocked=_NOT_LISTED)
        ahead = self._ahead(known)
        if any(not any(map(_uses_claims, others)) for others in ahead.values()):
            return self._waits_behind(known)
        contended = contention(known, ahead) if self._preemption else None
        demands = volume_demands(
            storage,
            PodIdentity(known.namespace, known.name, known.uid),
            known.volumes.claims,
            lambda key: key in ahead and contended is None,
        )
        if contended is not None and not demands.blocked:
            demands = self._contend(known, contended, demands)
        else:
            self._contentions.end(known.uid)
        shares = not demands.blocked and self._attachments.relieve(demands)
        (self._sharing.add if shares else self._sharing.discard)(known.uid)
        for name in demands.waits_in:
            self._waiting_in.setdefault(name, {})[known.uid] = None
        if excluded := self._excluded_nodes.get(known.uid, set()) | self._failed_nodes.get(known.uid, set()):
            others = Requirement(key="metadata.name", operator="NotIn", values=sorted(excluded))
            demands.require(VOLUME_NONE, [node_term(SelectorTerm(fields=[others]), "")])
        if (not demands.blocked or known.uid in self._contentions) != (known.uid in self._competing):
            self._competing ^= {known.uid}
            self._touch_rivals(known)
        return demands

    def _uses(self, known: PodRecord, node: str, attached: frozenset[Attached]) -> None:
        if self._attachments.use(known.uid, node, attached, bound=bool(known.node)):
            self._slots_changed(node)

    def _uses_nothing(self, known: PodRecord) -> None:
        if node := self._attachments.forget(known.uid):
            self._slots_changed(node)

    def _slots_changed(self, node: str) -> None:
        """Other volumes than before are attached to the node, or about to be."""
        self._touch_all(self._sharing | {uid for uid, nodes in self._excluded_nodes.items() if node in nodes})

    def limits(self, node: str) -> Mapping[str, int]:
        """By driver, how many volumes may be attached to the node for single pods."""
        return self._attachments.limits(node)

    def _waits_behind(self, known: PodRecord) -> VolumeDemands:
        """What a pod requires that has to wait until a more important one was tried, or an older one. Nothing is
        reported: nobody uses the claim, and it may be free after that."""
        self._contentions.end(known.uid)
        if known.uid in self._competing:
            self._competing.discard(known.uid)
            self._touch_rivals(known)
        return VolumeDemands(blocked=_BEHIND)

    def _contend(self, known: PodRecord, contended: Contention, demands: VolumeDemands) -> VolumeDemands:
        """What a pod requires that contends with the bound users of its claims, and `demands` other than that."""
        if not self._contentions.begin(known, contended):
            return VolumeDemands(blocked=ONE_POD_CONFLICT, per_node=True)  # until the users' rows are sent
        demands.require(CLAIM_IN_USE, [on_node(contended.node)], first=True)
        demands.tokens = contended.tokens
        return demands

    @staticmethod
    def is_reportable(demands: VolumeDemands) -> bool:
        """Whether the pod is blocked for a reason that users can act upon."""
        return demands.blocked not in (_NOT_LISTED, _BEHIND)

    def _ahead(self, known: PodRecord) -> dict[ClaimKey, list[PodRecord]]:
        """For each ReadWriteOncePod claim that a pod cannot have, the pods because of which: those that use it, and
        those that wait for it, too, and are more important, or as important and older."""
        ahead: dict[ClaimKey, list[PodRecord]] = {}
        for use in known.volumes.claims:
            key = known.namespace, use.name
            if use.own or not self._is_for_one_pod(key):
                continue
            for other in self._others(key, known):
                waits = other.uid in self._competing and other.schedulable and other.uid not in self._tried
                if _uses_claims(other) or (waits and _place_in_queue(other) < _place_in_queue(known)):
                    ahead.setdefault(key, []).append(other)
        return ahead

    def _others(self, key: ClaimKey, known: PodRecord) -> Iterator[PodRecord]:
        """The other pods that name a claim."""
        for uid in self._users.get(key, ()):
            other = self._pods.get(uid)
            if other is not None and other is not known:
                yield other

    def _is_for_one_pod(self, key: ClaimKey) -> bool:
        claim = self._storage.claims.get(key)
        return claim is not None and ONE_POD in (claim.spec.access_modes or ())

    # -- placements ---------------------------------------------------------------------------------------------

    def reserve(self, known: PodRecord, node: str, node_labels: Mapping[str, str]) -> Plan | None:
        """Reserve volumes for a placed pod. None: nothing is left to do. Raises VolumeError.

        A node without usable volumes is excluded for the pod until some volume changes.
        """
        storage, plan = self._storage, Plan(known.uid, node, node_labels)
        claims = [storage.claims.get(key) for key in self._keys(known)]
        if None in claims:
            raise VolumeError("a persistentvolumeclaim of the pod was deleted")
        for key, claim in zip(self._keys(known), claims, strict=True):
            # another pod may have got the claim while this round was being solved
            if claim is not None and self._is_for_one_pod(key) and any(map(_uses_claims, self._others(key, known))):
                raise VolumesTakenError(f'another pod was given persistentvolumeclaim "{claim.metadata.name}"')
            if claim is not None and not may_come_to(storage, claim, node, node_labels):
                raise VolumesTakenError(f'volume of persistentvolumeclaim "{claim.metadata.name}" is elsewhere by now')
        attached = attached_by(storage, [claim for claim in claims if claim is not None])
        if not self._attachments.takes(node, attached):
            self._excluded_nodes.setdefault(known.uid, set()).add(node)
            raise VolumesTakenError("as many volumes as can be attached to it were given to other pods")
        self._uses(known, node, attached)
        waiting = [claim for claim in claims if claim is not None and waits_for_pod(storage, claim)]
        if not waiting:
            return None
        chosen = [claim for claim in waiting if SELECTED_NODE in annotations(claim.metadata)]
        open_claims = [claim for claim in waiting if claim not in chosen]
        plan.pairs, left = choose(storage, open_claims, lambda volume: usable_on(volume, node_labels))
        plan.provision = chosen + left
        for claim in left:
            topology, space = provisioning(storage, claim, storage.classes[class_of(claim)])
            if topology == [] or space == []:
                self._excluded_nodes.setdefault(known.uid, set()).add(node)
                raise VolumesTakenError("the volumes that it could use there were given to other pods")
        for claim, volume in plan.pairs:
            storage.reserved[volume.metadata.name] = (claim.metadata.namespace, claim.metadata.name)
            self.class_changed(class_of(claim))
        return plan

    def placements_of(self, claim: Claim) -> Counter[str]:
        """By node, the number of pods with the claim that were placed there and are not bound yet."""
        users = map(self._pods.get, self._users.get((claim.metadata.namespace, claim.metadata.name), ()))
        return Counter(user.assumed for user in users if user is not None and user.assumed)

    def release(self, plan: Plan) -> None:
        """Drop the reservations of a placement that has ended, successfully or not."""
        for claim, volume in plan.pairs:
            if self._storage.reserved.pop(volume.metadata.name, None) is not None:
                self.class_changed(class_of(claim))

    def provisioning_failed(self, plan: Plan) -> None:
        """Record that no volume can be provisioned for the node now. Other nodes come first from now on: kube-scheduler
        tries any of those that suit the pod equally."""
        self._failed_nodes.setdefault(plan.uid, set()).add(plan.node)

    def fits_nowhere(self, known: PodRecord) -> None:
        """Record that no node takes the pod: those where provisioning failed may be tried again, and others may have
        its claims."""
        if self._failed_nodes.pop(known.uid, None):
            self._touch(known.uid)
        if known.uid in self._competing and known.uid not in self._tried and not known.nominated:
            self._note_tried(known)
            self._touch_rivals(known)

    def _note_tried(self, known: PodRecord) -> None:
        if known.uid in self._competing:
            self._tried.add(known.uid)

    async def wait_for_change(self, claim: Claim) -> None:
        """Wait until a claim or its volume changes."""
        key = (claim.metadata.namespace, claim.metadata.name)
        event = self._change_events.setdefault(key, asyncio.Event())
        event.clear()
        await event.wait()

    # -- events -------------------------------------------------------------------------------------------------

    def claim_changed(self, key: ClaimKey) -> None:
        if (event := self._change_events.pop(key, None)) is not None:
            event.set()
        self._touch_all(self._users.get(key, ()))

    def class_changed(self, name: str) -> None:
        self._touch_all(self._waiting_in.get(name, ()))

    def mode_changed(self, name: str) -> None:
        """A class that is new, or has another binding mode, can unblock pods whose claims name it."""
        for key, users in list(self._users.items()):
            claim = self._storage.claims.get(key)
            if claim is not None and class_of(claim) == name:
                self._touch_all(users)

    def node_changed(self, name: str) -> None:
        self._touch_node(name)
        self._slots_changed(name)

    def limits_changed(self) -> None:
        for users in list(self._users.values()):
            self._touch_all(users)
        self._touch_nodes()

    def _touch_all(self, uids: Iterable[str]) -> None:
        for uid in list(uids):
            self._excluded_nodes.pop(uid, None)
            self._touch(uid)

    def _touch_rivals(self, known: PodRecord) -> None:
        for key in self._keys(known):
            if self._is_for_one_pod(key):
                self._touch_all(uid for uid in self._users.get(key, ()) if uid != known.uid)


def _uses_claims(known: PodRecord) -> bool:
    """Whether the pod uses its claims: it is bound, or being bound."""
    return bool(known.node or known.assumed)


def _place_in_queue(known: PodRecord) -> tuple[int, int, str]:
    """Orders pods that wait for a claim as kube-scheduler orders all: by priority, then by age."""
    return -known.described.priority, known.created_us, known.uid
