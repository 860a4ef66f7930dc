"""Clusters in which a task migrates because its node costs more than another."""

from policies.load_spreading import LoadSpreading
from tests.builders import make_class, make_node, make_tasks, migrating_cluster

SMALL = make_class(1, cpu=1)


def uneven(*events, tasks=12, policy=None, **options):
    """Tasks 1, 2, ... on node `a`, and nothing on node `b`, of 100 cpu each."""
    return migrating_cluster(
        *(make_node(name, cpu=100) for name in "ab"),
        SMALL,
        *(make_tasks([uid], 1, on="a", movable=True) for uid in range(1, tasks + 1)),
        *events,
        policy=policy or LoadSpreading(move_cost=1010),
        **options,
    )
