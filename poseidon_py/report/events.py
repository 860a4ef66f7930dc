"""Publishes the outcome for each pod: events, and the PodScheduled condition that cluster-autoscaler reads.

Reports have lower priority than binds (report/paced_queue.py). Those on one pod coalesce: a newer one replaces one that
is not sent yet, so that the last outcome of every pod is always published.

Events are core/v1: every API server stores them, `kubectl describe` shows their count and age, and a repeat is one
patch. A condition is patched on the pod's known version only: if the pod was bound in between, the server refuses the
patch, and the report is obsolete.
"""

import asyncio
import logging
import random
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

from poseidon_py.kube.client import (
    BusyError,
    ConflictError,
    KubeError,
    LostAnswerError,
    NotFoundError,
    UnreachableError,
)
from poseidon_py.report.event_report import Report, reference
from poseidon_py.report.messages import cannot_use
from poseidon_py.report.paced_queue import Binds, Outbox
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from poseidon_py.util.tasks import end_tasks
from poseidon_py.util.timers import Timer
from poseidon_py.util.timestamps import timestamp

log = logging.getLogger(__name__)

_QUEUE_GRACE = 2.0
"""Seconds for which nobody is told that a queue does not exist."""
_ATTEMPTS = 5
_MESSAGES_KEPT = 8


class ReportApi(Protocol):
    """The requests of kube.Kube that reports need."""

    async def create(self, path: str, body: Mapping[str, Any], timeout: float = 30.0) -> bytes: ...
    async def merge(self, path: str, patch: Mapping[str, Any]) -> bytes: ...
    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None: ...


