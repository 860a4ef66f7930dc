"""/dashboard/api/jobs, /gangs and /pods: lists, filtered and cut on the server; /job, /gang and /pod: one of them.

Lists: {"total": int, "hidden": int, "reviewing": int, "offset": int, "items": [...]}. `total` counts what agrees with
the filters and may be seen; `hidden` is the number of all that the asker may not see, whatever the filters.
"""

import asyncio
import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from poseidon_py.app.queries.job_list import job_json
from poseidon_py.dashboard.scope import Scope
from poseidon_py.dashboard.wait_reasons import wait_reason_of
from poseidon_py.dashboard.watched import Shared, Watched
from poseidon_py.machines.states import ReplicaState
from poseidon_py.state.records import PodRecord
from poseidon_py.tracking.derivation import OVER, PENDING
from poseidon_py.tracking.records import Job
from poseidon_py.tracking.times import written
from protos.gen import flow_pb2

Json = dict[str, Any]
_T = TypeVar("_T")

LIMIT, LARGEST_LIMIT = 50, 500
_STEP = 5000
"""Rows that a list looks at before others go on: some milliseconds."""
_WAITING = "waiting"
_ON_NODE = "on a node"
_PLANS = "plans"
_NO_WAIT: Json = {"waits": "", "action": "", "why": ""}


class ListQuery(NamedTuple):
    """What a list is asked for; empty: anything."""

    text: str = ""
    """A part of NAMESPACE/NAME."""
    namespace: str = ""
    state: str = ""
    queue: str = ""
    user: str = ""
    node: str = ""
    waits: str = ""
    """A key of wait_reasons.py."""
    offset: int = 0
    limit: int = LIMIT


async def scanned(items: Iterable[_T], *conditions: Callable[[_T], bool]) -> list[_T]:
    """Those that meet all conditions; the scheduler goes on from time to time."""
    found: list[_T] = []
    rows = list(items)
    for first in range(0, len(rows), _STEP):
        part = rows[first : first + _STEP]
        for condition in conditions:
            part = [row for row in part if condition(row)]
        found += part
        await asyncio.sleep(0)
    return found


def page(tiers: Iterable[Sequence[_T]], chosen: ListQuery, key: Callable[[_T], Any]) -> list[_T]:
    """The rows from `offset` on: tier after tier, in each the one with the largest key first."""
    start, limit = chosen.offset, chosen.limit
    rows: list[_T] = []
    for tier in tiers:
        if start < len(tier) and len(rows) < limit:
            rows += heapq.nlargest(start + limit - len(rows), tier, key=key)[start:]
        start = max(start - len(tier), 0)
    return rows


