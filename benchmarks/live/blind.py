"""The blind binder: binds pods to nodes in rotation. Its rate is an upper bound for any scheduler.

It has the bridge's HTTP client and concurrency, so the difference to a scheduler's rate is due to scheduling.
It runs as a separate process, like the bridge: python -m benchmarks.live.blind --kubeconfig F --scheduler-name NAME
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import cycle
from pathlib import Path

import click
import msgspec
import orjson
import uvloop
from msgspec import Struct, field

from benchmarks.demo.evidence import listed
from poseidon_py.config.settings import Settings
from poseidon_py.kube import credentials
from poseidon_py.kube.client import Kube, KubeError
from poseidon_py.util.tasks import end_tasks


class _Metadata(Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Spec(Struct):
    scheduler: str | None = field(default=None, name="schedulerName")
    node: str | None = field(default=None, name="nodeName")


class _Pod(Struct):
    metadata: _Metadata = field(default_factory=_Metadata)
    spec: _Spec = field(default_factory=_Spec)


class _Event(Struct):
    type: str
    object: _Pod


class _Page(Struct):
    items: list[_Pod]


async def bind_all(kubeconfig: Path, scheduler: str, count: int, concurrency: int, follow: bool) -> dict[str, int]:
    """Binds `count` pods of `scheduler`: those pending now, or with `follow` pods created from now on.

    Prints "ready" before the first bind. Returns the number of bound pods and the number of failed binds.
    """
    kube = Kube(await credentials.load(kubeconfig, None), concurrency)
    await kube.start()
    work: asyncio.Queue[_Metadata | None] = asyncio.Queue()
    feeder: asyncio.Task[None] | None = None
    try:
        nodes = cycle([node["metadata"]["name"] for node in await listed(kube, "/api/v1/nodes")])
        if follow:
            feeder = asyncio.create_task(_follow(kube, scheduler, count, concurrency, work))
        else:
            page = msgspec.json.decode(await kube.page("/api/v1/pods", {}), type=_Page)
            _take(page.items, scheduler, count, concurrency, work)
            click.echo("ready")
        failed = [0]
        await asyncio.gather(*(_worker(kube, work, nodes, failed) for _ in range(concurrency)))
        return {"bound": count - failed[0], "failed": failed[0]}
    finally:
        if feeder is not None:
            await end_tasks(feeder)
        await kube.close()


def _take(
    pods: Iterable[_Pod], scheduler: str, count: int, concurrency: int, work: asyncio.Queue[_Metadata | None]
) -> int:
    """Queues up to `count` pending pods, then an end marker for each worker. Returns the number still to queue."""
    for pod in pods:
        if count and pod.spec.scheduler == scheduler and not pod.spec.node:
            work.put_nowait(pod.metadata)
            count -= 1
            if not count:
                for _ in range(concurrency):
                    work.put_nowait(None)
    return count


async def _follow(
    kube: Kube, scheduler: str, count: int, concurrency: int, work: asyncio.Queue[_Metadata | None]
) -> None:
    version = msgspec.json.decode(await kube.page("/api/v1/pods", {"limit": "1"}))["metadata"]["resourceVersion"]
    decode = msgspec.json.Decoder(_Event).decode_lines
    partial = b""
    click.echo("ready")
    async for piece in kube.watch("/api/v1/pods", {"resourceVersion": version}, 60.0):
        end = piece.rfind(b"\n") + 1
        lines, partial = (partial + piece[:end], piece[end:]) if end else (b"", partial + piece)
        added = (event.object for event in decode(lines) if event.type == "ADDED")
        count = _take(added, scheduler, count, concurrency, work)


async def _worker(kube: Kube, work: asyncio.Queue[_Metadata | None], nodes: Iterator[str], failed: list[int]) -> None:
    while (pod := await work.get()) is not None:
        try:
            await kube.bind(pod.namespace, pod.name, pod.uid, next(nodes), 30.0)
        except KubeError:
            failed[0] += 1


@click.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True)
@click.option("--scheduler-name", required=True)
@click.option("--count", type=int, required=True)
@click.option("--concurrency", type=int, default=Settings().bind_concurrency)
@click.option("--follow", is_flag=True, help="Bind pods created from now on, found by a watch.")
def cli(kubeconfig: Path, scheduler_name: str, count: int, concurrency: int, follow: bool) -> None:
    """Bind pods to nodes in rotation and print the counts as JSON."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        click.echo(orjson.dumps(runner.run(bind_all(kubeconfig, scheduler_name, count, concurrency, follow))))


if __name__ == "__main__":
    cli()
