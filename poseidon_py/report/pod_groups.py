"""Keeps the status of PodGroups up to date, for the kinds whose status schedulers write.

    scheduling.x-k8s.io   phase, running, succeeded, failed, scheduleStartTime
    scheduling.k8s.io     condition PodGroupInitiallyScheduled, with the reasons that kube-scheduler gives, which stays
                          True once it is; PodGroupScheduled in v1alpha2. Condition DisruptionTarget from the
                          preemption of all members until the group is scheduled again

    scheduling.volcano.sh phase, running, succeeded, failed, conditions (report/volcano_groups.py)

KAI's and Godel's controllers write the statuses of their kinds. Statuses have the lowest priority: one writer, one
group at a time, the newest state of each. The groups of other schedulers are left to them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from poseidon_py.describe.annotations.preemption_terms import ANNOUNCED, PreemptionState
from poseidon_py.kube.client import Kube, KubeError, NotFoundError, decode_answer
from poseidon_py.kube.objects import PREEMPTED
from poseidon_py.report.messages import more_members
from poseidon_py.report.volcano_groups import INQUEUE, PENDING, Enqueuer, volcano_conditions, volcano_phase
from poseidon_py.state.gangs.by_pod_group import COSCHEDULING, NATIVE, VOLCANO
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.model import OwnerOrGroup, Unknown
from poseidon_py.state.gangs.object_cache import ObjectCache
from poseidon_py.state.gangs.registry import GangRegistry
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

_GATHER = 0.2
"""Seconds during which changes of a group are collected before they are written."""
_ATTEMPTS = 5
_FIRST_VERSION = "v1alpha2"
_INITIALLY = "PodGroupInitiallyScheduled"
_REASONS = (PREEMPTED[1], ANNOUNCED)
_WRITTEN = (COSCHEDULING, NATIVE, VOLCANO)
_Condition = dict[str, Any]


class _Status(Struct):
    phase: str | None = None
    conditions: list[_Condition] | None = None


class _Group(Struct):
    status: _Status = field(default_factory=_Status)


class StatusWriter:
    """`note` groups that may have changed."""

    def __init__(
        self,
        kube: Kube,
        registry: GangRegistry,
        object_cache: ObjectCache,
        leads: Callable[[], bool],
        scheduler_names: Collection[str],
        free: Callable[[], Awaitable[Mapping[str, int]]],
    ) -> None:
        """`free`: resource -> amount that is free in the cluster; may raise an error of the flow service."""
        self._kube = kube
        self._registry = registry
        self._object_cache = object_cache
        self._leads = leads
        self._dirty: dict[int, int] = {}
        """Id of a group -> failed attempts."""
        self._written: dict[int, dict[str, Any]] = {}
        self._lasting: set[int] = set()
        """Ids of groups that have been below their minimum for a while."""
        self.enqueuer = Enqueuer(kube, object_cache, leads, scheduler_names, free, self._patch)
        self._task: asyncio.Task[None] | None = None

    def note(self, group: Group, *, lasting: bool = False) -> None:
        """The group, or the state of its members, has changed. `lasting`: it has been below its minimum for a while."""
        if group.object_ref is None or group.object_ref[0] not in _WRITTEN or not self._leads():
            return
        if not (group.assigned_to_us or group.id in self._written):  # its last member may be gone
            return
        if lasting:
            self._lasting.add(group.id)
        self._dirty.setdefault(group.id, 0)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_all(), name="pod group status")

    async def stop(self) -> None:
        await self.enqueuer.stop()
        if self._task is not None:
            await end_tasks(self._task)

    async def _write_all(self) -> None:
        while self._dirty:
            await asyncio.sleep(_GATHER)
            dirty, self._dirty = self._dirty, {}
            for gang_id, attempts in dirty.items():
                group = self._registry.groups.get(gang_id)
                if group is None or not self._leads():
                    self._written.pop(gang_id, None)
                    self._lasting.discard(gang_id)
                    continue
                try:
                    await self._write(group)
                except NotFoundError:
                    pass  # deleted, or of a kind without a status
                except KubeError as error:
                    log.log(
                        logging.DEBUG if attempts else logging.WARNING,
                        "cannot write the status of pod group %s: %s",
                        group.name,
                        error,
                    )
                    if attempts < _ATTEMPTS:
                        self._dirty.setdefault(gang_id, attempts + 1)
                except Exception:
                    log.exception("writing the status of pod group %s failed", group.name)

    async def _write(self, group: Group) -> None:
        assert group.object_ref is not None
        resource = group.object_ref[0]
        try:
            pod_group = self._object_cache.find(*group.object_ref)
        except Unknown:
            return
        path = self._object_cache.path_of(resource, pod_group) if pod_group is not None else ""
        if pod_group is None or not path:
            return
        if group.complete:
            self._lasting.discard(group.id)
        status = {NATIVE: _native, COSCHEDULING: coscheduling_status, VOLCANO: _volcano}[resource](group)
        preemption, lasting = _preemption(group), group.id in self._lasting
        key = {**status, "uid": pod_group.uid, "preemption": preemption, "lasting": lasting}
        if self._written.get(group.id) == key:
            return
        body: dict[str, Any] = dict(status)
        if resource == NATIVE:
            status["type"] = "PodGroupScheduled" if f"/{_FIRST_VERSION}/" in path else _INITIALLY
            body = {"conditions": _merged((await self._present(path)).conditions or [], status, preemption)}
        elif resource == VOLCANO:
            body = self._with_phase(group, pod_group, await self._present(path))
        elif group.id not in self._written:
            body["scheduleStartTime"] = _now()
        await self._patch(path, pod_group, body)
        self._written[group.id] = key

    def _with_phase(self, group: Group, pod_group: OwnerOrGroup, present: _Status) -> dict[str, Any]:
        """The status of one of Volcano's PodGroups."""
        tally = group.tally()
        phase = volcano_phase(group, present.phase or "", lasting=group.id in self._lasting)
        if tally.placed or tally.succeeded:
            self.enqueuer.started(pod_group.uid)
        if phase == PENDING and group.members and not (group.message and group.message.start_amounts):
            phase = INQUEUE  # its pods exist, and need nothing to be free at first
        if phase == PENDING:
            self.enqueuer.note(replace(pod_group, phase=phase), assigned_to_us=True)
        counts = {"running": tally.running, "succeeded": tally.succeeded, "failed": tally.failed}
        return {"phase": phase, **counts, "conditions": volcano_conditions(group, present.conditions or [], _now())}

    async def _present(self, path: str) -> _Status:
        """The present status. Its conditions must be sent again: a merge patch replaces the whole list."""
        return decode_answer(await self._kube.call("GET", path), _Group, path).status

    async def _patch(self, path: str, pod_group: OwnerOrGroup, status: dict[str, Any]) -> None:
        body = {"metadata": {"uid": pod_group.uid}, "status": status}
        try:
            await self._kube.merge(f"{path}/status", body)
        except NotFoundError:
            if f"/{VOLCANO.group}/" not in path:
                raise
            await self._kube.merge(path, body)  # Volcano's own definition has no subresource for the status


