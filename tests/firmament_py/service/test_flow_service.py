"""The batched contract through a real client: epochs, resends, refusals, explanations."""

import grpc
import pytest

from firmament_py.version import VERSION
from policies.network_aware import NetworkAware
from protos.gen import firmament_pb2, flow_pb2
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, placed, requirement, task_class, tasks

STALE = flow_pb2.STALE_EPOCH


# -- epochs ---------------------------------------------------------------------------------------------------------


def test_hello_describes_the_service(service):
    hello = service.flow.Hello(flow_pb2.HelloRequest())
    assert hello == flow_pb2.HelloReply(
        epoch=service.engine.epoch,
        version=VERSION,
        policy="load-spreading",
        solver="or-tools",
        resynced=False,
        spreads_tasks=True,
    )
    assert hello.epoch != 0


def test_hello_states_whether_links_count(service):
    service.engine.policy = NetworkAware()
    hello = service.flow.Hello(flow_pb2.HelloRequest())
    assert (hello.policy, hello.counts_links, hello.spreads_tasks) == ("network-aware", True, False)


def test_two_services_have_different_epochs(service):
    old = service.engine.epoch
    reply = service.resync()
    assert reply.epoch not in (0, old)
    assert service.flow.Hello(flow_pb2.HelloRequest()).epoch == reply.epoch
    assert service.flow.Hello(flow_pb2.HelloRequest()).resynced


@pytest.mark.parametrize("off", [1, -1, "zero"])
def test_an_update_of_another_epoch_changes_nothing(service, off):
    service.tell_small()
    stale = 0 if off == "zero" else service.engine.epoch + off
    reply = service.apply(epoch=stale, nodes=[node("b")], removed_tasks=[1], tasks=tasks([9], 1))
    assert (reply.status, reply.epoch) == (STALE, service.engine.epoch)
    assert (len(service.engine.state.nodes), len(service.engine.state.tasks)) == (1, 3)


def test_a_round_of_another_epoch_does_not_run(service):
    service.tell_small()
    assert service.round(epoch=service.engine.epoch + 1) == flow_pb2.RoundReply(status=STALE)
    assert service.engine.rounds == 0


def test_a_resync_replaces_everything(service):
    service.tell_small()
    assert len(placed(service.round())) == 3
    old = service.engine.epoch
    reply = service.resync(
        flow_pb2.Update(epoch=12345, classes=[task_class(2, cpu=2)], nodes=[node("b", cpu=4)]),
        flow_pb2.Update(tasks=tasks([7], 2, on="b")),
        flow_pb2.Update(tasks=tasks([8, 9], 2)),
    )
    assert (reply.status, list(reply.refused), list(reply.unknown_classes)) == (flow_pb2.CALL_OK, [], [])
    status = service.flow.GetStatus(flow_pb2.StatusRequest())
    assert (status.epoch, status.nodes, dict(status.tasks)) == (
        reply.epoch,
        1,
        {"waiting": 2, "bound": 1, "assumed": 0, "ended": 0},
    )
    assert service.round(epoch=old).status == STALE
    # 4 - 2 = 2 cpu are left: one of two; and rounds count from 1 in the new epoch
    answer = service.round()
    assert (len(placed(answer)), answer.round) == (1, 1)
    assert service.flow.Explain(flow_pb2.ExplainRequest(task_uid=1)).found is False


def test_a_resync_in_any_order_of_tasks_and_nodes(service):
    service.resync(
        flow_pb2.Update(classes=[task_class(1, cpu=3)]),
        flow_pb2.Update(tasks=tasks([1], 1, on="a")),
        flow_pb2.Update(tasks=tasks([2], 1)),
        flow_pb2.Update(nodes=[node("a", cpu=4)]),
    )
    assert placed(service.round()) == {}


