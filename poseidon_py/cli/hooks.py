"""`poseidon hooks`: deliveries that wait, and dead letters; read from the API server, so no controller needs to run."""

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from poseidon_py.cli.errors import fail
from poseidon_py.config.settings import Settings
from poseidon_py.hooks.config.hook_config import HookConfig
from poseidon_py.hooks.config.loading import HookConfigError, load_hooks
from poseidon_py.hooks.records import Record
from poseidon_py.hooks.storage.inspection import Stored, ask, carried_out, read_stores
from poseidon_py.hooks.storage.store import Request, Verb

_ALL = "all"


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Where the stores are."""

    kubeconfig: Path | None
    context: str | None
    namespace: str


@click.command()
@click.option("--dead", is_flag=True, help="Show the dead letters.")
@click.option("--retry", metavar="ID", multiple=True, help="Deliver a dead letter again; `all`: all. May be repeated.")
@click.option("--drop", metavar="ID", multiple=True, help="Drop a dead letter; `all`: all. May be repeated.")
@click.option("--hook", metavar="NAME", help="Only this hook.")
@click.option(
    "--check",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Check a configuration file, and do nothing else.",
)
@click.option(
    "--wait",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    help="With --retry and --drop: seconds to wait until the controller has carried them out.",
)
@click.option(
    "--namespace",
    metavar="NAME",
    default=Settings().lease_namespace,
    show_default=True,
    help="Namespace of the deliveries, as in the configuration of the hooks.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Kubeconfig of the cluster. Default: $KUBECONFIG, then ~/.kube/config.",
)
@click.option("--context", metavar="NAME", help="Context of the kubeconfig. Default: its current context.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def hooks(
    dead: bool,
    retry: tuple[str, ...],
    drop: tuple[str, ...],
    hook: str | None,
    check: Path | None,
    wait: float,
    namespace: str,
    kubeconfig: Path | None,
    context: str | None,
    as_json: bool,
) -> None:
    """Show the deliveries of hooks that wait, and dead letters."""
    if check is not None:
        _check(check)
        return
    if retry and drop:
        fail("--retry and --drop exclude each other; give one of them", 2)
    cluster = _Cluster(kubeconfig, context, namespace)
    ids = retry or drop
    if ids:
        asyncio.run(_requested(cluster, "retry" if retry else "drop", ids, hook, wait))
        return
    stores = asyncio.run(_read(cluster))
    if as_json:
        click.echo(json.dumps(_as_json(stores, hook, dead=dead), indent=2))
        return
    from poseidon_py.cli.rendering.render_hooks import print_dead, print_hooks
    from poseidon_py.util.terminal import new_console

    now = time.time()
    if dead:
        print_dead(stores, hook, now, new_console())
    else:
        print_hooks(stores, hook, now, new_console())


def loaded(file: Path) -> HookConfig:
    """The hooks of a file; if they are invalid, prints all that is wrong and ends the command with exit code 2."""
    try:
        return load_hooks(file)
    except HookConfigError as error:
        fail("\n".join([f"the hooks in {error.path} are invalid", *error.problems]), 2)


def _check(file: Path) -> None:
    for hook in loaded(file).hooks:
        signed = "signed" if hook.secret is not None else "not signed"
        click.echo(f"{hook.name}: {hook.url}, {signed}")


async def _read(cluster: _Cluster) -> list[Stored]:
    from poseidon_py.kube.client import KubeError

    kube = await _connect(cluster)
    try:
        return await read_stores(kube, cluster.namespace)
    except KubeError as error:
        fail(f"cannot read the deliveries in namespace {cluster.namespace}: {error}", 1)
    finally:
        await kube.close()


async def _requested(cluster: _Cluster, verb: Verb, ids: tuple[str, ...], hook: str | None, wait: float) -> None:
    from poseidon_py.kube.client import KubeError

    kube = await _connect(cluster)
    done = {"retry": "delivered again", "drop": "dropped"}[verb]
    try:
        found: set[str] = set()
        for stored in await read_stores(kube, cluster.namespace):
            chosen = [record for record in stored.dead(hook) if _ALL in ids or record.id in ids]
            found |= {record.id for record in chosen}
            requests = [Request(verb, record.key) for record in chosen]
            if not requests:
                continue
            await ask(kube, cluster.namespace, stored.name, requests)
            if await carried_out(kube, cluster.namespace, stored.name, requests, wait):
                click.echo(f"{len(requests)} dead letters of {stored.name} are {done}")
            else:
                click.echo(f"{len(requests)} dead letters of {stored.name} will be {done} once their controller runs")
        missing = sorted(set(ids) - found - {_ALL})
        if missing:
            fail(f"there is no dead letter {missing[0]}; `poseidon hooks --dead` shows their IDs", 1)
    except KubeError as error:
        fail(f"cannot {verb} dead letters in namespace {cluster.namespace}: {error}", 1)
    finally:
        await kube.close()


async def _connect(cluster: _Cluster) -> Any:
    from poseidon_py.kube import credentials
    from poseidon_py.kube.client import Kube

    try:
        kube = Kube(await credentials.load(cluster.kubeconfig, cluster.context))
    except credentials.CredentialsError as error:
        fail(str(error), 2)
    await kube.start()
    return kube


def _as_json(stores: list[Stored], hook: str | None, *, dead: bool) -> list[dict[str, Any]]:
    return [
        {
            "store": stored.name,
            "dropped": {name: count for name, count in stored.dropped.items() if hook in (None, name)},
            "unreadable": stored.unreadable,
            "pending": [] if dead else [_record(record) for record in stored.pending(hook)],
            "dead": [_record(record) for record in stored.dead(hook)],
        }
        for stored in stores
    ]


def _record(record: Record) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(record)
    return found
