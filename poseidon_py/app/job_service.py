"""Runs the controller of jobs: credentials, API server, leader election, health; `poseidon jobs run`."""

import asyncio
import itertools
import logging
import uuid
from collections.abc import Coroutine
from typing import Any

from poseidon_py.app.serving.http_endpoints import Probes
from poseidon_py.app.startup import StartError, check_alone, new_election, wait_for_server
from poseidon_py.config.settings import Settings
from poseidon_py.hooks.config.hook_config import HookConfig
from poseidon_py.hooks.hooks import Hooks
from poseidon_py.hooks.metrics import HookMetrics
from poseidon_py.hooks.storage.of_lease import store_of_lease
from poseidon_py.jobs.cache import Key
from poseidon_py.jobs.controller import JobController
from poseidon_py.jobs.hooks.reporter import HookReporter
from poseidon_py.jobs.names import LEASE
from poseidon_py.kube import credentials
from poseidon_py.kube.client import Kube, KubeError, NotFoundError
from poseidon_py.kube.lease import Election
from poseidon_py.kube.list_watch import WatchOptions
from poseidon_py.metrics.metrics import ProcessMetrics
from poseidon_py.util.process.instance import instance_name
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

_HOOKS = "jobs"
"""The name of the store of the hooks with the default lease."""
_KINDS = {
    "batch.volcano.sh/v1alpha1": "jobs",
    "scheduling.volcano.sh/v1beta1": "podgroups",
}
"""What must be served: API version -> resource."""


class JobService:
    """`start`; `wait` until a component fails; `stop`."""

    def __init__(
        self, settings: Settings, namespace: str = "", workers: int = 4, hooks: HookConfig | None = None
    ) -> None:
        """`namespace`: the one whose jobs are run; empty: all. `hooks`: get the transitions."""
        self.settings = settings
        self._namespace = namespace
        self._workers = workers
        self._hook_config = hooks
        self._reporter: HookReporter | None = None
        self.metrics = ProcessMetrics()
        self._identity = f"{instance_name()}_{uuid.uuid4()}"
        self._kube: Kube | None = None
        self._election: Election | None = None
        self._probes = Probes(self)
        self.controller: JobController | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._broken: asyncio.Future[str] | None = None

    async def start(self) -> None:
        """Raises StartError, CredentialsError or HealthAddressError."""
        settings = self.settings
        self._broken = asyncio.get_running_loop().create_future()
        access = await credentials.load(settings.kubeconfig, settings.context)
        await self._probes.start()
        kube = self._kube = Kube(access)
        await kube.start()
        await self._probes.start_secure(access)
        await wait_for_server(kube, settings.startup_timeout)
        await self._check_kinds(kube)
        election = self._election = new_election(
            kube, settings, self._identity, self._lead, self._stand_by, self.metrics
        )
        await check_alone(election, settings)
        reporter = self._reporter = self._report(kube, self._hook_config) if self._hook_config is not None else None
        controller = self.controller = JobController(
            kube,
            namespace=self._namespace,
            workers=self._workers,
            holds_lease=election.holds,
            watching=WatchOptions(settings.list_page, settings.watch_timeout, settings.watch_silence),
            metrics=self.metrics,
            outbox=reporter.outbox if reporter is not None else None,
        )
        if reporter is not None:
            reporter.watch(controller.cache)
            controller.transitions.listeners.append(reporter.transitioned)
        controller.start()
        for task in controller.tasks.values():
            task.add_done_callback(self._ended)
        log.info("running jobs of %s", f"namespace {self._namespace}" if self._namespace else "all namespaces")
        self._spawn("election", election.run())

    async def _check_kinds(self, kube: Kube) -> None:
        """Raises StartError if a kind is not served."""
        for version, resource in _KINDS.items():
            try:
                await kube.call("GET", f"/apis/{version}")
            except NotFoundError as error:
                raise StartError(
                    f"the API server at {kube.url} does not serve {resource} of {version}: install the definitions, "
                    "kubectl apply -f deploy/chart/definitions/jobs.yaml"
                ) from error
            except KubeError as error:
                log.warning("cannot find out whether %s of %s are served: %s", resource, version, error)

    def _report(self, kube: Kube, config: HookConfig) -> HookReporter:
        """The hooks; those of each term store deliveries under a name of their own."""
        metrics, settings = HookMetrics(self.metrics.registry), self.settings
        terms = itertools.count(1)

        def of_term() -> Hooks:
            holder = f"{self._identity}_{next(terms)}"
            lease, namespace = settings.lease_name, settings.lease_namespace
            store = store_of_lease(kube, config, _HOOKS, lease, namespace, holder, default_lease=LEASE)
            return Hooks(config, store, metrics=metrics)

        return HookReporter(of_term, self._stored, self._hooks_ended)

    def _stored(self, key: Key) -> None:
        if self.controller is not None:
            self.controller.reported(key)

    def _hooks_ended(self, why: str) -> None:
        """Nothing is reported from now on. If another process leads, the election says so, too."""
        leads = self._election is not None and self._election.holds()
        self._stand_by()
        if leads:
            remedy = "if another controller has the same file of hooks, give each file a namespace of its own"
            self._break(f"the hooks of jobs ended: {why}; {remedy}")

    def _lead(self) -> None:
        if self._reporter is not None:
            self._reporter.lead()
        if self.controller is not None:
            self.controller.lead()

    def _stand_by(self) -> None:
        if self.controller is not None:
            self.controller.stand_by()
        if self._reporter is not None:
            self._reporter.stand_by()

    def _spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.append(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """A component has ended, which is a defect and stops the process."""
        if self._broken is None or self._broken.done():
            return  # by `stop`
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        how = "ended" if error is None else f"failed: {error!r}"
        log.error("%s has ended, and with it this process: %s", task.get_name(), how, exc_info=error)
        self._break(f"{task.get_name()} {how}")

    def _break(self, why: str) -> None:
        if self._broken is not None and not self._broken.done():
            self._broken.set_result(why)

    async def wait(self) -> str:
        """Waits until a component fails. Returns its error."""
        assert self._broken is not None
        return await self._broken

    async def stop(self) -> None:
        """Stops the work, and releases the lease afterwards."""
        if self._broken is not None and not self._broken.done():
            self._broken.cancel()
        if self.controller is not None:
            self.controller.stand_by()
            await self.controller.stop()
        if self._reporter is not None:
            await self._reporter.stop()
        await end_tasks(*self._tasks)
        if self._election is not None:
            await self._election.release()
        if self._kube is not None:
            await self._kube.close()
        await self._probes.stop()

    # -- health -----------------------------------------------------------------------------------------------

    def alive(self) -> str:
        broken = self._broken
        return broken.result() if broken is not None and broken.done() and not broken.cancelled() else ""

    def checks(self) -> dict[str, str]:
        return {"controller": self.controller.not_ready() if self.controller is not None else "starting"}

    def refresh(self) -> None:
        if self.controller is not None:
            self.controller.refresh()
        leads = self._election is not None and self._election.leading
        self.metrics.leader.labels(self.settings.lease_name).set(leads)