def _volcano(group: Group) -> dict[str, Any]:
    """What the status depends on, beside the present one."""
    return {**group.tally()._asdict(), "complete": group.complete, "missing": group.missing()}


def coscheduling_status(group: Group) -> dict[str, Any]:
    """The status as the controller of scheduler-plugins derives it from the phases of the pods."""
    tally = group.tally()
    done = tally.succeeded + tally.running
    if tally.succeeded >= group.minimum:
        phase = "Finished"
    elif tally.failed and not group.members:
        phase = "Failed"  # unlike the controller: a failed pod that was replaced is no end
    elif done >= group.minimum:
        phase = "Running"
    else:
        phase = "Scheduling" if tally.present + tally.succeeded >= group.minimum else "Pending"
    return {"phase": phase, "running": tally.running, "succeeded": tally.succeeded, "failed": tally.failed}


def _native(group: Group) -> _Condition:
    """The condition of a group, without its type."""
    if _is_scheduled(group):
        return {"status": "True", "reason": "Scheduled", "message": "all pods that it needs are bound"}
    tally, (missing, of_roles) = group.tally(), group.missing()
    message = f"{tally.bound + tally.succeeded} of {group.minimum} pods are bound"
    if missing:
        message = f"{more_members(missing, of_roles)} needed before it can be scheduled"
    return {"status": "False", "reason": "Unschedulable", "message": message}


def _is_scheduled(group: Group) -> bool:
    return group.complete


def _preemption(group: Group) -> list[_Condition]:
    """The conditions that tell about the preemption of a group, or by it; without their times."""
    found: list[_Condition] = []
    members = [member.known for member in group.members.values()]
    announced = next((known.announced for known in members if known.node and known.announced is not None), None)
    if announced is not None:
        message = f"its pods will be evicted at {announced.time} for pod {announced.preemptor}"
        found.append(_condition((PreemptionState.WILL_EVICTED.condition, ANNOUNCED), message))
    elif group.preempted:
        found.append(_condition(PREEMPTED, "its pods are preempted to accommodate pods of higher priority"))
    if any(known.privileged for known in members):
        found.append(_condition((PreemptionState.PRIVILEGED.condition, ANNOUNCED), "its victims will be evicted"))
    return found


def _condition(kind_and_reason: tuple[str, str], message: str) -> _Condition:
    kind, reason = kind_and_reason
    return {"type": kind, "status": "True", "reason": reason, "message": message}


def _merged(present: list[_Condition], scheduled: _Condition, preemption: list[_Condition]) -> list[_Condition]:
    """The conditions of a PodGroup: `present` ones of others, and our own, without their times."""
    own: list[_Condition] = [scheduled]
    for each in present:
        if (each.get("type"), each.get("status")) == (_INITIALLY, "True") and scheduled["type"] == _INITIALLY:
            own = [each]  # stays True
    own += preemption
    over = {state.condition for state in PreemptionState}
    if scheduled["status"] == "True":  # it is scheduled again
        over.add(PREEMPTED[0])
    present = [each for each in present if each.get("type") not in over or each.get("reason") not in _REASONS]
    kinds = {each["type"] for each in own}
    since = {(each.get("type"), each.get("status")): each.get("lastTransitionTime") for each in present}
    stamped = [{**each, "lastTransitionTime": since.get((each["type"], each["status"])) or _now()} for each in own]
    return [*stamped, *(each for each in present if each.get("type") not in kinds)]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
