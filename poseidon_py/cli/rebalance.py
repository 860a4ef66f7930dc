"""`poseidon rebalance`: shows a plan of moves of running pods, and carries it out if asked to."""

import json
import sys
import uuid
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode

import click
import msgspec

from poseidon_py.app.move_plan import GOALS, MAX_MOVES, Plan, PlanError, decode_plan, encode_plan
from poseidon_py.app.plan_query import DEFAULTS, plan_query
from poseidon_py.cli.ask import question_to_replicas
from poseidon_py.cli.carry_out import Execution, Replicas
from poseidon_py.cli.errors import fail
from poseidon_py.cli.reaching.routes import AskError
from poseidon_py.cli.reaching.selection import Selection
from poseidon_py.kube.objects import InvalidField
from poseidon_py.util.process.signals import INTERRUPTED

_PLAN_SECONDS = 90.0
"""Longer than the bridge waits for the flow service."""


@click.command()
@click.option(
    "--goal",
    metavar="|".join(GOALS),
    help="place: pending pods fit; pack: more nodes are empty, or --for fits more often; spread: pods are spread over "
    "nodes; policy: the policy's costs fall.  [default: place]",
)
@click.option("--moves", metavar="N", help=f"Maximum number of moves, up to {MAX_MOVES}.  [default: 50]")
@click.option(
    "--for",
    "shape",
    metavar="REQUESTS",
    help="With --goal pack: requests of the pod that should fit more often, like cpu=16,memory=64Gi.",
)
@click.option(
    "--moves-per-win",
    metavar="N",
    help="With --goal pack: maximum number of moves for each node, or for each time that --for fits; 0: no limit.  "
    "[default: 0]",
)
@click.option("--dry-run", is_flag=True, help="Print the plan, and change nothing. The default.")
@click.option("--execute", is_flag=True, help="Print the plan, and carry it out after confirmation.")
@click.option("--yes", is_flag=True, help="Carry out without confirmation.")
@click.option(
    "--plan",
    "plan_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the plan from a file that --out has written.",
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the plan to a file, as JSON.",
)
@question_to_replicas
def rebalance(
    goal: str | None,
    moves: str | None,
    shape: str | None,
    moves_per_win: str | None,
    dry_run: bool,
    execute: bool,
    yes: bool,
    plan_file: Path | None,
    out: Path | None,
    selections: list[Selection],
    as_json: bool,
) -> None:
    """Plan moves of running pods, and carry them out.

    Only pods that opted in move: annotate pods, or label namespaces, with poseidon.io/movable: "true".
    """
    given = {"goal": goal, "moves": moves, "for": shape, "moves-per-win": moves_per_win}
    query = {key: value for key, value in given.items() if value is not None}
    _check(query, dry_run=dry_run, execute=execute, yes=yes, plan_file=plan_file, out=out)
    try:
        replicas = Replicas((), leader=selections[0].route)
        if selections[0].address is not None and (plan_file is None or execute):
            replicas = Replicas([selection.route() for selection in selections])
        plan = _read(plan_file) if plan_file is not None else _ask_for_plan(replicas, query)
        if plan.problem:
            if not as_json:
                raise AskError(plan.problem)
            _print(plan, as_json=True)
            sys.exit(1)
        if out is not None:
            _write(out, plan)
        if not execute:
            _print(plan, as_json=as_json)
            return
        _execute(replicas, plan, yes=yes, as_json=as_json)
    except AskError as error:
        fail(str(error), 1)


def _check(
    query: dict[str, str], *, dry_run: bool, execute: bool, yes: bool, plan_file: Path | None, out: Path | None
) -> None:
    if dry_run and execute:
        fail("--dry-run and --execute exclude each other; give one of them", 2)
    if yes and not execute:
        fail("--yes confirms --execute; give both, or neither", 2)
    if plan_file is not None and query:
        fail(f"--plan has a plan already; omit --{next(iter(query))}, or omit --plan", 2)
    if out is not None and not out.parent.is_dir():  # told before the plan is computed, which takes a while
        fail(f"--out {out}: there is no folder {out.parent}", 2)
    try:
        plan_query(query)
    except InvalidField as error:
        fail(f"--{error.field}: {error.reason}", 2)


def _ask_for_plan(replicas: Replicas, query: dict[str, str]) -> Plan:
    body = replicas.ask("/rebalance?" + urlencode(DEFAULTS | query), timeout=_PLAN_SECONDS)
    try:
        return msgspec.convert(body, Plan)
    except msgspec.ValidationError as error:
        raise AskError(f"the scheduler's plan cannot be read: {error}; use a client of its version") from error


def _read(file: Path) -> Plan:
    try:
        return decode_plan(file.read_bytes())
    except OSError as error:
        fail(f"--plan {file}: {error.strerror}", 2)
    except PlanError as error:
        fail(f"--plan {file}: {error}", 2)


def _write(file: Path, plan: Plan) -> None:
    try:
        file.write_bytes(encode_plan(plan))
    except OSError as error:
        fail(f"--out {file}: {error.strerror}", 2)


def _print(plan: Plan, *, as_json: bool, err: bool = False) -> None:
    if as_json and not err:
        click.echo(encode_plan(plan), nl=False)
        return
    from poseidon_py.cli.rendering.render_plan import print_plan
    from poseidon_py.util.terminal import new_console

    print_plan(plan, new_console(stderr=err))


def _execute(replicas: Replicas, plan: Plan, *, yes: bool, as_json: bool) -> NoReturn:
    """With `as_json` the only output on standard output is what has become of the moves."""
    from poseidon_py.cli.rendering.render_plan import summary

    _print(plan, as_json=as_json, err=as_json)
    count = sum(1 for _ in plan.moves)
    if not count:
        if as_json:
            click.echo("[]")
        sys.exit(0)
    if not yes:
        if not has_terminal():
            fail("--execute needs a terminal to ask for confirmation; give --yes to carry it out without", 2)
        if not click.confirm(f"Carry out {count} {'move' if count == 1 else 'moves'}?", err=as_json):
            sys.exit(1)
    plan = msgspec.structs.replace(plan, id=str(uuid.uuid4()))
    execution = Execution(replicas, plan, lambda line: click.echo(line, err=as_json))
    stopped = False
    try:
        execution.run()
    except KeyboardInterrupt:
        stopped = True
        _stop(execution)
    pods = {move.uid: move.pod for move in plan.moves}
    if as_json:
        click.echo(json.dumps(_result(execution, pods), indent=2))
    else:
        click.echo("\n".join(summary(execution.states, pods)))
    sys.exit(INTERRUPTED if stopped else int(any(state != "done" for state, _ in execution.states.values())))


def has_terminal() -> bool:
    return sys.stdin.isatty()


def _stop(execution: Execution) -> None:
    try:
        execution.stop()
    except AskError as error:
        fail(f"the plan is not stopped: {error}", 1)


def _result(execution: Execution, pods: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {"pod": pods[uid], "uid": uid, "state": state, "reason": why} for uid, (state, why) in execution.states.items()
    ]
