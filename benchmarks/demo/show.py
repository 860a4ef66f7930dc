"""What the demo shows: live progress where there is a terminal, plain lines where there is none, a summary."""

from __future__ import annotations

import time

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from benchmarks.cluster.store.quantities import show as quantity
from benchmarks.demo.progress import Progress
from benchmarks.demo.summary import Summary

_LINE_SECONDS = 2.0


class Display:
    """Tells how far things are. `quiet` says nothing at all."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self._console = console
        self._quiet = quiet
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
        self._live = None if quiet else self._live
        self._began = time.monotonic()
        self._next_line = 0.0

    def step(self, text: str) -> None:
        """Something was begun."""
        if not self._quiet:
            self._console.print(f"[dim]{time.monotonic() - self._began:5.1f} s[/]  {text}")

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def progress(self, progress: Progress, expected: int, note: str) -> None:
        """How the pods do now."""
        if self._live is not None:
            self._live.update(_panel(progress, expected, note))
        elif not self._quiet and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LINE_SECONDS
            ended = sum(count["ended"] for count in progress.counts().values())
            self.step(f"{progress.bound} bound, {ended} ended, {len(progress.pods)} of {expected} submitted{note}")


def summary(console: Console, found: Summary) -> None:
    """The end of the demo, for people."""
    console.print()
    console.print(
        f"[bold]{found.bound} of {found.pods} pods placed on {found.nodes} nodes[/], {found.ended} of them have ended, "
        f"{found.waiting} wait; {found.seconds:.1f} s in all, policy {found.policy}, seed {found.seed}",
        soft_wrap=True,
    )
    console.print(_kinds(found))
    if found.reasons:
        console.print("\n[bold]Why pods wait[/] (their PodScheduled conditions)")
        for reason in found.reasons[:8]:
            console.print(
                f"  {reason['pods']:>5}  {reason['message']}  [dim]e.g. {reason['example']}[/]",
                highlight=False,
                soft_wrap=True,
            )
        if len(found.reasons) > 8:
            rest = found.reasons[8:]
            console.print(f"  {sum(r['pods'] for r in rest):>5}  for {len(rest)} further reasons")
    console.print("\n[bold]Rounds[/]")
    console.print(f"  {_rounds(found)}", highlight=False, soft_wrap=True)
    if found.bind_seconds:
        console.print(
            f"  time from a pod's creation to its bind: {_times(found.bind_seconds)}", highlight=False, soft_wrap=True
        )
    if found.usage:
        console.print(f"\n[bold]Measured use[/]\n  {_usage(found)}", highlight=False, soft_wrap=True)
    console.print(_utilisation(found))
    even = found.balance
    if even:
        console.print(
            f"  cpu requested on the {even['nodes']:.0f} open nodes: mean {even['cpu_mean']:.0%}, from "
            f"{even['cpu_min']:.0%} to {even['cpu_max']:.0%}, standard deviation {even['cpu_stddev']:.1%}; "
            f"{even['pods_min']:.0f} to {even['pods_max']:.0f} pods a node",
            highlight=False,
            soft_wrap=True,
        )
    console.print("\n[bold]Checks[/] (from the API server's side)")
    for check in found.checks:
        mark = "[green]pass[/]" if check["ok"] else "[bold red]FAIL[/]"
        console.print(f"  {mark}  {check['name']}  [dim]({check['detail']})[/]", highlight=False, soft_wrap=True)
    passed = sum(check["ok"] for check in found.checks)
    colour = "green" if found.result == "passed" else "red"
    console.print(f"\n[bold {colour}]{passed} of {len(found.checks)} checks held[/]")


def serving(kubeconfig: str, health: str) -> None:
    """What to do with a demo that stays up."""
    click.echo(
        f"""
The cluster and the scheduler stay up. Try, in another terminal:

    export KUBECONFIG={kubeconfig}
    kubectl get nodes -L pool
    kubectl get pods -o wide --field-selector spec.nodeName=
    kubectl describe deployment large
    kubectl scale deployment large --replicas 1
    kubectl get events --field-selector reason=FailedScheduling
    curl {health}/status
    curl {health}/metrics

Ctrl-C ends it."""
    )


def _panel(progress: Progress, expected: int, note: str) -> Group:
    table = Table(box=None, pad_edge=False)
    for name in ("", "submitted", "bound", "ended", "waiting", ""):
        table.add_column(name, justify="left" if not name else "right")
    for kind, count in sorted(progress.counts().items()):
        bar = ProgressBar(total=max(count["submitted"], 1), completed=count["bound"], width=30)
        table.add_row(kind, *(str(count[c]) for c in ("submitted", "bound", "ended", "waiting")), bar)
    return Group(table, Text(f"{len(progress.pods)} of {expected} pods{note}", style="dim"))


def _kinds(found: Summary) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    for name in ("", "submitted", "placed", "ended", "wait"):
        table.add_column(name, justify="left" if not name else "right")
    for kind, count in found.kinds.items():
        cells = (str(count.get(name, 0)) for name in ("submitted", "bound", "ended", "waiting"))
        table.add_row(kind, *cells)
    return table


def _rounds(found: Summary) -> str:
    rounds, network = found.rounds, found.network
    text = f"{rounds['total']} rounds, {rounds['placed']} of them placed pods; {_times(rounds['seconds'])}"
    if network:
        text += f"; largest network {network['vertices']:,} vertices and {network['arcs']:,} arcs"
    return text


def _usage(found: Summary) -> str:
    usage = found.usage
    text = f"prices by {usage['basis']}; {usage['taken']:,} samples taken, {usage['refused']} refused; at most "
    text += f"{usage['pods_measured']:,} pods and {usage['nodes_measured']:,} nodes measured at a time"
    return text + f", {usage['pods_priced']:,} pods in a round priced by what they used"


def _utilisation(found: Summary) -> Table:
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 2), title="\nRequested of all nodes", title_justify="left"
    )
    table.title_style = "bold"
    for name in ("", "offered", "requested", "now", "at most"):
        table.add_column(name, justify="left" if not name else "right")
    for name, use in found.utilisation.items():
        amounts = (_amount(name, int(use["offered"])), _amount(name, int(use["requested"])))
        table.add_row(name, *amounts, f"{use['share']:.0%}", f"{use['peak_share']:.0%}")
    return table


def _amount(resource: str, amount: int) -> str:
    if resource in ("memory", "ephemeral-storage"):
        return f"{amount / 2**30:,.0f}Gi"
    return f"{amount / 1000:,.0f}" if resource == "cpu" else quantity(resource, amount)


def _times(seconds: dict[str, float]) -> str:
    return ", ".join(
        f"{name} {value * 1000:.0f} ms" if value < 10 else f"{name} {value:.1f} s" for name, value in seconds.items()
    )
