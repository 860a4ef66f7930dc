"""`poseidon jobs`: what a scheduler observes of jobs (job_list.py); `poseidon jobs run`: the controller of Volcano's
Jobs in the foreground, until a signal or a fatal error."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import click

from poseidon_py.cli.errors import Group, fail
from poseidon_py.cli.flags import GroupedCommand, settings_flags
from poseidon_py.cli.hooks import loaded
from poseidon_py.cli.job_list import show
from poseidon_py.cli.process_log import ProcessLog
from poseidon_py.cli.run import loop_factory
from poseidon_py.config import loading
from poseidon_py.config.conversion import OptionError
from poseidon_py.config.settings import Settings
from poseidon_py.hooks.config.hook_config import HookConfig
from poseidon_py.jobs.names import LEASE
from poseidon_py.util import logs
from poseidon_py.util.process.signals import end_signals
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

HEALTH_PORT = 10272

_FLAGS = (
    "kubeconfig",
    "context",
    "leader_elect",
    "lease_name",
    "lease_namespace",
    "lease_duration",
    "renew_deadline",
    "retry_period",
    "health_address",
    "health_port",
    "bind_address",
    "secure_port",
    "tls_cert_file",
    "tls_private_key_file",
    "log_level",
    "log_format",
)
"""The settings of `poseidon run` that this command has, too."""
_OWN_DEFAULTS = {"lease_name": LEASE, "health_port": HEALTH_PORT}


class _WithDefault(Group):
    """Arguments that begin with no command are those of `show`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in (*self.commands, "-h", "--help")):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_WithDefault, options_metavar="[NAME] [OPTIONS]", subcommand_metavar="| COMMAND [ARGS]...")
def jobs() -> None:
    """Show the jobs that a running scheduler observes, or the job NAME; `poseidon jobs show --help` has the options.

    `poseidon jobs show NAME` shows a job that has the name of a command.
    """


jobs.add_command(show)


@jobs.command(cls=GroupedCommand)
@click.option("--namespace", default="", metavar="NAME", help="Run only the jobs of this namespace. Default: all.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=4, show_default=True, help="Jobs that are worked on at a time."
)
@click.option(
    "--hooks",
    "hooks_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="HTTP endpoints that are called on transitions of jobs, tasks and replicas: docs/hooks.md. Default: none.",
)
@settings_flags(only=_FLAGS, defaults=_OWN_DEFAULTS)
def run(namespace: str, workers: int, hooks_file: Path | None, **flags: Any) -> None:
    """Run jobs of batch.volcano.sh until SIGTERM or SIGINT.

    Creates their pods, follows their policies and writes their statuses, where Volcano's own controller does not run;
    while that is at work, this one stands by. docs/jobs.md has the fields and annotations.
    """
    given = {name: _OWN_DEFAULTS.get(name) if value is None else value for name, value in flags.items()}
    try:
        settings = loading.settings({}, given, Path("the configuration"))
    except OptionError as error:
        fail(str(error), 2)
    hooks = loaded(hooks_file) if hooks_file is not None else None
    logs.configure(settings.log_level, settings.log_format)
    process = ProcessLog("poseidon jobs", settings, loading.settings({}, dict(_OWN_DEFAULTS), Path("the defaults")))
    process.started()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        code = runner.run(_run(settings, namespace, workers, hooks, process))
    if not code:  # else its error is the last line
        process.ended()
    sys.exit(code)


async def _run(settings: Settings, namespace: str, workers: int, hooks: HookConfig | None, process: ProcessLog) -> int:
    from poseidon_py.app.job_service import JobService
    from poseidon_py.app.serving.http_endpoints import HealthAddressError
    from poseidon_py.app.startup import StartError
    from poseidon_py.kube.credentials import CredentialsError

    process.end_on(end_signals())
    service = JobService(settings, namespace, workers, hooks)
    ended = asyncio.create_task(process.stop_requested.wait())
    starting = asyncio.create_task(service.start())
    code = 0
    try:
        await asyncio.wait({ended, starting}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            await starting
            broken = asyncio.create_task(service.wait())
            await asyncio.wait({ended, broken}, return_when=asyncio.FIRST_COMPLETED)
            if broken.done():
                process.failed(broken.result())
                code = 1
            broken.cancel()
    except (StartError, CredentialsError, HealthAddressError) as error:
        process.failed(error)
        code = 1 if isinstance(error, StartError) else 2
    finally:
        await end_tasks(starting, ended)
        await service.stop()
    return code
