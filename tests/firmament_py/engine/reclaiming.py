"""Clusters of a cohort of two queues, one of which runs what the other may reclaim."""

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import (
    Reclaim,
    Within,
)
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_class,
    make_node,
    make_tasks,
    preempting_cluster,
)
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree

A, B = queue_id("a"), queue_id("b")
OLD_US = NOW_US - 3600 * SECOND_US


def cohort(a=4, b=4, *, within=Within.NEVER, reclaim=Reclaim.ANY, **fields):
    return tree(
        queue("top"),
        queue("a", "top", quota(a), within=within, reclaim=reclaim, **fields),
        queue("b", "top", quota(b)),
    )


def cluster_of(queues, *events, nodes=("n",), cpu=8):
    return preempting_cluster(
        *(make_node(name, cpu=cpu) for name in nodes),
        make_class(1, cpu=1),
        make_class(2, cpu=1, priority=5),
        QueuesObserved(queues),
        *events,
    )


def running(uids, cls=1, on="n", queue=B, **fields):
    return make_tasks(uids, cls, on=on, queue=queue, created_us=OLD_US, started_us=OLD_US, **fields)
