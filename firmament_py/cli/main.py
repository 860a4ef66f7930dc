"""The `firmament` command: serves the flow-graph service, lists and checks policies.

Exit codes: 0 success, 1 failure while running, 2 wrong usage or configuration, 130 interrupted.
"""

import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, TypeVar

import click

from firmament_py import compile_ahead
from firmament_py.cli import logs
from firmament_py.cli.durations import parse_after
from firmament_py.cli.interrupts import Interruptible
from firmament_py.cli.listening import check_addresses, tls_of, tls_options
from firmament_py.cli.stopping import Stopping
from firmament_py.compile_ahead import NotCompiledError
from firmament_py.compiled_folder import COMPILED
from firmament_py.engine.engine import Engine
from firmament_py.engine.execution import InThread, in_background
from firmament_py.engine.round import Observer
from firmament_py.flow.dimacs import Export
from firmament_py.flow.solver import SOLVERS, load
from firmament_py.model.options import AT_ONCE, MIGRATE_AFTER_US, RESERVE_AFTER_US, EngineOptions, Migrating, Preempting
from firmament_py.placement.repacking import EFFORT_LIMIT
from firmament_py.policy import registry
from firmament_py.policy.registry import DEFAULT_POLICY, UnknownPolicyError
from firmament_py.service.server import CannotListenError, Server
from firmament_py.usage.usage import Basis, UsageOptions
from firmament_py.version import VERSION
from protos.addresses import socket_path

F = TypeVar("F", bound=Callable[..., Any])
SEARCH = "Whether rounds wait for long searches. in-rounds: the same calls have the same replies."

log = logging.getLogger(__name__)

_GRACE_SECONDS = 5.0
_USAGE = UsageOptions()


def _usage_option(name: str, what: str) -> Callable[[F], F]:
    """The option --usage-NAME, which sets the field NAME of UsageOptions."""
    default = getattr(_USAGE, name.replace("-", "_"))
    return click.option(f"--usage-{name}", type=type(default), default=default, show_default=True, help=what)


def _exporting(folder: Path) -> Observer:
    export = Export(folder)
    return lambda built, solution: export(built.flow, solution)


@click.group(cls=Interruptible, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="firmament")
def cli() -> None:
    """The flow-graph scheduling service: tasks and nodes in, placements out."""