def test_a_resync_that_breaks_off_changes_nothing(service):
    service.tell_small()
    old = service.engine.epoch

    def breaking_off():
        yield flow_pb2.Update(classes=[task_class(2)])
        raise RuntimeError("the bridge dies here")

    with pytest.raises(grpc.RpcError):
        service.flow.Resync(breaking_off())
    assert service.engine.epoch == old
    assert not service.engine.resynced
    assert len(placed(service.round())) == 3


@pytest.mark.parametrize(
    "stream",
    [
        [],
        [flow_pb2.Update(classes=[task_class(2)])],
        [flow_pb2.Update(complete=True), flow_pb2.Update(classes=[task_class(2)])],
    ],
    ids=["empty", "without an end", "going on after its end"],
)
def test_a_resync_without_complete_changes_nothing(service, stream):
    """To the service, the stream of a bridge that dies can look like one that ended normally."""
    service.tell_small()
    old = service.engine.epoch
    with pytest.raises(grpc.RpcError) as caught:
        service.flow.Resync(iter(stream))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "complete is not set in the last update" in str(caught.value.details())
    assert service.engine.epoch == old
    assert not service.engine.resynced
    assert len(placed(service.round())) == 3


def test_an_empty_resync_clears_the_state(service):
    service.tell_small()
    service.resync()
    assert len(service.engine.state.tasks) == len(service.engine.state.nodes) == 0


def test_refusals_of_a_resync_are_reported(service):
    reply = service.resync(
        flow_pb2.Update(classes=[task_class(0), task_class(1)]), flow_pb2.Update(tasks=tasks([1], 77))
    )
    assert [(r.kind, r.field) for r in reply.refused] == [("class", "id")]
    assert list(reply.unknown_classes) == [77]


# -- rounds ---------------------------------------------------------------------------------------------------------


def test_a_round_places_and_counts(service):
    service.tell_small()
    reply = service.round()
    assert placed(reply) == dict.fromkeys([1, 2, 3], "id-a")
    assert (reply.status, reply.round, reply.wake_us) == (flow_pb2.CALL_OK, 1, 0)
    stats = reply.stats
    assert (stats.started_us, stats.pending, stats.placed, stats.waiting) == (NOW_US, 3, 3, 0)
    assert (stats.classes, stats.nodes, stats.solves, stats.dropped) == (1, 1, 1, 0)
    assert (stats.policy, stats.fallback) == ("load-spreading", "")
    assert {"snapshot", "build", "solve", "check", "commit"} <= set(stats.stage_seconds)


def test_an_unacknowledged_reply_is_sent_again(service):
    service.tell_small()
    lost = service.round()
    service.apply(tasks=tasks([4], 1))
    assert service.round() == lost
    assert service.engine.rounds == 1
    reply = service.round(acknowledged=lost.round)
    assert placed(reply) == {4: "id-a"}
    assert reply.round == 2
    assert service.round(acknowledged=1) == reply, "an older round is acknowledged, not this one"
    assert service.engine.rounds == 2


def test_without_changes_no_round_runs(service):
    service.tell_small()
    reply = service.round(acknowledged=service.round().round)
    assert reply == flow_pb2.RoundReply()
    assert service.round(acknowledged=1) == flow_pb2.RoundReply()
    assert service.engine.rounds == 1


def test_the_reply_of_another_epoch_is_not_sent_again(service):
    service.tell_small()
    assert service.round().round == 1
    service.resync(flow_pb2.Update(classes=[task_class(1)], nodes=[node("b")], tasks=tasks([7], 1)))
    assert placed(service.round()) == {7: "id-b"}


def test_a_rejected_placement_is_tried_again_at_once_or_later(service):
    service.tell_small()
    assert len(placed(service.round())) == 3
    service.apply(
        rejections=[
            flow_pb2.Rejection(task_uid=1, node_id="id-a"),
            flow_pb2.Rejection(task_uid=2, node_id="id-a", not_before_us=NOW_US + 1000),
            flow_pb2.Rejection(task_uid=3, node_id="id-elsewhere"),
        ]
    )
    reply = service.round(acknowledged=1)
    assert placed(reply) == {1: "id-a"}
    assert reply.wake_us == NOW_US + 1000
    assert service.round(acknowledged=2) == flow_pb2.RoundReply(wake_us=NOW_US + 1000)
    service.clock.now_us += 1000
    assert placed(service.round(acknowledged=2)) == {2: "id-a"}


