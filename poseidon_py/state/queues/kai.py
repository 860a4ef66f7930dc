"""KAI's queues: a tree whose leaves have pods; each resource is shared in proportion to weights."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from poseidon_py.describe.node_pool import shown
from poseidon_py.describe.queues.model import (
    EVERY_NODE,
    NO_PAST_USE,
    UNBOUNDED,
    Flavor,
    PastUseRules,
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
from poseidon_py.kube.queue_objects.kai import KaiQueue, Shard, Share, kai_queue, shard
from poseidon_py.state.gangs.by_pod_group import KAI as GROUPS
from poseidon_py.state.gangs.by_pod_group import PRIORITY_CLASSES
from poseidon_py.state.gangs.model import OwnerOrGroup, Resource
from poseidon_py.state.queues.choice import NO_QUEUE, Namespaces, Query, Resolution
from poseidon_py.state.queues.source import Declared, Source, Touched
from poseidon_py.state.queues.tree import make_tree

QUEUES = Resource("scheduling.run.ai", "queues", ("v2",))
SHARDS = Resource("kai.scheduler", "schedulingshards", ("v1",))
DEFAULT_QUEUE = "default-queue"
"""That of pods which name none, if it exists."""
NOT_PREEMPTIBLE = "non-preemptible"


_RULES = Rules(Sharing.PROPORTIONAL, reclaim=ReclaimRules.FAIR_SHARE)
"""Those of KAI."""


class Kai(Source):
    kind = "kai"
    resources = (QUEUES, SHARDS)
    limit_nothing = (SHARDS,)

    def __init__(self, namespaces: Namespaces) -> None:
        super().__init__(namespaces)
        self._queues: dict[str, KaiQueue] = {}
        self._shards: dict[str, Shard] = {}

    @property
    def in_use(self) -> bool:
        return bool(self._queues)

    def _put(self, resource: Resource, item: QueueObject) -> Touched:
        name = item.metadata.name
        objects: dict[str, Any] = self._shards if resource == SHARDS else self._queues
        now = shard(item) if resource == SHARDS else kai_queue(item)
        if objects.get(name) == now:
            return set()
        objects[name] = now
        return {(resource, "", name)}

    def _drop(self, resource: Resource, namespace: str, name: str) -> Touched:
        objects: dict[str, Any] = self._shards if resource == SHARDS else self._queues
        objects.pop(name, None)
        return {(resource, "", name)}

    def resolve(self, query: Query) -> Resolution:
        found = self._chosen(query)
        return found if found == NO_QUEUE else self._with_terms(query, found)

    def _with_terms(self, query: Query, found: Resolution) -> Resolution:
        """The queue with what labels and the PodGroup say about priority and preemption."""
        preemptibility: object = query.label(keys.KAI_PREEMPTIBILITY)
        if not preemptibility and (group := self._group_of(query)) is not None:
            preemptibility = group.spec.get("preemptibility")
        priority = None
        if name := query.label(keys.PRIORITY_CLASS):
            priority_class = query.object(PRIORITY_CLASSES, "", name)
            priority = int(str(priority_class.spec["value"])) if priority_class is not None else None
        found = found._replace(preemptible=preemptibility != NOT_PREEMPTIBLE, priority=priority)
        return self._in_pool(query, found)

    def _in_pool(self, query: Query, found: Resolution) -> Resolution:
        """The queue with the pool of nodes of the pods, which is that of their PodGroup, or the one that they or an
        owner name. Queues take pods of their own pool, as KAI's shards have only queues of theirs."""
        group = self._group_of(query)
        pool = dict(group.queue_labels).get(keys.KAI_POOL, "") if group is not None else ""
        pool = pool or query.label(keys.KAI_POOL)
        query.depends_on.add((QUEUES, "", found.name))
        queue = self._queues.get(found.name)
        if queue is None or queue.node_pool == pool:
            return found._replace(node_pool=pool)
        return found._replace(
            node_pool=pool,
            problem=f"queue {found.name} belongs to {shown(queue.node_pool)}, and the pod to {shown(pool)}: give both "
            f"the same label {keys.KAI_POOL}, or name another queue",
        )

    def _group_of(self, query: Query) -> OwnerOrGroup | None:
        name = query.annotation(keys.KAI_GROUP)
        return query.group(GROUPS, name) if name else None

    def _chosen(self, query: Query) -> Resolution:
        if name := query.label(keys.OWN):
            return Resolution(f"kai/{name}", name, f"label {keys.OWN}")
        if (group := self._group_of(query)) is not None and isinstance(queue := group.spec.get("queue"), str) and queue:
            return Resolution(f"kai/{queue}", queue, f"spec.queue of PodGroup {query.namespace}/{group.name}")
        if name := query.label(keys.KAI):
            return Resolution(f"kai/{name}", name, f"label {keys.KAI}")
        query.depends_on.add((QUEUES, "", DEFAULT_QUEUE))
        if DEFAULT_QUEUE not in self._queues or not query.takes_default:
            return NO_QUEUE
        return Resolution(f"kai/{DEFAULT_QUEUE}", DEFAULT_QUEUE, f"label {keys.KAI}")

    def named(self, query: Query) -> Resolution:
        name = query.label(keys.KAI)
        return Resolution(f"kai/{name}", name, f"label {keys.KAI}") if name else NO_QUEUE

    def tree(self) -> Tree:
        queues = [_queue(queue, *self._min_runtimes(queue)) for queue in self._queues.values()]
        return make_tree(
            queues,
            (Flavor(EVERY_NODE),),
            self._rules(),
            "spec.parentQueue",
        )

    def _min_runtimes(self, queue: KaiQueue) -> tuple[float, float]:
        """How long pods of a queue run before others of it, and of other queues, evict them: what it says, else the
        closest queue above it that does, else the shard."""
        preempt, reclaim, seen = queue.preempt_min_runtime, queue.reclaim_min_runtime, {queue.name}
        above = self._queues.get(queue.parent)
        while above is not None and above.name not in seen:
            preempt = above.preempt_min_runtime if preempt is None else preempt
            reclaim = above.reclaim_min_runtime if reclaim is None else reclaim
            seen.add(above.name)
            above = self._queues.get(above.parent)
        shard = self._shard()
        least = (shard.preempt_min_runtime, shard.reclaim_min_runtime) if shard is not None else (0.0, 0.0)
        return (least[0] if preempt is None else preempt), (least[1] if reclaim is None else reclaim)

    def _rules(self) -> Rules:
        chosen = self._shard()
        past = PastUseRules(chosen.half_life, chosen.weight) if chosen is not None else NO_PAST_USE
        return replace(_RULES, past_use=past)

    def _shard(self) -> Shard | None:
        """The shard whose settings count: the default one, or the first that is not of a node pool."""
        if "default" in self._shards:
            return self._shards["default"]
        return min((each for each in self._shards.values() if not each.node_pool), key=lambda s: s.name, default=None)

    def declared(self) -> Iterable[Declared]:
        for queue in self._queues.values():
            ref = self.refs[QUEUES, "", queue.name]
            yield Declared(ref, f"kai/{queue.name}", queue.problems, queue.closed_by)
        chosen = self._shard()
        for each in self._shards.values():
            problems = each.problems
            if each is not chosen:
                other = "" if chosen is None else f"; those of {chosen.name} count"
                problems = (f"spec: the settings of this shard have no effect on queues here{other}",)
            yield Declared(self.refs[SHARDS, "", each.name], "", problems)


def _queue(queue: KaiQueue, preempt_min_runtime: float, reclaim_min_runtime: float) -> Queue:
    return Queue(
        f"kai/{queue.name}",
        queue.name,
        f"kai/{queue.parent}" if queue.parent else "",
        tuple(_quota(resource, share) for resource, share in queue.shares.items()),
        weight=queue.weight,
        priority=queue.priority,
        within=Victims.LOWER_PRIORITY,
        reclaim=Victims.ANY,
        stop=Stop.HOLD if queue.closed_by else Stop.NONE,
        preempt_min_runtime_seconds=preempt_min_runtime,
        reclaim_min_runtime_seconds=reclaim_min_runtime,
    )


def _quota(resource: str, share: Share) -> Quota:
    nominal = UNBOUNDED if share.quota is None else share.quota
    return Quota(EVERY_NODE, resource, nominal, limit=share.limit)
