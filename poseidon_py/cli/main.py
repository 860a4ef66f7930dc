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
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NoReturn
from urllib.parse import urlencode

import click

from poseidon_py import __version__
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


def _flag(name: str, text: str, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A flag of `run` without a default of its own: Settings has it, and the configuration file may."""
    default = getattr(_DEFAULTS, name)
    if default not in (None, "", ()):
        text = f"{text}  [default: {', '.join(default) if isinstance(default, tuple) else default}]"
    return click.option(f"--{name.replace('_', '-')}", name, default=None, help=text, **more)


@cli.command()
@click.option(
    "--config", type=click.Path(dir_okay=False, path_type=Path), help="YAML with keys like these flags; flags win."
)
@_flag(
    "kubeconfig",
    "Default: $KUBECONFIG, ~/.kube/config, else in-cluster.",
    type=click.Path(dir_okay=False, path_type=Path),
)
@_flag("context", "Context of the kubeconfig.")
@_flag("scheduler_name", "spec.schedulerName of the pods to place; repeatable.", multiple=True)
@_flag("policy", "Cost policy of the own flow service; see `poseidon policies`.")
@_flag("policy_option", "K=V, an option of the policy; repeatable.", multiple=True)
@_flag(
    "usage",
    "What the own flow service's prices take for used of a node: requests, what was measured, or the larger.",
    type=click.Choice(loading.BASES),
)
@_flag("usage_samples", "Samples of usage kept per pod and per node.  [default: 10]", type=int)
@_flag("usage_half_life", "Seconds after which a sample counts half.  [default: 60]", type=float)
@_flag("usage_stale", "Seconds after which a sample does not count any more.  [default: 300]", type=float)
@_flag(
    "usage_interval",
    "Seconds between polls of metrics.k8s.io and Prometheus, or off.  [default: 30 if usage or policy ask for it]",
)
@_flag("prometheus_url", "Prometheus to ask for the traffic of pods and nodes.")
@_flag("prometheus_token_file", "File with the bearer token for it.", type=click.Path(dir_okay=False, path_type=Path))
@_flag("prometheus_ca", "PEM authority of its certificate.", type=click.Path(dir_okay=False, path_type=Path))
@_flag(
    "bandwidth",
    "Whether pods' bandwidth and nodes' links count; auto: if the policy wants it.",
    type=click.Choice(("on", "off", "auto")),
)
@_flag("link_bandwidth", "Bits a second (10G) of the links of nodes that do not say; without it no limit.")
@_flag("firmament_address", "HOST:PORT of a flow service; without it one is started and supervised.")
@_flag("firmament_ca", "PEM authority of its certificate: use TLS.", type=click.Path(dir_okay=False, path_type=Path))
@_flag("firmament_cert", "PEM certificate to show to it.", type=click.Path(dir_okay=False, path_type=Path))
@_flag("firmament_key", "PEM key of that certificate.", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--leader-elect/--no-leader-elect", default=None, help="Elect a leader among replicas.  [default: in-cluster only]"
)
@_flag("lease_name", "Lease to elect by.")
@_flag("lease_namespace", "Namespace of the lease.")
@_flag("lease_duration", "Seconds for which others keep off.", type=float)
@_flag("renew_deadline", "Seconds after which a leader that cannot renew stops.", type=float)
@_flag("retry_period", "Seconds between attempts.", type=float)
@_flag("health_address", "Address of health, metrics and status.")
@_flag("health_port", "Its port; 0: any free one, -1: none.", type=int)
@_flag("added_node_affinity", "NodeSelector, as JSON, that nodes must match for every pod.")
@_flag("gang_timeout", "Seconds for a gang to become whole after its first bind.", type=float)
@_flag(
    "gang_reserve_after",
    "Seconds that a gang or a single pod waits before room is kept for it; 0: at once, or never.  [default: 300]",
)
@_flag(
    "gang_unwind",
    "What becomes of a gang that did not: evict what is bound, or keep it.",
    type=click.Choice(("evict", "keep")),
)
@_flag("bind_concurrency", "Bind requests in flight at once.", type=int)
@_flag("batch_window", "Seconds to gather work before a round.", type=float)
@_flag("batch_window_max", "Seconds to gather work while it keeps pouring in.", type=float)
@_flag("event_rate", "Events and condition patches a second; 0: no limit.", type=float)
@_flag("startup_timeout", "Seconds to wait for the API server and the flow service.", type=float)
@_flag("shutdown_timeout", "Seconds for binds, and again for events, when asked to stop.", type=float)
@_flag("log_level", "How much to log.", type=click.Choice(logs.LEVELS))
@_flag("log_format", "text or json.", type=click.Choice(logs.FORMATS))
def run(config: Path | None, **flags: Any) -> None:
    """Run the scheduler until SIGTERM or SIGINT."""
    try:
        settings = loading.settings(loading.read_file(config) if config else {}, flags)
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
@click.option("--json", "as_json", is_flag=True, help="For machines.")
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

_address = click.option(
    "--address",
    default=f"127.0.0.1:{_DEFAULTS.health_port}",
    show_default=True,
    help="HOST:PORT of the scheduler's health port.",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="For machines.")


@cli.command()
@_address
@_as_json
def status(address: str, as_json: bool) -> None:
    """What does the scheduler see?"""
    body = _ask(address, "/status")
    if as_json:
        click.echo(json.dumps(body, indent=2))
        return
    from rich.console import Console

    from poseidon_py.cli.render import print_status

    print_status(body, Console())


@cli.command()
@click.argument("pod", metavar="NAMESPACE/POD")
@_address
@_as_json
def explain(pod: str, address: str, as_json: bool) -> None:
    """Why is a pod pending, and what would it take?"""
    if "/" not in pod:
        pod = f"default/{pod}"
    body = _ask(address, "/explain?" + urlencode({"pod": pod}))
    if as_json:
        click.echo(json.dumps(body, indent=2))
        return
    from rich.console import Console

    from poseidon_py.cli.render import print_explanation

    print_explanation(body, Console())


def _ask(address: str, path: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
            body: dict[str, Any] = json.load(answer)
            return body
    except urllib.error.HTTPError as error:
        try:
            _fail(str(json.load(error)["error"]), 1)
        except (ValueError, KeyError, TypeError, RecursionError):
            _fail(
                f"{address} does not answer like a scheduler: {error}; give --address HOST:PORT of its health port", 1
            )
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "reason", error)
        _fail(f"no scheduler at {address}: {reason}; give --address HOST:PORT of its health port", 1)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"error: {message}", err=True)
    sys.exit(code)
