"""`poseidon run`: the scheduler in the foreground, until a signal or a fatal error."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poseidon_py.cli.errors import fail_with_all
from poseidon_py.cli.flags import GroupedCommand, settings_flags
from poseidon_py.cli.hooks import loaded
from poseidon_py.cli.policies import check_policy
from poseidon_py.cli.process_log import ProcessLog
from poseidon_py.config import loading
from poseidon_py.config.configuration_file import read_file
from poseidon_py.config.conversion import OptionError
from poseidon_py.config.settings import Settings
from poseidon_py.hooks.config.hook_config import HookConfig
from poseidon_py.util import logs
from poseidon_py.util.process.free_memory import give_back_after_bursts, give_back_freed_memory
from poseidon_py.util.process.signals import end_signals
from poseidon_py.util.tasks import end_tasks

if TYPE_CHECKING:
    from poseidon_py.app.bridge import Bridge
    from poseidon_py.feed.resync import Session

log = logging.getLogger(__name__)


@click.command(cls=GroupedCommand)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML file with keys named like these flags; flags take precedence.",
)
@settings_flags()
def run(config: Path | None, **flags: Any) -> None:
    """Run the scheduler until SIGTERM or SIGINT."""
    try:
        settings = loading.settings(read_file(config) if config else {}, flags, config or "")
    except OptionError as error:
        fail_with_all(error.problems, f"the configuration {config} is invalid", 2)
    hooks = loaded(settings.hooks) if settings.hooks is not None else None
    logs.configure(settings.log_level, settings.log_format)
    # gRPC's core would write to standard error in another format; its callers report failures
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if settings.policy or settings.policy_option:
        check_policy(settings)
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)  # until there is something to say: they would end the process
    # almost all objects of the start live as long as the bridge: collect rarely
    gc.set_threshold(100_000, 20, 50)
    process = ProcessLog("poseidon", settings)
    process.started()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        code = runner.run(_run(settings, hooks, process))
    if not code:  # else its error is the last line
        process.ended()
    sys.exit(code)


async def _run(settings: Settings, hooks: HookConfig | None, process: ProcessLog) -> int:
    from poseidon_py.app.bridge import Bridge
    from poseidon_py.app.engine_process import FirmamentError
    from poseidon_py.app.serving.http_endpoints import HealthAddressError
    from poseidon_py.app.startup import StartError
    from poseidon_py.kube.credentials import CredentialsError

    loop = asyncio.get_running_loop()
    process.end_on(end_signals())
    bridge = Bridge(settings, hooks)
    if settings.dashboard:
        from poseidon_py.dashboard.assets import MissingPlotly
        from poseidon_py.dashboard.dashboard import Dashboard

        try:
            Dashboard(bridge).attach()
        except MissingPlotly as missing:
            process.failed(missing)
            return 2
    loop.add_signal_handler(signal.SIGUSR1, _show_stacks, settings.log_format)
    comparisons: set[asyncio.Task[None]] = set()
    loop.add_signal_handler(signal.SIGUSR2, compare_state, bridge, comparisons)
    ended = asyncio.create_task(process.stop_requested.wait())
    starting = asyncio.create_task(bridge.start())
    await asyncio.wait({ended, starting}, return_when=asyncio.FIRST_COMPLETED)
    code = 0
    if not starting.done():
        await end_tasks(starting)
    elif (error := starting.exception()) is not None:
        if not isinstance(error, (StartError, CredentialsError, HealthAddressError, FirmamentError)):
            await bridge.stop()
            raise error
        process.failed(error)
        usage = isinstance(error, (CredentialsError, HealthAddressError)) or getattr(error, "usage", False)
        code = 2 if usage else 1
    else:
        broken = asyncio.create_task(bridge.wait())
        assert bridge.runtime is not None
        settling = asyncio.create_task(settle(bridge.runtime.session))
        binder = bridge.runtime.binder
        giving_back = asyncio.create_task(give_back_after_bursts(lambda: binder.bound))
        await asyncio.wait({ended, broken}, return_when=asyncio.FIRST_COMPLETED)
        if broken.done():
            process.failed(broken.result())
            code = 1
        broken.cancel()
        settling.cancel()
        giving_back.cancel()
    ended.cancel()
    await bridge.stop()
    return code


def _show_stacks(style: str) -> None:
    """As they are where people read the log, in one message where machines do."""
    from poseidon_py.util.process.stacks import stacks

    text = stacks()
    log.info("SIGUSR1 was received; the process does this:%s", "" if style == "text" else f"\n{text}")
    if style == "text":
        sys.stderr.write(text)


def compare_state(bridge: "Bridge", running: set[asyncio.Task[None]]) -> None:
    """Starts a comparison of the state with the API server, in a task that is in `running` until it ends: one at a
    time, and none before everything is listed."""
    from poseidon_py.app.cache_comparison import compare_and_log
    from poseidon_py.app.serving.http_endpoints import first_problem

    if problem := first_problem(bridge.checks()):
        log.info("SIGUSR2 was received; the state is not compared, because %s", problem)
    elif bridge.kube is not None and not running:
        log.info("SIGUSR2 was received; the state is compared with the API server")
        task = asyncio.create_task(compare_and_log(bridge.store, bridge.kube), name="comparison")
        running.add(task)
        task.add_done_callback(running.discard)


async def settle(session: "Session") -> None:
    """Excludes all objects of the start from garbage collections, once the flow service has the whole state, and makes
    further collections small: each stops the bridge for 4 ms per 10,000 objects."""
    async with session.call():
        gc.freeze()
        gc.set_threshold(10_000, 10, 1_000)
        give_back_freed_memory()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop's event loop, if it is installed."""
    try:
        import uvloop
    except ImportError:  # not available on every platform; the default loop is only slower
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
