"""Our own queues (poseidon.io/v1). A pod names one by a label; without it, the queue that selects its namespace."""

from collections.abc import Iterable

from poseidon_py.describe.queues.model import (
    EVERY_NODE,
    Flavor,
    Queue,
    Quota,
    ReclaimRules,
    Rules,
    Sharing,
    Stop,
    Tree,
    Victims,
)
from poseidon_py.kube.quantity import PODS
from poseidon_py.kube.queue_objects import keys
from poseidon_py.kube.queue_objects.fields import QueueObject
from poseidon_py.kube.queue_objects.own import OwnQueue, Tenant, own_queue
from poseidon_py.kube.selector_matching import matches
from poseidon_py.state.gangs.model import Resource
from poseidon_py.state.queues.choice import NO_QUEUE, Namespaces, Query, Resolution
from poseidon_py.state.queues.source import STOPPED, Declared, Source, Touched
from poseidon_py.state.queues.tree import make_tree

QUEUES = Resource("poseidon.io", "queues", ("v1",))
_RULES = Rules(Sharing.PROPORTIONAL, reclaim=ReclaimRules.FAIR_SHARE)
"""Guarantees first, then the surplus by weight, and what exceeds its share is taken back, as in KAI."""


_SELECTORS = ("selectors", QUEUES)
"""What choices without a label depend on: all selectors of namespaces."""
_VICTIMS = {
    "Never": Victims.NEVER,
    "LowerPriority": Victims.LOWER_PRIORITY,
    "LowerOrNewerEqualPriority": Victims.LOWER_OR_NEWER_EQUAL_PRIORITY,
}
_STOPS = {"none": Stop.NONE, "hold": Stop.HOLD, "drain": Stop.HOLD_AND_DRAIN}

_Labels = tuple[tuple[str, str], ...]


