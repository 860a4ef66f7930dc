"""What a scenario acts in: a server, and an account with the rights of one feature."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.api import PATIENCE, Json
from tests.e2e.backends import Backend, home_of
from tests.e2e.objects import node, pod
from tests.e2e.processes import POSEIDON, Process, Scheduler
from tests.e2e.real_backend import Real
from tests.e2e.rights_by_feature.chart_account import ChartAccount, Right


@dataclass
class World:
    """`started`: the processes that have to end without an error."""

    server: Real
    backend: Backend
    account: ChartAccount
    folder: Path
    started: list[Process] = field(default_factory=list)

    def run(self, *flags: str) -> Scheduler:
        """The scheduler, with these flags in addition to those of the chart."""
        scheduler = Scheduler(self.account.kubeconfig, *self.account.flags, *flags, log=self.folder / "log")
        self.started.append(scheduler)
        return scheduler.ready()

    def run_jobs(self) -> Process:
        """The controller of jobs."""
        given = ("--kubeconfig", str(self.account.kubeconfig), *self.account.flags, "--health-port=0")
        process = Process([*POSEIDON, "jobs", "run", *given], self.folder / "log")
        self.started.append(process)
        process.until_says("leading: ")
        return process

    def one_pod(self, *flags: str) -> Scheduler:
        """Runs the scheduler until it has placed a pod."""
        self.backend.create(node("n0"))
        scheduler = self.run(*flags)
        self.backend.create(pod("p"))
        self.backend.until_bound(1, "p")
        return scheduler

    def until_gone(self, *names: str) -> None:
        """Waits until there are no pods of these names."""
        self.backend.pods.until(
            lambda pods: not {*names} & {item["metadata"]["name"] for item in pods}, f"{', '.join(names)} leave"
        )

    def until_asked(self, *rights: Right) -> None:
        """Waits until each of these rights was used."""
        missing = [*rights]

        def probe() -> bool:
            requests = self.account.requests(self.server)
            missing[:] = [right for right in missing if not requests.use(right)]
            return not missing

        eventually(probe, lambda: f"requests {missing}")


def eventually(probe: Callable[[], object], what: str | Callable[[], str]) -> None:
    """Waits until something holds that no object tells of."""
    end = time.monotonic() + PATIENCE
    while not probe():
        assert time.monotonic() < end, f"never: {what if isinstance(what, str) else what()}"
        time.sleep(0.05)


def path_of(item: Json) -> str:
    return f"{home_of(item)}/{item['metadata']['name']}"
