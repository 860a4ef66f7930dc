"""Chooses devices for placed pods, before anything is written."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from poseidon_py.devices.allocator import Grant, SearchLimitError, SelectionError, Solution
from poseidon_py.devices.device_requests import ClaimRequests, MissingClassError
from poseidon_py.devices.holdings import held_by_grants
from poseidon_py.devices.objects import ResourceClaim
from poseidon_py.kube.objects import InvalidField
from poseidon_py.kube.selector_matching import node_matches
from poseidon_py.state.claim_use import PreparationError, TakenError
from poseidon_py.state.devices.claim_cache import Choice, ClaimKey, is_full, nodes_of
from poseidon_py.state.devices.extended import ExtendedClaim, extended_claim
from poseidon_py.state.devices.gate import DeviceGate
from poseidon_py.state.node_record import NodeRecord
from poseidon_py.state.records import PodRecord

_TAKEN = "its devices were given to other pods"


@dataclass(slots=True)
class DevicePlan:
    """What is to be written before a placed pod is bound."""

    pod: PodRecord
    node: str
    claims: list[ClaimKey] = field(default_factory=list)
    extended: ExtendedClaim | None = None
    grants: tuple[Grant, ...] = ()
    """For its extended resources."""


@dataclass(slots=True)
class _Wish:
    """A placed pod, and what of its claims has no devices yet."""

    plan: DevicePlan
    open: list[ResourceClaim] = field(default_factory=list)
    requests: list[ClaimRequests] = field(default_factory=list)


class DeviceChooser:
    """`choose` for each placed pod; before that, `choose_together` for those of a gang."""

    def __init__(self, gate: DeviceGate, node_named: Callable[[str], NodeRecord | None]) -> None:
        self._gate = gate
        self._node_named = node_named
        self._together: dict[str, DevicePlan] = {}
        """By UID: pods whose devices were chosen with those of others."""

    def choose_together(self, placed: Iterable[tuple[PodRecord, str]]) -> None:
        """Chooses devices for placed pods so that all of those on one node get theirs, if that is possible."""
        by_node: dict[str, list[PodRecord]] = {}
        for known, node in placed:
            if known.devices.any:
                by_node.setdefault(node, []).append(known)
        for node, pods in by_node.items():
            if len(pods) < 2:
                continue
            try:
                wishes = [self._wish(known, node) for known in pods]
                self._give(node, wishes)
            except PreparationError:
                continue  # each gets what it can
            self._together.update({wish.plan.pod.uid: wish.plan for wish in wishes})
        if self._together:
            asyncio.get_running_loop().call_soon(self._forget_unclaimed)

    def _forget_unclaimed(self) -> None:
        """Frees the devices of pods that were not placed after all, which is known at once."""
        while self._together:
            _, plan = self._together.popitem()
            self._gate.forget_choices(plan.pod)

    def choose(self, known: PodRecord, node: str) -> DevicePlan | None:
        """Devices for a placed pod, which are in use from now on; None: it needs none. Raises PreparationError."""
        if not known.devices.any:
            return None
        plan = self._together.pop(known.uid, None)
        if plan is None or plan.node != node:
            wish = self._wish(known, node)
            self._give(node, [wish])
            plan = wish.plan
        self._gate.offers.count(known.uid, node, known.devices.columns, known.devices.kind)
        return plan if plan.claims or plan.extended is not None else None

    def _wish(self, known: PodRecord, node: str) -> _Wish:
        """Raises PreparationError."""
        record, cache = self._node_named(node), self._gate.cache
        if record is None or record.base is None:
            raise PreparationError(f"node {node} is gone")
        wish = _Wish(DevicePlan(known, node))
        for key in self._gate.keys(known):
            claim = cache.claims.get(key)
            if claim is None or claim.metadata.deleting is not None:
                raise PreparationError(f'resourceclaim "{key[1]}" was deleted')
            wish.plan.claims.append(key)
            allocation = cache.allocation(claim)
            if allocation is None:
                wish.open.append(claim)
                try:
                    wish.requests.append(self._gate.requests_of(known, claim))
                except (MissingClassError, InvalidField) as error:
                    raise PreparationError(str(error)) from error
            elif not node_matches(nodes_of(allocation), node, record.base.labels):
                raise TakenError(f'the devices of resourceclaim "{key[1]}" are on another node')
            elif is_full(claim, self._gate.groups.consumer(known, key[1]).uid):
                raise PreparationError("resourceclaim in use")
        serving = self._gate.book.class_serving
        extended = extended_claim(known.devices.extended, serving) if known.devices.extended else None
        if extended is not None:
            allocatable: Mapping[str, int] = record.base.allocatable
            extended = extended.among(lambda resource: allocatable.get(resource, 0) <= 0)
            if extended.requests:
                wish.plan.extended = extended
                wish.requests.append(ClaimRequests(extended.requests))
        return wish

    def _give(self, node: str, wishes: Sequence[_Wish]) -> None:
        """Raises PreparationError."""
        requests = [each for wish in wishes for each in wish.requests]
        if not requests:
            return
        record, gate = self._node_named(node), self._gate
        labels = record.base.labels if record is not None and record.base is not None else {}
        try:
            solution: Solution | None = gate.book.allocate(node, labels, requests)
        except (SelectionError, SearchLimitError) as error:
            self._refuse(wishes)
            raise PreparationError(str(error)) from error
        if solution is None:
            self._refuse(wishes)
            raise TakenError(_TAKEN)
        given = iter(solution)
        for wish in wishes:
            for claim in wish.open:
                grants = tuple(next(given))
                gate.cache.choices[claim.metadata.uid] = Choice(claim.metadata.uid, node, grants)
                gate.announce(gate.book.hold(claim.metadata.uid, held_by_grants(grants)))
            if wish.plan.extended is not None:
                wish.plan.grants = tuple(next(given))
                gate.announce(gate.book.hold(wish.plan.pod.uid, held_by_grants(wish.plan.grants)))

    def _refuse(self, wishes: Iterable[_Wish]) -> None:
        """Their columns said that they fit: from now on it is counted how many of their kinds do."""
        gate = self._gate
        for wish in wishes:
            kind = wish.plan.pod.devices.kind
            if kind not in gate.book.refused:
                gate.book.refused.add(kind)
                gate.kind_changed(kind)
