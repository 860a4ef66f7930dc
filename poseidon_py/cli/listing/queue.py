"""`poseidon queue`: what waits, in the order of its priority or of its expected start."""

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import click

from poseidon_py.app.queries.start_list import BY_START
from poseidon_py.cli.ask import answer, in_namespaces, names, question
from poseidon_py.cli.gangs import age
from poseidon_py.cli.reaching.selection import Selection

if TYPE_CHECKING:
    from rich.console import Console

Json = dict[str, Any]

_NODES_SHOWN = 3


@click.command()
@click.option(
    "--start", "by_start", is_flag=True, help="By expected start, with the earliest and the latest time and the nodes."
)
@click.option("--queue", metavar="NAME", default="", shell_complete=names("queues"), help="Only what is in this queue.")
@in_namespaces("pods and gangs")
@question
def queue(by_start: bool, queue: str, namespace: str, selection: Selection, as_json: bool) -> None:
    """Show the gangs and pods that wait, and when they are expected to start.

    The most important first, then the oldest.
    """
    order = BY_START if by_start else ""
    given = {"namespace": namespace, "queue": queue, "order": order}
    body = answer("/queue?" + urlencode({key: value for key, value in given.items() if value}), selection)
    if as_json:
        click.echo(json.dumps(body, indent=2))
        return
    from poseidon_py.util.terminal import new_console

    print_queue(body, new_console(), with_times=by_start)


def print_queue(body: Json, console: "Console", *, with_times: bool) -> None:
    """Print a table of what waits, and what the times are based on. with_times: with the interval and the nodes."""
    from rich.markup import escape

    from poseidon_py.util.terminal import print_rows

    waiting = body["waiting"]
    if not waiting:
        console.print("nothing waits", highlight=False)
        return
    queues = any(each["queue"] for each in waiting)
    header = ["name", "pods", *(["queue"] if queues else []), "priority", "age", "start"]
    header += ["earliest", "latest", "nodes"] if with_times else []
    rows = [
        (
            each["name"],
            str(each["pods"]),
            *([escape(each["queue"])] if queues else []),
            str(each["priority"]),
            age(each["age_seconds"]),
            f"in {age(each['start']['in_seconds'])}" if each["start"] else "",
            *(_times(each) if with_times else ()),
            escape(each["why"]),
        )
        for each in waiting
    ]
    print_rows(console, (*header, "why"), rows, right=("pods", "priority", "age"), prose="why")
    if body["more"]:
        console.print(f"and {body['more']} more", highlight=False)
    console.print(basis(body), highlight=False)


def _times(unit: Json) -> tuple[str, str, str]:
    start, nodes = unit["start"], unit["nodes"]
    if start is None:
        return "", "", ""
    further = f" and {len(nodes) - _NODES_SHOWN} more" if len(nodes) > _NODES_SHOWN else ""
    return start["earliest"], start["latest"], ", ".join(nodes[:_NODES_SHOWN]) + further


def basis(body: Json) -> str:
    """What the times of /queue, or of the `expected` of /explain, are based on."""
    if not body["made"]:
        return body["problem"] or "the first forecast is being made"
    interval = f"{round(10 * body['probability'])} of 10 starts are expected between earliest and latest"
    compared = body["compared"]
    errors = f"by {compared} earlier forecasts" if compared else "as a guess: too few have been compared with starts"
    return (
        f"forecast {age(body['age_seconds'])} ago, if nothing else arrives; {interval}, {errors}; "
        f"durations learned from {body['durations']} pods"
    )
