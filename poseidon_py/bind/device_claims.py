"""Gives placed pods their devices: writes claims before the pod is bound.

    claim of the pod        finalizer, then status.allocation and reservedFor together
    claim with devices      reservedFor alone: an allocation that is there is never changed
    claim of a PodGroup     likewise, but reserved for the group, as long as any of its pods has a node
    extended resources      a claim is made, then as above, then status.extendedResourceClaimStatus of the pod
    binding conditions      are waited for; one that says that it failed ends the placement

All pods of a round that share a claim are added by one write. Each write names the version that it was decided on;
where that is out of date, it is decided anew. A placement that ends without a bind gives its reservations back, and
devices without another user with them. After a restart, the claims themselves say what is reserved.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from poseidon_py.devices.objects import (
    EXTENDED_CLAIM,
    FINALIZER,
    MAX_USERS,
    Consumer,
    ResourceClaim,
)
from poseidon_py.devices.results import allocation
from poseidon_py.kube.client import ConflictError, KubeError, NotFoundError, decode_answer
from poseidon_py.kube.informers.resource import path_of
from poseidon_py.state.claim_use import PreparationError
from poseidon_py.state.devices.chooser import DeviceChooser, DevicePlan
from poseidon_py.state.devices.claim_cache import ClaimKey, is_reserved_for
from poseidon_py.state.devices.gate import DeviceGate, DeviceListener
from poseidon_py.state.records import PodRecord

log = logging.getLogger(__name__)

_TRIES = 8
"""Writes of one claim before the placement is given back."""
_CONFLICT_SECONDS = 1.0
"""Wait for the newer version of a claim after a conflict, at most."""


class ClaimApi(Protocol):
    """The requests of kube.Kube that claiming devices needs."""

    async def create(self, path: str, body: Mapping[str, Any]) -> bytes: ...
    async def merge(self, path: str, patch: Mapping[str, Any]) -> bytes: ...
    async def call(self, verb: str, path: str, body: bytes = b"") -> bytes: ...
    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None: ...


class DeviceBinder(DeviceListener):
    """`prepare` each placement of a pod with claims."""

    def __init__(
        self,
        api: ClaimApi,
        gate: DeviceGate,
        chooser: DeviceChooser,
        collection: Callable[[], str],
        timeout: float = 600.0,
        *,
        leads: Callable[[], bool],
        share: Callable[[], str] = lambda: str(uuid.uuid4()),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`collection`: the path of all claims, in the version that is read; empty: none is. `timeout`: seconds for
        binding conditions. `leads`: as VolumeBinder's. `share`: a UUID for a share of a device."""
        self._api = api
        self._gate = gate
        self._chooser = chooser
        self._collection = collection
        self._timeout = timeout
        self._leads = leads
        self._share = share
        self._now = now
        self._waiting: dict[ClaimKey, dict[str, PodRecord]] = {}
        """Pods that are to be added to a claim, by UID."""
        self._locks: dict[ClaimKey, asyncio.Lock] = {}
        self._written: dict[str, DevicePlan] = {}
        """By UID: pods for which something may have been written, until they are bound or deleted."""
        self._made: dict[str, ClaimKey] = {}
        """UID of a pod -> the claim that was made for its extended resources."""
        self._leaving: set[ClaimKey] = set()
        """Claims that are being given back."""
        self._undoing: set[asyncio.Task[None]] = set()
        gate.listener = self

    def prepare(self, known: PodRecord, node: str) -> Coroutine[Any, Any, None] | None:
        """An awaitable for the time before the bind, or None. Raises PreparationError; the awaitable also KubeError."""
        plan = self._chooser.choose(known, node)
        return self._carry_out(plan) if plan is not None else None

    async def stop(self) -> None:
        """Waits for reservations that are being given back."""
        if self._undoing:
            await asyncio.wait(self._undoing)

    def settled(self, known: PodRecord) -> None:
        """The pod is bound or deleted: what was written stays, or its owner removes it."""
        self._written.pop(known.uid, None)
        self._made.pop(known.uid, None)

    # -- writing --------------------------------------------------------------------------------------------------

    async def _carry_out(self, plan: DevicePlan) -> None:
        known = plan.pod
        for key in plan.claims:
            self._waiting.setdefault(key, {})[known.uid] = known
        # writes nothing if the placement is given back at once; and all users of a claim are known then
        await asyncio.sleep(0)
        self._written[known.uid] = plan
        try:
            keys = list(plan.claims)
            if plan.extended is not None:
                keys.append(await self._make(plan))
            for key in plan.claims:
                await self._add_to(key, plan)
            async with asyncio.timeout(self._timeout):
                for key in keys:
                    while not self._is_ready(key):
                        await self._gate.wait_for_change(key)
        except TimeoutError as error:
            raise PreparationError("binding device claims: context deadline exceeded") from error
        finally:
            for key in plan.claims:
                self._waiting.get(key, {}).pop(known.uid, None)

    async def _add_to(self, key: ClaimKey, plan: DevicePlan) -> None:
        """Reserves a claim for a pod, and all others that wait for that. Raises PreparationError, KubeError."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            waiting = self._waiting.pop(key, {})
            if plan.pod.uid in waiting:
                await self._write(key, waiting)
        if not lock.locked():
            self._locks.pop(key, None)
        claim = self._gate.cache.claims.get(key)
        if claim is None or not is_reserved_for(claim, self._gate.groups.consumer(plan.pod, key[1]).uid):
            raise PreparationError(f'resourceclaim "{key[1]}" could not be reserved')

    async def _write(self, key: ClaimKey, pods: Mapping[str, PodRecord]) -> None:
        for _ in range(_TRIES):
            claim = self._current(key)
            try:
                await self._write_once(key, claim, pods)
            except ConflictError:
                await self._newer(key)
            else:
                return
        raise PreparationError(f'resourceclaim "{key[1]}" is changed by others again and again')

    async def _write_once(self, key: ClaimKey, claim: ResourceClaim, pods: Mapping[str, PodRecord]) -> None:
        choice = self._gate.cache.choices.get(claim.metadata.uid)
        status: dict[str, Any] = {}
        if claim.status.allocation is None:
            if choice is None:
                raise PreparationError(f'resourceclaim "{key[1]}" has lost its devices')
            claim = await self._protect(key, claim)
            status["allocation"] = self._allocation(claim, choice.grants, choice.node)
        users = list(claim.status.users or ())
        added = {each.uid: each for known in pods.values() if (each := self._gate.groups.consumer(known, key[1]))}
        users += [each for uid, each in added.items() if not is_reserved_for(claim, uid)]
        status["reservedFor"] = [_plain(each) for each in users[:MAX_USERS]]
        await self._patch(key, claim, {"status": status}, "/status")

    async def _protect(self, key: ClaimKey, claim: ResourceClaim) -> ResourceClaim:
        """The claim with the finalizer, without which it could be deleted while it has devices."""
        finalizers = claim.metadata.finalizers or []
        if FINALIZER in finalizers:
            return claim
        return await self._patch(key, claim, {"metadata": {"finalizers": [*finalizers, FINALIZER]}})

    def _allocation(self, claim: ResourceClaim, grants: Any, node: str) -> dict[str, Any]:
        shares = iter(self._share, None)
        stamp = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        return allocation(claim, grants, node, self._gate.book.classes, shares, stamp)

    async def _patch(self, key: ClaimKey, claim: ResourceClaim, patch: dict[str, Any], part: str = "") -> ResourceClaim:
        if not self._leads():
            raise PreparationError("another replica leads")
        metadata = {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version}
        body = patch | {"metadata": metadata | patch.get("metadata", {})}
        answer = await self._api.merge(self._path(key) + part, body)
        after = decode_answer(answer, ResourceClaim, f"resourceclaim {key[0]}/{key[1]}")
        self._gate.claim_written(claim, after)
        return after

    def _current(self, key: ClaimKey) -> ResourceClaim:
        """Raises PreparationError if the claim cannot be used."""
        claim = self._gate.cache.claims.get(key)
        if claim is None or claim.metadata.deleting is not None:
            raise PreparationError(f'resourceclaim "{key[1]}" was deleted')
        return claim

    async def _newer(self, key: ClaimKey) -> None:
        try:
            async with asyncio.timeout(_CONFLICT_SECONDS):
                await self._gate.wait_for_change(key)
        except TimeoutError:
            pass

    def _path(self, key: ClaimKey) -> str:
        return path_of(self._collection(), *key)

    def _is_ready(self, key: ClaimKey) -> bool:
        """Whether all binding conditions of a claim's devices are met. Raises PreparationError if one has failed."""
        claim = self._current(key)
        reported = {
            (each.driver, each.pool, each.device, each.share): {
                condition.type for condition in each.conditions or () if condition.status == "True"
            }
            for each in claim.status.devices or ()
        }
        results = claim.status.allocation.devices.results if claim.status.allocation is not None else ()
        ready = True
        for each in results or ():
            met = reported.get((each.driver, each.pool, each.device, each.share), set())
            if failed := met & set(each.failure_conditions or ()):
                raise PreparationError(f"claim {key[1]} binding failed: {', '.join(sorted(failed))}")
            ready = ready and set(each.binding_conditions or ()) <= met
        return ready

    # -- extended resources ---------------------------------------------------------------------------------------

    async def _make(self, plan: DevicePlan) -> ClaimKey:
        """Makes the claim of a pod's extended resources, and writes into the pod's status which it is."""
        known, extended = plan.pod, plan.extended
        assert extended is not None
        if not self._leads():
            raise PreparationError("another replica leads")
        left = self._gate.cache.extended.get(known.uid)
        if left is not None:  # of a process that ended before the bind
            await self._remove(left)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": known.name, "uid": known.uid}
        collection = self._collection()
        version = collection.split("/")[3]
        body = {
            "apiVersion": f"resource.k8s.io/{version}",
            "kind": "ResourceClaim",
            "metadata": {
                "generateName": f"{known.name}-extended-resources-",
                "namespace": known.namespace,
                "annotations": {EXTENDED_CLAIM: "true"},
                "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
                "finalizers": [FINALIZER],
            },
            "spec": extended.spec(version),
        }
        folder = path_of(collection, known.namespace, "").rstrip("/")
        claim = decode_answer(await self._api.create(folder, body), ResourceClaim, "a resourceclaim that was made")
        key = known.namespace, claim.metadata.name
        self._made[known.uid] = key
        self._gate.put_claim(claim)
        status = {
            "allocation": self._allocation(claim, plan.grants, plan.node),
            "reservedFor": [_plain(_user(known))],
        }
        await self._patch(key, claim, {"status": status}, "/status")
        self._gate.announce(self._gate.book.hold(known.uid, ()))
        mappings = [
            {"containerName": each.container, "resourceName": each.resource, "requestName": each.request}
            for each in extended.mappings
        ]
        named = {"requestMappings": mappings, "resourceClaimName": key[1]}
        patch = {"metadata": {"uid": known.uid}, "status": {"extendedResourceClaimStatus": named}}
        await self._api.patch_pod_status(known.namespace, known.name, patch)
        return key

    async def _remove(self, key: ClaimKey) -> None:
        """Deletes the claim of a pod's extended resources, which has no other user."""
        claim = self._gate.cache.claims.get(key)
        if claim is not None and claim.status.allocation is not None:
            await self._patch(
                key, claim, {"status": {"reservedFor": None, "allocation": None, "devices": None}}, "/status"
            )
        with suppress(NotFoundError):
            await self._api.call("DELETE", self._path(key))

    # -- giving back ----------------------------------------------------------------------------------------------

    def released(self, known: PodRecord) -> None:
        plan, made = self._written.pop(known.uid, None), self._made.pop(known.uid, None)
        if plan is not None:
            self._spawn(known, [*plan.claims, *(() if made is None else (made,))], made)

    def unused(self, known: PodRecord, key: ClaimKey) -> None:
        self._spawn(known, [key], None)

    def left_behind(self, known: PodRecord, key: ClaimKey) -> None:
        self._spawn(known, [key], key)

    def _spawn(self, known: PodRecord, keys: list[ClaimKey], made: ClaimKey | None) -> None:
        keys = [key for key in keys if key not in self._leaving]
        if keys and self._leads() and self._collection():
            self._leaving.update(keys)
            task = asyncio.create_task(self._undo(known, keys, made), name=f"devices of {known.full_name}")
            self._undoing.add(task)
            task.add_done_callback(self._undoing.discard)

    async def _undo(self, known: PodRecord, keys: list[ClaimKey], made: ClaimKey | None) -> None:
        for key in keys:
            try:
                await self._give_back(key, known)
                if key == made and not (known.assumed or known.node):
                    await self._api.call("DELETE", self._path(key))
            except NotFoundError:
                pass
            except (KubeError, PreparationError) as error:
                log.warning("the devices of %s/%s stay reserved for %s: %s", *key, known.full_name, error)
            finally:
                self._leaving.discard(key)

    async def _give_back(self, key: ClaimKey, known: PodRecord) -> None:
        """Removes a pod's reservation, unless it was placed again meanwhile; and the devices of a claim without other
        users."""
        for _ in range(_TRIES):
            claim = self._gate.cache.claims.get(key)
            if claim is None or known.assumed or known.node or claim.status.allocation is None:
                return
            groups, uid = self._gate.groups, self._gate.groups.consumer(known, key[1]).uid
            if claim.status.users and not is_reserved_for(claim, uid):
                return
            if groups.others_use(known, key[1], self._gate.cache.users.get(key, {})):
                return
            users = [_plain(each) for each in claim.status.users or () if each.uid != uid]
            status: dict[str, Any] = {"reservedFor": users or None}
            if not users:
                status |= {"allocation": None, "devices": None}
            try:
                await self._patch(key, claim, {"status": status}, "/status")
            except ConflictError:
                await self._newer(key)
            else:
                return


def _user(known: PodRecord) -> Consumer:
    return Consumer("pods", known.name, known.uid)


def _plain(user: Consumer) -> dict[str, str]:
    return {key: value for key, value in msgspec.to_builtins(user).items() if value is not None}
