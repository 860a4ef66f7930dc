"""The controller: watches, one work queue of jobs, workers, and when it may work.

A key in the queue means that its job, or something of it, has changed. A worker takes the newest state of the job,
makes one decision and carries it out. Nothing is remembered that the API server does not have, so any process may
continue at any point. It works while it holds the lease, and while Volcano's controller does not work.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol

from poseidon_py.jobs.cache import Cache, CachedJob, Key
from poseidon_py.jobs.events import JobEvents
from poseidon_py.jobs.handlers import handlers
from poseidon_py.jobs.metrics import JobMetrics
from poseidon_py.jobs.objects import kinds
from poseidon_py.jobs.outbox import Outbox
from poseidon_py.jobs.reconcile import Reconciler, RefusedError, describe_refusals
from poseidon_py.jobs.rivals import Rivals
from poseidon_py.jobs.rules.machines import STOPPED
from poseidon_py.jobs.transitions import Transitions
from poseidon_py.jobs.writer import JobApi, NotLeadingError, Writer
from poseidon_py.kube.client import BusyError, ConflictError, KubeError
from poseidon_py.kube.list_watch import Watch, WatchOptions
from poseidon_py.metrics.metrics import ProcessMetrics
from poseidon_py.util.tasks import end_tasks
from poseidon_py.util.work_queue import KeyedQueue

log = logging.getLogger(__name__)

_QUEUE = "jobs"


class ControllerApi(JobApi, Protocol):
    """The part of kube.Kube that the controller uses."""

    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes: ...
    def watch(self, path: str, parameters: Mapping[str, str], silence: float) -> AsyncIterator[bytes]: ...


class JobController:
    """`start`; `lead` and `stand_by`; `stop`. `tasks` is what runs, and never ends by itself."""

    def __init__(
        self,
        api: ControllerApi,
        *,
        namespace: str = "",
        workers: int = 4,
        holds_lease: Callable[[], bool] = lambda: True,
        watching: WatchOptions = WatchOptions(),  # noqa: B008 (it is frozen)
        metrics: ProcessMetrics | None = None,
        now: Callable[[], float] = time.time,
        outbox: Outbox | None = None,
    ) -> None:
        """`namespace`: the one whose jobs are run; empty: all. `holds_lease` is asked before each write. `outbox`: of
        hooks."""
        self.metrics = JobMetrics(metrics if metrics is not None else ProcessMetrics())
        self._api = api
        self._workers = workers
        self._holds_lease = holds_lease
        self._leading = False
        self.queue: KeyedQueue[Key] = KeyedQueue(_QUEUE, metrics=self.metrics.common)
        self.transitions = Transitions(self.metrics)
        self.cache = Cache(self._changed, self.transitions, self._rewritten, now)
        self.rivals = Rivals(api, self._resume)
        self.events = JobEvents(api, now)
        self._reconciler = Reconciler(
            self.cache,
            Writer(api, self.cache, self.metrics, self.may_write),
            self.events,
            self.transitions,
            now,
            outbox,
        )
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self.watches: tuple[Watch[Any], ...] = tuple(
            Watch(api, kind, handler, watching, metrics=self.metrics.common)  # type: ignore[arg-type]
            for kind, handler in zip(kinds(namespace), handlers(self.cache), strict=True)
        )
        self.tasks: dict[str, asyncio.Task[Any]] = {}

    def start(self) -> None:
        """Starts the watches and the workers."""
        for watch in self.watches:
            self.tasks[f"watch {watch.name}"] = asyncio.create_task(watch.run(), name=f"watch {watch.name}")
        self.tasks["rivals"] = asyncio.create_task(self.rivals.run(), name="rivals")
        for number in range(self._workers):
            self.tasks[f"worker {number}"] = asyncio.create_task(self._work(), name=f"worker {number}")

    async def stop(self) -> None:
        """Stops the workers where they are: the next process continues there."""
        for timer in self._timers.values():
            timer.cancel()
        await end_tasks(*self.tasks.values())
        await self.events.stop()

    # -- when it may work -------------------------------------------------------------------------------------

    def lead(self) -> None:
        """This process holds the lease."""
        self._leading = True
        self._reconciler.lead()
        self._resume()

    def stand_by(self) -> None:
        """Another process holds the lease, or may."""
        self._leading = False

    def may_write(self) -> bool:
        """Whether this process leads, and no other controller is at work."""
        return self._leading and self._holds_lease() and self.rivals.problem == ""

    def not_ready(self) -> str:
        """Why it does not work; empty: it does, or stands by for another replica."""
        for watch in self.watches:
            if not watch.listed.is_set():
                return f"{watch.name} are not listed yet"
        return self.rivals.problem if self.rivals.problem is not None else "looking for other controllers"

    def _resume(self) -> None:
        """All jobs may need something."""
        if self._leading and self.rivals.problem == "":
            self.cache.evictions.clear()  # the status tells which of them had no effect yet
            self._reconciler.lead()
            for key in list(self.cache.jobs):
                self.queue.add(key)

    def _rewritten(self, old: CachedJob, new: CachedJob) -> None:
        """The status of a job is not as this process wrote it."""
        if self.may_write() and old.status.phase:
            was, now = old.status, new.status
            self.rivals.stranger(
                f"the status of job {new.owner.namespace}/{new.owner.name} was changed from {was.phase} (version "
                f"{was.version}, retry {was.retry_count}) to {now.phase or 'none'} (version {now.version}, retry "
                f"{now.retry_count})"
            )

    # -- work -------------------------------------------------------------------------------------------------

    def _changed(self, key: Key, urgent: bool) -> None:
        self.queue.add(key, urgent=urgent)

    async def _work(self) -> None:
        for watch in self.watches:
            await watch.listed.wait()
        while keys := await self.queue.get(1):
            try:
                for key in keys:
                    await self._work_on(key)
            finally:
                self.queue.done(keys)

    async def _work_on(self, key: Key) -> None:
        if not self.may_write():
            return  # `_resume` adds all keys
        try:
            again = await self._reconciler.reconcile(key)
        except NotLeadingError:
            return
        except ConflictError as error:
            log.debug("job %s/%s has changed: %s", *key, error)
            self.queue.retry(key)
        except (KubeError, RefusedError) as error:
            self._failed(key, error)
        except Exception:
            log.exception("the work on job %s/%s failed", *key)
            self.queue.retry(key, 1.0)
        else:
            self.queue.forget(key)
            self._schedule(key, again)

    def _failed(self, key: Key, error: Exception) -> None:
        errors = error.errors if isinstance(error, RefusedError) else [error]
        busy = [each.retry_after or 0.0 for each in errors if isinstance(each, BusyError)]
        delay = self.queue.retry(key, max(busy, default=0.0))
        job = self.cache.jobs.get(key)
        for message in describe_refusals(error):
            if job is not None:
                self.events.send(job.owner, "Refused", message, warning=True)
        if all(isinstance(each, ConflictError) for each in errors):
            log.debug("something of job %s/%s has changed: %s", *key, error)
        else:
            log.warning("cannot bring job %s/%s up to date: %s; trying again in %.1f s", *key, error, delay)

    def _schedule(self, key: Key, again_in: float | None) -> None:
        """At most one timer per job: the newest decision knows what is due."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if again_in is None:
            return
        if again_in <= 0:
            self.queue.add(key)
            return

        def due() -> None:
            self._timers.pop(key, None)
            self.queue.add(key)

        self._timers[key] = asyncio.get_running_loop().call_later(again_in, due)

    def reported(self, key: Key) -> None:
        """The hooks have stored transitions of a job. One that has ended may be written no more: its notes go now."""
        job = self.cache.jobs.get(key)
        if job is not None and job.status.phase in STOPPED and job.status.noted:
            self.queue.add(key)

    # -- queries ----------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Updates the gauges."""
        self.metrics.jobs.clear()
        for phase, count in self.cache.as_status().items():
            self.metrics.jobs.labels(phase).set(count)
