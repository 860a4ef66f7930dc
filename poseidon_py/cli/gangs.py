"""`poseidon gangs`: the gangs that a running scheduler knows, and the members of one."""

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import click

from poseidon_py.app.queries.gang_list import counts_by_state
from poseidon_py.cli.ask import answer, in_namespaces, names, question
from poseidon_py.cli.reaching.selection import Selection

if TYPE_CHECKING:
    from rich.console import Console

Json = dict[str, Any]


@click.command()
@click.argument("name", metavar="[NAME]", default="", shell_complete=names("gangs"))
@in_namespaces("gangs")
@question
def gangs(name: str, namespace: str, selection: Selection, as_json: bool) -> None:
    """Show the gangs: how many of their pods there are, and why they wait.

    With NAME or NAMESPACE/NAME, show the members of that gang, and their nodes.
    """
    parameters = {key: value for key, value in (("name", name), ("namespace", namespace)) if value}
    body = answer("/gangs?" + urlencode(parameters), selection)
    if as_json:
        click.echo(json.dumps(body, indent=2))
        return
    from poseidon_py.util.terminal import new_console

    print_gangs(body["gangs"], new_console())


def print_gangs(gangs: list[Json], console: "Console") -> None:
    """Print a table of gangs; those that have `members` one by one, with these. Columns that would be empty are left
    out."""
    from rich.markup import escape

    from poseidon_py.util.terminal import print_rows

    if not gangs:
        console.print("no gangs")
    for gang in (each for each in gangs if "members" in each):
        _print_gang(gang, console)
    listed = [each for each in gangs if "members" not in each]
    if not listed:
        return
    optional = [key for key in ("priority", "queue") if any(each[key] for each in listed)]
    counts_of = ("minimum", "present", "running", "waiting")
    header = ("gang", "source", "state", *counts_of, *optional, "age", "why")
    rows = [
        (
            each["name"],
            escape(each["source"]),
            each["state"],
            *(str(each[key]) for key in counts_of),
            *(escape(str(each[key] or "")) for key in optional),
            age(each["age_seconds"]),
            _why(each),
        )
        for each in listed
    ]
    print_rows(console, header, rows, right=(*counts_of, "priority", "age"), prose="why")
    counts = ", ".join(f"{count} {state.lower()}" for state, count in counts_by_state(listed).items())
    console.print(f"{len(listed)} {'gang' if len(listed) == 1 else 'gangs'}: {counts}", highlight=False)


def _why(gang: Json) -> str:
    from rich.markup import escape

    return escape("; ".join(filter(None, (gang["why"], gang["problem"]))))


def _print_gang(gang: Json, console: "Console") -> None:
    from rich.markup import escape

    from poseidon_py.util.terminal import print_name, print_rows

    print_name(console, gang["name"])
    maximum = f", maximum {gang['maximum']}" if gang["maximum"] else ""
    ended = "".join(f", {gang[how]} {how}" for how in ("succeeded", "failed") if gang[how])
    queue = f", queue {gang['queue']}" if gang["queue"] else ""
    console.print(
        f"  {gang['state']}; declared by {gang['source']}; minimum {gang['minimum']}{maximum}; "
        f"{gang['present']} present, {gang['placed']} placed, {gang['running']} running, {gang['waiting']} waiting"
        f"{ended}; "
        f"priority {gang['priority']}{queue}; age {age(gang['age_seconds'])}",
        highlight=False,
        markup=False,
    )
    for role, minimum in gang["roles"].items():
        console.print(f"  role {role}: minimum {minimum}", highlight=False, markup=False)
    for line in filter(None, (gang["why"], gang["problem"])):
        console.print(f"  {line}", highlight=False, markup=False)
    rows = [
        (
            each["pod"],
            escape(each["role"]),
            escape(each["node"] or (f"nominated: {each['nominated']}" if each["nominated"] else "")),
            each["state"],
        )
        for each in gang["members"]
    ]
    print_rows(console, ("pod", "role", "node", "state"), rows)


def age(seconds: int) -> str:
    """As kubectl shows it: the two largest units."""
    for size, name, below, of in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if seconds >= size:
            remainder = seconds % size // below
            return f"{seconds // size}{name}{remainder}{of}" if remainder else f"{seconds // size}{name}"
    return f"{seconds}s"