class Own(Source):
    kind = "poseidon"
    resources = (QUEUES,)

    def __init__(self, namespaces: Namespaces) -> None:
        super().__init__(namespaces)
        self._queues: dict[str, OwnQueue] = {}

    @property
    def in_use(self) -> bool:
        return bool(self._queues)

    def _put(self, resource: Resource, item: QueueObject) -> Touched:
        name = item.metadata.name
        before, now = self._queues.get(name), own_queue(item)
        if before == now:
            return set()
        self._queues[name] = now
        same = before is not None and before.selector == now.selector
        return {(QUEUES, "", name)} if same else {(QUEUES, "", name), _SELECTORS}

    def _drop(self, resource: Resource, namespace: str, name: str) -> Touched:
        self._queues.pop(name, None)
        return {(QUEUES, "", name), _SELECTORS}

    # -- the queue of a choice --------------------------------------------------------------------------------

    def resolve(self, query: Query) -> Resolution:
        name, chosen_by = query.label(keys.OWN), f"label {keys.OWN}"
        if not name:
            query.depends_on.add(_SELECTORS)
            chosen_by = "spec.namespaces of the queue"
            names = [
                each.name
                for each in self._queues.values()
                if each.selector is not None and matches(each.selector, query.namespace_labels())
            ]
            if not names:
                return NO_QUEUE
            if len(names) > 1:
                several = ", ".join(sorted(names))
                problem = f"queues {several} select namespace {query.namespace}: name one by label {keys.OWN}"
                return Resolution(f"ambiguous/{query.namespace}", several, f"label {keys.OWN}", problem)
            name = names[0]
        query.depends_on.add((QUEUES, "", name))
        queue = self._queues.get(name)
        found = Resolution(f"queue/{name}", name, chosen_by)
        if queue is None:
            return found
        if queue.selector is not None and not matches(queue.selector, query.namespace_labels()):
            problem = (
                f"queue {name} does not select namespace {query.namespace}: change its spec.namespaces, the labels of "
                f"the namespace, or {chosen_by}"
            )
            return Resolution(f"not selected/{query.namespace}/{name}", name, chosen_by, problem)
        found = found._replace(preemptible=queue.preemptible, notice=self._notice_of(name, query))
        rights = next((each for each in queue.tenants if _applies(each, query)), None)
        if rights is None:
            return found
        return found._replace(priority=rights.priority, never_preempts=not rights.may_preempt)

    def _notice_of(self, name: str, query: Query) -> float | None:
        """The notice that a queue gives, or else the closest queue above it that gives one."""
        seen: set[str] = set()
        while name in self._queues and name not in seen:
            seen.add(name)
            query.depends_on.add((QUEUES, "", name))
            queue = self._queues[name]
            if queue.notice is not None:
                return queue.notice
            name = queue.parent
        return None

    # -- the tree ---------------------------------------------------------------------------------------------

    def tree(self) -> Tree:
        nodes = {name: self._nodes_of(name) for name in self._queues}
        flavors = {_flavor_name(labels): Flavor(_flavor_name(labels), labels) for labels in nodes.values()}
        queues = [self._queue(queue, nodes[queue.name]) for queue in self._queues.values()]
        return make_tree(queues, flavors.values(), _RULES, "spec.parent")

    def _nodes_of(self, name: str) -> _Labels:
        """The labels of a queue's nodes: its own, with those of its ancestors."""
        labels: dict[str, str] = {}
        seen: set[str] = set()
        while name in self._queues and name not in seen:
            seen.add(name)
            labels = self._queues[name].node_selector | labels
            name = self._queues[name].parent
        return tuple(sorted(labels.items()))

    def _queue(self, queue: OwnQueue, nodes: _Labels) -> Queue:
        flavor = _flavor_name(nodes)
        resources = dict.fromkeys((*queue.guarantee, *queue.limit))
        if nodes:  # every pod takes a pod slot, and so is confined to the nodes of the flavor
            resources.setdefault(PODS)
        quotas = tuple(
            Quota(
                flavor,
                resource,
                queue.guarantee.get(resource, 0),
                limit=queue.limit.get(resource),
                implied=resource not in queue.guarantee and resource not in queue.limit,
            )
            for resource in resources
        )
        return Queue(
            f"queue/{queue.name}",
            queue.name,
            f"queue/{queue.parent}" if queue.parent else "",
            quotas,
            (tuple(resources),) if len(resources) > 1 else (),
            queue.weight,
            queue.priority,
            within=_VICTIMS[queue.within],
            reclaim=Victims.ANY,
            fence=not queue.reclaims,
            borrow_within=_VICTIMS[queue.borrow_within],
            borrow_within_threshold=queue.borrow_threshold,
            strict_fifo=queue.strict_fifo,
            stop=max(_STOPS[queue.stop], Stop.HOLD if queue.closed_by else Stop.NONE),
            preempt_min_runtime_seconds=queue.preempt_min_runtime,
            reclaim_min_runtime_seconds=queue.reclaim_min_runtime,
            preemption_delay_seconds=queue.delay,
            evictions_per_hour=queue.evictions_per_hour,
        )

    def declared(self) -> Iterable[Declared]:
        for queue in self._queues.values():
            why, reason = queue.closed_by, ""
            if not why and queue.stop != "none":
                why, reason = f"spec.stop is {queue.stop}", STOPPED
            yield Declared(self.refs[QUEUES, "", queue.name], f"queue/{queue.name}", queue.problems, why, reason)


def _flavor_name(labels: _Labels) -> str:
    return ",".join(f"{key}={value}" for key, value in labels) or EVERY_NODE


def _applies(rights: Tenant, query: Query) -> bool:
    """Whether pods are those of a tenant: all that it states must match."""
    if rights.namespaces and query.namespace not in rights.namespaces:
        return False
    if rights.selector is not None and not matches(rights.selector, query.namespace_labels()):
        return False
    return not rights.users or query.label(keys.USER) in rights.users
