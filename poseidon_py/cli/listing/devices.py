"""`poseidon devices`: the devices of the cluster by class and by pool, and those of a node with who has them."""

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import click

from poseidon_py.cli.ask import answer, question
from poseidon_py.cli.reaching.selection import Selection

if TYPE_CHECKING:
    from rich.console import Console

Json = dict[str, Any]

_STATES = ("free", "in use", "tainted", "no counters", "not usable")


@click.command()
@click.argument("node", metavar="[NODE]", default="")
@question
def devices(node: str, selection: Selection, as_json: bool) -> None:
    """Show the devices that drivers publish: how many of each class are free.

    With NODE, show each device of that node, and the claims that have it.
    """
    body = answer("/devices?" + urlencode({"node": node} if node else {}), selection)
    if as_json:
        click.echo(json.dumps(body, indent=2))
        return
    from poseidon_py.util.terminal import new_console

    print_devices(body, new_console())


def print_devices(body: Json, console: "Console") -> None:
    """Print a table of classes, and pools with problems; or the devices of a node."""
    from rich.markup import escape

    from poseidon_py.util.terminal import print_rows

    if body["problem"]:
        console.print(escape(body["problem"]), highlight=False)
    if "devices" in body:
        rows = [
            (
                escape(each["device"]),
                each["state"],
                escape(", ".join(each["claims"])),
                escape(", ".join(each["taints"])),
            )
            for each in body["devices"]
        ]
        if rows:
            print_rows(console, ("device", "state", "claims", "taints"), rows)
        else:
            console.print("no devices")
        return
    if not body["classes"]:
        console.print("no device classes")
    else:
        states = [state for state in _STATES if any(each["devices"].get(state) for each in body["classes"])]
        by_class = [
            (
                escape(each["name"]),
                escape(each["resource"]),
                *(str(each["devices"].get(state, 0)) for state in states),
                str(each["nodes_with_free"]),
            )
            for each in body["classes"]
        ]
        header = ("class", "resource", *states, "nodes with a free one")
        print_rows(console, header, by_class, right=(*states, "nodes with a free one"))
    for pool in body["pools"]:
        if pool["problem"]:
            name = f"{pool['driver']}/{pool['name']}"
            console.print(
                f"pool {escape(name)} {escape(pool['problem'])}: none of its devices is given", highlight=False
            )
