"""Queues that name only some resources: shares are divided of all that nodes offer, whether quotas name it or not."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from firmament_py.model.queues import QueueDefinition, Quota, Sharing
from firmament_py.queues.tree import ALL_NODES, Queues, build


@lru_cache(maxsize=4)
def completed(queues: Queues, resources: Sequence[str]) -> Queues:
    """The same with a quota without guarantee and limit of each of these resources for each queue that needs none of
    it, if shares are divided by weight; its rows are those of `queues`."""
    tree = queues.tree
    if tree.sharing not in (Sharing.PROPORTIONAL, Sharing.HIERARCHICAL_DRF):
        return queues
    named = [name for name in resources if tree.needs_quota(name)]
    everywhere = [flavor for flavor in tree.flavors if not flavor.node_labels] or [ALL_NODES]
    definitions = [_with(queue, named, everywhere[0].name) if queue.unlimited else queue for queue in tree.queues]
    if all(one is other for one, other in zip(definitions, tree.queues, strict=True)):
        return queues
    flavors = tree.flavors if everywhere[0] in tree.flavors else (*tree.flavors, everywhere[0])
    found = build(replace(tree, queues=tuple(definitions), flavors=flavors))
    return replace(found, open=queues.open, problems=queues.problems)


def _with(queue: QueueDefinition, resources: Sequence[str], everywhere: str) -> QueueDefinition:
    groups = queue.resource_groups
    of_first = [quota for quota in queue.quotas if not groups or quota.resource in groups[0]]
    flavors = dict.fromkeys(quota.flavor for quota in of_first) or {everywhere: None}
    missing = [name for name in resources if name not in {quota.resource for quota in queue.quotas}]
    if not missing:
        return queue
    if groups:
        groups = ((*groups[0], *missing), *groups[1:])
    quotas = tuple(Quota(flavor, name) for name in missing for flavor in flavors)
    return replace(queue, quotas=queue.quotas + quotas, resource_groups=groups)
