"""Groups of nodes by a label."""

from collections.abc import Iterable

from poseidon_py.dashboard.survey import NodeUse

_TOPOLOGY = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_FEWEST, _LARGEST = 2, 200
"""Values that a label has if nodes are grouped by it: one alone groups nothing, and one for each node neither."""
_WITHOUT = "(without the label)"
_ALL = "all nodes"


def grouping_labels(nodes: Iterable[NodeUse]) -> dict[str, int]:
    """Labels by which nodes can be grouped -> number of values; zones first, then by name."""
    values: dict[str, set[str]] = {}
    full: set[str] = set()
    number = 0
    for node in nodes:
        number += 1
        for label, value in node.labels.items():
            if label in full:
                continue
            found = values.setdefault(label, set())
            found.add(value)
            if len(found) > _LARGEST:
                full.add(label)
                del values[label]
    chosen = {
        label: len(found)
        for label, found in values.items()
        if len(found) >= _FEWEST and (len(found) < number or label in _TOPOLOGY)
    }
    return dict(sorted(chosen.items(), key=lambda item: (item[0] not in _TOPOLOGY, item[0])))


def grouped(nodes: Iterable[NodeUse], label: str) -> dict[str, list[NodeUse]]:
    """By value of the label, and in each by name; `label` empty: one group."""
    found: dict[str, list[NodeUse]] = {}
    for node in sorted(nodes, key=lambda node: node.name):
        found.setdefault(node.labels.get(label, _WITHOUT) if label else _ALL, []).append(node)
    return dict(sorted(found.items(), key=lambda item: (item[0] == _WITHOUT, item[0])))
