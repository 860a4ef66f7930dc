"""The status of Volcano's PodGroups, as Volcano's scheduler writes it.

    Pending --resources to start with are free--> Inqueue --its minimum is on nodes or has ended--> Running
    Running --part of it is gone, and is not replaced--> Unknown --> Running --all have ended--> Completed

Controllers create no pods while the phase of their PodGroup is empty or Pending (Volcano's job controller, Kubeflow's
training operator). So PodGroups without pods are looked at, too: those of this scheduler, which is the case if it is
called `volcano`, or if the object that controls the PodGroup says so in its pods' `schedulerName`.
"""

import asyncio
import logging
import re
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from poseidon_py.kube.client import Kube, KubeError, NotFoundError
from poseidon_py.report.messages import cannot_start, more_members
from poseidon_py.state.gangs.by_pod_group import VOLCANO, start_amounts
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.model import Invalid, OwnerOrGroup, Unknown
from poseidon_py.state.gangs.object_cache import ObjectCache
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

PENDING, INQUEUE, RUNNING, UNKNOWN, COMPLETED = "Pending", "Inqueue", "Running", "Unknown", "Completed"
_SCHEDULED, _UNSCHEDULABLE = "Scheduled", "Unschedulable"
_VOLCANO_NAME = "volcano"
_SCHEDULER_NAME = re.compile(rb'"schedulerName"\s*:\s*"([^"]*)"')
_AGAIN = 5.0
"""Seconds until a PodGroup that has to wait is looked at again."""

Json = dict[str, Any]


def volcano_phase(group: Group, present: str, *, lasting: bool) -> str:
    """The phase of a PodGroup that has, or had, members. `present`: its phase so far. `lasting`: whether it has been
    below its minimum for a while. As getPodGroupPhase in Volcano's framework/session.go."""
    tally = group.tally()
    on_nodes = tally.placed + sum(m.known.observed.deleting and bool(m.known.node) for m in group.members.values())
    ended = tally.succeeded + tally.failed
    if tally.running and not group.complete and (lasting or present == UNKNOWN):
        return UNKNOWN
    if on_nodes + ended >= max(group.needs.minimum, 1):
        return RUNNING if on_nodes else COMPLETED
    if on_nodes and present in (RUNNING, UNKNOWN):
        return present  # a lost member that is about to be replaced is no reason to create no pods
    return INQUEUE if present == INQUEUE else PENDING


def volcano_conditions(group: Group, present: list[Json], now: str) -> list[Json]:
    """The conditions of a PodGroup: `present` ones, and the one that tells about its members."""
    tally, (missing, of_roles) = group.tally(), group.missing()
    if group.complete:
        condition = {"type": _SCHEDULED, "reason": "tasks in gang are ready to be scheduled"}
    elif group.members:
        lacking = group.lacking()[0]
        why = f"{more_members(missing, of_roles)} needed" if missing else "they do not fit together yet"
        condition = {
            "type": _UNSCHEDULABLE,
            "reason": "NotEnoughTasks" if missing else "NotEnoughResources",
            "message": f"{lacking}/{tally.present} tasks in gang unschedulable: {why}",
        }
    else:
        return present
    condition |= {"status": "True"}
    before = next((each for each in present if each.get("type") == condition["type"]), {})
    latest = max((str(each.get("lastTransitionTime", "")) for each in present), default="")
    if all(before.get(key) == value for key, value in condition.items()) and before["lastTransitionTime"] == latest:
        return present
    condition |= {"transitionID": str(uuid.uuid4()), "lastTransitionTime": now}
    others = [each for each in present if each.get("type") != condition["type"]]
    return [*others, condition]


