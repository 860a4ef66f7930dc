"""Clusters in which movable tasks move so that waiting tasks fit."""

from firmament_py.model.options import Migrating
from tests.builders import make_class, make_node, make_tasks, migrating_cluster

SMALL, MIDDLE, LARGE = 1, 2, 3
"""Classes of 2, 4 and 8 cpu, of priority 0."""

URGENT, VITAL = 4, 5
"""Classes of 8 cpu of a higher priority, and of 4 cpu of the highest."""

CLASSES = (
    make_class(SMALL, cpu=2),
    make_class(MIDDLE, cpu=4),
    make_class(LARGE, cpu=8),
    make_class(URGENT, cpu=8, priority=10),
    make_class(VITAL, cpu=4, priority=100),
)


def moving_cluster(*events, names="ab", **options):
    """Nodes of 8 cpu; tasks move for waiting ones only."""
    nodes = (make_node(name, cpu=8) for name in names)
    return migrating_cluster(*CLASSES, *nodes, *events, **{"migrating": Migrating.FOR_WAITING, **options})


def movable(uid, on, cls=MIDDLE, **fields):
    """A task of a job of its own."""
    return make_tasks([uid], cls, on=on, **{"movable": True, "job": uid, **fields})


def fixed(uid, on, cls=MIDDLE, **fields):
    return make_tasks([uid], cls, on=on, **fields)


def half_full(*events, first=None, **options):
    """On each of two nodes a task takes half, and a large task waits. Task 1 on node `a` can move, or is `first`."""
    return moving_cluster(first or movable(1, "a"), fixed(2, "b"), make_tasks([10], LARGE), *events, **options)


def successor(uid, of, cls=MIDDLE):
    """What the owner of a task that was evicted creates."""
    return make_tasks([uid], cls, job=of, movable=True)


def needed_by(cluster, result):
    """Uid of each task that moves -> uid of the task for which it does."""
    uid, migration = cluster.state.tasks.uid, result.migration
    return dict(zip(uid[migration.tasks].tolist(), uid[migration.needed_by].tolist(), strict=True))
