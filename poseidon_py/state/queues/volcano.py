"""Volcano's queues: a tree by `spec.parent`, or by the annotations of hierarchical fair sharing.

A pod's queue is that of its PodGroup; the guarantee of a queue is not lent, the deserved amounts are.
"""

from collections.abc import Iterable, Iterator

from poseidon_py.describe.queues.model import (
    EVERY_NODE,
    Division,
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
from poseidon_py.kube.queue_objects import keys
from poseidon_py.kube.queue_objects.fields import QueueObject
from poseidon_py.kube.queue_objects.volcano import VolcanoQueue, volcano_queue
from poseidon_py.state.gangs.by_pod_group import VOLCANO as GROUPS
from poseidon_py.state.gangs.model import Resource
from poseidon_py.state.queues.choice import NO_QUEUE, Namespaces, Query, Resolution
from poseidon_py.state.queues.source import STOPPED, Declared, Source, Touched
from poseidon_py.state.queues.tree import make_tree

QUEUES = Resource("scheduling.volcano.sh", "queues", ("v1beta1",))
ROOT, DEFAULT = "root", "default"
_ITS_OWN = (ROOT, DEFAULT)
"""Queues that Volcano creates."""


class Volcano(Source):
    kind = "volcano"
    resources = (QUEUES,)

    def __init__(self, namespaces: Namespaces) -> None:
        super().__init__(namespaces)
        self._queues: dict[str, VolcanoQueue] = {}

    @property
    def in_use(self) -> bool:
        return any(name not in _ITS_OWN for name in self._queues)

    def _put(self, resource: Resource, item: QueueObject) -> Touched:
        name = item.metadata.name
        now = volcano_queue(item)
        if self._queues.get(name) == now:
            return set()
        self._queues[name] = now
        return {(QUEUES, "", name)}

    def _drop(self, resource: Resource, namespace: str, name: str) -> Touched:
        self._queues.pop(name, None)
        return {(QUEUES, "", name)}

    # -- the queue of a choice --------------------------------------------------------------------------------

    def resolve(self, query: Query) -> Resolution:
        if name := query.label(keys.OWN):
            return Resolution(f"volcano/{name}", name, f"label {keys.OWN}")
        found = self.named(query)
        if found != NO_QUEUE:
            return found
        query.depends_on.add((QUEUES, "", DEFAULT))
        if DEFAULT not in self._queues or not query.takes_default:
            return NO_QUEUE
        return Resolution(f"volcano/{DEFAULT}", DEFAULT, f"annotation {keys.VOLCANO}")

    def named(self, query: Query) -> Resolution:
        """Volcano creates the queue `default`, without limits: where it does not exist, it is no queue."""
        found = self._named(query)
        if found.name == DEFAULT:
            query.depends_on.add((QUEUES, "", DEFAULT))
            return found if DEFAULT in self._queues else NO_QUEUE
        return found

    def _named(self, query: Query) -> Resolution:
        if group := query.annotation(keys.VOLCANO_GROUP):
            found = query.group(GROUPS, group)
            if found is not None:
                named = found.spec.get("queue")
                name = named if isinstance(named, str) and named else DEFAULT
                return Resolution(f"volcano/{name}", name, f"spec.queue of PodGroup {query.namespace}/{group}")
        if name := query.annotation(keys.VOLCANO):
            return Resolution(f"volcano/{name}", name, f"annotation {keys.VOLCANO}")
        if name := query.label(keys.VOLCANO):
            return Resolution(f"volcano/{name}", name, f"label {keys.VOLCANO}")
        return NO_QUEUE

    # -- the tree ---------------------------------------------------------------------------------------------

    def tree(self) -> Tree:
        hierarchical = any(queue.hierarchy for queue in self._queues.values())
        queues = self._by_annotations() if hierarchical else self._by_parent()
        stated = any(queue.deserved for queue in self._queues.values())
        sharing = Sharing.HIERARCHICAL_DRF if hierarchical else Sharing.PROPORTIONAL
        division = Division.AS_STATED if stated else Division.TOTAL_BY_WEIGHT
        by_hierarchy = hierarchical and not stated
        rules = Rules(sharing, division, ReclaimRules.DOMINANT_SHARE if by_hierarchy else ReclaimRules.DESERVED)
        return make_tree(queues, (Flavor(EVERY_NODE),), rules, "spec.parent")

    def _by_parent(self) -> Iterator[Queue]:
        """`root` has no limits but those of an object of that name, so it is left out where there is none."""
        for queue in self._queues.values():
            parent = "" if queue.name == ROOT else queue.parent or ROOT
            if parent == ROOT and ROOT not in self._queues:
                parent = ""
            yield _queue(queue, f"volcano/{parent}" if parent else "", queue.weight)

    def _by_annotations(self) -> Iterator[Queue]:
        """Inner names of paths are queues without quotas; the weight of one is that of the first path with it."""
        inner: dict[str, Queue] = {}
        for queue in sorted(self._queues.values(), key=lambda queue: queue.name):
            parent = path = ""
            for name, weight in queue.hierarchy[:-1]:
                path = f"{path}/{name}" if path else name
                key = f"volcano-path/{path}"
                inner.setdefault(key, Queue(key, path, parent, weight=weight))
                parent = key
            weight = queue.hierarchy[-1][1] if queue.hierarchy else queue.weight
            yield _queue(queue, parent, weight)
        yield from inner.values()

    def declared(self) -> Iterable[Declared]:
        for queue in self._queues.values():
            why, reason = queue.closed_by, ""
            if not why and queue.closed:
                why, reason = "it is closed: open it, or change the queue of the pods", STOPPED
            yield Declared(self.refs[QUEUES, "", queue.name], f"volcano/{queue.name}", queue.problems, why, reason)


def _queue(queue: VolcanoQueue, parent: str, weight: float) -> Queue:
    return Queue(
        f"volcano/{queue.name}",
        queue.name,
        parent,
        tuple(_quotas(queue)),
        weight=weight,
        priority=queue.priority,
        within=Victims.LOWER_PRIORITY,
        reclaim=Victims.ANY,
        strict_fifo=queue.strict_fifo,
        stop=Stop.HOLD if queue.closed or queue.closed_by else Stop.NONE,
        reclaimable=queue.reclaimable,
    )


def _quotas(queue: VolcanoQueue) -> Iterator[Quota]:
    for resource in dict.fromkeys((*queue.deserved, *queue.guarantee, *queue.capability)):
        guarantee = queue.guarantee.get(resource, 0)
        nominal = max(queue.deserved.get(resource, 0), guarantee)
        lending = nominal - guarantee if guarantee else None
        yield Quota(EVERY_NODE, resource, nominal, lending_limit=lending, limit=queue.capability.get(resource))
