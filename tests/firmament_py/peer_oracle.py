"""Whether a task can be placed on a node, one task at a time, in plain Python: all demands on nodes and other tasks.

Written from the Kubernetes documentation and the filters of kube-scheduler (NodePorts, NodeResourcesFit,
PodTopologySpread, InterPodAffinity); labels, taints and amounts are judged by oracle.py. Shares nothing with the
engine but the values that describe demands. Slow and literal on purpose.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from firmament_py.model.events import ClassDefined, NodeObserved
from tests.firmament_py import oracle

TAINT, SELECTOR, TOKEN, AMOUNT, FURTHER = "taint", "selector", "token", "amount", "further"
LABEL, SPREAD, AFFINITY, ANTI_AFFINITY, OTHERS = "spread label", "spread", "affinity", "anti-affinity", "others"


@dataclass
class Task:
    """labels None: it has no label set, so no selector matches it. node: id of a node, perhaps unknown."""

    cls: ClassDefined
    namespace: str = ""
    labels: dict[str, str] | None = None
    node: str | None = None
    leaving: bool = False
    created_us: int = 0


@dataclass
class World:
    nodes: dict[str, NodeObserved] = field(default_factory=dict)  # by id
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    tasks: dict[int, Task] = field(default_factory=dict)

    def on(self, node_id: str) -> Iterator[Task]:
        return (task for task in self.tasks.values() if task.node == node_id)

    def placed(self) -> Iterator[tuple[Task, NodeObserved]]:
        """Tasks on known nodes."""
        return ((t, self.nodes[t.node]) for t in self.tasks.values() if t.node is not None and t.node in self.nodes)


def may_place(world: World, task: Task, node_id: str) -> str | None:
    """The first reason against it in kube-scheduler's order of filters; None: it can be placed."""
    node = world.nodes[node_id]
    if oracle.repelled(task.cls.demand, node):
        return TAINT
    if not oracle.selected(task.cls.demand, node):
        return SELECTOR
    if any(conflict(a, b) for other in world.on(node_id) for a in other.cls.tokens for b in task.cls.tokens):
        return TOKEN
    if not _fits(world, task, node):
        return AMOUNT
    if not all(oracle.any_term(terms, node) for _, terms in task.cls.demand.further):
        return FURTHER
    return _spread(world, task, node) or _affinity(world, task, node) or _repelled(world, task, node)


def conflict(one: str, other: str) -> bool:
    """Host ports: the same on every address, or on the same address. What is shared, "a/", conflicts with "a" alone."""
    a, _, at = one.partition("/")
    b, _, where = other.partition("/")
    return a == b and ("/" not in one or "/" not in other or (at == where != ""))


def _fits(world: World, task: Task, node: NodeObserved) -> bool:
    used: Counter[str] = Counter()
    for other in world.on(node.id):
        used.update(oracle.requests(other.cls))
    offered = oracle.offers(node)
    return all(used[r] + n <= offered[r] for r, n in oracle.requests(task.cls).items() if n)


def matches(world: World, selector, task: Task) -> bool:
    if selector.labels is None or task.labels is None:
        return False
    namespace = task.namespace in selector.namespaces or (
        selector.namespace_selector is not None
        and all(oracle.meets(r, world.namespaces.get(task.namespace, {})) for r in selector.namespace_selector)
    )
    return namespace and all(oracle.meets(r, task.labels) for r in selector.labels)


def _spread(world: World, task: Task, node: NodeObserved) -> str | None:
    for spread in task.cls.peers.spread:
        if spread.topology_key not in node.labels:
            return LABEL
        counts: dict[str, int] = {}
        for other in world.nodes.values():
            if _takes_part(task, spread, other):
                here = sum(matches(world, spread.selector, t) and not t.leaving for t in world.on(other.id))
                # for a selector that is empty nothing is counted, though it matches the task itself
                counted = 0 if spread.selector.labels == () else here
                domain = other.labels[spread.topology_key]
                counts[domain] = counts.get(domain, 0) + counted
        least = min(counts.values(), default=0) if len(counts) >= spread.min_domains else 0
        itself = matches(world, spread.selector, task)
        if counts.get(node.labels[spread.topology_key], 0) + itself - least > spread.max_skew:
            return SPREAD
    return None


def _takes_part(task: Task, spread, node: NodeObserved) -> bool:
    return (
        all(s.topology_key in node.labels for s in task.cls.peers.spread)
        and (not spread.honor_affinity or bool(oracle.selected(task.cls.demand, node)))
        and (not spread.honor_taints or not oracle.repelled(task.cls.demand, node))
    )


def _affinity(world: World, task: Task, node: NodeObserved) -> str | None:
    terms = task.cls.peers.affinity
    if not terms:
        return None
    if any(term.topology_key not in node.labels for term in terms):
        return AFFINITY
    # pairs of key and value with a task that all terms match
    pairs = {
        (term.topology_key, where.labels[term.topology_key])
        for other, where in world.placed()
        if all(matches(world, t.selector, other) for t in terms)
        for term in terms
        if term.topology_key in where.labels
    }
    if all((term.topology_key, node.labels[term.topology_key]) in pairs for term in terms):
        return None
    if not pairs and all(matches(world, t.selector, task) for t in terms):
        return None  # the first of its kind
    return AFFINITY


def _repelled(world: World, task: Task, node: NodeObserved) -> str | None:
    def near(term, where: NodeObserved) -> bool:
        key = term.topology_key
        return key in node.labels and where.labels.get(key) == node.labels[key]

    placed = list(world.placed())
    for term in task.cls.peers.anti_affinity:
        if any(near(term, where) and matches(world, term.selector, other) for other, where in placed):
            return ANTI_AFFINITY
    for other, where in placed:
        if any(near(term, where) and matches(world, term.selector, task) for term in other.cls.peers.anti_affinity):
            return OTHERS
    return None


def an_order(world: World, batch: list[tuple[int, str]]) -> list[tuple[int, str]] | None:
    """An order in which each of `batch` (uid, node id) may be placed after those before it; they are then placed.

    None, with nothing placed, if there is no such order.
    """
    dead: set[frozenset[int]] = set()

    def kind(i: int) -> tuple[int, str, str, str]:
        task = world.tasks[batch[i][0]]
        return task.cls.id, task.namespace, repr(task.labels), batch[i][1]

    def go(left: frozenset[int]) -> list[tuple[int, str]] | None:
        if not left:
            return []
        if left in dead:
            return None
        tried = set()
        for i in sorted(left):
            uid, node_id = batch[i]
            if kind(i) in tried or may_place(world, world.tasks[uid], node_id) is not None:
                continue
            tried.add(kind(i))
            world.tasks[uid].node = node_id
            others = go(left - {i})
            if others is not None:
                return [batch[i], *others]
            world.tasks[uid].node = None
        dead.add(left)
        return None

    return go(frozenset(range(len(batch))))