class Enqueuer:
    """Lets controllers create the pods of PodGroups. `note` PodGroups that may be Pending."""

    def __init__(
        self,
        kube: Kube,
        objects: ObjectCache,
        leads: Callable[[], bool],
        scheduler_names: Collection[str],
        free: Callable[[], Awaitable[Mapping[str, int]]],
        write: Callable[[str, OwnerOrGroup, Json], Awaitable[None]],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`free`: resource -> amount that is free in the cluster; may raise an error of the flow service. `write`:
        takes the path of a PodGroup, the PodGroup, and what changes in its status; may raise KubeError."""
        self._kube = kube
        self._objects = objects
        self._leads = leads
        self._names = frozenset(name.encode() for name in scheduler_names)
        self._free = free
        self._write = write
        self._sleep = sleep
        self._noted: dict[str, OwnerOrGroup] = {}
        """By UID."""
        self._assigned_to_us: dict[str, bool] = {}
        """Whether PodGroups are this scheduler's, by UID."""
        self._admitted: dict[str, dict[str, int]] = {}
        """What PodGroups need that were admitted and have no members on nodes yet, by UID."""
        self._task: asyncio.Task[None] | None = None

    def lead(self) -> None:
        """Looks at all PodGroups, and starts their watch."""
        try:
            self._objects.find(VOLCANO, "", "")
        except Unknown:
            return  # each is noted once it is listed
        for pod_group in self._objects.all(VOLCANO):
            self.note(pod_group)

    def note(self, pod_group: OwnerOrGroup, *, assigned_to_us: bool = False) -> None:
        """A PodGroup exists, or has changed. `assigned_to_us`: this scheduler places its pods."""
        if assigned_to_us:
            self._assigned_to_us[pod_group.uid] = True
        if pod_group.phase not in ("", PENDING) or not self._leads():
            return
        self._noted[pod_group.uid] = pod_group
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="enqueue pod groups")

    def started(self, uid: str) -> None:
        """A PodGroup has members on nodes."""
        self._admitted.pop(uid, None)

    def gone(self, uid: str) -> None:
        for found in (self._noted, self._assigned_to_us, self._admitted):
            found.pop(uid, None)

    async def stop(self) -> None:
        if self._task is not None:
            await end_tasks(self._task)

    async def _run(self) -> None:
        """Until nothing is Pending that is this scheduler's."""
        while self._noted and self._leads():
            try:
                await self._enqueue()
            except Exception as error:  # of the flow service, too: the next time it may answer
                log.warning("cannot admit Volcano's pod groups yet: %s", error)
            if self._noted:
                await self._sleep(_AGAIN)

    async def _enqueue(self) -> None:
        """Admits those that are to be admitted now, the oldest first."""
        left: dict[str, int] | None = None
        for uid, noted in sorted(self._noted.items(), key=lambda item: (item[1].created_us, item[0])):
            pod_group = self._objects.find(VOLCANO, noted.namespace, noted.name)
            if pod_group is None or pod_group.uid != uid:
                self.gone(uid)
                continue
            if pod_group.phase not in ("", PENDING) and pod_group.version != noted.version:
                self._noted.pop(uid, None)
                continue
            pod_group = replace(pod_group, phase=pod_group.phase if pod_group.phase == "" else PENDING)
            if not await self._is_assigned_to_us(pod_group):
                continue
            try:
                amounts = dict(start_amounts(pod_group.spec))
            except Invalid as problem:
                log.debug("pod group %s/%s: %s", pod_group.namespace, pod_group.name, problem)
                continue  # its pods, if there are any, say so
            if amounts and left is None:
                left = dict(await self._free())
                for admitted in self._admitted.values():
                    _take(left, admitted)
            lacking = {name: amount - (left or {}).get(name, 0) for name, amount in amounts.items()}
            lacking = {name: amount for name, amount in lacking.items() if amount > 0}
            if await self._admit(pod_group, lacking):
                self._noted.pop(uid, None)
                if amounts and left is not None:
                    self._admitted[uid] = amounts
                    _take(left, amounts)

    async def _admit(self, pod_group: OwnerOrGroup, lacking: Mapping[str, int]) -> bool:
        """Writes the phase of a PodGroup that lacks such amounts. Returns whether it was admitted, or is gone."""
        path = self._objects.path_of(VOLCANO, pod_group)
        if not path:
            return False
        if lacking and pod_group.phase == PENDING:
            return False
        try:
            await self._write(path, pod_group, {"phase": PENDING if lacking else INQUEUE})
        except NotFoundError:
            return True
        except KubeError as error:
            log.warning("cannot write the phase of pod group %s/%s: %s", pod_group.namespace, pod_group.name, error)
            return False
        if lacking:
            name = f"{pod_group.namespace}/{pod_group.name}"
            log.info("pod group %s is Pending until %s", name, cannot_start(lacking))
        return not lacking

    async def _is_assigned_to_us(self, pod_group: OwnerOrGroup) -> bool:
        known = self._assigned_to_us.get(pod_group.uid)
        if known is not None:
            return known
        if _VOLCANO_NAME.encode() in self._names:
            return True
        owner = pod_group.owner
        if owner is None:
            return False  # its pods tell, once they exist
        try:
            path = self._objects.path_of_owner(owner, pod_group.namespace)
            named = set(_SCHEDULER_NAME.findall(await self._kube.call("GET", path))) if path else set()
        except Unknown:
            return False
        except NotFoundError:
            named = set()
        except KubeError as error:
            log.warning(
                "cannot read %s %s/%s, so nobody creates the pods of its pod group: %s",
                *(owner.kind, pod_group.namespace, owner.name, error),
            )
            return False
        found = self._assigned_to_us[pod_group.uid] = bool(named & self._names)
        if not found:
            self._noted.pop(pod_group.uid, None)
        return found


def _take(left: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        left[name] = left.get(name, 0) - amount
