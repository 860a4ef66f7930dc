"""`poseidon cluster`: a synthetic cluster in the foreground."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import click

from benchmarks.cluster.cluster import Cluster
from benchmarks.cluster.http.faults import Rule
from benchmarks.cluster.nodes.devices.equipment import check_equipment, fabric_pools
from benchmarks.cluster.settings import ClusterSettings, NodeShape, RunTime, device_count
from benchmarks.cluster.store.device_kinds import VERSIONS


def _shapes(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[NodeShape, ...]:
    try:
        shapes = tuple(NodeShape.parse(one) for one in given) or (NodeShape(),)
        for name, _count in (device for shape in shapes for device in shape.devices):
            check_equipment(name)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return shapes


def _run_time(_: click.Context, __: click.Parameter, given: str) -> RunTime:
    try:
        return RunTime.parse(given)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _device_pools(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    try:
        asked = tuple(device_count(one) for one in given)
        for name, count in asked:
            fabric_pools(name, count, ())
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return asked


def _device_versions(_: click.Context, __: click.Parameter, given: str) -> tuple[str, ...]:
    asked = tuple(filter(None, given.split(",")))
    unknown = [version for version in asked if version not in VERSIONS]
    if unknown and asked != ("none",):
        raise click.BadParameter(f"no version {unknown[0]!r} of resource.k8s.io: use {', '.join(VERSIONS)} or none")
    return () if unknown else asked


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("cluster")
@click.option("--nodes", type=click.IntRange(0), default=10, show_default=True, help="Number of nodes.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="Port; 0 picks a free one."
)
@click.option(
    "--kubeconfig-out", type=click.Path(dir_okay=False, path_type=Path), help="File to write a kubeconfig to."
)
@click.option(
    "--tls",
    type=(_FILE, _FILE),
    metavar="CERTIFICATE KEY",
    help="Files (PEM) with which to serve HTTPS; the kubeconfig trusts the certificate.",
)
@click.option("--token", default="", help="Bearer token that every request must present.")
@click.option(
    "--shape",
    "shapes",
    callback=_shapes,
    multiple=True,
    metavar="RESOURCES",
    help="Node shape, for example cpu=16,memory=64Gi,gpu=4,weight=1; device:a100=8 gives devices to be claimed. "
    "Repeatable.",
)
@click.option(
    "--zones", type=click.IntRange(0), default=3, show_default=True, help="Number of zones; nodes are spread over them."
)
@click.option("--racks", type=click.IntRange(0), default=4, show_default=True, help="Number of racks in each zone.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of all random choices.")
@click.option(
    "--run-time",
    callback=_run_time,
    default="forever",
    show_default=True,
    help="Run time of batch pods without a run-seconds annotation: forever, SECONDS, uniform:LOW,HIGH, "
    "exponential:MEAN, lognormal:MEDIAN,SIGMA.",
)
@click.option(
    "--start-delay", type=click.FloatRange(0), default=0.2, show_default=True, help="Seconds from bind to Running."
)
@click.option(
    "--speed", type=click.FloatRange(0.001), default=1.0, show_default=True, help="Simulated seconds per real second."
)
@click.option(
    "--bookmark-interval",
    type=click.FloatRange(0.01),
    default=60.0,
    show_default=True,
    help="Seconds between watch bookmarks.",
)
@click.option(
    "--history",
    type=click.IntRange(1),
    default=65536,
    show_default=True,
    help="Number of changes kept per kind; watches from before them get 410 Gone.",
)
@click.option(
    "--device-pool",
    "device_pools",
    callback=_device_pools,
    multiple=True,
    metavar="POOL=COUNT",
    help="Devices that are attached to the network: fabric=COUNT for all nodes, zone-fabric=COUNT in each zone. "
    "Repeatable.",
)
@click.option(
    "--device-versions",
    callback=_device_versions,
    default="v1",
    show_default=True,
    metavar="VERSIONS",
    help="Versions of resource.k8s.io to serve, separated by commas: v1, v1beta2, v1beta1, v1alpha3, or none.",
)
@click.option("--fault-latency-ms", type=click.FloatRange(0), default=0.0, help="Milliseconds added to every response.")
@click.option(
    "--fault-rate-429", type=click.FloatRange(0, 1), default=0.0, help="Fraction of requests answered with 429."
)
@click.option(
    "--fault-rate-500", type=click.FloatRange(0, 1), default=0.0, help="Fraction of requests answered with 500."
)
def cluster(
    nodes: int,
    host: str,
    port: int,
    kubeconfig_out: Path | None,
    tls: tuple[Path, Path] | None,
    token: str,
    shapes: tuple[NodeShape, ...],
    zones: int,
    racks: int,
    seed: int,
    run_time: RunTime,
    start_delay: float,
    speed: float,
    bookmark_interval: float,
    history: int,
    device_pools: tuple[tuple[str, int], ...],
    device_versions: tuple[str, ...],
    fault_latency_ms: float,
    fault_rate_429: float,
    fault_rate_500: float,
) -> None:
    """Run a synthetic cluster that speaks the Kubernetes HTTP API, until interrupted."""
    settings = ClusterSettings(
        nodes=nodes,
        shapes=shapes,
        zones=zones,
        racks_per_zone=racks,
        host=host,
        port=port,
        tls=tls,
        token=token,
        seed=seed,
        run_time=run_time,
        start_seconds=start_delay,
        speed=speed,
        bookmark_seconds=bookmark_interval,
        history=history,
        device_pools=device_pools,
        device_versions=device_versions,
    )
    rules: list[Rule] = []
    if fault_latency_ms or fault_rate_429 or fault_rate_500:
        rules.append(Rule(latency_ms=fault_latency_ms, rate_429=fault_rate_429, rate_500=fault_rate_500))
    if kubeconfig_out is not None:
        # first: an error should be reported before a large cluster is created
        try:
            kubeconfig_out.touch()
        except OSError as error:
            hint = "choose another --kubeconfig-out"
            sys.exit(_refuse(f"cannot write the kubeconfig {kubeconfig_out}: {error.strerror}; {hint}"))
    gc.set_threshold(100_000, 20, 50)  # hundreds of thousands of objects live as long as the process
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        sys.exit(runner.run(_serve(settings, kubeconfig_out, rules)))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # not available on every platform
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _serve(settings: ClusterSettings, kubeconfig_out: Path | None, rules: list[Rule]) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            loop.add_signal_handler(number, stopped.set)
    running = Cluster(settings)
    running.faults.set(*rules)
    try:
        await running.start()
    except OSError as error:
        why = error.strerror or error
        return _refuse(
            f"cannot listen on {settings.host}:{settings.port}: {why}; choose another --port, or 0 for a free one"
        )
    try:
        if kubeconfig_out is not None:
            await asyncio.to_thread(kubeconfig_out.write_text, running.kubeconfig())
        click.echo(f"synthetic cluster with {settings.nodes} nodes at {running.url}")
        if kubeconfig_out is not None:
            click.echo(f"try: kubectl --kubeconfig {kubeconfig_out} get nodes")
        await stopped.wait()
    finally:
        await running.stop()
    return 0


def _refuse(why: str) -> int:
    click.echo(f"error: {why}", err=True)
    return 2
