"""`poseidon network`: the flow network of a round, as a table, and for networkx, Gephi and Graphviz."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import click

from poseidon_py.cli.ask import answer, question
from poseidon_py.cli.reaching.selection import Selection

if TYPE_CHECKING:
    import networkx as nx
    from rich.console import Console

Json = dict[str, Any]

_STAGES = "tasks", "class", "rack", "domain", "pair", "nodes", "unscheduled", "sink"
"""Kinds of vertices, from the left to the right."""
_UNLIMITED = 2**40
"""A capacity from here on is none (`UNLIMITED` of the flow service)."""
_SHAPES = {"tasks": "ellipse", "class": "box", "nodes": "box3d", "sink": "doublecircle", "unscheduled": "doubleoctagon"}


@click.command()
@click.option("--round", "number", type=click.IntRange(1), metavar="N", help="Number of a round. Default: the last.")
@click.option("--class", "class_name", metavar="NAME", default="", help="Only what pods of this class go through.")
@click.option("--pod", metavar="NS/NAME", default="", help="Only what pods of the class of this one go through.")
@click.option("--node", metavar="NAME", default="", help="Only the way to this node.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Vertices of each kind that are shown, those with the most flow; one stands for all others. Default: 40.",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "graphml", "dot"]),
    default="table",
    show_default=True,
    help="graphml: for networkx and Gephi; dot: for Graphviz.",
)
@click.option("--rounds", is_flag=True, help="List the rounds whose networks are kept.")
@question
def network(
    number: int | None,
    class_name: str,
    pod: str,
    node: str,
    limit: int | None,
    output: str,
    rounds: bool,
    selection: Selection,
    as_json: bool,
) -> None:
    """Show the flow network of a round.

    It leads from pods through their classes to nodes; arcs have capacities, costs and the flow. The price of a vertex
    is what one more pod there would cost. The flow service keeps the networks of the last rounds.
    """
    if rounds and output in ("graphml", "dot"):
        raise click.UsageError(f"--rounds is a list, not a graph; leave out --rounds, or -o {output}")
    asked = {"round": number, "class": class_name, "pod": pod, "node": node, "limit": limit}
    parameters = urlencode({key: value for key, value in asked.items() if value})
    body = answer("/network" + (f"?{parameters}" if parameters else ""), selection)
    if as_json or output == "json":
        click.echo(json.dumps(body, indent=2))
    elif output == "graphml":
        import networkx as nx

        for line in nx.generate_graphml(graph_of(body)):
            click.echo(line)
    elif output == "dot":
        for line in dot_lines(body):
            click.echo(line)
    else:
        from poseidon_py.util.terminal import new_console

        if rounds:
            print_rounds(body, new_console())
        else:
            print_networks(body, new_console())


def print_rounds(body: Json, console: "Console") -> None:
    """Print which rounds have networks."""
    from poseidon_py.util.terminal import print_rows

    rows = [(str(each["number"]), each["started"], str(each["placed"]), str(each["solves"])) for each in body["rounds"]]
    print_rows(console, ("round", "started", "placed", "networks"), rows, right=["round", "placed", "networks"])


def print_networks(body: Json, console: "Console") -> None:
    """Print the arcs that have flow, and the prices of the vertices."""
    from rich.markup import escape

    from poseidon_py.util.terminal import print_rows

    for number, each in enumerate(body["networks"], 1):
        size, of = each["size"], f" ({number} of {len(body['networks'])})" if len(body["networks"]) > 1 else ""
        built = f"{size['vertices']} vertices, {size['arcs']} arcs" if size["vertices"] else "no network needed"
        line = f"round {body['round']}{of}: {size['tasks']} pods, {built}, solved by {each['solved_by']}"
        console.print(f"{line}: {each['status']}, cost {each['cost']}", highlight=False, markup=False)
        if each["too_large"]:
            console.print("the network is too large to be kept", highlight=False, markup=False)
            continue
        vertices = each["vertices"]
        stage = {vertex["id"]: _STAGES.index(vertex["kind"]) for vertex in vertices}
        used = [arc for arc in each["arcs"] if arc["flow"]]
        used.sort(key=lambda arc: (stage[arc["from"]], arc["from"], -arc["flow"]))
        rows = [
            (
                _named(vertices[arc["from"]]),
                escape(_named(vertices[arc["to"]])),
                str(arc["flow"]),
                _capacity(arc),
                _cost(arc),
                _price(vertices[arc["to"]]),
            )
            for arc in used
        ]
        header = ("from", "to", "flow", "capacity", "cost", "price there")
        print_rows(console, header, rows, right=["flow", "capacity", "cost", "price there"])


def _named(vertex: Json) -> str:
    if vertex["kind"] in ("sink", "unscheduled") and vertex["merged"] == 1:
        return str(vertex["label"])
    count = f" x{vertex['count']}" if vertex["kind"] == "tasks" and vertex["merged"] == 1 else ""
    return f"{vertex['kind']}: {vertex['label']}{count}"


def _capacity(arc: Json) -> str:
    return str(arc["capacity"]) if arc["capacity"] < _UNLIMITED else "unlimited"


def _cost(arc: Json) -> str:
    return str(arc["cost"]) if arc["cost"] == arc["cost_max"] else f"{arc['cost']}..{arc['cost_max']}"


def _price(vertex: Json) -> str:
    return "" if vertex["potential"] is None else str(vertex["potential"])


def graph_of(body: Json) -> "nx.DiGraph[str]":
    """All networks of the round as one graph; names of vertices are NETWORK.VERTEX, both from 1."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph(round=body["round"])
    for number, each in enumerate(body["networks"], 1):
        for vertex in each["vertices"]:
            names = ", ".join(vertex["names"])
            known = {key: value for key, value in vertex.items() if key not in ("id", "names") and value is not None}
            graph.add_node(f"{number}.{vertex['id'] + 1}", network=number, names=names, **known)
        for arc in each["arcs"]:
            ends = f"{number}.{arc['from'] + 1}", f"{number}.{arc['to'] + 1}"
            graph.add_edge(*ends, **{key: value for key, value in arc.items() if key not in ("from", "to")})
    return graph


def dot_lines(body: Json) -> Iterator[str]:
    """The networks in Graphviz' language, a cluster each. Arcs without flow are dashed."""
    yield f"digraph {_quoted('round ' + str(body['round']))} {{"
    yield "  rankdir=LR;"
    for number, each in enumerate(body["networks"], 1):
        yield f"  subgraph {_quoted(f'cluster {number}')} {{"
        title = f"{each['solved_by']}, cost {each['cost']}"
        yield f"    label={_quoted(title)};"
        for vertex in each["vertices"]:
            label = _named(vertex) + (f"\nprice {_price(vertex)}" if _price(vertex) else "")
            shape = _SHAPES.get(vertex["kind"], "box")
            yield f"    {_vertex(number, vertex['id'])} [label={_quoted(label)}, shape={shape}];"
        for arc in each["arcs"]:
            ends = f"{_vertex(number, arc['from'])} -> {_vertex(number, arc['to'])}"
            label = f"{arc['flow']}/{_capacity(arc)} at {_cost(arc)}"
            yield f"    {ends} [label={_quoted(label)}{'' if arc['flow'] else ', style=dashed'}];"
        yield "  }"
    yield "}"


def _vertex(network: int, vertex: int) -> str:
    return _quoted(f"{network}.{vertex + 1}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
