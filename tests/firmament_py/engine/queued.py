"""A node and a class whose tasks are in queues, and why they wait."""

from firmament_py.model.events import QueuesObserved
from tests.builders import make_class, make_cluster, make_node
from tests.firmament_py.queues.trees import queue_id, tree

A, B = queue_id("a"), queue_id("b")


def cluster_of(queues, *events, cpu=100):
    return make_cluster(make_node("n", cpu=cpu), make_class(1, cpu=1), QueuesObserved(queues), *events)


def one_flavor(*queues):
    """Of all nodes."""
    return tree(*queues, flavors=(queues[0].quotas[0].flavor,))


def reasons(cluster, result):
    """Uid -> reasons of the tasks that wait."""
    uid = cluster.state.tasks.uid
    return {
        int(u): [(r.kind.name, r.detail, r.value) for r in w.reasons]
        for w in result.waiting
        for u in uid[w.unreported].tolist()
    }
