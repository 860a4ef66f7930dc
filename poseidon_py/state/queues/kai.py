"""KAI's queues: a tree whose leaves have pods; each resource is shared in proportion to weights."""

from collections.abc import Iterable

from poseidon_py.describe.queues.model import (
    EVERY_NODE,
    UNBOUNDED,
    Flavor,
    Queue,
    Quota,
    ReclaimRules,
    Rules,
    Sharing,
    Tree,
    Victims,
)
from poseidon_py.kube.queue_objects import keys
from poseidon_py.kube.queue_objects.fields import QueueObject
from poseidon_py.kube.queue_objects.kai import KaiQueue, Share, kai_queue
from poseidon_py.state.gangs.model import Resource
from poseidon_py.state.queues.choice import NO_QUEUE, Namespaces, Query, Resolution
from poseidon_py.state.queues.source import Declared, Source, Touched
from poseidon_py.state.queues.tree import make_tree

QUEUES = Resource("scheduling.run.ai", "queues", ("v2",))
DEFAULT_QUEUE = "default-queue"
"""That of pods which name none, if it exists."""


_RULES = Rules(Sharing.PROPORTIONAL, reclaim=ReclaimRules.FAIR_SHARE)
"""Those of KAI."""


class Kai(Source):
    kind = "kai"
    resources = (QUEUES,)

    def __init__(self, namespaces: Namespaces) -> None:
        super().__init__(namespaces)
        self._queues: dict[str, KaiQueue] = {}

    @property
    def in_use(self) -> bool:
        return bool(self._queues)

    def _put(self, resource: Resource, item: QueueObject) -> Touched:
        name = item.metadata.name
        self._queues[name] = kai_queue(item)
        return {(QUEUES, "", name)}

    def _drop(self, resource: Resource, namespace: str, name: str) -> Touched:
        self._queues.pop(name, None)
        return {(QUEUES, "", name)}

    def resolve(self, query: Query) -> Resolution:
        for label in (keys.OWN, keys.KAI):
            if name := query.label(label):
                return Resolution(f"kai/{name}", name, f"label {label}")
        query.depends_on.add((QUEUES, "", DEFAULT_QUEUE))
        if DEFAULT_QUEUE not in self._queues:
            return NO_QUEUE
        return Resolution(f"kai/{DEFAULT_QUEUE}", DEFAULT_QUEUE, f"label {keys.KAI}")

    def tree(self) -> Tree:
        queues = [_queue(queue) for queue in self._queues.values()]
        return make_tree(
            queues,
            (Flavor(EVERY_NODE),),
            _RULES,
            "spec.parentQueue",
        )

    def declared(self) -> Iterable[Declared]:
        for queue in self._queues.values():
            yield Declared(self.refs[QUEUES, "", queue.name], f"kai/{queue.name}", queue.problems)


def _queue(queue: KaiQueue) -> Queue:
    return Queue(
        f"kai/{queue.name}",
        queue.name,
        f"kai/{queue.parent}" if queue.parent else "",
        tuple(_quota(resource, share) for resource, share in queue.shares.items()),
        weight=queue.weight,
        priority=queue.priority,
        within=Victims.LOWER_PRIORITY,
        reclaim=Victims.ANY,
        preempt_min_runtime_seconds=queue.preempt_min_runtime,
        reclaim_min_runtime_seconds=queue.reclaim_min_runtime,
    )


def _quota(resource: str, share: Share) -> Quota:
    nominal = UNBOUNDED if share.quota is None else share.quota
    return Quota(EVERY_NODE, resource, nominal, lending_limit=share.lending, limit=share.limit)