def test_waiting_tasks_are_reported_once_with_reasons(service):
    service.apply(classes=[task_class(1, cpu=9)], nodes=[node("a", cpu=4)], tasks=tasks([1, 2], 1))
    reply = service.round()
    reasons = [flow_pb2.Reason(kind=flow_pb2.Reason.INSUFFICIENT_RESOURCE, detail="cpu", nodes=1)]
    assert list(reply.unscheduled) == [
        flow_pb2.Unscheduled(class_id=1, waiting=2, nodes=1, reasons=reasons, task_uid=[1, 2])
    ]
    service.apply(tasks=tasks([3], 1))
    (again,) = service.round(acknowledged=1).unscheduled
    assert (again.waiting, list(again.task_uid)) == (3, [3])
    service.apply(nodes=[node("a", cpu=5)])
    assert list(service.round(acknowledged=2).unscheduled) == []


# -- updates --------------------------------------------------------------------------------------------------------


def test_an_update_can_be_repeated(service):
    service.tell_small()
    assert len(placed(service.round())) == 3
    service.tell_small()
    assert service.round(acknowledged=1) == flow_pb2.RoundReply()


def test_unknown_classes_are_requested_and_then_accepted(service):
    reply = service.apply(nodes=[node("a")], tasks=tasks([1], 78))
    assert list(reply.unknown_classes) == [78]
    assert placed(service.round()) == {}
    assert list(service.apply(classes=[task_class(78)], tasks=tasks([1], 78)).unknown_classes) == []
    assert placed(service.round(acknowledged=1)) == {1: "id-a"}


BAD_OPERATOR = flow_pb2.TaskClass(id=5, node_selector=[requirement("k", "Equals", "v")])
BAD_AFFINITY = flow_pb2.TaskClass(
    id=5,
    node_affinity=firmament_pb2.NodeSelector(
        nodeSelectorTerms=[firmament_pb2.NodeSelectorTerm(matchFields=[requirement("metadata.name", "in")])]
    ),
)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({"classes": [task_class(0)]}, ("class", "0", "id"), id="class-zero"),
        pytest.param({"classes": [task_class(5, cpu=-1)]}, ("class", "5", "requests[cpu]"), id="class-negative"),
        pytest.param({"classes": [BAD_OPERATOR]}, ("class", "5", "operator of 'k'"), id="class-operator"),
        pytest.param({"classes": [BAD_AFFINITY]}, ("class", "5", "operator of 'metadata.name'"), id="class-affinity"),
        pytest.param({"classes": [task_class(1, cpu=2)]}, ("class", "1", "id"), id="class-changed"),
        pytest.param({"nodes": [node("b", cpu=-5)]}, ("node", "b", "allocatable[cpu]"), id="node-negative"),
        pytest.param({"nodes": [flow_pb2.Node(name="b")]}, ("node", "b", "id"), id="node-without-id"),
        pytest.param(
            {"tasks": flow_pb2.Tasks(uid=[9], class_id=[1])}, ("task", "all 1", "tasks.job_id"), id="columns-differ"
        ),
        pytest.param(
            {
                "tasks": flow_pb2.Tasks(
                    uid=[9], class_id=[1], job_id=[0], created_us=[0], node=[2], name=["x"], nodes=["id-a"]
                )
            },
            ("task", "all 1", "tasks.node"),
            id="node-index",
        ),
    ],
)
def test_a_refusal_does_not_affect_other_parts(service, parts, expected):
    """Besides the refused part, the update has a node, a class and a removal, which are applied."""
    service.tell_small()
    update = {key: list(value) for key, value in parts.items() if key != "tasks"}
    update.setdefault("nodes", []).append(node("good", cpu=1))
    update.setdefault("classes", []).append(task_class(50, cpu=1))
    reply = service.apply(**update, removed_tasks=[3], tasks=parts.get("tasks"))
    assert [(r.kind, r.id, r.field) for r in reply.refused] == [expected]
    assert reply.refused[0].reason
    state = service.engine.state
    assert state.node_row("id-good") is not None
    assert state.node_row("id-b") is None
    assert state.task_row(3) is None
    assert state.task_row(9) is None
    assert list(service.apply(tasks=tasks([60], 50)).unknown_classes) == []
    assert len(state.tasks) == 3