class WorkLists:
    """The lists of one scheduler."""

    def __init__(self, watched: Watched, shared: Shared, *, now: Callable[[], float] = time.time) -> None:
        self._watched = watched
        self._shared = shared
        self._now = now

    # -- jobs -------------------------------------------------------------------------------------------------

    async def jobs(self, chosen: ListQuery, scope: Scope) -> Json:
        """Those of which pods wait first, then those that have not ended, the newest first; each with why it waits, and
        when it is planned to start. Raises EngineError."""
        tracker = self._watched.tracker
        if tracker is None:
            return _list(0, 0, scope, chosen, [])
        if chosen.queue:
            tracker.note_queues()
        visible = [] if scope.all else [lambda job: scope.shows(job.key.namespace)]
        shown = await scanned(tracker.jobs.values(), *visible)
        agreeing = await scanned(shown, *_job_conditions(chosen))
        ended = [job for job in agreeing if job.state in OVER]
        alive = [job for job in agreeing if job.state not in OVER]
        waiting = [job for job in alive if job.count(PENDING)]
        others = [job for job in alive if not job.count(PENDING)]
        jobs = page((waiting, others, ended), chosen, lambda job: (job.created, job.key))
        starts = await self._planned_starts() if any(job.state not in OVER for job in jobs) else {}
        states = Counter(job.state for job in shown)
        items = [self._job(job, starts) for job in jobs]
        return _list(len(agreeing), len(tracker.jobs) - len(shown), scope, chosen, items) | {
            "now": written(self._now()),
            "states": {str(state): states[state] for state in sorted(states)},
            "since": written(tracker.since),
        }

    def _job(self, job: Job, starts: Mapping[int, int]) -> Json:
        waiting = self._first_waiting(job)
        body = job_json(job, self._now())
        if not body["queue"] and (known := self._any_pod(job)) is not None:
            body["queue"] = self._watched.store.queues.resolution_of(known).name
        planned = starts.get(waiting.gang.id, 0) if waiting is not None and waiting.gang.id else 0
        return body | {
            "planned_start": written(planned / 1e6),
            **(self._why(waiting) if waiting is not None else _NO_WAIT),
        }

    def _first_waiting(self, job: Job) -> PodRecord | None:
        for uid, replica in job.replicas():
            if replica.state is ReplicaState.PENDING:
                known = self._watched.store.pods.get(uid)
                if known is not None and not known.node:
                    return known
        return None

    def _any_pod(self, job: Job) -> PodRecord | None:
        found = (self._watched.store.pods.get(uid) for uid, _ in job.replicas())
        return next((known for known in found if known is not None), None)

    def _why(self, known: PodRecord) -> Json:
        reason = wait_reason_of(known, int(self._now() * 1e6))
        return {
            "waits": reason.text,
            "action": reason.action,
            "why": self._message(known),
        }

    def _message(self, known: PodRecord) -> str:
        problem = known.described.problem or known.blocked or known.gang.blocked
        return problem or self._conditions.get(known.uid, "")

    @property
    def _conditions(self) -> Mapping[str, str]:
        runtime = self._watched.runtime
        return runtime.reporter.conditions if runtime is not None else {}

    async def _planned_starts(self) -> Mapping[int, int]:
        """Id of a gang -> when it is expected to fit, microseconds since the epoch, where that is known."""

        async def ask() -> dict[int, int]:
            reply: flow_pb2.GangsReply = await self._watched.engine.list_gangs()
            return {each.id: each.starts_us for each in reply.gangs if each.starts_us}

        found: Mapping[int, int] = await self._shared.get(_PLANS, ask)
        return found

    async def job(self, namespace: str, name: str) -> Json:
        """Raises EngineError, UnknownJob."""
        body = await self._watched.jobs(namespace=namespace, name=name)
        starts = await self._planned_starts()
        tracker = self._watched.tracker
        by_uid = {job.key.uid: job for job in tracker.jobs.values()} if tracker is not None else {}
        for job in body["jobs"]:
            known = by_uid.get(job["uid"])
            waiting = self._first_waiting(known) if known is not None else None
            job["planned_start"] = written(starts.get(waiting.gang.id, 0) / 1e6) if waiting is not None else None
            gang = self._gang_of(known)
            job["gang"] = gang
        return {"now": written(self._now()), "jobs": body["jobs"], "suspended": body["suspended"]}

    def _gang_of(self, job: Job | None) -> str | None:
        known = self._any_pod(job) if job is not None else None
        group = self._watched.store.gangs.group_of(known) if known is not None else None
        return group.name if group is not None else None

    # -- gangs ------------------------------------------------------------------------------------------------

    async def gangs(self, chosen: ListQuery, scope: Scope) -> Json:
        """Those that wait first, of these the oldest. Raises EngineError."""
        body = await self._shared.get("gangs", lambda: self._watched.gangs("", ""))
        shown = [gang for gang in body["gangs"] if scope.shows(gang["namespace"])]
        states = Counter(gang["state"] for gang in shown)
        text = chosen.text.lower()
        agreeing = [
            gang
            for gang in shown
            if text in gang["name"].lower()
            and chosen.namespace in ("", gang["namespace"])
            and chosen.state.lower() in ("", gang["state"].lower())
            and chosen.queue in ("", gang["queue"] or "")
        ]
        gangs = page([agreeing], chosen, lambda gang: (bool(gang["why"]), gang["age_seconds"], gang["name"]))
        hidden = len(body["gangs"]) - len(shown)
        return _list(len(agreeing), hidden, scope, chosen, gangs) | {"states": dict(sorted(states.items()))}

    async def gang(self, namespace: str, name: str) -> Json:
        """Raises EngineError, UnknownGang."""
        return await self._watched.gangs(f"{namespace}/{name}", "")

    # -- pods -------------------------------------------------------------------------------------------------

    async def pods(self, chosen: ListQuery, scope: Scope) -> Json:
        """Those that wait first, the oldest first."""
        known = self._watched.store.pods
        visible = [] if scope.all else [lambda pod: scope.shows(pod.namespace)]
        shown = await scanned(known.values(), *visible)
        agreeing = await scanned(shown, *_pod_conditions(chosen, int(self._now() * 1e6)))
        waiting = [pod for pod in agreeing if _waits(pod)]
        others = [pod for pod in agreeing if not _waits(pod)] if len(waiting) < chosen.offset + chosen.limit else []
        pods = page((waiting, others), chosen, lambda pod: (-pod.created_us, pod.uid))
        items = [self._pod(pod) for pod in pods]
        return _list(len(agreeing), len(known) - len(shown), scope, chosen, items)

    def _pod(self, pod: PodRecord) -> Json:
        described = self._watched.store.classes.get(pod.described.class_id)
        why = self._why(pod) if _waits(pod) else _NO_WAIT
        return {
            "pod": pod.full_name,
            "namespace": pod.namespace,
            "scheduler": pod.observed.scheduler or "another",
            "state": _state(pod),
            "node": pod.node or pod.assumed,
            "nominated": pod.nominated,
            "created": written(pod.created_us / 1e6),
            "priority": pod.described.priority,
            "queue": self._watched.store.queues.resolution_of(pod).name,
            "requests": dict(sorted(described.requests.items())) if described is not None else {},
            **why,
        }

    async def pod(self, namespace: str, name: str) -> Json | None:
        """The answer of /explain, its job, and its times; None: there is no such pod. Raises EngineError,
        KubeError."""
        body = await self._watched.explain(namespace, name)
        if body is None:
            return None
        known = self._watched.store.pod_named(namespace, name)
        times, job = self._times(body["uid"])
        return body | {
            "nominated": known.nominated if known is not None else "",
            "job": job,
            "times": times,
        }

    def _times(self, uid: str) -> tuple[Json, str | None]:
        """When it was created, bound, started, ended, as far as that is known; and the name of its job."""
        tracker = self._watched.tracker
        replica = tracker.replica(uid) if tracker is not None else None
        if replica is None:
            known = self._watched.store.pods.get(uid)
            return {"created": written(known.created_us / 1e6)} if known is not None else {}, None
        names = ("created", "bound", "started", "ended")
        return {name: written(getattr(replica, name)) for name in names}, replica.task.job.full_name


