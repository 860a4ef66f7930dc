"""Classes of three priorities, and clusters that tasks of these fill."""

from tests.builders import make_class, make_node, make_tasks, preempting_cluster

LOW, MID, HIGH = 1, 2, 3
"""Classes of 4 cpu, of priorities 0, 10 and 100."""

LARGE = 4
"""A class of 8 cpu and the highest priority."""

CLASSES = (
    make_class(LOW, cpu=4),
    make_class(MID, cpu=4, priority=10),
    make_class(HIGH, cpu=4, priority=100),
)

WITH_LARGE = (*CLASSES, make_class(LARGE, cpu=8, priority=100))


def nodes_with(*running, names="abc", cpu=4, **options):
    """A cluster of equal nodes."""
    return preempting_cluster(*WITH_LARGE, *(make_node(name, cpu=cpu) for name in names), *running, **options)


def on_each(uids, names, cls=LOW, **fields):
    """A task on each of the nodes."""
    return [make_tasks([uid], cls, on=name, **fields) for uid, name in zip(uids, names, strict=True)]


def staying(cluster, gang):
    """How many members of the gang of a name run and are not evicted."""
    tasks, state = cluster.state.tasks, cluster.state
    return sum(
        state.gangs.definition(int(tasks.gang[row])).name == gang and not tasks.leaving[row]
        for row in (tasks.node >= 0).nonzero()[0].tolist()
        if tasks.gang[row] >= 0
    )


def full_node(*tasks, cpu=8, **options):
    """A cluster with a node `a` of 8 cpu."""
    return preempting_cluster(make_node("a", cpu=cpu), *CLASSES, *tasks, **options)