@pytest.mark.parametrize(
    "demand",
    [
        pytest.param({"node_selector": [requirement("cores", "Gt", "9" * 6000)]}, id="selector"),
        pytest.param({"node_selector": [requirement("cores", "Lt", "1" * 5000)]}, id="lower"),
    ],
)
def test_an_absurd_number_matches_nothing(service, demand):
    service.tell_small()
    reply = service.apply(classes=[flow_pb2.TaskClass(id=5, **demand)], tasks=tasks([9], 5))
    assert list(reply.refused) == []
    assert set(placed(service.round())) == {1, 2, 3}
    assert [r.kind for r in service.explain(9).reasons] == [flow_pb2.Reason.SELECTOR_MISMATCH]


def test_a_task_removed_and_created_again_in_one_update_is_the_new_one(service):
    service.tell_small()
    assert len(placed(service.round())) == 3
    service.apply(removed_tasks=[1], tasks=tasks([1], 1))
    assert placed(service.round(acknowledged=1)) == {1: "id-a"}


def test_a_node_replaced_in_one_update_is_the_new_one(service):
    service.tell_small()
    service.apply(removed_nodes=["id-a"], nodes=[node("a", cpu=1)])
    assert len(placed(service.round())) == 1


@pytest.mark.parametrize("amount", [0, 1, 2**53, 2**63 - 1])
def test_any_amount_is_accepted(service, amount):
    service.apply(
        classes=[task_class(1, cpu=amount), task_class(2, cpu=1)],
        nodes=[node("a", cpu=amount)],
        tasks=tasks([1], 1, on="a"),
    )
    service.apply(tasks=tasks([2, 3], 2))
    # one of `amount` fills the node, whatever it is
    assert placed(service.round()) == {}


@pytest.mark.parametrize("now_us", [0, 1, 2**63 - 1])
def test_any_clock_is_accepted(service, now_us):
    service.tell_small()
    service.clock.now_us = now_us
    assert len(placed(service.round())) == 3


def test_an_update_can_describe_any_number_of_classes_before_their_tasks(service):
    """As a resynchronisation of a cluster with 3000 different kinds of tasks does."""
    numbers = range(1, 3001)
    everything = flow_pb2.Tasks(
        uid=numbers,
        class_id=numbers,
        job_id=[0] * 3000,
        created_us=[NOW_US] * 3000,
        node=[0] * 3000,
        name=[f"ns/task-{n}" for n in numbers],
    )
    reply = service.resync(flow_pb2.Update(classes=[task_class(n) for n in numbers]), flow_pb2.Update(tasks=everything))
    assert list(reply.unknown_classes) == []


# -- questions ------------------------------------------------------------------------------------------------------


