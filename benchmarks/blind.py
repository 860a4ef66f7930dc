"""The limit that no scheduler passes: binds pods to nodes in turn, looking at nothing.

Uses the bridge's own HTTP client with the bridge's concurrency, so the difference to a scheduler is the scheduling.
Run as a process of its own, as the bridge is: python -m benchmarks.blind --kubeconfig F --scheduler-name NAME
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import click
import orjson
import uvloop

from poseidon_py import credentials
from poseidon_py.demo.evidence import listed
from poseidon_py.kube import Kube, KubeError
from poseidon_py.settings import Settings


async def bind_all(kubeconfig: Path, scheduler: str, most: int, concurrency: int) -> dict[str, float]:
    """Binds up to `most` waiting pods of `scheduler`; how many, how many failed, and how long it took."""
    kube = Kube(await credentials.load(kubeconfig, None), concurrency)
    await kube.start()
    try:
        nodes = cycle([node["metadata"]["name"] for node in await listed(kube, "/api/v1/nodes")])
        pods = [
            pod["metadata"]
            for pod in await listed(kube, "/api/v1/pods")
            if pod["spec"].get("schedulerName") == scheduler and not pod["spec"].get("nodeName")
        ][:most]
        work, failed = iter(pods), [0]
        began = time.perf_counter()
        await asyncio.gather(*(_worker(kube, work, nodes, failed) for _ in range(concurrency)))
        return {"bound": len(pods) - failed[0], "failed": failed[0], "seconds": time.perf_counter() - began}
    finally:
        await kube.close()


async def _worker(kube: Kube, work: Iterator[dict[str, str]], nodes: Iterator[str], failed: list[int]) -> None:
    for pod in work:
        try:
            await kube.bind(pod["namespace"], pod["name"], pod["uid"], next(nodes), 30.0)
        except KubeError:
            failed[0] += 1


@click.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), required=True)
@click.option("--scheduler-name", required=True)
@click.option("--most", type=int, required=True)
@click.option("--concurrency", type=int, default=Settings().bind_concurrency)
def cli(kubeconfig: Path, scheduler_name: str, most: int, concurrency: int) -> None:
    """Print what was done, as JSON."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        click.echo(orjson.dumps(runner.run(bind_all(kubeconfig, scheduler_name, most, concurrency))))


if __name__ == "__main__":
    cli()