def _job_conditions(chosen: ListQuery) -> list[Callable[[Job], bool]]:
    state, text = chosen.state.lower(), chosen.text.lower()
    found: list[Callable[[Job], bool]] = []
    if chosen.namespace:
        found.append(lambda job: job.key.namespace == chosen.namespace)
    if chosen.user:
        found.append(lambda job: job.user == chosen.user)
    if chosen.queue:
        found.append(lambda job: job.queue == chosen.queue)
    if state:
        found.append(lambda job: job.state.lower() == state)
    if text:
        found.append(lambda job: text in job.full_name.lower())
    return found


def _waits(pod: PodRecord) -> bool:
    return bool(pod.observed.scheduler) and not (pod.node or pod.assumed or pod.observed.deleting)


def _state(pod: PodRecord) -> str:
    if pod.observed.deleting:
        return "being deleted"
    if pod.node:
        return "being preempted" if pod.preempting else "being moved" if pod.migrating else _ON_NODE
    return "being bound" if pod.assumed else _WAITING


def _pod_conditions(chosen: ListQuery, now_us: int) -> list[Callable[[PodRecord], bool]]:
    text = chosen.text.lower()
    found: list[Callable[[PodRecord], bool]] = []
    if chosen.namespace:
        found.append(lambda pod: pod.namespace == chosen.namespace)
    if chosen.node:
        found.append(lambda pod: chosen.node in (pod.node, pod.assumed))
    if chosen.state:
        found.append(lambda pod: _state(pod) == chosen.state)
    if text:
        found.append(lambda pod: text in pod.full_name.lower())
    if chosen.waits:
        found += [_waits, lambda pod: wait_reason_of(pod, now_us).key == chosen.waits]
    return found


def _list(total: int, hidden: int, scope: Scope, chosen: ListQuery, items: list[Json]) -> Json:
    return {
        "total": total,
        "hidden": hidden,
        "reviewing": scope.reviewing,
        "offset": chosen.offset,
        "items": items,
    }
