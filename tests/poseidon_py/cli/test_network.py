"""`poseidon network`: the table, and what networkx and Graphviz read."""

import io
import re

import networkx as nx
import pytest
from click.testing import CliRunner
from rich.console import Console

from poseidon_py.app.queries.round_network import UnknownNetwork, network_json
from poseidon_py.cli.main import cli
from poseidon_py.cli.network import dot_lines, graph_of, print_networks, print_rounds
from protos.gen import flow_pb2
from tests.builders import NOW_US

HOSTILE = 'a "b" [red]c[/red]\\'


def answer() -> dict:
    """Three pods of a class with a strange name: two on a node, one waits."""
    vertices = [
        flow_pb2.DrawnVertex(
            kind="tasks", label=HOSTILE, count=3, names=["ns/a", "ns/b"], supply=3, price=900, merged=1
        ),
        flow_pb2.DrawnVertex(kind="class", label=HOSTILE, count=1, names=[HOSTILE], price=900, merged=1),
        flow_pb2.DrawnVertex(kind="nodes", label="2 more", count=2, merged=2),
        flow_pb2.DrawnVertex(kind="unscheduled", label="unscheduled", count=1, price=0, merged=1),
        flow_pb2.DrawnVertex(kind="sink", label="sink", count=1, supply=-3, price=0, merged=1),
    ]
    arcs = [
        flow_pb2.DrawnArc(tail=t, head=h, capacity=c, flow=f, least_cost=low, most_cost=high, merged=m)
        for t, h, c, f, low, high, m in (
            (0, 1, 2**40, 2, 0, 0, 1), (0, 3, 3, 1, 900, 900, 1), (1, 2, 2, 2, 5, 7, 2), (2, 4, 2, 2, 0, 9, 4),
            (3, 4, 3, 1, 0, 0, 1),
        )
    ]  # fmt: skip
    drawn = flow_pb2.DrawnNetwork(
        status="optimal", cost=912, tasks=3, vertices_in_all=6, arcs_in_all=9, vertices=vertices, arcs=arcs
    )
    slots = flow_pb2.DrawnNetwork(status="cheapest slots", cost=4, tasks=1)
    rounds = [flow_pb2.RecordedRound(number=4, started_us=NOW_US, placed=2, networks=2)]
    return network_json(flow_pb2.NetworkReply(rounds=rounds, round=4, networks=[drawn, slots]))


def printed(show, body) -> str:
    out = io.StringIO()
    show(body, Console(file=out, width=200))
    return out.getvalue()


def test_a_problem_is_one():
    with pytest.raises(UnknownNetwork, match="there is none"):
        network_json(flow_pb2.NetworkReply(problem="there is none"))


def test_the_table_has_what_flows():
    text = printed(print_networks, answer())
    assert "round 4 (1 of 2): 3 pods, 6 vertices, 9 arcs, solved by flow: optimal, cost 912" in text
    assert "round 4 (2 of 2): 1 pods, no network needed, solved by cheapest slots: optimal, cost 4" in text
    assert f"tasks: {HOSTILE} x3" in text, "a name is no markup"
    assert re.search(r"nodes: 2 more +. +2 +. +2 +. +5\.\.7", text)
    [waits] = [line for line in text.splitlines() if "unscheduled" in line and "x3" in line]
    assert re.search(r" 1 +. +3 +. +900 ", waits)
    assert re.search(r" 2 +. +unlimited +. +0 +. +900 ", text)


def test_the_rounds():
    text = printed(print_rounds, answer())
    assert re.search(r"4 .+2023-11-14T22:13:20Z .+2 .+2", text)


def test_a_list_of_rounds_is_no_graph():
    result = CliRunner().invoke(cli, ["network", "--rounds", "-o", "dot", "--address", "127.0.0.1:1"])
    assert (result.exit_code, "is a list, not a graph" in result.output) == (2, True)


def test_networkx_reads_it(tmp_path):
    file = tmp_path / "network.graphml"
    file.write_text("\n".join(nx.generate_graphml(graph_of(answer()))))
    graph = nx.read_graphml(file)
    assert (graph.number_of_nodes(), graph.number_of_edges(), graph.graph["round"]) == (5, 5, 4)
    assert graph.nodes["1.1"] == {
        "network": 1, "names": "ns/a, ns/b", "kind": "tasks", "label": HOSTILE, "count": 3, "supply": 3,
        "potential": 900, "merged": 1,
    }  # fmt: skip
    assert "potential" not in graph.nodes["1.3"]
    assert graph.edges["1.2", "1.3"] == {"capacity": 2, "flow": 2, "cost": 5, "cost_max": 7, "merged": 2}


def test_what_graphviz_reads():
    lines = list(dot_lines(answer()))
    assert lines[0] == 'digraph "round 4" {'
    assert lines.count("  }") == 2
    assert '    "1.1" [label="tasks: a \\"b\\" [red]c[/red]\\\\ x3\\nprice 900", shape=ellipse];' in lines
    assert '    "1.2" -> "1.3" [label="2/2 at 5..7"];' in lines
    assert all(line.count('"') % 2 == 0 for line in (each.replace("\\\\", "").replace('\\"', "") for each in lines))
