"""The demo's output: live progress on a terminal, plain lines elsewhere, and the summary."""

from __future__ import annotations

import time
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from benchmarks.cluster.store.quantities import show as quantity
from benchmarks.demo.progress import Progress
from benchmarks.demo.summary import Summary
from poseidon_py.util.terminal import print_rows

_LINE_SECONDS = 2.0
_COUNTS = ("submitted", "bound", "ended", "waiting")
_SHARES = ("offered", "requested", "share", "peak")
_COUNTS_WIDTH, _BAR_WIDTH = 48, 30
_STYLE: dict[str, Any] = {"box": None, "pad_edge": False, "padding": (0, 2, 0, 2)}


class Display:
    """Shows the progress of a run; with `quiet`, nothing."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self._console = console
        self._quiet = quiet
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
        self._live = None if quiet else self._live
        self._began = time.monotonic()
        self._next_line = 0.0

    def step(self, text: str) -> None:
        """A step of the demo begins."""
        if not self._quiet:
            self._console.print(f"[dim]{time.monotonic() - self._began:5.1f} s[/]  {text}", soft_wrap=True)

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def progress(self, progress: Progress, expected: int, note: str) -> None:
        """The pods' current counts, in a live table or as a line every two seconds."""
        if self._live is not None:
            self._live.update(_panel(progress, expected, note, self._console.width))
        elif not self._quiet and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LINE_SECONDS
            counts = progress.counts().values()
            bound, ended = (sum(count[name] for count in counts) for name in ("bound", "ended"))
            self.step(f"{bound} bound, {ended} ended, {progress.present} of {expected} submitted{note}")


def summary(console: Console, found: Summary) -> None:
    """Print the summary as text."""
    console.print()
    console.print(
        f"[bold]{found.bound} of {found.pods} pods placed on {found.nodes} nodes[/], {found.ended} of them ended, "
        f"{found.waiting} waiting; {found.seconds:.1f} s in total, policy {found.policy}, seed {found.seed}",
        soft_wrap=True,
    )
    _print_kinds(console, found)
    if found.reasons:
        console.print("\n[bold]Why pods wait[/] (their PodScheduled conditions)")
        for reason in found.reasons[:8]:
            console.print(
                f"  {reason['pods']:>5}  {reason['message']}  [dim]e.g. {reason['example']}[/]",
                highlight=False,
                soft_wrap=True,
            )
        if len(found.reasons) > 8:
            others = found.reasons[8:]
            console.print(f"  {sum(r['pods'] for r in others):>5}  for {len(others)} other reasons")
    console.print("\n[bold]Rounds[/]")
    console.print(f"  {_rounds(found)}", highlight=False, soft_wrap=True)
    if found.bind_seconds:
        console.print(
            f"  time from a pod's creation to its bind: {_times(found.bind_seconds)}", highlight=False, soft_wrap=True
        )
    if found.usage:
        console.print(f"\n[bold]Measured usage[/]\n  {_usage(found)}", highlight=False, soft_wrap=True)
    _print_utilisation(console, found)
    balance = found.balance
    if balance:
        console.print(
            f"  cpu requested on the {balance['nodes']:.0f} untainted nodes: mean {balance['cpu_mean']:.0%}, from "
            f"{balance['cpu_min']:.0%} to {balance['cpu_max']:.0%}, standard deviation {balance['cpu_stddev']:.1%}; "
            f"{balance['pods_min']:.0f} to {balance['pods_max']:.0f} pods per node",
            highlight=False,
            soft_wrap=True,
        )
    if found.preemption["victims"]:
        console.print("\n[bold]Preemption[/]")
        for line in _preemption(found.preemption):
            console.print(f"  {line}", highlight=False, soft_wrap=True)
    if found.moves["moved"]:
        console.print("\n[bold]Moves[/]")
        for line in _moves(found.moves):
            console.print(f"  {line}", highlight=False, soft_wrap=True)
    if found.complaints:
        console.print("\n[bold]Errors in the scheduler's log[/]")
        for line in found.complaints:
            console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    console.print("\n[bold]Checks[/] (against the API server's view)")
    for check in found.checks:
        mark = "[green]pass[/]" if check["ok"] else "[bold red]FAIL[/]"
        console.print(f"  {mark}  {check['name']}  [dim]({check['detail']})[/]", highlight=False, soft_wrap=True)
    passed = sum(check["ok"] for check in found.checks)
    colour = "green" if found.result == "passed" else "red"
    console.print(f"\n[bold {colour}]{passed} of {len(found.checks)} checks passed[/]")