def test_explain_a_task_that_waits(service):
    service.apply(
        classes=[task_class(1, "big", 7, cpu=5)], nodes=[node("a", cpu=4), node("b", cpu=3)], tasks=tasks([1], 1)
    )
    reply = service.explain(1)
    assert (reply.found, reply.state, reply.node, reply.class_name, reply.priority) == (True, "waiting", "", "big", 7)
    assert (dict(reply.requests), reply.nodes, reply.fits_now) == ({"cpu": 5, "pods": 1}, 2, 0)
    assert [(r.kind, r.detail, r.nodes) for r in reply.reasons] == [(flow_pb2.Reason.INSUFFICIENT_RESOURCE, "cpu", 2)]
    assert [(n.node, dict(n.lacks)) for n in reply.nearest] == [("a", {"cpu": 1}), ("b", {"cpu": 2})]
    service.apply(nodes=[node("a", cpu=9)])
    assert service.explain(1).fits_now == 1


def test_explain_a_task_through_its_life(service):
    service.tell_small()
    states = []
    service.round()
    states.append((service.explain(1).state, service.explain(1).node))
    service.apply(tasks=tasks([1], 1, on="a"))
    states.append((service.explain(1).state, service.explain(1).node))
    service.apply(removed_nodes=["id-a"])
    states.append((service.explain(1).state, service.explain(1).node))
    assert states == [("assumed", "a"), ("bound", "a"), ("bound", "")]
    assert list(service.explain(1).story) == [
        "observed",
        "placed on a",
        "observed on a",
    ]
    assert list(service.explain(1).reasons) == []


def test_explain_an_unknown_task(service):
    assert service.explain(99) == flow_pb2.ExplainReply()


def test_status_leaves_out_links_without_a_limit(service):
    limited = node("b", cpu=1)
    limited.allocatable["bandwidth.egress"] = 7
    sending = task_class(1)
    sending.requests["bandwidth.egress"] = 2
    service.apply(nodes=[node("a", cpu=1), limited], classes=[sending], tasks=tasks([1, 2], 1, on="b"))
    status = service.flow.GetStatus(flow_pb2.StatusRequest())
    assert dict(status.allocatable) == {"pods": 220, "cpu": 2, "bandwidth.egress": 7}
    assert dict(status.used) == {"pods": 2, "bandwidth.egress": 4}


def test_traits_reach_the_engine(service):
    kind = {"interference-class": "devil"}
    service.apply(classes=[flow_pb2.TaskClass(id=5, traits=kind)], tasks=tasks([1], 5))
    state = service.engine.state
    assert state.classes.definition(int(state.tasks.cls[state.task_row(1)])).traits == kind
    [refusal] = service.apply(classes=[flow_pb2.TaskClass(id=5)]).refused
    assert refusal.reason == "already names a different class; use another id"


def test_status_counts_and_adds_up(service):
    service.tell_small()
    service.apply(nodes=[node("b", cpu=2, gpu=3)], classes=[task_class(2, cpu=50)], tasks=tasks([9], 2))
    assert not service.flow.GetStatus(flow_pb2.StatusRequest()).HasField("last_round")
    service.round()
    service.apply(tasks=tasks([1], 1, on="a"))
    status = service.flow.GetStatus(flow_pb2.StatusRequest())
    assert (status.epoch, status.policy, status.rounds) == (service.engine.epoch, "load-spreading", 1)
    assert (status.nodes, status.classes) == (2, 2)
    assert dict(status.tasks) == {"waiting": 1, "assumed": 2, "bound": 1, "ended": 0}
    assert dict(status.allocatable) == {"pods": 220, "cpu": 6, "gpu": 3}
    assert dict(status.used) == {"pods": 3, "cpu": 3}
    assert (status.last_round.placed, status.last_round.waiting) == (3, 1)


def test_status_counts_no_tokens(service):
    service.apply(
        classes=[flow_pb2.TaskClass(id=1, requests={"cpu": 1}, tokens=["TCP:80"])],
        nodes=[node("a", cpu=4)],
        tasks=tasks([1], 1, on="a"),
    )
    status = service.flow.GetStatus(flow_pb2.StatusRequest())
    assert (dict(status.allocatable), dict(status.used)) == ({"cpu": 4, "pods": 110}, {"cpu": 1, "pods": 1})


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
