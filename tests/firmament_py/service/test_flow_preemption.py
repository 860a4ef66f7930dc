"""Preemption, and what needs a round, through a real client."""

from protos.gen import flow_pb2
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, placed, requirement, task_class, tasks


def preempting(service):
    """Node a of 4 cpu, full with task 1 of budget 7; task 2 of a higher priority waits. The reply of the round."""
    label_set = flow_pb2.Profile(id=5, namespace="ns", labels={"app": "web"})
    budget = flow_pb2.Budget(
        id=7,
        name="web",
        allowed=1,
        selector=flow_pb2.PeerSelector(namespaces=["ns"], labels=[requirement("app", "Exists")]),
    )
    first = tasks([1], 1, on="a")
    first.profile_id.append(5)
    service.apply(
        classes=[task_class(1, cpu=4), task_class(2, priority=10, cpu=4)],
        profiles=[label_set],
        budgets=[budget],
        nodes=[node("a", cpu=4)],
        tasks=first,
    )
    service.apply(tasks=tasks([2], 2))
    return service.round()


def test_a_preemption_names_victim_preemptor_and_node(service):
    reply = preempting(service)
    assert (list(reply.preempted.task_uid), list(reply.preempted.preemptor_uid)) == ([1], [2])
    assert list(reply.nominated.task_uid) == [2]
    assert list(reply.nominated.nodes) == ["id-a"]
    assert (reply.stats.preempted, reply.stats.nominated) == (1, 1)
    service.apply(removed_tasks=[1])
    assert placed(service.round(reply.round)) == {2: "id-a"}


def test_a_preemption_that_failed_is_tried_again_when_told(service):
    reply = preempting(service)
    later = service.clock.now_us + 5_000_000
    service.apply(rejections=[flow_pb2.Rejection(task_uid=2, node_id="id-a", not_before_us=later)])
    first = tasks([1], 1, on="a")
    first.profile_id.append(5)
    service.apply(tasks=first)  # stays
    reply = service.round(reply.round)
    assert not reply.preempted.task_uid
    assert reply.wake_us == later
    service.clock.now_us = later
    assert list(service.round(reply.round).preempted.task_uid) == [1]


def test_a_removed_budget_protects_no_task(service):
    service.apply(budgets=[flow_pb2.Budget(id=7, selector=flow_pb2.PeerSelector(every_namespace=True))])
    service.apply(removed_budgets=[7])
    assert list(preempting(service).preempted.task_uid) == [1]


def test_a_budget_without_an_id_is_refused_alone(service):
    reply = service.apply(budgets=[flow_pb2.Budget(name="b")], nodes=[node("a", cpu=1)])
    [refusal] = reply.refused
    assert (refusal.kind, refusal.id, refusal.field) == ("budget", "b", "id")
    assert len(service.engine.state.present_nodes()) == 1


def test_a_nomination_out_of_range_is_refused_by_name(service):
    service.apply(classes=[task_class(1, cpu=4)])
    wrong = tasks([1], 1)
    wrong.nominated.append(3)
    [refusal] = service.apply(tasks=wrong).refused
    assert refusal.field == "tasks.nominated"


def test_a_confirmation_needs_no_round(service):
    service.tell_small()
    assert not service.apply(tasks=tasks([4], 1)).quiet  # it may fit
    first = service.round()
    uids = sorted(placed(first))
    assert service.apply(tasks=tasks(uids, 1, on="a")).quiet
    assert not service.round(first.round).round
    assert service.apply(removed_tasks=uids[:1]).quiet  # nothing waits
    assert not service.apply(tasks=tasks([5, 6], 1)).quiet
    second = service.round(first.round)
    assert len(placed(second)) == 1
    assert service.apply(tasks=tasks(list(placed(second)), 1, on="a")).quiet
    assert not service.apply(removed_tasks=uids[1:2]).quiet  # the other may use what is free now


def test_a_task_that_may_be_tried_again_later_needs_a_round(service):
    service.tell_small()
    uids = sorted(placed(service.round()))
    again = flow_pb2.Rejection(task_uid=uids[0], node_id="id-a", not_before_us=NOW_US + 1000)
    service.apply(rejections=[again])
    service.round()
    assert not service.apply(tasks=tasks(uids[1:], 1, on="a")).quiet


def test_an_update_can_run_a_round_with_its_changes(service):
    request = flow_pb2.RoundRequest(epoch=service.engine.epoch, now_us=service.clock())
    reply = service.apply(
        classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=4)], tasks=tasks([1, 2], 1), round=request
    )
    assert (reply.round.round, sorted(reply.round.placed.task_uid)) == (1, [1, 2])
    assert reply.quiet
    again = service.apply(round=request)
    assert again.round == reply.round  # it was not acknowledged
    request.acknowledged = 1
    assert service.apply(round=request).round == flow_pb2.RoundReply()
    assert not service.apply().HasField("round")
    request.epoch += 1
    assert service.apply(round=request).round.status == flow_pb2.STALE_EPOCH
