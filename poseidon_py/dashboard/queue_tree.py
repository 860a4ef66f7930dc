"""/dashboard/api/queues and /queue: those of /queues, without what is of namespaces that the asker may not see."""

from collections.abc import Iterator, Mapping
from typing import Any

from poseidon_py.dashboard.scope import Scope
from poseidon_py.kube.quantity import nanos

Json = dict[str, Any]


def queues_scoped(body: Json, scope: Scope) -> Json:
    """The body of /queues as the asker may see it: names of queues and their sums, and of LocalQueues, pods, workloads
    and users those in namespaces that it may see."""
    if scope.all:
        return body
    problems = body["problems"]
    seen = {name: found for name, found in problems.items() if _shown(name, scope)}
    found: Json = scope.texts(body | {"problems": seen, "queues": [_queue(queue, scope) for queue in body["queues"]]})
    return found | {"hidden_problems": len(problems) - len(seen)}


def _queue(queue: Json, scope: Scope) -> Json:
    local = [each for each in queue["local_queues"] if scope.shows_object(each["name"])]
    found = queue | {
        "local_queues": local,
        "hidden_local_queues": len(queue["local_queues"]) - len(local),
    }
    for name, key in (("waiting", "pod"), ("suspended", "name")):
        if name in found:
            shown = [each for each in found[name] if scope.shows_object(each[key])]
            found |= {name: shown, f"hidden_{name}": len(found[name]) - len(shown)}
    found.pop("users", None)  # sums of users of other namespaces
    return found


def _shown(name: str, scope: Scope) -> bool:
    """`name`: KIND/NAME or KIND/NAMESPACE/NAME."""
    parts = name.split("/")
    return len(parts) != 3 or scope.shows(parts[1])


def samples_of(body: Json) -> Iterator[tuple[str, float]]:
    """The values over time of each queue: pods that wait and run, and what it uses of each resource."""
    for queue in body["queues"]:
        name = f"queue/{queue['name']}"
        yield f"{name}/pods/running", queue["running"]
        yield f"{name}/pods/pending", queue["pending"]
        used: dict[str, float] = {}
        for amount in queue["resources"]:
            used[amount["resource"]] = used.get(amount["resource"], 0.0) + _number(amount)
        for resource, value in used.items():
            yield f"{name}/used/{resource}", value


def _number(amount: Mapping[str, Any]) -> float:
    return nanos(amount["used"]) / 1e9 if amount["used"] is not None else 0.0
