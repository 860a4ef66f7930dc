"""Queues through the contract: past use that is kept is what is sent back; how priorities are seen."""

import pytest

from firmament_py.model.constraints import Taint
from firmament_py.service.queue_messages import queue_tree
from firmament_py.state.cluster import ClusterState
from protos.gen import firmament_pb2, flow_pb2
from tests.builders import NOW_US, SECOND_US
from tests.firmament_py.service.flow_messages import node, task_class, tasks

QUEUE, LOCAL = 7, 8


def queues(**fields):
    quota = flow_pb2.Quota(flavor="all", resource="cpu", nominal=4)
    return flow_pb2.Queues(
        queues=[flow_pb2.Queue(id=QUEUE, name="q", quotas=[quota], by_past_use=True)],
        local_queues=[flow_pb2.LocalQueue(id=LOCAL, name="ns/local", queue=QUEUE, weight=2)],
        flavors=[flow_pb2.Flavor(name="all")],
        half_life_seconds=100,
        **fields,
    )


def running():
    message = tasks([1, 2], 1, on="a")
    message.queue_id.extend([QUEUE, QUEUE])
    message.local_queue_id.extend([LOCAL, LOCAL])
    return message


def everything(described):
    return flow_pb2.Update(queues=described, classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=4)], tasks=running())


def test_of_the_taints_of_a_flavor_those_are_left_that_repel_and_that_its_own_tolerations_do_not_cover():
    taints = [firmament_pb2.Taint(key=key, value="v", effect=effect) for key, effect in (
        ("a", "NoSchedule"), ("b", "NoExecute"), ("c", "PreferNoSchedule"), ("b", "NoSchedule"))]  # fmt: skip
    own = [firmament_pb2.Toleration(key="b", operator="Exists", effect="NoSchedule")]
    [flavor] = queue_tree(flow_pb2.Queues(flavors=[flow_pb2.Flavor(name="f", taints=taints, tolerations=own)])).flavors
    assert flavor.taints == (Taint("a", "v", "NoSchedule"), Taint("b", "v", "NoExecute"))


def test_prefixes_of_resources_that_need_no_quota():
    tree = queue_tree(flow_pb2.Queues(exempt_prefixes=["a.com/", "b"], exempt_resources=["gpu"]))
    needs = [tree.needs_quota(name) for name in ("a.com/x", "a.org/x", "bx", "cpu", "pods", "gpu", "gpus")]
    assert needs == [False, True, False, True, False, False, True]


def test_past_use_outlives_the_service(service):
    service.resync(everything(queues()))
    service.flow.GetQueues(flow_pb2.QueuesRequest())
    service.clock.now_us += 100 * SECOND_US
    reply = service.flow.GetQueues(flow_pb2.QueuesRequest())
    [local] = reply.local_queues
    assert (local.id, local.running, local.pending, local.past_use) == (LOCAL, 2, 0, 0.5)
    assert [(each.used, each.past) for each in local.amounts] == [(2, 1.0)]
    assert [each.past for each in reply.queues[0].amounts if each.resource == "cpu"] == [1.0]
    assert reply.past_use.at_us == service.clock.now_us

    service.engine.state.past_use.clear()
    service.engine.replace(ClusterState())  # as one that has just started
    service.clock.now_us += 100 * SECOND_US
    service.apply(queues=queues(past_use=reply.past_use))
    service.apply(classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=4)], tasks=running())
    again = service.flow.GetQueues(flow_pb2.QueuesRequest()).past_use
    [amount] = [each.amounts[0].amount for each in again.of if each.id == QUEUE]
    assert amount == 0.5  # nothing ran meanwhile


def test_a_bridge_that_synchronises_again_does_not_lose_it(service):
    service.resync(everything(queues()))
    service.clock.now_us += 100 * SECOND_US
    old = flow_pb2.PastUse(at_us=NOW_US, of=[flow_pb2.PastAmounts(id=QUEUE)])
    service.resync(everything(queues(past_use=old)))
    [local] = service.flow.GetQueues(flow_pb2.QueuesRequest()).local_queues
    assert local.past_use == 0.5


def test_an_update_counts_what_ran_before_it(service):
    service.resync(everything(queues()))
    service.clock.now_us += 100 * SECOND_US
    service.apply(removed_tasks=[1, 2])
    service.clock.now_us += 100 * SECOND_US
    [local] = service.flow.GetQueues(flow_pb2.QueuesRequest()).local_queues
    assert (local.running, local.past_use) == (0, 0.25)


def test_without_a_half_life_no_past_use_is_shown(service):
    described = queues()
    described.half_life_seconds = 0
    service.resync(everything(described))
    reply = service.flow.GetQueues(flow_pb2.QueuesRequest())
    assert not reply.HasField("past_use")
    assert reply.local_queues[0].past_use == 0


@pytest.mark.parametrize(("offset", "fence", "first"), [(0, False, False), (-7, True, False), (5, False, True)])
def test_how_priorities_are_seen_arrives(offset, fence, first):
    queue = flow_pb2.Queue(id=QUEUE, name="q", priority_offset=offset, priority_fence=fence)
    tree = queue_tree(flow_pb2.Queues(queues=[queue], priority_first=first))
    [found] = tree.queues
    assert (found.priority_offset, found.priority_fence, tree.priority_first) == (offset, fence, first)
