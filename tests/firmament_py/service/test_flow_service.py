"""The batched contract through a real client: epochs, resends, rounds, explanations."""

import grpc
import pytest

from firmament_py.version import VERSION
from policies.network_aware import NetworkAware
from protos.gen import flow_pb2
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, placed, task_class, tasks

STALE = flow_pb2.STALE_EPOCH


# -- epochs ---------------------------------------------------------------------------------------------------------


def test_hello_describes_the_service(service):
    hello = service.flow.Hello(flow_pb2.HelloRequest())
    assert hello == flow_pb2.HelloReply(
        epoch=service.engine.epoch,
        description=hello.description,  # test_older_bridges.py
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


def test_a_round_logs_nothing_that_would_wake_its_caller_before_the_reply(service, caplog):
    service.tell_small()
    with caplog.at_level("INFO"):
        assert placed(service.round())
    assert not caplog.records


def test_a_round_places_and_counts(service):
    service.tell_small()
    reply = service.round()
    assert placed(reply) == dict.fromkeys([1, 2, 3], "id-a")
    assert (reply.status, reply.round, reply.wake_us) == (flow_pb2.CALL_OK, 1, 0)
    stats = reply.stats
    assert (stats.started_us, stats.pending, stats.placed, stats.waiting) == (NOW_US, 3, 3, 0)
    assert (stats.classes, stats.nodes, stats.solves, stats.dropped) == (1, 1, 0, 0), "one class needs no network"
    assert (stats.policy, stats.fallback) == ("load-spreading", "")
    assert {"snapshot", "costs", "solve", "check", "commit"} <= set(stats.stage_seconds)


@pytest.mark.parametrize(
    "fails",
    [
        pytest.param("firmament_py.engine.scheduler.waiting_classes", id="after-the-commit"),
        pytest.param("firmament_py.service.replies.round_stats", id="in-the-reply"),
    ],
)
def test_placements_that_no_reply_has_told_end_the_epoch(service, monkeypatch, fails):
    service.tell_small()
    first = service.round()
    service.apply(tasks=tasks([9], 1))
    old = service.engine.epoch
    with monkeypatch.context() as broken:
        broken.setattr(fails, lambda *_: 1 / 0)
        with pytest.raises(grpc.RpcError):
            service.round(acknowledged=first.round)
    assert service.round(acknowledged=first.round, epoch=old).status == STALE
    service.resync(flow_pb2.Update(classes=[task_class(1)], nodes=[node("b")], tasks=tasks([9], 1)))
    assert placed(service.round()) == {9: "id-b"}


def test_a_round_that_fails_before_it_decides_is_run_again(service, monkeypatch):
    service.tell_small()
    with monkeypatch.context() as broken:
        broken.setattr("firmament_py.engine.round.Round.first_placer", lambda _: 1 / 0)
        with pytest.raises(grpc.RpcError):
            service.round()
    assert len(placed(service.round())) == 3


def test_a_reply_that_fails_leaves_none_of_another_epoch(service, monkeypatch):
    service.tell_small()
    assert len(placed(service.round())) == 3
    service.resync(flow_pb2.Update(classes=[task_class(1)], nodes=[node("b")], tasks=tasks([9], 1)))
    with monkeypatch.context() as broken:
        broken.setattr("firmament_py.service.replies.round_stats", lambda *_: 1 / 0)
        with pytest.raises(grpc.RpcError):
            service.round()
    assert service.round() == flow_pb2.RoundReply(wake_us=0)


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
        "placed by cheapest slots on a",
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


def test_outcomes_are_counted_since_the_start(service):
    """Of five tasks one is deleted, two complete, one fails; a report that is sent again counts once."""
    service.tell_small()
    service.apply(tasks=tasks([4, 5], 1))
    update = {"removed_tasks": [1, 2, 3, 4], "succeeded_tasks": [2, 3], "failed_tasks": [4]}
    for _ in range(2):
        service.apply(**update)
    counts = {"succeeded": 2, "failed": 1, "removed": 1}
    assert dict(service.flow.GetStatus(flow_pb2.StatusRequest()).outcomes) == counts
    assert service.engine.state.history.story(2)[-2:] == ["succeeded", "removed"]
    service.resync()
    assert dict(service.flow.GetStatus(flow_pb2.StatusRequest()).outcomes) == counts
