"""`poseidon demo`: a mixed workload, scheduled on a synthetic cluster.

Exit codes: 0 all checks passed, 1 a check failed, 2 wrong usage or a process failed to start, 130 interrupted.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from importlib.util import find_spec
from subprocess import CalledProcessError

import click
import orjson

from benchmarks.demo import scenario, show
from benchmarks.demo.children import ChildError
from benchmarks.demo.scenario import Plan
from benchmarks.demo.stack import Stack
from firmament_py.compile_ahead import compile_stale
from poseidon_py.config.fields import FIELDS
from poseidon_py.kube.client import KubeError
from poseidon_py.util.process.signals import INTERRUPTED, end_signals
from poseidon_py.util.terminal import new_console


@click.command("demo")
@click.option("--nodes", type=click.IntRange(1), default=100, show_default=True, help="Number of nodes in the cluster.")
@click.option("--pods", type=click.IntRange(1), default=1000, show_default=True, help="Number of pods to submit.")
@click.option("--policy", default="", help="Cost policy; `poseidon policies` lists them.")
@click.option(
    "--usage",
    type=click.Choice(FIELDS["usage"].words),
    help="Basis of node utilisation in costs: pod requests, measured usage, or whichever is larger.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the workload.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, and nothing else.")
@click.option("--serve", is_flag=True, help="Keep the cluster up for kubectl and a browser, until Ctrl-C.")
@click.option(
    "--patience",
    type=click.FloatRange(1),
    help="Seconds without any change after which the demo fails.",
)
def demo(
    nodes: int, pods: int, policy: str, usage: str | None, seed: int, as_json: bool, serve: bool, patience: float | None
) -> None:
    """Schedule a mixed workload on a synthetic cluster and check the outcome.

    Everything runs as in production: the cluster speaks the Kubernetes HTTP API on loopback, and the scheduler and
    its flow service are separate processes.
    """
    page = serve and find_spec("plotly") is not None
    plan = Plan(nodes, pods, policy, seed, usage=usage or "", patience=patience, dashboard=page)
    try:
        compile_stale(partial(click.echo, err=True))  # of a checkout
    except (OSError, CalledProcessError) as error:
        raise click.ClickException(f"the searches are not compiled: {error}; run: firmament compile") from error
    sys.exit(asyncio.run(_run(plan, as_json, serve)))


async def _run(plan: Plan, as_json: bool, serve: bool) -> int:
    me, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert me is not None
    numbers = end_signals()

    def interrupt() -> None:
        for number in numbers:
            loop.add_signal_handler(number, lambda: None)  # the clean-up must not be interrupted
        me.cancel()

    for number in numbers:
        loop.add_signal_handler(number, interrupt)
    console = new_console()
    code: int | None = None
    try:
        async with Stack() as stack:
            try:
                found = await scenario.run(stack, plan, show.Display(console, quiet=as_json))
            except (ChildError, KubeError):
                _keep_logs(stack)
                raise
            code = 0 if found.result == "passed" else 1
            if code:
                _keep_logs(stack)
            if as_json:
                click.echo(orjson.dumps(found.json(), option=orjson.OPT_INDENT_2))
            else:
                show.summary(console, found)
            if serve:
                show.serving(str(stack.kubeconfig), stack.health_url, page=plan.dashboard)
                await asyncio.Event().wait()
    except (ChildError, KubeError) as error:
        click.echo(f"error: {error}", err=True)
        return 2
    except asyncio.CancelledError:
        if code is None or not serve:
            click.echo("interrupted; all started processes have been stopped", err=True)
            return INTERRUPTED
    return code if code is not None else 2


def _keep_logs(stack: Stack) -> None:
    stack.keep_logs()
    click.echo(f"the logs of all processes are in {stack.folder}", err=True)
