"""Gives a placed pod its volumes, before it is bound: writes volumes and claims, and waits for the controllers.

    a volume that is there    spec.claimRef of the volume, as its controller would write it
    one to be made            the annotation on the claim that says for which node

Both on the version that the decision was made on: whoever was faster wins, and the pod is placed again. As with
kube-scheduler, what was written stays when the rest fails; the controllers clean up, and a node that was chosen for a
claim stays chosen until its provisioner gives up.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

from poseidon_py.kube.client import decode_answer
from poseidon_py.kube.storage_objects import Claim, Volume
from poseidon_py.state.records import PodRecord
from poseidon_py.state.volumes.cache import BOUND_BY_CONTROLLER, SELECTED_NODE, Storage, annotations, is_bound
from poseidon_py.state.volumes.gate import Plan, VolumeError, VolumeGate
from poseidon_py.state.volumes.matching import is_prebound_to, usable_on


class PatchApi(Protocol):
    """What is needed of kube.Kube."""

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
        """`labels_of` a node by name; None: there is no such node. `timeout`: seconds for the controllers. `leads` is
        asked before each write: a process that was stopped learns last that others lead."""
        self._api = api
        self._storage = storage
        self._gate = gate
        self._labels_of = labels_of
        self._timeout = timeout
        self._leads = leads

    def prepare(self, known: PodRecord, node: str) -> Awaitable[None] | None:
        """What to wait for before the bind; None: nothing. Raises VolumeError, and so may the wait, or KubeError."""
        labels = self._labels_of(node)
        if labels is None:
            raise VolumeError(f"node {node} is gone")
        plan = self._gate.reserve(known, node, labels)
        return self._carry_out(plan) if plan is not None else None

    async def _carry_out(self, plan: Plan) -> None:
        try:
            await asyncio.sleep(0)  # if the placement is given back at once nothing is written
            for claim, volume in plan.pairs:
                await self._give(claim, volume)
            for claim in plan.provision:
                await self._ask_for(claim, plan.node)
            async with asyncio.timeout(self._timeout):
                for claim in (*(claim for claim, _ in plan.pairs), *plan.provision):
                    while not self._is_done(claim, plan):
                        await self._gate.wait_for_change(claim)
            if self._labels_of(plan.node) is None:
                raise VolumeError(f"node {plan.node} is gone")
        except TimeoutError as error:
            raise VolumeError("binding volumes: context deadline exceeded") from error
        finally:
            self._gate.release(plan)

    async def _give(self, claim: Claim, volume: Volume) -> None:
        if volume.spec.claim is not None and volume.spec.claim.uid:
            return
        who = claim.metadata
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": who.namespace,
            "name": who.name,
            "uid": who.uid,
            "resourceVersion": who.resource_version,
        }
        metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version, "uid": volume.metadata.uid}
        if not is_prebound_to(volume, claim):
            metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        path = f"/api/v1/persistentvolumes/{quote(volume.metadata.name, safe='')}"
        answer = await self._write(path, {"metadata": metadata, "spec": {"claimRef": reference}})
        # the watch tells the same, but later
        self._storage.put_volume(decode_answer(answer, Volume, f"volume {volume.metadata.name}"))

    async def _ask_for(self, claim: Claim, node: str) -> None:
        who = claim.metadata
        if annotations(who).get(SELECTED_NODE) == node:
            return
        path = f"/api/v1/namespaces/{quote(who.namespace, safe='')}/persistentvolumeclaims/{quote(who.name, safe='')}"
        metadata = {"resourceVersion": who.resource_version, "uid": who.uid, "annotations": {SELECTED_NODE: node}}
        answer = await self._write(path, {"metadata": metadata})
        self._storage.put_claim(decode_answer(answer, Claim, f"claim {who.namespace}/{who.name}"))

    async def _write(self, path: str, patch: Mapping[str, Any]) -> bytes:
        if not self._leads():
            raise VolumeError("another replica leads")
        return await self._api.merge(path, patch)

    def _is_done(self, claim: Claim, plan: Plan) -> bool:
        """Whether claim and volume are bound, and right for the node. Raises VolumeError if they cannot be any more."""
        who = claim.metadata
        now = self._storage.claims.get((who.namespace, who.name))
        if now is None or now.metadata.uid != who.uid:
            raise VolumeError(f'persistentvolumeclaim "{who.name}" went away')
        if any(claim is made for made in plan.provision) and annotations(now.metadata).get(SELECTED_NODE) != plan.node:
            raise VolumeError(f'provisioning failed for PVC "{who.name}"')
        volume = self._storage.volumes.get(now.spec.volume_name or "")
        if volume is not None and not usable_on(volume, plan.node_labels):
            raise VolumeError(f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{plan.node}"')
        return is_bound(now) and volume is not None
