"""/dashboard/api/network: the answer of /network, in which names in namespaces that the asker may not see are counted
(`hidden`) instead of shown."""

from typing import Any

from poseidon_py.dashboard.scope import Scope

Json = dict[str, Any]

_OF_TASKS = "tasks"


def network_scoped(body: Json, scope: Scope) -> Json:
    """The body of /network as the asker may see it. Names of classes come from pods, and so are theirs."""
    if scope.all:
        return body
    networks = [
        network | {"vertices": [_vertex(vertex, scope) for vertex in network["vertices"]]}
        for network in body["networks"]
    ]
    found: Json = scope.texts(body | {"networks": networks})
    return found


def _vertex(vertex: Json, scope: Scope) -> Json:
    names = vertex["names"]
    if vertex["kind"] == _OF_TASKS:
        names = [name for name in names if scope.shows_object(name)]
    return vertex | {"names": names, "hidden": len(vertex["names"]) - len(names)}
