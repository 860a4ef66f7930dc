"""`poseidon top`: pods, rounds, resources, queues and why pods wait, again and again."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from poseidon_py.cli.ask import question
from poseidon_py.cli.errors import fail
from poseidon_py.cli.reaching.routes import AskError, ask
from poseidon_py.cli.reaching.selection import Selection

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Json = dict[str, Any]
_BAR, _REASONS, _QUEUES = 20, 5, 12
_LONGEST_REASON = 400


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the scheduler has answered at `at`, seconds since the epoch; `problem`: why it has not."""

    at: float
    status: Json
    queues: Json
    problem: str = ""


@click.command()
@click.option(
    "--interval",
    "-i",
    type=click.FloatRange(0.5, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two questions to the scheduler.",
)
@click.option(
    "--count",
    "-c",
    type=click.IntRange(0),
    metavar="N",
    help="End after so many; 0: never. Default: 0 on a terminal, else 1.",
)
@question
def top(interval: float, count: int | None, selection: Selection, as_json: bool) -> None:
    """Show pods, rounds, queues and why pods wait, until interrupted.

    With --json, a line for each answer.
    """
    route = selection.route()
    live = sys.stdout.isatty() and not as_json
    number = count if count is not None else 0 if live else 1

    def snapshots() -> Iterator[Snapshot]:
        asked, before = 0, None
        while True:
            before = _ask(route, before)
            yield before
            asked += 1
            if asked == number:
                return
            time.sleep(interval)

    from poseidon_py.util.terminal import new_console

    console = new_console()
    try:
        if live:
            _live(snapshots(), console)
            return
        for each, before in _pairs(snapshots()):
            if each.problem:
                fail(each.problem, 1)
            if as_json:
                click.echo(json.dumps({"at": _written(each.at), "status": each.status, "queues": each.queues}))
            else:
                console.print(view(each, before))
    except KeyboardInterrupt:
        sys.exit(0)  # the way to end it


def _ask(route: Any, before: Snapshot | None) -> Snapshot:
    """The answers; the ones before, with the problem, if there are none now."""
    try:
        return Snapshot(time.time(), ask(route, "/status"), ask(route, "/queues"))
    except AskError as error:
        if before is None:
            fail(str(error), 1)
        return Snapshot(before.at, before.status, before.queues, str(error))


def _pairs(snapshots: Iterator[Snapshot]) -> Iterator[tuple[Snapshot, Snapshot | None]]:
    """Each with the one before."""
    before = None
    for each in snapshots:
        yield each, before
        before = each


def _live(snapshots: Iterator[Snapshot], console: Console) -> None:
    from rich.live import Live

    with Live(console=console, screen=True, auto_refresh=False) as shown:
        for each, before in _pairs(snapshots):
            shown.update(view(each, before), refresh=True)


def view(now: Snapshot, before: Snapshot | None) -> RenderableType:
    """One screen. `before`: the answers before these, for what has happened since."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(_head(now), style="bold", overflow="ellipsis", no_wrap=True)]
    if now.problem:
        parts.append(Text(f"no answer since then: {now.problem}", style="red"))
    parts += [Text(_pods(now.status)), Text(_rounds(now, before)), *_resources(now.status)]
    if rows := list(_queue_rows(now.queues)):
        parts += [Text(""), _table(("queue", "running", "pending", "share", "used of guarantee"), rows)]
    if reasons := now.status.get("reasons"):
        parts.append(Text("\nwhy pods wait", style="bold"))
        for each in reasons[:_REASONS]:
            parts.append(Text(f"{each['pods']:>7}  {each['message'][:_LONGEST_REASON]} For example {each['example']}."))
        if len(reasons) > _REASONS:
            others = sum(each["pods"] for each in reasons[_REASONS:])
            parts.append(Text(f"{others:>7}  {len(reasons) - _REASONS} other reasons"))
    return Group(*parts)


def _head(now: Snapshot) -> str:
    body = now.status
    role = "leader" if body.get("leading") else f"standby; the leader is {body.get('leader') or 'unknown'}"
    return f"{_written(now.at)}  {body.get('identity', 'poseidon')}: {role}; {body['policy']}, {body['nodes']} nodes"


def _pods(body: Json) -> str:
    pods = body["pods"]
    states = ("bound", "bound"), ("assumed", "being bound"), ("waiting", "waiting")
    nominated = body["last_round"]["nominated"]
    counts = ", ".join(f"{pods.get(state, 0)} {name}" for state, name in states)
    return f"pods    {counts}" + (f", {nominated} of these nominated" if nominated else "")


def _rounds(now: Snapshot, before: Snapshot | None) -> str:
    body = now.status
    last = body["last_round"]
    if not body["rounds"]:
        return "rounds  none yet"
    line = f"rounds  {body['rounds']}"
    if before is not None and now.at > before.at and body["rounds"] >= before.status["rounds"]:
        per_second = (body["rounds"] - before.status["rounds"]) / (now.at - before.at)
        bound = (body.get("bound", 0) - before.status.get("bound", 0)) / (now.at - before.at)
        line += f", {per_second:.1f}/s, {max(bound, 0):.1f} pods bound/s"
    line += f"; the last took {1000 * last['seconds']:.1f} ms, placed {last['placed']} of {last['pending']}"
    left = [f"{last[name]} {name}" for name in ("preempted", "migrated") if last.get(name)]
    return line + "".join(f", {each}" for each in left) + (f"; gap {last['gap']}" if last.get("gap") else "")


def _resources(body: Json) -> Iterator[RenderableType]:
    """A bar for each resource that is used."""
    from rich.text import Text

    from poseidon_py.kube.quantity import shown

    used = [(name, each["used"], each["allocatable"]) for name, each in body["resources"].items() if each["used"]]
    width = max((len(name) for name, _, _ in used), default=0)
    for name, amount, total in used:
        share = amount / total if total else 0.0
        bar = "#" * round(_BAR * min(share, 1.0))
        text = f"{name:<{width}}  [{bar:<{_BAR}}] {share:4.0%}  {shown(name, amount)} of {shown(name, total)}"
        yield Text(text, style="red" if share > 1 else "")


def _queue_rows(queues: Json) -> Iterator[tuple[str, ...]]:
    """Those with pods, the ones with most pending first."""
    some = [each for each in queues["queues"] if each["running"] or each["pending"]]
    some.sort(key=lambda each: (-each["pending"], -each["running"], each["name"]))
    for each in some[:_QUEUES]:
        amounts = [of for of in each["resources"] if of["used"] not in ("0", "")]
        used = ", ".join(f"{of['resource']} {of['used']}/{of['guarantee'] or 'unlimited'}" for of in amounts)
        yield each["name"], str(each["running"]), str(each["pending"]), f"{each['share']:g}", used
    if len(some) > _QUEUES:
        yield f"{len(some) - _QUEUES} more", "", "", "", ""


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in header:
        table.add_column(name, justify="right" if name in ("running", "pending", "share") else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _written(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
