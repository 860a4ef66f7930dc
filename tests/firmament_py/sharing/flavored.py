"""Cases of workloads that choose between flavors, in few words, and the round that plays them.

queues   queues(name, parent, "flavor resource=nominal+borrowing limit-lending limit; flavor ... | ..."): a group of
         resources after each "|"
nodes    "flavor+flavor ...": one large node of all flavors of each name; none are given: one of each flavor
running  "name queue flavor+flavor resource=amount !priority"
waiting  "name queue resource=amount *tasks !priority key:value ~": in the order of their age; key:value: the node
         selector, ~: "tainted" nodes are tolerated. Entries of one name are one gang, as the pod sets of a workload
expected "name@node", "name>node" if it waits for victims there, "-name" for each victim; nothing of what waits
"""

from typing import Any, NamedTuple

from firmament_py.model.constraints import NodeDemand, Operator, Requirement, Taint, Term, Toleration
from firmament_py.model.events import Event, QueuesObserved
from firmament_py.model.options import Preempting
from firmament_py.model.queues import Flavor, QueueDefinition, QueueTree, Quota, Sharing
from tests.builders import NOW_US, SECOND_US, make_class, make_cluster, make_gang, make_node, make_tasks
from tests.firmament_py.queues.trees import queue_id

LARGE = 10**6

SPOT = Taint("instance", "spot", "NoSchedule")

LABELS: dict[str, dict[str, str]] = {
    "everywhere": {},
    "one": {"type": "one"},
    "two": {"type": "two"},
    "x": {"x": "a"},
    "xy": {"x": "b", "y": "k"},
}
"""Of flavors that a case selects by labels; others have a label of their own."""


class Choice(NamedTuple):
    """`differs`: what happens here, and why, if that is not what Kueue does."""

    name: str
    queues: tuple[QueueDefinition, ...]
    running: str
    waiting: str
    expected: str
    nodes: str = ""
    sharing: Sharing = Sharing.CLASSICAL
    demand: NodeDemand | None = None
    differs: str = ""
    why: str = ""


def cq(name: str, parent: str = "", quotas: str = "", **fields: Any) -> QueueDefinition:
    found, groups = [], []
    for group in quotas.split("|") if quotas else []:
        resources: dict[str, None] = {}
        for entry in group.split(";"):
            flavor, *amounts = entry.split()
            for amount in amounts:
                resource, _, numbers = amount.partition("=")
                own, _, lent = numbers.partition("-")
                nominal, _, borrowed = own.partition("+")
                limits = (int(borrowed) if borrowed else None, int(lent) if lent else None)
                found.append(Quota(flavor, resource, int(nominal), *limits))
                resources[resource] = None
        groups.append(tuple(resources))
    return QueueDefinition(queue_id(name), name, queue_id(parent), tuple(found), tuple(groups), **fields)


def _labels(flavor: str) -> dict[str, str]:
    return LABELS.get(flavor, {f"flavor-{flavor}": "yes"})


def _entries(text: str) -> list[list[str]]:
    return [entry.split() for entry in text.split("; ") if entry]


def _amounts(words: list[str]) -> dict[str, Any]:
    return {name: int(value) for name, _, value in (word.partition("=") for word in words if "=" in word)}


def _number(words: list[str], sign: str, default: int) -> int:
    return next((int(word[1:]) for word in words if word.startswith(sign)), default)


def _demand(words: list[str]) -> NodeDemand:
    selector = [word.partition(":") for word in words if ":" in word]
    return NodeDemand(
        selector=tuple(Requirement(key, Operator.IN, (value,)) for key, _, value in selector),
        tolerations=(Toleration(SPOT.key, "Equal", SPOT.value, SPOT.effect),) if "~" in words else (),
    )


def terms(*labels: str) -> NodeDemand:
    """The node affinity of a case: one of the terms "key:value" has to match."""
    parts = [word.partition(":") for word in labels]
    return NodeDemand(affinity=(tuple(Term((Requirement(key, Operator.IN, (value,)),)) for key, _, value in parts),))


def outcome(case: Choice) -> str:
    """What one round places and evicts."""
    flavors = dict.fromkeys(quota.flavor for queue in case.queues for quota in queue.quotas)
    tree = QueueTree(case.queues, tuple(Flavor(name, _labels(name)) for name in flavors), case.sharing)
    nodes = case.nodes.split() or list(flavors)
    amounts = {q.resource: LARGE for queue in case.queues for q in queue.quotas} | {"gpu": LARGE, "pods": LARGE}
    events: list[Event] = [
        make_node(
            name,
            labels={key: value for flavor in name.split("+") for key, value in _labels(flavor).items()},
            taints=(SPOT,) if name.startswith("tainted") else (),
            **amounts,
        )
        for name in nodes
    ]
    name_of: dict[int, str] = {}
    uid = 0
    for name, queue, on, *words in _entries(case.running):
        uid += 1
        name_of[uid] = name
        node = next(node for node in nodes if set(on.split("+")) <= set(node.split("+")))
        events.append(make_class(uid, priority=_number(words, "!", 0), **_amounts(words)))
        events.append(make_tasks([uid], uid, on=node, queue=queue_id(queue), created_us=NOW_US - 3600 * SECOND_US))
    waiting = _entries(case.waiting)
    for age, name in enumerate(dict.fromkeys(name for name, *_ in waiting)):
        of_job = [entry for entry in waiting if entry[0] == name]
        size = sum(_number(words, "*", 1) for _, _, *words in of_job)
        created_us, gang = NOW_US - 60 * SECOND_US + age * SECOND_US, 0
        if size > 1:
            gang = 1000 + age
            events.append(make_gang(gang, size, created_us=created_us, whole=True))
        for _, queue, *words in of_job:
            cls = uid + 1
            demand = case.demand or _demand(words)
            events.append(make_class(cls, priority=_number(words, "!", 0), demand=demand, **_amounts(words)))
            uids = range(cls, cls + _number(words, "*", 1))
            name_of.update(dict.fromkeys(uids, name))
            uid = uids[-1]
            events.append(make_tasks(uids, cls, queue=queue_id(queue), created_us=created_us, gang=gang))
    cluster = make_cluster(*events, QueuesObserved(tree), preempting=Preempting.WITHIN_BUDGETS)
    result = cluster.run(NOW_US)
    placed = {f"{name_of[task]}@{node}" for task, node in cluster.names(result).items()}
    waits = {f"{name_of[task]}>{node}" for task, node in cluster.nominated().items()}
    evicted = {f"-{name_of[task]}" for task in cluster.preempted(result)}
    return " ".join([*sorted(placed), *sorted(waits), *sorted(evicted)])
