#!/usr/bin/env bash
# One guesses: a cost is a cost, so a min-cost flow with weights of numpy's unsigned integers is that with Python's.
# What happens: both solvers subtract weights from potentials in the type of the weights, which wraps around below zero.
# network_simplex calls a feasible network infeasible; capacity_scaling returns a feasible flow that is not the cheapest,
# with runtime warnings at most. The documentation warns of floats alone.
# To a scheduler: costs kept in a compact array (uint16, uint32) give placements that are dearer than need be.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -qq --disable-pip-version-check networkx==3.6.1 numpy==2.4.6
timeout 120 "$folder/venv/bin/python" -W ignore - <<'PY'
import sys

import networkx as nx
import numpy as np

print("networkx", nx.__version__, "numpy", np.__version__)

ARCS = [("a", "b", 3, 1), ("a", "c", 4, 2), ("c", "d", 5, 3), ("d", "c", 3, 3), ("d", "b", 2, 3)]


def network(kind):
    graph = nx.DiGraph()
    graph.add_node("a", demand=-2)
    graph.add_node("b", demand=2)
    for tail, head, weight, capacity in ARCS:
        graph.add_edge(tail, head, weight=kind(weight), capacity=capacity)
    return graph


def cost(solver, kind):
    try:
        _, flow = solver(network(kind))
    except nx.NetworkXUnfeasible as error:
        return f"infeasible ({error})"
    return nx.cost_of_flow(network(int), flow)


right = cost(nx.network_simplex, int)
print("expected: cost", right, "for every kind of integer")
changed = []
for kind in (int, np.int32, np.uint32, np.uint64):
    simplex, scaling = cost(nx.network_simplex, kind), cost(nx.capacity_scaling, kind)
    print(f"seen with {kind.__name__}: network_simplex {simplex}; capacity_scaling {scaling}")
    signed = kind in (int, np.int32)
    as_described = (simplex == scaling == right) if signed else (str(simplex)[:10] == "infeasible" and scaling > right)
    if not as_described:
        changed.append(kind.__name__)
sys.exit(f"changed for {changed}" if changed else 0)
PY
