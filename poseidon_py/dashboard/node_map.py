"""/dashboard/api/nodes: all nodes, in columns, by groups; and how many more pods of a shape fit.

{"at": float, "label": str, "labels": {label: number of values}, "resource": str, "resources": [str]
 "groups": [{"name", "nodes", "pods", "used", "allocatable", "fits"}]
 "columns": {"name", "group", "used", "allocatable", "pods", "taints", "fits"}      a list each; group: place in groups
 "shape": null or {
    "requests": {resource: amount}, "fits": int       pods that fit on the nodes as they are
    "untainted": int                                  of these, on nodes that take pods without tolerations
    "nodes": int                                      nodes that take at least one
    "pooled": int                                     that would fit if all that is free were on one node
    "fragmentation": float or null}                   share of `pooled` that does not fit because it is scattered
}
"""

from collections.abc import Mapping
from typing import Any

from poseidon_py.dashboard.node_labels import grouped, grouping_labels
from poseidon_py.dashboard.survey import NodeUse, Survey
from poseidon_py.kube.objects import InvalidField
from poseidon_py.kube.quantity import CPU, PODS, QuantityError, nanos, requested

Json = dict[str, Any]


def shape_of(text: str) -> dict[str, int]:
    """A shape such as cpu=4,memory=8Gi, in the engine's units, with the slot that a pod takes; empty: none. Raises
    InvalidField."""
    found: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        resource, equals, amount = part.strip().partition("=")
        if not (equals and resource):
            raise InvalidField(
                "the parameter shape", f"has {part[:64]!r}; give RESOURCE=QUANTITY,...: cpu=4,memory=8Gi"
            )
        try:
            value = requested(resource, nanos(amount))
        except QuantityError as error:
            raise InvalidField("the parameter shape", f"has a wrong amount of {resource[:64]}: {error}") from error
        if value < 0:
            raise InvalidField("the parameter shape", f"has less than nothing of {resource[:64]}")
        found[resource] = value
    return {PODS: 1, **found} if any(found.values()) else {}


def nodes_json(survey: Survey, *, label: str, resource: str, shape: Mapping[str, int]) -> Json:
    """See the module. `label`: empty: the first by which nodes can be grouped."""
    nodes = survey.nodes.values()
    labels = survey.derived("labels", lambda: grouping_labels(nodes))
    label = label or next(iter(labels), "")
    groups = survey.derived(("groups", label), lambda: grouped(nodes, label))
    columns: dict[str, list[Any]] = {
        name: [] for name in ("name", "group", "used", "allocatable", "pods", "taints", "fits")
    }
    rows = []
    for number, (name, members) in enumerate(groups.items()):
        fits = [fitting(node, shape) for node in members] if shape else [0] * len(members)
        columns["name"] += [node.name for node in members]
        columns["group"] += [number] * len(members)
        columns["used"] += [node.used.get(resource, 0) for node in members]
        columns["allocatable"] += [node.allocatable.get(resource, 0) for node in members]
        columns["pods"] += [node.pods for node in members]
        columns["taints"] += [node.tainted for node in members]
        columns["fits"] += fits
        rows.append(
            {
                "name": name,
                "nodes": len(members),
                "pods": sum(node.pods for node in members),
                "used": sum(node.used.get(resource, 0) for node in members),
                "allocatable": sum(node.allocatable.get(resource, 0) for node in members),
                "fits": sum(fits),
            }
        )
    resources = list(survey.totals())
    return {
        "at": survey.at,
        "label": label,
        "labels": labels,
        "resource": resource,
        "resources": [CPU, *(name for name in resources if name != CPU)],
        "groups": rows,
        "columns": columns,
        "shape": _shape_json(survey, shape, columns) if shape else None,
    }


def fitting(node: NodeUse, shape: Mapping[str, int]) -> int:
    """How many pods of the shape fit on the node as it is. `shape`: not empty."""
    return max(min(node.free(resource) // amount for resource, amount in shape.items() if amount), 0)


def _shape_json(survey: Survey, shape: Mapping[str, int], columns: Mapping[str, list[Any]]) -> Json:
    fits, taints = columns["fits"], columns["taints"]
    free: dict[str, int] = dict.fromkeys(shape, 0)
    for node in survey.nodes.values():
        for resource in shape:
            free[resource] += max(node.free(resource), 0)
    pooled = min(free[resource] // amount for resource, amount in shape.items() if amount)
    total = sum(fits)
    return {
        "requests": {name: amount for name, amount in shape.items() if name != PODS},
        "fits": total,
        "untainted": sum(count for count, taint in zip(fits, taints, strict=True) if not taint),
        "nodes": sum(count > 0 for count in fits),
        "pooled": pooled,
        "fragmentation": (pooled - total) / pooled if pooled else None,
    }


def node_json(survey: Survey, name: str) -> Json | None:
    """One node, with all its resources and labels; None: there is none of the name."""
    node = survey.nodes.get(name)
    if node is None:
        return None
    resources = sorted(node.allocatable.keys() | node.used.keys())
    return {
        "node": node.name,
        "labels": dict(sorted(node.labels.items())),
        "taints": node.tainted,
        "pods": node.pods,
        "resources": [
            {"resource": each, "used": node.used.get(each, 0), "allocatable": node.allocatable.get(each, 0)}
            for each in resources
            if node.allocatable.get(each, 0) or node.used.get(each, 0)
        ],
    }