class Reporter:
    """`start`; `scheduled`, `unschedulable`, ... any number; `flush`, `stop`."""

    def __init__(
        self,
        api: ReportApi,
        store: Store,
        binds: Binds,
        *,
        component: str = "poseidon",
        rate: float = 1000.0,
        concurrency: int = 8,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        call_later: Callable[[float, Callable[[], None]], Timer] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`rate`: reports per second, 0: no limit; `concurrency`: maximum number of requests in flight."""
        self._api = api
        self._store = store
        self._metrics = store.metrics
        self.component = component
        self._instance = f"{component}-{socket.gethostname()}"
        self._concurrency = concurrency
        self._call_later = call_later
        self._now = now
        self._pending: Outbox[Report] = Outbox(binds, rate, sleep=sleep, monotonic=monotonic)
        self._deferred: dict[str, tuple[Report, Timer]] = {}
        """By key: reports that are retried, with the timer that makes each pending again. They occupy no worker."""
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._sending = 0
        self._sent: dict[str, dict[str, tuple[str, int]]] = {}
        """UID -> message -> name of its event and its count; pending pods only."""
        self.conditions: dict[str, str] = {}
        """UID -> message of the last condition set."""
        self._newest: dict[str, Report] = {}
        """UID -> the newest report on why a pod waits."""
        self._workers: list[asyncio.Task[None]] = []
        self._count_sent = self._metrics.reports.labels("event", "sent")
        self._metrics.reports_waiting.set_function(lambda: len(self._pending) + len(self._deferred))

    # -- outcomes ---------------------------------------------------------------------------------------------

    def scheduled(self, known: PodRecord, node: str) -> None:
        """The pod was bound."""
        message = f"Successfully assigned {known.full_name} to {node}"
        self._add(Report(known.namespace, known.name, known.uid, "Scheduled", message, warning=False))

    def unschedulable(self, known: PodRecord, message: str) -> None:
        """A round found no node for the pod."""
        self._waits(known, message, "Unschedulable")

    def failed(self, known: PodRecord, message: str) -> None:
        """Scheduling the pod failed for a reason other than the pod itself."""
        self._waits(known, message, "SchedulerError")

    def invalid(self, namespace: str, name: str, uid: str, problem: str) -> None:
        """The pod cannot be described."""
        if namespace and name and uid:
            self._add(Report(namespace, name, uid, "FailedScheduling", cannot_use(problem), warning=True))

    def waits_for_gang(self, known: PodRecord, message: str) -> None:
        """The pod's gang cannot be tried yet. Not Unschedulable: a larger cluster would not help."""
        self._waits(known, message, "WaitingForGang")

    def waits_for_quota(self, known: PodRecord, message: str) -> None:
        """The pod's queue has no quota left for it, or takes no pods. Not Unschedulable, likewise."""
        self._waits(known, message, "WaitingForQuota")

    def waits_for_queue(self, known: PodRecord, message: str) -> None:
        """The pod's queue is not known. Reported after a moment: what creates both often creates the pod first."""
        report = self._waiting(known, message, "WaitingForQuota")
        report.at = self._now()
        self._cancel_deferred(report.key)
        if report.key in self._pending:
            self._put(report)
        else:
            self._quiet.clear()
            self._defer(report, _QUEUE_GRACE)

    def _waits(self, known: PodRecord, message: str, condition: str) -> None:
        self._add(self._waiting(known, message, condition))

    def _waiting(self, known: PodRecord, message: str, condition: str) -> Report:
        about = known.namespace, known.name, known.uid
        report = self._newest[known.uid] = Report(
            *about, "FailedScheduling", message, warning=True, condition=condition
        )
        return report

    def remark(self, known: PodRecord, reason: str, message: str) -> None:
        """An additional event on the pod, which replaces no report on its scheduling."""
        report = Report(known.namespace, known.name, known.uid, reason, message, warning=True)
        report.key, report.lasting = f"{known.uid}/{reason}", True
        self._add(report)

    def remark_on_object(self, api_version: str, kind: str, namespace: str, name: str, uid: str, message: str) -> None:
        """An event on another object than a pod: something that it declares has no effect."""
        report = Report(namespace, name, uid, "NotHonoured", message, warning=True)
        report.kind, report.key, report.lasting = (api_version, kind), f"{uid}/{message}", True
        self._add(report)

    def on_object(
        self,
        kind: tuple[str, str],
        named: tuple[str, str, str],
        reason: str,
        message: str,
        *,
        action: str,
        warning: bool,
    ) -> None:
        """What was done with another object than a pod. `kind`: API version and kind; `named`: namespace, name, UID."""
        report = Report(*named, reason, message, warning=warning)
        report.kind, report.key, report.lasting, report.action = kind, f"{report.uid}/{reason}", True, action
        self._add(report)

    def about(
        self, known: PodRecord, reason: str, message: str, *, action: str, related: PodRecord | None = None
    ) -> None:
        """An event on a bound pod, with this action; `related`: another pod that it is about."""
        report = Report(known.namespace, known.name, known.uid, reason, message, warning=False)
        report.key, report.action, report.related = f"{known.uid}/{reason}", action, related
        self._add(report)

    def settled(self, known: PodRecord) -> None:
        """The watch reports the pod bound or deleted: drops the reports on why it was pending."""
        self._sent.pop(known.uid, None)
        self.conditions.pop(known.uid, None)
        self._newest.pop(known.uid, None)
        self._pending.discard(known.uid, calm=False)
        deferred = self._deferred.get(known.uid)
        if deferred is not None and deferred[0].warning:
            self._cancel_deferred(known.uid)
        self._note_quiet()

    def _add(self, report: Report) -> None:
        report.at = self._now()
        self._cancel_deferred(report.key)  # replaced by this one
        self._put(report)

    def _put(self, report: Report) -> None:
        self._pending.put(report.key, report, urgent=report.warning)
        self._quiet.clear()

    # -- sending ----------------------------------------------------------------------------------------------

    @property
    def unsent(self) -> int:
        """Number of reports that are still to be sent, with those that are on their way."""
        return len(self._pending) + len(self._deferred) + self._sending

    def start(self) -> None:
        self._workers = [
            asyncio.create_task(self._worker(), name=f"reporter {number}") for number in range(self._concurrency)
        ]

    async def flush(self, timeout: float) -> bool:
        """Sends what is pending, at full speed, for up to `timeout` seconds. Returns whether all was sent."""
        self._pending.hurry()
        try:
            async with asyncio.timeout(timeout):
                await self._quiet.wait()
        except TimeoutError:
            log.warning("%d reports were not sent in time", len(self._pending) + len(self._deferred))
            return False
        return True

    async def stop(self) -> None:
        for key in list(self._deferred):
            self._cancel_deferred(key)
        await end_tasks(*self._workers)
        self._workers.clear()

    async def _worker(self) -> None:
        while True:
            report = await self._pending.take()
            self._sending += 1
            try:
                await self._send(report)
            except Exception:
                log.exception("reporting on %s/%s failed", report.namespace, report.name)
            finally:
                self._sending -= 1
                self._note_quiet()

    def _note_quiet(self) -> None:
        if not self._pending and not self._deferred and not self._sending:
            self._quiet.set()

    async def _send(self, report: Report) -> None:
        if report.warning and not report.lasting and (self._is_outdated(report) or not self._still_waits(report.uid)):
            self._metrics.reports.labels("event", "stale").inc()
            return
        try:
            if report.condition and not await self._try_condition(report):
                self._defer(report, _delay(report))  # dropped then if there is a newer one
                return
            await self._event(report)
        except (UnreachableError, BusyError, LostAnswerError) as error:
            self._retry(report, error)
        except KubeError as error:
            # the namespace is being deleted, events are forbidden, or the pod is deleted: a retry would fail, too
            self._metrics.reports.labels("event", "refused").inc()
            log.debug("cannot report on %s/%s: %s", report.namespace, report.name, error)
        else:
            self._count_sent.inc()

    async def _try_condition(self, report: Report) -> bool:
        """Sets the condition, before the event and independently of it, because autoscalers read it.

        False: the pod has changed; the report is sent again once the watch has reported the change.
        """
        try:
            return await self._set_condition(report)
        except (UnreachableError, BusyError, LostAnswerError):
            raise
        except KubeError as error:
            self._metrics.reports.labels("condition", "refused").inc()
            log.debug("cannot set the condition of %s/%s: %s", report.namespace, report.name, error)
            return True

    def _is_outdated(self, report: Report) -> bool:
        """Whether there is a newer report on why the pod waits; it may have been sent while this one was."""
        return bool(report.condition) and self._newest.get(report.uid) is not report

    def _still_waits(self, uid: str) -> bool:
        known = self._store.pods.get(uid)
        return known is None or not (known.node or known.observed.deleting)

    def _retry(self, report: Report, error: KubeError) -> None:
        report.attempts += 1
        if report.attempts >= _ATTEMPTS:
            self._metrics.reports.labels("event", "given up").inc()
            log.warning("cannot report on %s/%s: %s", report.namespace, report.name, error)
            return
        asked = error.retry_after if isinstance(error, BusyError) else None
        self._defer(report, max(asked or 0.0, _delay(report)))

    def _defer(self, report: Report, seconds: float) -> None:
        """Queues a report again after a delay, unless there is a newer one with its key."""
        if report.key in self._pending or report.key in self._deferred:
            return

        def again() -> None:
            del self._deferred[report.key]
            self._put(report)

        later = self._call_later or asyncio.get_running_loop().call_later
        self._deferred[report.key] = report, later(seconds, again)

    def _cancel_deferred(self, key: str) -> None:
        deferred = self._deferred.pop(key, None)
        if deferred is not None:
            deferred[1].cancel()

    async def _event(self, report: Report) -> None:
        sent = self._sent.get(report.uid, {})
        # events on objects without a namespace are in this one
        path = f"/api/v1/namespaces/{quote(report.namespace or 'default', safe='')}/events"
        stamp = timestamp(report.at)
        if report.message in sent:
            name, count = sent[report.message]
            try:
                await self._api.merge(f"{path}/{name}", {"count": count + 1, "lastTimestamp": stamp})
            except NotFoundError:
                del sent[report.message]  # events expire
            else:
                sent[report.message] = (name, count + 1)
                return
        # named as by other clients, so that the events of a pod sort by time
        name = f"{report.name}.{time.time_ns():x}{random.randrange(16**4):04x}"
        await self._api.create(path, self._event_object(report, name, stamp))
        if report.warning:
            sent = self._sent.setdefault(report.uid, {})
            if len(sent) >= _MESSAGES_KEPT:
                del sent[next(iter(sent))]
            sent[report.message] = (name, 1)

    def _event_object(self, report: Report, name: str, stamp: str) -> dict[str, Any]:
        related = report.related
        about = {} if related is None else {"related": reference(related.namespace, related.name, related.uid)}
        involved = reference(report.namespace, report.name, report.uid, *report.kind)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": report.namespace or "default"},
            "involvedObject": involved,
            **about,
            "reason": report.reason,
            "message": report.message,
            "type": "Warning" if report.warning else "Normal",
            "source": {"component": self.component},
            "reportingComponent": self.component,
            "reportingInstance": self._instance,
            "action": report.action,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }

    async def _set_condition(self, report: Report) -> bool:
        """Sends the condition. Returns whether the report is done with it. Raises KubeError."""
        known = self._store.pods.get(report.uid)
        if known is None or not known.schedulable or known.assumed or self.conditions.get(report.uid) == report.message:
            return True
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": report.condition,
            "message": report.message,
            "lastProbeTime": None,
        }
        if report.uid not in self.conditions:
            condition["lastTransitionTime"] = timestamp(self._now())
        if known.observed.generation:
            condition["observedGeneration"] = known.observed.generation
        metadata = {"uid": known.uid, "resourceVersion": known.observed.version}
        patch = {"metadata": metadata, "status": {"conditions": [condition]}}
        try:
            await self._api.patch_pod_status(report.namespace, report.name, patch)
        except ConflictError:
            self._metrics.reports.labels("condition", "conflict").inc()
            report.attempts += 1
            if report.attempts >= _ATTEMPTS:
                return True
            if self._is_outdated(report):
                return False
            # the pod has changed: retry at once if the watch has reported the change, else later
            return await self._set_condition(report) if known.observed.version != metadata["resourceVersion"] else False
        self._metrics.reports.labels("condition", "sent").inc()
        self.conditions[report.uid] = report.message
        return True


def _delay(report: Report) -> float:
    """Seconds before the next attempt; more if the server asks for it."""
    return 0.2 * 2.0**report.attempts
