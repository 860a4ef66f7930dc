"""Which pods are blocked by their device claims, what the others count as, and which devices a placed pod gets.

    its claims          the pod
    ----------          -------
    missing, going      is blocked, and says so
    allocated           goes where the devices are, and counts as nothing: their use is known
    not allocated       counts in columns (devices/columns.py); devices are chosen when it is placed
    shared              as one that is not allocated for the first of the pods; the others wait until it is

Driven by events: when a claim, a class, a slice or a node changes, exactly what it concerns is described again.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from poseidon_py.describe.reason_keys import DEVICES
from poseidon_py.describe.selectors import node_selector
from poseidon_py.devices.book import DeviceBook
from poseidon_py.devices.columns import Kind
from poseidon_py.devices.device_quotas import NO_QUOTAS, DeviceQuotas
from poseidon_py.devices.device_requests import ClaimRequests, MissingClassError
from poseidon_py.devices.holdings import held_of
from poseidon_py.devices.objects import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from poseidon_py.devices.pod_needs import (
    NO_DEVICES,
    ClaimEntry,
    DeviceNeeds,
    claim_entries,
    extended_requests,
    group_of,
)
from poseidon_py.kube.objects import InvalidField, Pod
from poseidon_py.state.devices.claim_cache import (
    ClaimCache,
    ClaimKey,
    controller_of,
    is_extended,
    is_known,
    nodes_of,
    version_of,
)
from poseidon_py.state.devices.extended import extended_claim
from poseidon_py.state.devices.gang_match import GangMatch, match_attribute
from poseidon_py.state.devices.group_claims import GroupClaims, unusable
from poseidon_py.state.devices.offers import DeviceOffers
from poseidon_py.state.devices.quota_use import QuotaUse
from poseidon_py.state.queues.registry import QueueRegistry
from poseidon_py.state.records import PodRecord

NOT_LISTED = "the devices of the cluster are not known yet"
_BEHIND = "behind a pod that names the same claim and is placed first"
_GROUP_UNKNOWN = "its pod group is not known, as is said of its gang"
_SILENT = (NOT_LISTED, _BEHIND, _GROUP_UNKNOWN)


@dataclass(slots=True)
class DeviceDemands:
    """What the device claims of a pod require. The fields are those of VolumeDemands."""

    blocked: str = ""
    further: list[tuple[str, bytes]] = field(default_factory=list)
    requests: dict[str, int] = field(default_factory=dict)

    @property
    def is_reportable(self) -> bool:
        """Whether the pod is blocked for a reason that users can act upon."""
        return self.blocked not in _SILENT


class DeviceListener:
    """Writes what follows from the state of pods and claims. Ignores everything; subclasses override what they do."""

    def released(self, known: PodRecord) -> None:
        """The placement of a pod has ended without a bind."""

    def unused(self, known: PodRecord, key: ClaimKey) -> None:
        """A claim has devices on nodes that do not take the pod, its only user."""

    def left_behind(self, known: PodRecord, key: ClaimKey) -> None:
        """There is a claim for the extended resources of a pod that waits."""


class DeviceGate:
    """See the module. Pods are known by `use`; the watches call `put_` and `drop_`."""

    def __init__(
        self,
        pods: Mapping[str, PodRecord],
        touch: Callable[[str], None],
        touch_node: Callable[[str], None],
        touch_nodes: Callable[[], None],
        queues: QueueRegistry,
    ) -> None:
        """`touch`, `touch_node`, `touch_nodes`: have a pod, a node, or all nodes described again. `queues`: have
        quotas of devices."""
        self._quotas, self._queues, self.device_quotas = NO_QUOTAS, queues, queues.device_quotas
        self._pods = pods
        self._touch = touch
        self._touch_node = touch_node
        self._touch_nodes = touch_nodes
        self.book = DeviceBook(on_sets=self._all_changed)
        self.cache = ClaimCache()
        self.offers = DeviceOffers(self.book, touch_node, touch_nodes, queues.device_quotas)
        self._quota_use = QuotaUse(self.book, self.cache, pods, queues.device_quotas)
        self.match = GangMatch(self.book, self.cache, pods, self._touch_all)
        self.groups = GroupClaims(pods, queues.objects)
        self.unreadable = NOT_LISTED
        """Why claims cannot be served now; empty: they can."""
        self._in_need: dict[str, None] = {}
        """UIDs of pods with claims, or with extended resources."""
        self._changes: dict[ClaimKey, asyncio.Event] = {}
        self.listener = DeviceListener()
        queues.served, queues.quotas_of_devices = self.book.served_resources, self.put_quotas

    # -- pods -----------------------------------------------------------------------------------------------------

    def use(self, known: PodRecord, pod: Pod) -> None:
        """Notes what a pod's object says about devices. Raises InvalidField."""
        needs = known.devices
        entries, extended = claim_entries(pod), extended_requests(pod)
        group, match = group_of(pod) if entries else "", match_attribute(pod, has_claims=bool(entries))
        if (entries, extended, group, match) == (needs.entries, needs.extended, needs.group, needs.match):
            return
        self.cache.forget(known.uid, self.keys(known))
        known.devices = DeviceNeeds(entries, extended, group, match=match) if entries or extended else NO_DEVICES
        self.cache.name(known.uid, self.keys(known))
        if known.devices.any:
            self._in_need[known.uid] = None
        else:
            self._in_need.pop(known.uid, None)

    def settled(self, known: PodRecord) -> None:
        """The pod was bound or deleted."""
        if not known.devices.any:
            return
        self.offers.leave(known.uid)
        if known.uid not in self._pods:
            self.offers.uncount(known.uid)
            self.match.forget(known.uid)
            self._in_need.pop(known.uid, None)
            self.cache.forget(known.uid, self.keys(known))
            self.forget_choices(known)
        self._touch_users(known)

    def released(self, known: PodRecord) -> None:
        """Its placement has ended without a bind: devices that were chosen for it alone are free."""
        if known.devices.any:
            self.offers.uncount(known.uid)
            self.forget_choices(known)
            self._touch_users(known)
            self.listener.released(known)

    def fits_nowhere(self, known: PodRecord) -> None:
        """No node takes the pod: its claims may have devices on other nodes, or others suit its gang."""
        self.match.failed(known)
        for key in self.keys(known):
            claim = self.cache.claims.get(key)
            if claim is None or claim.status.allocation is None:
                continue
            reserved, users = {user.uid for user in claim.status.users or ()}, self.cache.users.get(key, {})
            consumer = self.groups.consumer(known, key[1])
            alone = users.keys() <= {known.uid} or consumer.uid != known.uid
            if alone and reserved <= {consumer.uid} and not self.groups.others_use(known, key[1], users):
                self.listener.unused(known, key)

    def forget_choices(self, known: PodRecord) -> None:
        """Frees devices that were chosen for a pod, and not written, unless others that are placed use them, too."""
        for key in self.keys(known):
            claim = self.cache.claims.get(key)
            others = (self._pods.get(uid) for uid in self.cache.users.get(key, ()))
            placed = any(other is not None and other is not known and other.assumed for other in others)
            if claim is not None and not placed and self.cache.choices.pop(claim.metadata.uid, None) is not None:
                self.announce(self.book.hold(claim.metadata.uid, held_of(claim)))
        self.announce(self.book.hold(known.uid, ()))

    def keys(self, known: PodRecord) -> dict[ClaimKey, None]:
        """The claims that a pod names."""
        return {(known.namespace, entry.claim): None for entry in known.devices.entries if entry.claim}

    # -- what pods require ----------------------------------------------------------------------------------------

    def demands_of(self, known: PodRecord) -> DeviceDemands:
        """What the claims of a pod require of its node; of a bound pod, what it counts as there."""
        needs, demands = known.devices, DeviceDemands()
        needs.of_group = self.groups.are_of_groups(known)
        if needs.gang != known.gang.id:  # other members need not wait behind it any more
            needs.gang = known.gang.id
            self._touch_users(known)
        if known.node:
            demands.requests = self._counts_as(known, self._claims_in_use(known))
            self.offers.count(known.uid, known.node, needs.columns, needs.kind)
            return demands
        if needs.extended and not known.assumed and (left := self.cache.extended.get(known.uid)) is not None:
            self.listener.left_behind(known, left)
        if needs.entries and (self.unreadable or not self.groups.is_known(known)):
            demands.blocked = self.unreadable or _GROUP_UNKNOWN
            return demands
        requests = []
        for entry in needs.entries:
            try:
                found = self._requests_of(known, entry, demands)
            except (MissingClassError, InvalidField) as error:
                demands.blocked = str(error)
            if demands.blocked:
                self.offers.leave(known.uid)
                return demands
            if found is not None:
                requests.append(found)
        if blocked := self._quota_use.problem_of(known):
            demands.blocked = blocked
            self.offers.leave(known.uid)
            return demands
        demands.requests = self._counts_as(known, requests)
        if any(column == needs.kind.column for column, _ in needs.columns):
            self.offers.join(known.uid, needs.kind)
        else:
            self.offers.leave(known.uid)
        return demands

    def _requests_of(self, known: PodRecord, entry: ClaimEntry, demands: DeviceDemands) -> ClaimRequests | None:
        """What is to be allocated for a claim; None: nothing, it only requires where its devices are, or is blocked.
        Raises MissingClassError, InvalidField."""
        key = known.namespace, entry.claim
        claim = self.cache.claims.get(key)
        demands.blocked = unusable(known, entry, claim, self.groups.group_of(known, entry))
        if demands.blocked or claim is None:
            return None
        allocation = self.cache.allocation(claim)
        if allocation is not None:
            selector = nodes_of(allocation)
            if selector is not None:
                message = node_selector(selector.terms or (), "status.allocation.nodeSelector")
                demands.further.append((DEVICES, message.SerializeToString(deterministic=True)))
            return None
        first = self._first_user(key)
        if first is not None and first is not known:
            # members of a gang are placed together: those that come to another node are placed again
            if not known.gang.id or known.gang.id != first.gang.id:
                demands.blocked = _BEHIND
            return None
        return self.requests_of(known, claim)

    def requests_of(self, known: PodRecord, claim: ResourceClaim) -> ClaimRequests:
        """What a claim asks for, for this pod. Raises MissingClassError, InvalidField."""
        return self.match.restricted(known, self.book.requests_of(claim))

    def _first_user(self, key: ClaimKey) -> PodRecord | None:
        """Who of the pods that name an unallocated claim is placed first: the most important one, then the oldest."""
        users = (self._pods.get(uid) for uid in self.cache.users.get(key, ()))
        waiting = [each for each in users if each is not None and (each.schedulable or each.assumed)]
        return min(waiting, key=lambda each: (-each.described.priority, each.created_us, each.uid), default=None)

    def _claims_in_use(self, known: PodRecord) -> list[ClaimRequests]:
        """What a bound pod would free if it left: the claims without other users."""
        found = []
        for key in self.keys(known):
            claim = self.cache.claims.get(key)
            if claim is None or len(claim.status.users or ()) > 1 or len(self.cache.users.get(key, ())) > 1:
                continue
            if self.groups.consumer(known, key[1]).uid != known.uid:
                continue  # its group has the devices
            try:
                found.append(self.requests_of(known, claim))
            except (MissingClassError, InvalidField):
                continue  # what it holds is in use all the same
        return found

    def _counts_as(self, known: PodRecord, claims: Iterable[ClaimRequests]) -> dict[str, int]:
        """Notes the kind of a pod with these claims, and what it counts as."""
        needs, serving = known.devices, self.book.class_serving
        extended = extended_claim(needs.extended, serving) if needs.extended else None
        needs.kind = Kind(tuple(claims), extended.by_resource if extended is not None else ())
        columns = self._quota_use.amounts_of(known)
        if needs.kind != Kind():
            self.book.count_sets(needs.kind)
            columns |= self.book.amounts(needs.kind)
        needs.columns = tuple(sorted(columns.items()))
        return dict(needs.columns)

    # -- events ---------------------------------------------------------------------------------------------------

    def put_claim(self, claim: ResourceClaim) -> None:
        key, ident = (claim.metadata.namespace, claim.metadata.name), claim.metadata.uid
        before = self.cache.claims.get(key)
        if before is not None and is_known(claim, before):
            return  # the watch is behind the answer to a write: devices that are given away would be free for a moment
        if before is not None and before.metadata.uid != ident:
            self._gone(before)
        self.cache.put(key, claim)
        if claim.status.allocation is not None:
            self.cache.choices.pop(ident, None)
        if ident not in self.cache.choices:
            self.announce(self.book.hold(ident, held_of(claim)))
        if before is None and claim.status.allocation is None:
            # nodes offer what it asks for before its pod is known to have it
            with suppress(MissingClassError, InvalidField):
                self.book.count_sets(Kind((self.book.requests_of(claim),)))
        self._claim_changed(key)

    def claim_written(self, before: ResourceClaim, after: ResourceClaim) -> None:
        """Takes the answer to a write that named the version of `before`; see Storage.claim_written."""
        now = self.cache.claims.get((before.metadata.namespace, before.metadata.name))
        if now is not None and version_of(now) == version_of(before):
            self.put_claim(after)

    def drop_claim(self, key: ClaimKey) -> None:
        claim = self.cache.drop(key)
        if claim is not None:
            self._gone(claim)
            self._claim_changed(key)

    def _gone(self, claim: ResourceClaim) -> None:
        self.cache.choices.pop(claim.metadata.uid, None)
        self.announce(self.book.hold(claim.metadata.uid, ()))

    def _claim_changed(self, key: ClaimKey) -> None:
        if (event := self._changes.pop(key, None)) is not None:
            event.set()
        self._touch_all(self.cache.users.get(key, ()))
        claim = self.cache.claims.get(key)
        if claim is not None and is_extended(claim):
            self._touch(controller_of(claim))

    async def wait_for_change(self, key: ClaimKey) -> None:
        """Waits until a claim changes."""
        event = self._changes.setdefault(key, asyncio.Event())
        await event.wait()

    def put_slice(self, item: ResourceSlice) -> None:
        """Raises InvalidField."""
        self.announce(self.book.put_slice(item))

    def drop_slice(self, name: str) -> None:
        self.announce(self.book.drop_slice(name))

    def put_class(self, item: DeviceClass) -> None:
        """Raises InvalidField."""
        self.book.put_class(item)
        self._queues.classes_changed()
        self._all_changed()

    def drop_class(self, name: str) -> None:
        self.book.drop_class(name)
        self._queues.classes_changed()
        self._all_changed()

    def put_rule(self, item: DeviceTaintRule) -> None:
        """Raises InvalidField."""
        self.book.put_rule(item)
        self._all_changed()

    def drop_rule(self, name: str) -> None:
        self.book.drop_rule(name)
        self._all_changed()

    def put_quotas(self, quotas: DeviceQuotas) -> None:
        """What devices count as in queues."""
        if quotas != self._quotas:
            self._quotas = quotas
            self._all_changed()

    def set_readable(self, unreadable: str) -> None:
        """Whether claims can be served: why not; empty: they can."""
        if unreadable != self.unreadable:
            self.unreadable = unreadable
            self._all_changed()

    def announce(self, nodes: set[str] | None) -> None:
        """Other devices are free on these nodes than before; None: on any."""
        if nodes is None or nodes:
            self.match.devices_changed()
        if nodes is None:
            self._touch_nodes()
        for node in nodes or ():
            self._touch_node(node)

    def _all_changed(self) -> None:
        """Pods may count as something else than before, and nodes may offer something else."""
        self._touch_nodes()
        self._touch_all(self._in_need)

    def kind_changed(self, kind: Kind) -> None:
        """Pods of a kind count as something else than before."""
        pods = ((uid, self._pods.get(uid)) for uid in self._in_need)
        self._touch_all([uid for uid, known in pods if known is not None and known.devices.kind == kind])

    def _touch_users(self, known: PodRecord) -> None:
        for key in self.keys(known):
            claim, users = self.cache.claims.get(key), self.cache.users.get(key, {})
            has_devices = claim is not None and self.cache.allocation(claim) is not None
            if has_devices and len(users) > 1 and not self._quotas.resource_of:
                continue  # the others must go where the devices are, and no quota counts them
            self._touch_all(uid for uid in users if uid != known.uid)

    def _touch_all(self, uids: Iterable[str]) -> None:
        for uid in list(uids):
            self._touch(uid)
