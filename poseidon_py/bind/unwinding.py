"""Unwinds gangs that are not completely bound within their timeout.

Members that are not bound have been given back already. If so configured, the bound members are evicted, so that their
controller replaces them and the gang starts again. If they are all pods of a workload that can be suspended, it is
suspended, and resumed: evicted pods count as failures of a Job.

A gang that was complete and lost a member (its node failed) is not unwound: its members run, and only the application
can decide whether to continue without the missing one. It is unwound if it declares that it can only be disrupted as a
whole, and evicted or deleted members are not replaced within the timeout.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from poseidon_py.kube.client import ApiError, KubeError, NotFoundError
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.records import PodRecord
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

_RETRY_FIRST, _RETRY_MAX = 0.5, 60.0
"""Seconds until a rejected eviction is requested again."""


def is_short(group: Group) -> bool:
    """Whether fewer members are bound, or being bound, than the gang needs."""
    return group.short({known.uid: known.gang.role for known in group.settled()})


async def _never(pods: list[PodRecord], why: str) -> bool:
    return False


class Unwinder:
    """`unwind` any number, each in a separate task; `cancel` or `stop` all of them."""

    def __init__(
        self,
        *,
        evict: Callable[[PodRecord], Awaitable[None]],
        suspend: Callable[[list[PodRecord], str], Awaitable[bool]] = _never,
        bound_since: Callable[[PodRecord], Awaitable[int]],
        remark: Callable[[PodRecord, str, str], None] = lambda known, reason, message: None,
        unwind: str = "evict",
        metrics: Metrics | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`unwind`: "evict" or "keep" bound members. `evict` and `bound_since` (microseconds since the epoch) may raise
        KubeError. `suspend`: suspends the workload of these pods, with a reason in words; whether it has. `remark`:
        publishes an event: pod, reason, message."""
        self._evict = evict
        self._suspend = suspend
        self._bound_since = bound_since
        self._remark = remark
        self._unwind = unwind
        self._metrics = metrics if metrics is not None else Metrics()
        self._sleep = sleep
        self._tasks: set[asyncio.Task[None]] = set()
        self._evicting: set[str] = set()
        """UIDs of pods that are being evicted, which disruption budgets can prevent indefinitely."""

    def unwind(self, group: Group, bound: list[PodRecord]) -> None:
        """Unwinds a gang that is not complete in time; `bound`: its bound members."""
        task = asyncio.create_task(self._unwind_group(group, bound), name=f"unwind {group.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        await end_tasks(*self._tasks)

    async def _unwind_group(self, group: Group, bound: list[PodRecord]) -> None:
        if group.preempted:
            return  # the preemptor deletes all of them
        broken = group.broken and any(member.known.schedulable for member in group.members.values())
        if all(known.uid in self._evicting for known in bound) or (
            not broken and (group.started or not await self._never_was_whole(group, bound))
        ):
            return
        self._metrics.gang_units.labels("unwound").inc()
        message = f"pod group {group.name}: only {len(bound)} of {group.minimum} members could be bound in time"
        if broken:
            message = (
                f"pod group {group.name}: only {len(bound)} of {group.minimum} members are left and the others were "
                "not replaced in time; it can only be disrupted as a whole"
            )
        log.warning("%s", message)
        evictable = []
        for known in bound:
            if self._unwind != "evict":
                self._remark(known, "GangHalfBound", f"{message}; they stay bound, as configured")
            elif not known.owner:
                why = "it stays bound, because it has no controller to replace it"
                self._remark(known, "GangHalfBound", f"{message}; {why}")
            elif known.uid not in self._evicting:
                evictable.append(known)
        uids = {known.uid for known in evictable}
        self._evicting |= uids
        try:
            if evictable and await self._suspend(evictable, message):
                for known in evictable:
                    self._remark(known, "GangUnwound", f"{message}; its workload is suspended, and starts again")
            else:
                await self._evict_all(group, evictable, message)
        finally:
            self._evicting -= uids

    async def _never_was_whole(self, group: Group, bound: list[PodRecord]) -> bool:
        """Whether a partly bound gang was never complete, as opposed to one that has lost members.

        If pending members are younger than the last bind, they are replacements, and the gang was complete. Without
        pending members none is missing, or none will be replaced.
        """
        waiting = [member.known for member in group.members.values() if member.known.schedulable]
        if not waiting:
            return False
        try:
            since = max([await self._bound_since(known) for known in bound])
        except KubeError as error:
            log.warning("cannot determine since when gang %s is partly bound: %s", group.name, error)
            return False
        first = min(known.created_us for known in waiting)
        return first - first % 1_000_000 <= since  # binds have the second only, pods the order of their arrival, too

    async def _evict_all(self, group: Group, pods: list[PodRecord], message: str) -> None:
        """Retries evictions that were rejected, until the members are deleted, the gang is complete, the others are
        preempted, or no member is pending any more for which they would have to be replaced."""
        reported: set[str] = set()
        pause = _RETRY_FIRST
        while (
            pods
            and is_short(group)
            and not group.preempted
            and any(member.known.schedulable for member in group.members.values())
        ):
            refused, retry_after = [], 0.0
            for known in pods:
                if not is_short(group):
                    return  # it became complete during an eviction
                if known not in group.settled():
                    continue  # it has terminated by now, and an eviction would delete it
                try:
                    await self._evict(known)
                except NotFoundError:
                    continue
                except KubeError as error:  # usually a disruption budget
                    refused.append(known)
                    asked = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
                    retry_after = max(retry_after, asked)
                    if known.uid not in reported:
                        reported.add(known.uid)
                        log.warning("cannot evict %s yet: %s", known.full_name, error)
                        self._remark(known, "GangHalfBound", f"{message}; it cannot be evicted yet: {error}")
                else:
                    self._remark(known, "GangUnwound", f"{message}; it is evicted, to be scheduled with its gang again")
            if refused:
                await self._sleep(max(pause, retry_after))
                pause = min(2 * pause, _RETRY_MAX)
            left = {known.uid for known in group.settled()}
            pods = [known for known in refused if known.uid in left]