@cli.command()
@click.option(
    "--address",
    default="127.0.0.1:9090",
    show_default=True,
    metavar="HOST:PORT|unix:PATH|direct:PATH",
    help="Address to serve on; port 0 selects a free port. direct: only for `poseidon run`, without gRPC.",
)
@click.option(
    "--stats-address",
    default="",
    metavar="HOST:PORT",
    help="Second address, which serves only usage statistics (stats.PoseidonStats), without TLS.",
)
@click.option(
    "--policy",
    "policy_name",
    default=DEFAULT_POLICY,
    show_default=True,
    help="Policy of the costs; `firmament policies` lists all.",
)
@click.option(
    "--policy-option",
    "policy_options",
    multiple=True,
    metavar="K=V",
    help="An option of the policy; repeatable.",
)
@click.option(
    "--solver",
    "solver_name",
    type=click.Choice(sorted(SOLVERS)),
    default="or-tools",
    show_default=True,
    help="Solver of min-cost flows; networkx is the slow reference.",
)
@click.option(
    "--export-networks",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the last 100 networks and their flows to this folder, in DIMACS' format.",
)
@click.option("--certify", is_flag=True, help="Prove each solution optimal; log and count those without a proof.")
@click.option(
    "--usage",
    "usage_basis",
    type=click.Choice([basis.value for basis in Basis]),
    default=_USAGE.basis.value,
    show_default=True,
    help="Basis of node utilisation in costs: task requests, measured usage, or whichever is larger.",
)
@_usage_option("samples", "Usage samples kept per task and per node.")
@_usage_option("half-life", "Seconds in which the weight of a usage sample halves.")
@_usage_option("stale", "Seconds after which a usage sample is ignored.")
@click.option(
    "--reserve-after",
    default=f"{RESERVE_AFTER_US // 1_000_000}",
    show_default=True,
    metavar="SECONDS",
    help="Seconds that a gang or a single task waits before capacity is reserved for it; 0: from the start; never: "
    "none is reserved.",
)
@click.option(
    "--improve",
    type=click.FloatRange(0, EFFORT_LIMIT),
    default=1.0,
    show_default=True,
    metavar="TIMES",
    help="Effort of placing tasks anew where a round leaves some that would have fitted, and of choosing victims and "
    "moves, as a multiple of the usual; 0: none.",
)
@click.option("--search", type=click.Choice(["beside-rounds", "in-rounds"]), default="beside-rounds", help=SEARCH)
@click.option(
    "--preemption",
    type=click.Choice(["auto", "on", "off"]),
    default="auto",
    show_default=True,
    help="Whether tasks of lower priority are evicted for tasks of higher priority that fit nowhere. auto: not for "
    "clients of the original contract, because the original Poseidon also deletes pods without an owner.",
)
@click.option(
    "--preempt-beyond-budgets",
    is_flag=True,
    help="Exceed disruption budgets if a task fits in no other way, as kube-scheduler does.",
)
@click.option(
    "--migrate",
    type=click.Choice([each.value for each in Migrating]),
    default=Migrating.FOR_WAITING.value,
    show_default=True,
    help="When tasks that may be moved are evicted and placed on other nodes. for-waiting: if that makes waiting tasks "
    "fit. always: also if another node costs less by the policy, by more than moving them costs. Not for clients of "
    "the original contract, unless with --preemption on.",
)
@click.option(
    "--migrate-after",
    type=click.FloatRange(0, 1e9),
    default=MIGRATE_AFTER_US // 1_000_000,
    show_default=True,
    metavar="SECONDS",
    help="How long a task runs before it may be moved.",
)
@click.option(
    "--moves-at-once",
    type=click.IntRange(1),
    default=AT_ONCE,
    show_default=True,
    metavar="COUNT",
    help="Limit on the tasks that are on their way to other nodes.",
)
@click.option(
    "--moves-per-hour",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="COUNT",
    help="How many tasks may be moved to other nodes in an hour; 0: any number.",
)
@click.option(
    "--port-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write the port to when the service is ready.",
)
@click.option(
    "--exit-with-parent", is_flag=True, help="Stop at the end of standard input, which comes when the parent exits."
)
@tls_options
@click.option("--log-level", type=click.Choice(logs.LEVELS), default="info", show_default=True)
@click.option("--log-format", type=click.Choice(logs.FORMATS), default="text", show_default=True)
def serve(
    address: str,
    stats_address: str,
    policy_name: str,
    policy_options: tuple[str, ...],
    solver_name: str,
    export_networks: Path | None,
    certify: bool,
    usage_basis: str,
    usage_samples: int,
    usage_half_life: float,
    usage_stale: float,
    reserve_after: str,
    improve: float,
    search: str,
    preemption: str,
    preempt_beyond_budgets: bool,
    migrate: str,
    migrate_after: float,
    moves_at_once: int,
    moves_per_hour: int,
    port_file: Path | None,
    exit_with_parent: bool,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    client_ca_file: Path | None,
    insecure: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Serve until SIGTERM or SIGINT.

    Serves firmament.FlowScheduler (what `poseidon run` uses), firmament.FirmamentScheduler and stats.PoseidonStats
    (the original contract), and grpc.health.v1.Health; at direct:PATH the first alone.
    """
    logs.begin(log_level, log_format)
    # gRPC's core would write to standard error in another format, a line for each connection that it refuses
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        compile_ahead.check()
    except NotCompiledError as error:
        raise click.UsageError(str(error)) from error
    try:
        policy = registry.load(policy_name, _pairs(policy_options))
    except UnknownPolicyError as error:
        raise click.UsageError(str(error)) from error
    try:
        usage = UsageOptions(Basis(usage_basis), usage_samples, usage_half_life, usage_stale)
    except ValueError as error:
        raise click.UsageError(f"--{error}") from error
    try:
        options = EngineOptions(
            certified=certify,
            reserve_after_us=parse_after(reserve_after),
            improve=improve,
            preempting=_preempting(preemption, beyond_budgets=preempt_beyond_budgets),
            original_preempts=preemption == "on",
            migrating=Migrating(migrate),
            migrate_after_us=round(1e6 * migrate_after),
            moves_at_once=moves_at_once,
            moves_per_hour=moves_per_hour,
        )
    except ValueError as error:
        raise click.UsageError(f"--reserve-after {error}") from error
    tls = tls_of(tls_cert_file, tls_private_key_file, client_ca_file)
    check_addresses(address, stats_address, tls, insecure=insecure)
    if port_file is not None and socket_path(address) is not None:
        raise click.UsageError("--port-file needs an --address with a port; leave it out for a unix socket")
    try:
        solver = SOLVERS[solver_name]()
        engine = Engine(
            policy,
            solver,
            usage=usage,
            options=options,
            observer=_exporting(export_networks) if export_networks is not None else None,
            searching=InThread("search") if search == "beside-rounds" else None,
            packing=InThread("packing", niceness=0) if search == "beside-rounds" else None,
            prepare=partial(in_background, compile_ahead.load, "load"),
            load_solver=partial(in_background, partial(load, solver_name), "load solver", 0),
        )
        server = Server(engine, address, tls, stats_address)
    except CannotListenError as error:
        flag = "--stats-address" if error.address == stats_address else "--address"
        raise click.UsageError(f"{error}; choose another {flag}") from error

    stopping = Stopping()
    if exit_with_parent:
        stopping.watch_input()
    try:
        server.start()
        _announce(server, address, stats_address, policy_name, solver_name, port_file)
        log.info("firmament ends, because %s", stopping.wait())
    finally:
        server.stop(_GRACE_SECONDS)


def _announce(
    server: Server, address: str, stats_address: str, policy_name: str, solver_name: str, port_file: Path | None
) -> None:
    """Logs where the server listens, and writes its port to `port_file`. Raises click.UsageError if it cannot."""
    where = f"port {server.port}" if server.port else address
    log.info("serving on %s with policy %s and solver %s", where, policy_name, solver_name)
    if stats_address:
        log.info("serving only statistics on %s", f"port {server.stats_port}" if server.stats_port else stats_address)
    if port_file is not None:
        try:
            _write_port(port_file, server.port)
        except OSError as error:
            raise click.UsageError(
                f"cannot write --port-file {port_file}: {error.strerror}; give a file in a writable folder"
            ) from error


@cli.command("compile")
def compile_() -> None:
    """Compile the searches, unless that is done.

    Wheels contain them. A checkout needs this after a change of theirs, and each installation after one of numba or
    Python: serve refuses to start until then. Takes some 40 seconds of two cores.
    """
    try:
        compile_ahead.compile_stale(click.echo)
    except (OSError, CalledProcessError) as error:
        raise click.ClickException(
            f"not compiled: {error}; the folder {COMPILED} must be writable for this user"
        ) from error


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def policies(as_json: bool) -> None:
    """List the values of --policy, with the options of each policy."""
    found = registry.available()
    if as_json:
        click.echo(json.dumps([asdict(info) for info in found], indent=2))
        return
    width = max((len(info.name) for info in found), default=0)
    for info in found:
        click.echo(f"{info.name:<{width}}  {info.summary or info.error}")
        for option, kind in info.options.items():
            click.echo(f"{'':<{width}}    --policy-option {option}={kind}")


@cli.command("check-policy")
@click.argument("name", default=DEFAULT_POLICY)
@click.option(
    "--policy-option", "policy_options", multiple=True, metavar="K=V", help="An option of the policy; repeatable."
)
@click.option("--load-only", is_flag=True, help="Only check that the policy can be loaded with these options.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check_policy(name: str, policy_options: tuple[str, ...], load_only: bool, as_json: bool) -> None:
    """Check that a policy keeps the rules that rounds rely on.

    Asks the policy for the costs of generated views. Exit codes: 0 it keeps the rules, 1 it breaks one, 2 it cannot be
    loaded.
    """
    from firmament_py.policy import conformance  # not what serves needs

    try:
        policy = registry.load(name, _pairs(policy_options))
    except UnknownPolicyError as error:
        raise click.UsageError(str(error)) from error
    if load_only:
        return
    findings = conformance.check(policy, name)
    scale = conformance.measure(policy) if not findings else None
    if as_json:
        facts = asdict(scale) if scale is not None else None
        body = {"policy": name, "findings": [asdict(finding) for finding in findings], "scale": facts}
        click.echo(json.dumps({**body, "waived": conformance.waived(policy)}, indent=2))
    else:
        click.echo("\n".join(conformance.report(policy, findings)))
        if scale is not None:
            click.echo(
                f"costs of {scale.nodes:,} nodes x {scale.classes} classes: {scale.seconds:.3f} s, "
                f"{scale.peak_bytes >> 20} MiB at the peak"
            )
    if findings:
        sys.exit(1)


def _preempting(preemption: str, *, beyond_budgets: bool) -> Preempting:
    if preemption == "off":
        return Preempting.OFF
    return Preempting.BEYOND_BUDGETS if beyond_budgets else Preempting.WITHIN_BUDGETS


def _pairs(options: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key:
            raise click.UsageError(f"--policy-option {option!r} is not of the form K=V")
        pairs[key] = value
    return pairs


def _write_port(path: Path, port: int) -> None:
    """Replaces the file atomically, because the parent may be reading it."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(f"{port}\n")
    partial.replace(path)
