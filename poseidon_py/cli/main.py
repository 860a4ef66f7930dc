"""The `poseidon` command.

Exit codes: 0 ended as asked, 1 failed while running or could not reach what it needs, 2 wrong usage or
configuration.
"""

import asyncio
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NoReturn
from urllib.parse import urlencode

import click

from poseidon_py import __version__
from poseidon_py.cli.flags import settings_flags
from poseidon_py.cli.questions import AskError, ask, require_cluster
from poseidon_py.config import loading
from poseidon_py.config.settings import Settings
from poseidon_py.util import logs

_DEFAULTS = Settings()


EXTRA = "poseidon-firmament[benchmarks]"
_ANY_ARGUMENTS = {"ignore_unknown_options": True, "allow_extra_args": True}


class LazyGroup(click.Group):
    """Loads the commands that are no part of a scheduler when they are used; a plain installation lacks some of it."""

    lazy: ClassVar[dict[str, tuple[str, str]]] = {
        "cluster": ("benchmarks.cluster.cli", "cluster"),
        "demo": ("benchmarks.demo.cli", "demo"),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self.lazy])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, name = self.lazy[cmd_name]
        try:
            found = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            return _not_installed(cmd_name, error)
        assert isinstance(found, click.Command)
        return found


def _not_installed(name: str, error: ModuleNotFoundError) -> click.Command:
    """Stands for a command of the benchmark suite's package where that, or what it needs, is not installed."""

    @click.command(name, short_help=f"(needs {EXTRA})", add_help_option=False, context_settings=_ANY_ARGUMENTS)
    def command() -> None:
        raise click.ClickException(
            f"{name} is not installed here: there is no module {error.name}; "
            f"pip install '{EXTRA}' adds the synthetic cluster and what it needs"
        )

    return command


@click.group(cls=LazyGroup)
@click.version_option(__version__, prog_name="poseidon")
def cli() -> None:
    """A min-cost-flow batch scheduler for Kubernetes.

    Exit codes: 0 ended as asked, 1 failed while running, 2 wrong usage or configuration.
    """


@cli.command()
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML file with keys named like these flags; flags take precedence.",
)
@settings_flags
def run(config: Path | None, **flags: Any) -> None:
    """Run the scheduler until SIGTERM or SIGINT."""
    try:
        settings = loading.settings(loading.read_file(config) if config else {}, flags, config or "")
    except loading.OptionError as error:
        _fail(str(error), 2)
    logs.configure(settings.log_level, settings.log_format)
    # gRPC's core writes lines of its own to standard error, in no format of ours; what fails, its callers tell
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if settings.policy or settings.policy_option:
        _check_policy(settings)
    # what the bridge keeps, it keeps for long, and hardly any of it in cycles: look for those rarely
    gc.set_threshold(100_000, 20, 50)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        sys.exit(runner.run(_run(settings)))


async def _run(settings: Settings) -> int:
    from poseidon_py.app.bridge import Bridge, StartError
    from poseidon_py.app.engine_process import FirmamentError
    from poseidon_py.app.http_endpoints import PortInUseError
    from poseidon_py.kube.credentials import CredentialsError

    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    bridge = Bridge(settings)
    ended = asyncio.create_task(asked.wait())
    starting = asyncio.create_task(bridge.start())
    await asyncio.wait({ended, starting}, return_when=asyncio.FIRST_COMPLETED)
    code = 0
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
    elif (error := starting.exception()) is not None:
        if not isinstance(error, (StartError, CredentialsError, PortInUseError, FirmamentError)):
            await bridge.stop()
            raise error
        click.echo(f"error: {error}", err=True)
        usage = isinstance(error, (CredentialsError, PortInUseError)) or getattr(error, "usage", False)
        code = 2 if usage else 1
    else:
        broken = asyncio.create_task(bridge.wait())
        await asyncio.wait({ended, broken}, return_when=asyncio.FIRST_COMPLETED)
        if broken.done():
            click.echo(f"error: {broken.result()}", err=True)
            code = 1
        broken.cancel()
    ended.cancel()
    await bridge.stop()
    return code


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # not available everywhere; only slower without
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


# -- the policies of the flow service, which is asked rather than imported ------------------------------------------


def _firmament(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "firmament_py", *words], capture_output=True, text=True, check=False)


def _policies() -> list[dict[str, Any]]:
    done = _firmament("policies", "--json")
    if done.returncode:
        _fail(f"cannot ask the flow service for its policies: {done.stderr.strip().splitlines()[-1:]}", 1)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _check_policy(settings: Settings) -> None:
    """Fails before anything is started if the flow service would not take the policy and its options."""
    words = [word for option in settings.policy_option for word in ("--policy-option", option)]
    done = _firmament("check-policy", "--load-only", *words, *([settings.policy] if settings.policy else []))
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it did not say why"]
        told = next((line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")), lines[-1])
        _fail(told, 2)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def policies(as_json: bool) -> None:
    """List the policies that `run --policy` takes, with their options."""
    found = _policies()
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    width = max((len(policy["name"]) for policy in found), default=0)
    for policy in found:
        click.echo(f"{policy['name']:<{width}}  {policy['summary'] or policy['error']}")
        for option, kind in policy["options"].items():
            click.echo(f"{'':<{width}}    --policy-option {option}=...  ({kind})")


# -- questions to a running scheduler -------------------------------------------------------------------------------

_DEFAULT_ADDRESS = f"127.0.0.1:{_DEFAULTS.health_port}"


def _question(command: Callable[..., None]) -> Callable[..., None]:
    """The flags that say whom to ask, and how to show the answer."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--context", metavar="NAME", help="Context of the kubeconfig. Default: its current context."),
        click.option(
            "--kubeconfig",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Kubeconfig of the cluster: fail if the scheduler serves another API server. Default, without "
            "--address: $KUBECONFIG, then ~/.kube/config.",
        ),
        click.option(
            "--address",
            metavar="HOST:PORT",
            help=f"Health port of the scheduler.  [default: {_DEFAULT_ADDRESS}]",
        ),
    ):
        command = option(command)
    return command


@cli.command()
@_question
def status(address: str | None, kubeconfig: Path | None, context: str | None, as_json: bool) -> None:
    """Show what the scheduler sees."""
    body = _ask("/status", address, kubeconfig, context)
    if as_json:
        click.echo(json.dumps(body, indent=2))
        return
    from rich.console import Console

    from poseidon_py.cli.render import print_status

    print_status(body, Console())


@cli.command()
@click.argument("pod", metavar="NAMESPACE/POD")
@_question
def explain(pod: str, address: str | None, kubeconfig: Path | None, context: str | None, as_json: bool) -> None:
    """Show why a pod is pending, and what it would take to place it."""
    if "/" not in pod:
        pod = f"default/{pod}"
    body = _ask("/explain?" + urlencode({"pod": pod}), address, kubeconfig, context)
    if as_json:
        click.echo(json.dumps(body, indent=2))
        return
    from rich.console import Console

    from poseidon_py.cli.render import print_explanation

    print_explanation(body, Console())


def _ask(path: str, address: str | None, kubeconfig: Path | None, context: str | None) -> dict[str, Any]:
    try:
        if address is None or kubeconfig is not None or context is not None:
            require_cluster(address or _DEFAULT_ADDRESS, kubeconfig, context)
        return ask(address or _DEFAULT_ADDRESS, path)
    except AskError as error:
        _fail(str(error), 1)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"error: {message}", err=True)
    sys.exit(code)
