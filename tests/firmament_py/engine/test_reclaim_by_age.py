"""Which of equal victims leave for a job of a queue."""

import pytest

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Within
from tests.builders import SECOND_US, make_class, make_gang, make_node, make_tasks, preempting_cluster
from tests.firmament_py.engine.queued import one_flavor
from tests.firmament_py.engine.reclaiming import OLD_US, A
from tests.firmament_py.queues.trees import queue, quota

pytestmark = pytest.mark.xdist_group("numba")  # compiles once, not in every worker


@pytest.mark.parametrize("topology", ["", "rack", "preferred"])
@pytest.mark.parametrize("newest", range(4))
def test_of_equal_gangs_in_equal_racks_the_newest_leaves(newest, topology):
    names = ["n0", "n1", "n2", "n3"]
    queues = one_flavor(queue("a", "", quota(8), within=Within.LOWER_PRIORITY))
    cluster = preempting_cluster(
        *(make_node(name, cpu=2, labels={"rack": name}) for name in names),
        make_class(1, cpu=1),
        make_class(2, cpu=1, priority=5),
        QueuesObserved(queues),
    )
    for i, name in enumerate(names):
        started_us = OLD_US + (9 if i == newest else i) * 60 * SECOND_US
        cluster.tell(make_gang(100 + i, 2, whole=True))
        of_gang = {"gang": 100 + i, "queue": A, "created_us": started_us, "started_us": started_us}
        cluster.tell(make_tasks([200 + 2 * i, 201 + 2 * i], 1, on=name, **of_gang))
    named = {"topology": "rack", "required": topology == "rack"} if topology else {}
    cluster.tell(make_gang(7, 2, created_us=OLD_US, **named), make_tasks([11, 12], 2, gang=7, queue=A))
    assert set(cluster.preempted(cluster.run())) == {200 + 2 * newest, 201 + 2 * newest}
