"""Pools of nodes, by a label of nodes, pods, PodGroups and queues, as KAI has them. Pure.

Source: SchedulingNodePoolParams of KAI's scheduler. Each of its shards takes only the nodes, queues and PodGroups whose
label has its value; the shard without a value those without the label.
"""

from poseidon_py.conventions.group_keys import KAI_POOL
from poseidon_py.kube.objects import NOTHING, InvalidField, Pod, labels_of
from protos.gen import firmament_pb2

NO_POOL = ""
"""Of nodes without the label."""
_KEY = KAI_POOL.encode()


def pool_of(pod: Pod) -> str | None:
    """The pool that a pod names; None: none. Called for every event of every pod. Raises InvalidField for a pod that
    waits."""
    labels = pod.metadata.labels
    if labels is NOTHING or _KEY not in bytes(labels):
        return None
    found = labels_of(pod.metadata).get(KAI_POOL)
    if found == "" and not pod.spec.node_name:
        raise InvalidField(f"metadata.labels[{KAI_POOL}]", "is empty; name a pool of nodes, or remove the label")
    return found


def demand(pool: str) -> firmament_pb2.NodeSelector:
    """The requirement that a node is in this pool."""
    needed = (
        firmament_pb2.NodeSelectorRequirement(key=KAI_POOL, operator="In", values=[pool])
        if pool
        else firmament_pb2.NodeSelectorRequirement(key=KAI_POOL, operator="DoesNotExist")
    )
    return firmament_pb2.NodeSelector(nodeSelectorTerms=[firmament_pb2.NodeSelectorTerm(matchExpressions=[needed])])


def shown(pool: str) -> str:
    """A pool as messages name it."""
    return f"node pool {pool}" if pool else "no node pool"
