"""Binds the volumes of a placed pod before the pod: updates volumes and claims, and waits for the controllers.

    an existing volume         spec.claimRef of the volume, as its controller would write it
    one to be provisioned      the annotation on the claim that names the node

Both name the version that the decision was based on: if it has changed, the write fails, and the pod is placed again.
As with kube-scheduler, written fields remain if later steps fail; the controllers clean up, and a node that was
selected for a claim stays selected until its provisioner gives up.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol
from urllib.parse import quote

from poseidon_py.kube.client import decode_answer
from poseidon_py.kube.storage_objects import Claim, Volume
from poseidon_py.state.records import PodRecord
from poseidon_py.state.volumes.cache import BOUND_BY_CONTROLLER, SELECTED_NODE, Storage, annotations, is_bound
from poseidon_py.state.volumes.gate import Plan, ProvisioningError, VolumeError, VolumeGate, VolumesTakenError
from poseidon_py.state.volumes.matching import is_prebound_to, usable_on


class PatchApi(Protocol):
    """The request of kube.Kube that binding volumes needs."""

    async def merge(self, path: str, patch: Mapping[str, Any]) -> bytes: ...


class VolumeBinder:
    """`prepare` each placement of a pod with claims."""

    def __init__(
        self,
        api: PatchApi,
        storage: Storage,
        gate: VolumeGate,
        labels_of: Callable[[str], Mapping[str, str] | None],
        timeout: float = 600.0,
        *,
        leads: Callable[[], bool],
    ) -> None:
        """`labels_of` a node by name; None: it does not exist. `timeout`: seconds for the controllers. `leads` is
        called before each write, because a suspended process learns late that another replica is the leader."""
        self._api = api
        self._storage = storage
        self._gate = gate
        self._labels_of = labels_of
        self._timeout = timeout
        self._leads = leads

    def prepare(self, known: PodRecord, node: str) -> Coroutine[Any, Any, None] | None:
        """An awaitable for the time before the bind, or None. Raises VolumeError; the awaitable also KubeError."""
        labels = self._labels_of(node)
        if labels is None:
            raise VolumeError(f"node {node} is gone")
        plan = self._gate.reserve(known, node, labels)
        return self._carry_out(plan) if plan is not None else None

    async def _carry_out(self, plan: Plan) -> None:
        try:
            # writes nothing if the placement is given back at once; and all placements of the round are known then
            await asyncio.sleep(0)
            if better := self._better_node(plan):
                raise VolumesTakenError(f"more of the pods that share its volumes were placed on node {better}")
            for claim, volume in plan.pairs:
                await self._assign_volume(claim, volume)
            for claim in plan.provision:
                await self._select_node(claim, plan.node)
            async with asyncio.timeout(self._timeout):
                for claim in (*(claim for claim, _ in plan.pairs), *plan.provision):
                    while not self._is_done(claim, plan):
                        await self._gate.wait_for_change(claim)
            if self._labels_of(plan.node) is None:
                raise VolumeError(f"node {plan.node} is gone")
        except TimeoutError as error:
            raise VolumeError("binding volumes: context deadline exceeded") from error
        except ProvisioningError:
            self._gate.provisioning_failed(plan)
            raise
        finally:
            self._gate.release(plan)

    def _better_node(self, plan: Plan) -> str:
        """Another node, on which more of the pods were placed that share a volume which is to be bound or made: it gets
        that, since all of them have to be where it is. Empty: there is none."""
        for claim in (*plan.provision, *(claim for claim, _ in plan.pairs)):
            placed = self._gate.placements_of(claim)
            best = max(placed, key=placed.__getitem__, default=plan.node)
            if SELECTED_NODE not in annotations(claim.metadata) and placed[best] > placed[plan.node]:
                return best
        return ""

    async def _assign_volume(self, claim: Claim, volume: Volume) -> None:
        if volume.spec.claim is not None and volume.spec.claim.uid:
            return
        owner = claim.metadata
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": owner.namespace,
            "name": owner.name,
            "uid": owner.uid,
            "resourceVersion": owner.resource_version,
        }
        metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version, "uid": volume.metadata.uid}
        if not is_prebound_to(volume, claim):
            metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        path = f"/api/v1/persistentvolumes/{quote(volume.metadata.name, safe='')}"
        answer = await self._write(path, {"metadata": metadata, "spec": {"claimRef": reference}})
        self._storage.volume_written(volume, decode_answer(answer, Volume, f"volume {volume.metadata.name}"))

    async def _select_node(self, claim: Claim, node: str) -> None:
        """Requests a volume for the node from the claim's provisioner."""
        given = claim.metadata
        if annotations(given).get(SELECTED_NODE) == node:
            return
        folder = f"/api/v1/namespaces/{quote(given.namespace, safe='')}/persistentvolumeclaims"
        metadata = {"resourceVersion": given.resource_version, "uid": given.uid, "annotations": {SELECTED_NODE: node}}
        answer = await self._write(f"{folder}/{quote(given.name, safe='')}", {"metadata": metadata})
        self._storage.claim_written(claim, decode_answer(answer, Claim, f"claim {given.namespace}/{given.name}"))

    async def _write(self, path: str, patch: Mapping[str, Any]) -> bytes:
        if not self._leads():
            raise VolumeError("another replica leads")
        return await self._api.merge(path, patch)

    def _is_done(self, claim: Claim, plan: Plan) -> bool:
        """Whether claim and volume are bound, and usable on the node. Raises VolumeError if they can never be."""
        planned = claim.metadata
        now = self._storage.claims.get((planned.namespace, planned.name))
        if now is None or now.metadata.uid != planned.uid:
            raise VolumeError(f'persistentvolumeclaim "{planned.name}" was deleted')
        if any(claim is made for made in plan.provision) and annotations(now.metadata).get(SELECTED_NODE) != plan.node:
            raise ProvisioningError(f'provisioning failed for PVC "{planned.name}"')
        volume = self._storage.volumes.get(now.spec.volume_name or "")
        if volume is not None and not usable_on(volume, plan.node_labels):
            raise VolumeError(f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{plan.node}"')
        return is_bound(now) and volume is not None
