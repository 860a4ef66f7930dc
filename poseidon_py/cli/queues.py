"""`poseidon queues`: the queues in force, and the pending pods of one."""

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import click

from poseidon_py.cli.ask import answer, names, question
from poseidon_py.cli.job_list import statistics_lines
from poseidon_py.cli.reaching.selection import Selection

if TYPE_CHECKING:
    from rich.console import Console

Json = dict[str, Any]


@click.command()
@click.argument("name", metavar="[NAME]", default="", shell_complete=names("queues"))
@question
def queues(name: str, selection: Selection, as_json: bool) -> None:
    """Show the queues: what they use, what they may use, and what is wrong with them.

    With NAME, show that queue and those below it, and why its pods wait.
    """
    body = answer("/queues" + (f"?{urlencode({'name': name})}" if name else ""), selection)
    if as_json:
        click.echo(json.dumps(body, indent=2))
        return
    from poseidon_py.util.terminal import new_console

    print_queues(body, new_console())


def print_queues(body: Json, console: "Console") -> None:
    """Print the answer of /queues."""
    console.print(body["why"], highlight=False, markup=False)
    queues = body["queues"]
    if not queues:
        console.print(f"no queues; to have some, {body['how']}", highlight=False, markup=False)
    else:
        _print_table(queues, console)
        _print_local_queues(queues, console)
    one = any("waiting" in each for each in queues)
    for each in queues:
        for line in _remarks(each, one):
            console.print(line, highlight=False, markup=False)
    if not one:
        for name, problems in body["problems"].items():
            for problem in problems:
                console.print(f"{name}: {problem}", highlight=False, markup=False)


def _print_table(queues: list[Json], console: "Console") -> None:
    """One row for each queue and resource; the counts are in the first one of a queue. Columns that would be empty, or
    the same for all, are left out."""
    from rich.markup import escape

    from poseidon_py.util.terminal import print_rows

    amounts = [each for queue in queues for each in queue["resources"]]
    limits = {
        key: title
        for key, title in (("limit", "limit"), ("fair_share", "fair share"), ("past", "past use"))
        if any(each[key] is not None for each in amounts)
    }
    counts = ["running", "pending", *(["nominated"] if any(queue["nominated"] for queue in queues) else [])]
    flavored = len({each["flavor"] for each in amounts}) > 1
    header = (
        "queue", "state", *counts, "share", *(("flavor",) if flavored else ()),
        "resource", "used", "guarantee", *limits.values(), "borrowed",
    )  # fmt: skip
    top = queues[0]["depth"]
    rows = []
    for queue in queues:
        cohort = " (Cohort)" if queue["type"] == "Cohort" else ""
        first = [queue["state"], *(str(queue[key]) for key in counts), f"{queue['share']:g}"]
        for each in queue["resources"] or [None]:
            rows.append(
                (
                    "  " * (queue["depth"] - top) + queue["name"] + cohort,
                    *first,
                    *([escape(each["flavor"]) if each else ""] if flavored else []),
                    *((each["resource"], each["used"], _amount(each["guarantee"], "unlimited")) if each else [""] * 3),
                    *(_amount(each[key]) if each else "" for key in limits),
                    each["borrowed"] if each else "",
                )
            )
            first = [""] * len(first)
    print_rows(console, header, rows, right=[*counts, "share", "used", "guarantee", *limits.values(), "borrowed"])


def _print_local_queues(queues: list[Json], console: "Console") -> None:
    """LocalQueues, where past use decides between them."""
    from poseidon_py.util.terminal import print_rows

    rows = [
        (each["name"], queue["name"], str(each["running"]), str(each["pending"]), f"{each['past_use']:g}")
        for queue in queues
        for each in queue["local_queues"]
        if each["past_use"] is not None
    ]
    if rows:
        header = ("LocalQueue", "queue", "running", "pending", "past use")
        print_rows(console, header, rows, right=["running", "pending", "past use"])


def _amount(value: str | None, without_limit: str = "none") -> str:
    return without_limit if value is None else value


def _remarks(queue: Json, one: bool) -> list[str]:
    """What the table has no column for. `one`: one queue was asked for, so that its problems are shown here."""
    lines = [f"{queue['name']}: {queue['why']}"] if queue["why"] else []
    if one:
        lines += [f"{queue['name']}: {each}" for each in queue["problems"] if each != queue["why"]]
    if "waiting" not in queue:
        return lines
    lines += _statistics(queue)
    for key, further, name, what in (
        ("waiting", "more", "pod", "pods that wait"),
        ("suspended", "more_suspended", "name", "workloads that are suspended"),
    ):
        if queue.get(key):
            lines.append(f"{queue['name']}: the oldest of the {what}")
            lines += [f"  {each[name]}: {each['why']}" for each in queue[key]]
            lines += [f"  and {queue[further]} more"] if queue[further] else []
        elif key == "waiting":
            lines.append(f"{queue['name']}: no pods wait")
    return lines


def _statistics(queue: Json) -> list[str]:
    """Of the queue, and of each of its users if there are several."""
    if not queue.get("statistics", {}).get("created"):
        return []
    lines = [f"{queue['name']}: pods since {queue['since']}: {_ends(queue['statistics'])}"]
    lines += [f"  {line}" for line in statistics_lines(queue["statistics"])]
    for user, figures in queue["users"].items():
        lines.append(f"  user {user}: {_ends(figures)}")
        lines += [f"    {line}" for line in statistics_lines(figures)]
    return lines


def _ends(figures: Json) -> str:
    ends = ("succeeded", "failed", "evicted", "deleted")
    return ", ".join([f"{figures['created']} created", *(f"{figures[end]} {end}" for end in ends if figures[end])])