def serving(kubeconfig: str, health: str, *, page: bool) -> None:
    """Print commands to try while the demo stays up. `page`: whether the scheduler serves its page."""
    lacks = "not served, because plotly is not installed: pip install 'poseidon-firmament[dashboard]'"
    click.echo(
        f"""
The scheduler's page: {f"{health}/dashboard/" if page else lacks}

The cluster and the scheduler are still running. Try, in another terminal:

    export KUBECONFIG={kubeconfig}
    kubectl get nodes -L pool
    kubectl get pods -o wide --field-selector spec.nodeName=
    kubectl describe deployment large
    kubectl scale deployment large --replicas 1
    kubectl get events --field-selector reason=FailedScheduling
    kubectl get events --field-selector reason=Preempted
    kubectl get events --field-selector reason=Migrated
    poseidon status --address {health.removeprefix("http://")}
    poseidon rebalance --goal pack --address {health.removeprefix("http://")}
    curl {health}/status
    curl {health}/metrics

Press Ctrl-C to stop them."""
    )


def _panel(progress: Progress, expected: int, note: str, width: int) -> RenderableType:
    """Counts by kind with bars; in a narrow terminal without the bars, or the totals only."""
    total = Text(f"{progress.present} of {expected} pods{note}", style="dim")
    if width < _COUNTS_WIDTH:
        return total
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in _COUNTS:
        table.add_column(name, justify="right", no_wrap=True)
    for kind, count in sorted(progress.counts().items()):
        bar = ProgressBar(total=max(count["submitted"], 1), completed=count["bound"], width=_BAR_WIDTH)
        cells = [str(count[name]) for name in _COUNTS]
        table.add_row(kind, *cells, *([bar] if width > _COUNTS_WIDTH + _BAR_WIDTH else []))
    return Group(table, total)


def _print_kinds(console: Console, found: Summary) -> None:
    rows = [(kind, *(str(count.get(name, 0)) for name in _COUNTS)) for kind, count in found.kinds.items()]
    print_rows(console, ("kind", *_COUNTS), rows, right=_COUNTS, **_STYLE)


def _rounds(found: Summary) -> str:
    rounds, network = found.rounds, found.network
    text = f"{rounds['total']} rounds, {rounds['placed']} of them placed pods; {_times(rounds['seconds'])}"
    if network:
        text += f"; largest network {network['vertices']:,} vertices and {network['arcs']:,} arcs"
    return text


def _preemption(figures: dict[str, Any]) -> list[str]:
    lines = []
    for group in figures["groups"]:
        victims, preemptors = (
            f"pods of {group[f'{role}_class'] or 'no class'} ({group[f'{role}_owner'] or 'no owner'})"
            for role in ("victim", "preemptor")
        )
        lines.append(f"{group['victims']:>5}  {victims} for {preemptors}")
    total = f"{figures['victims']} pods were preempted by {figures['preemptors']}"
    return [*lines, f"{total}; they had been on their nodes for {figures['lost_seconds']:.1f} seconds together"]


def _moves(figures: dict[str, Any]) -> list[str]:
    lines = [f"{group['moved']:>5}  {group['kind']} pods for {group['for']} pods" for group in figures["groups"]]
    total = f"{figures['moved']} pods were evicted and placed on other nodes, so that {figures['served']} others fit"
    return [
        *lines,
        f"{total}; the decisions took {figures['decided']} moves, and at least {figures['needed']} were needed",
    ]


def _usage(found: Summary) -> str:
    usage = found.usage
    text = f"costs from {usage['basis']}; {usage['taken']:,} samples accepted, {usage['refused']} refused; at most "
    text += f"{usage['pods_measured']:,} pods and {usage['nodes_measured']:,} nodes measured at a time"
    return text + f", and {usage['pods_priced']:,} pods of a round with costs from measured usage"


def _print_utilisation(console: Console, found: Summary) -> None:
    console.print("\n[bold]Requested on all nodes[/]")
    rows = [
        (
            name,
            _amount(name, int(use["offered"])),
            _amount(name, int(use["requested"])),
            f"{use['share']:.0%}",
            f"{use['peak_share']:.0%}",
        )
        for name, use in found.utilisation.items()
    ]
    print_rows(console, ("resource", *_SHARES), rows, right=_SHARES, **_STYLE)


def _amount(resource: str, amount: int) -> str:
    if resource in ("memory", "ephemeral-storage"):
        return f"{amount / 2**30:,.0f}Gi"
    return f"{amount / 1000:,.0f}" if resource == "cpu" else quantity(resource, amount)


def _times(seconds: dict[str, float]) -> str:
    return ", ".join(
        f"{name} {value * 1000:.0f} ms" if value < 10 else f"{name} {value:.1f} s" for name, value in seconds.items()
    )
