"""Gangs through the batched contract."""

import pytest

from firmament_py.model.options import RESERVE_AFTER_US
from protos.gen import flow_pb2
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, placed, task_class, tasks


def in_gang(message: flow_pb2.Tasks, gang: int, *roles: int) -> flow_pb2.Tasks:
    message.gang_id.extend([gang] * len(message.uid))
    message.role.extend(roles)
    return message


def told_reasons(reply: flow_pb2.RoundReply) -> list[tuple[int, str, str]]:
    return [(r.kind, r.detail, r.value) for u in reply.unscheduled for r in u.reasons if "gang" in r.detail]


def test_a_gang_is_placed_whole(service):
    tell = {"classes": [task_class(1, cpu=1)], "nodes": [node("a", cpu=2)]}
    gang = flow_pb2.Gang(id=7, minimum=3, created_us=NOW_US, name="the gang")
    service.apply(**tell, gangs=[gang], tasks=in_gang(tasks([1, 2], 1), 7))
    reply = service.round()
    assert placed(reply) == {}
    assert told_reasons(reply) == [(flow_pb2.Reason.GANG_INCOMPLETE, "the gang", "1")]
    service.apply(tasks=in_gang(tasks([3], 1), 7))
    reply = service.round(acknowledged=reply.round)
    assert placed(reply) == {}
    assert told_reasons(reply) == [(flow_pb2.Reason.GANG_DOES_NOT_FIT, "the gang", "2/3")]
    service.apply(nodes=[node("b", cpu=1)])
    assert set(placed(service.round(acknowledged=reply.round))) == {1, 2, 3}


def test_roles_have_minimums(service):
    gang = flow_pb2.Gang(id=7, minimum=2, roles=[flow_pb2.GangRole(name="lead", minimum=1), flow_pb2.GangRole()])
    service.apply(
        classes=[task_class(1)], nodes=[node("a")], gangs=[gang], tasks=in_gang(tasks([1, 2, 3], 1), 7, 1, 1, 1)
    )
    reply = service.round()
    assert (placed(reply), told_reasons(reply)) == ({}, [])
    assert [r.value for u in reply.unscheduled for r in u.reasons] == ["1"]
    service.apply(tasks=in_gang(tasks([4], 1), 7, 0))
    assert set(placed(service.round(acknowledged=1))) == {1, 2, 3, 4}


def test_tasks_can_refer_to_a_gang_of_the_same_update_but_not_to_unknown_ones(service):
    reply = service.apply(
        classes=[task_class(1)], gangs=[flow_pb2.Gang(id=7, minimum=1)], tasks=in_gang(tasks([1], 1), 7)
    )
    assert list(reply.unknown_gangs) == []
    reply = service.apply(tasks=in_gang(tasks([2, 3], 1), 8))
    assert list(reply.unknown_gangs) == [8]
    assert service.engine.state.task_row(2) is None


def test_a_removed_gang_is_known_as_long_as_it_has_members(service):
    service.apply(classes=[task_class(1)], gangs=[flow_pb2.Gang(id=7, minimum=2)], tasks=in_gang(tasks([1], 1), 7))
    service.apply(removed_gangs=[7, 99])
    assert list(service.apply(tasks=in_gang(tasks([2], 1), 7)).unknown_gangs) == []
    service.apply(removed_tasks=[1, 2])
    assert list(service.apply(tasks=in_gang(tasks([3], 1), 7)).unknown_gangs) == [7]


def test_a_gang_removed_and_created_again_in_one_update_is_the_new_one(service):
    service.apply(classes=[task_class(1)], gangs=[flow_pb2.Gang(id=7, minimum=1)], tasks=in_gang(tasks([1], 1), 7))
    reply = service.apply(removed_tasks=[1], removed_gangs=[7])
    assert len(service.engine.state.gangs) == 0
    reply = service.apply(gangs=[flow_pb2.Gang(id=7, minimum=2)], tasks=in_gang(tasks([1, 2], 1), 7))
    assert list(reply.unknown_gangs) == []


def test_a_gang_may_be_disrupted_only_as_a_whole(service):
    for whole in (True, False):
        service.apply(gangs=[flow_pb2.Gang(id=7, disrupted_whole=whole)])
        assert service.engine.state.gangs.known(7).disrupted_whole is whole


def test_levels_of_a_topology_arrive(service):
    gang = flow_pb2.Gang(id=7, topology_key="block", narrower_keys=["host", "rack"], outer_keys=["hall", "dc"])
    service.apply(gangs=[gang])
    known = service.engine.state.gangs.known(7)
    assert (known.topology_key, known.narrower_keys) == ("block", ("host", "rack"))
    assert known.domain_keys == ("block", "hall", "dc")


@pytest.mark.parametrize(
    ("gang", "field"),
    [
        pytest.param({"minimum": 1}, "id", id="no-id"),
        pytest.param({"id": 5, "minimum": -1}, "minimum", id="minimum"),
        pytest.param({"id": 5, "roles": [flow_pb2.GangRole(minimum=-1)]}, "roles", id="role"),
        pytest.param({"id": 5, "topology_required": True}, "topology_key", id="topology"),
        pytest.param({"id": 5, "narrower_keys": ["rack"]}, "narrower_keys", id="levels"),
        pytest.param({"id": 5, "minimum": 3, "maximum": 2}, "maximum", id="maximum"),
    ],
)
def test_an_invalid_gang_is_refused_alone(service, gang, field):
    service.tell_small()
    reply = service.apply(gangs=[flow_pb2.Gang(**gang), flow_pb2.Gang(id=6)], tasks=in_gang(tasks([9], 1), 6))
    assert [(r.kind, r.field) for r in reply.refused] == [("gang", field)]
    assert service.engine.state.task_row(9) is not None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"role": [64, 0]}, "tasks.role", id="role-beyond"),
        pytest.param({"gang_id": [7]}, "tasks.gang_id", id="short-gangs"),
        pytest.param({"role": [1]}, "tasks.role", id="short-roles"),
        pytest.param({"started_us": [1]}, "tasks.started_us", id="short-starts"),
        pytest.param({"lasting": [True, True, True]}, "tasks.lasting", id="too-many-that-last"),
    ],
)
def test_invalid_columns_of_gangs_are_refused(service, change, field):
    reported = tasks([1, 2], 1)
    reported.MergeFrom(flow_pb2.Tasks(**change))
    reply = service.apply(classes=[task_class(1)], gangs=[flow_pb2.Gang(id=7, minimum=1)], tasks=reported)
    assert [(r.kind, r.field) for r in reply.refused] == [("task", field)]


def test_a_gang_that_preemption_cannot_serve_says_how_many_members_would_fit(service):
    classes = [task_class(1, cpu=1), task_class(2, cpu=1, priority=10)]
    gang = flow_pb2.Gang(id=7, minimum=3, created_us=NOW_US, name="the gang")
    service.apply(classes=classes, nodes=[node("a", cpu=2)], tasks=tasks([1], 1, on="a"))
    service.apply(gangs=[gang], tasks=in_gang(tasks([11, 12, 13], 2), 7))
    at_best = flow_pb2.Reason.NOT_BY_PREEMPTION, "the gang", "2/3"
    unfit = flow_pb2.Reason.GANG_DOES_NOT_FIT, "the gang", "1/3"
    assert told_reasons(service.round()) == [unfit, at_best]
    first = service.explain(11).reasons[0]
    assert (first.kind, first.detail, first.value) == at_best


def test_a_gang_has_no_more_than_its_maximum(service):
    gang = flow_pb2.Gang(id=7, minimum=1, maximum=2, name="the gang")
    service.apply(classes=[task_class(1)], nodes=[node("a")], gangs=[gang], tasks=in_gang(tasks([1, 2, 3], 1), 7))
    reply = service.round()
    assert set(placed(reply)) == {1, 2}
    assert told_reasons(reply) == [(flow_pb2.Reason.GANG_FULL, "the gang", "2/2")]
    explained = service.explain(3)
    assert [(r.kind, r.value) for r in explained.reasons] == [(flow_pb2.Reason.GANG_FULL, "2/2")]
    assert (explained.gang.maximum, explained.gang.placed, explained.gang.missing) == (2, 2, 0)


@pytest.mark.parametrize(
    ("in_use", "lasting", "reserves", "starts_us"),
    [
        pytest.param(2, False, True, NOW_US + 40_000_000, id="says-when-it-ends"),
        pytest.param(1, False, True, 0, id="does-not-say"),
        pytest.param(1, True, False, 0, id="never-ends"),
    ],
)
def test_the_expected_start_of_a_gang_with_a_reservation(service, in_use, lasting, reserves, starts_us):
    minute = task_class(2, cpu=1)
    minute.expected_seconds = 60
    running = tasks([9], in_use, on="a")
    running.started_us.append(NOW_US - 20_000_000)
    running.lasting.append(lasting)
    service.apply(
        classes=[task_class(1, cpu=1), minute],
        nodes=[node("a", cpu=2)],
        gangs=[flow_pb2.Gang(id=7, minimum=2, created_us=NOW_US - RESERVE_AFTER_US)],
        tasks=running,
    )
    service.apply(tasks=in_gang(tasks([1, 2], 1), 7))
    service.round()
    gang = service.explain(1).gang
    assert (gang.reserves, gang.starts_us) == (reserves, starts_us)


def test_gangs_survive_a_resync(service):
    everything = flow_pb2.Update(
        classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=3)], gangs=[flow_pb2.Gang(id=7, minimum=3)]
    )
    service.resync(everything, flow_pb2.Update(tasks=in_gang(tasks([1, 2, 3], 1), 7)))
    assert len(placed(service.round())) == 3
    service.resync(
        everything,
        flow_pb2.Update(tasks=in_gang(tasks([1, 2], 1, on="a"), 7)),
        flow_pb2.Update(tasks=in_gang(tasks([4], 1), 7)),
    )
    assert placed(service.round()) == {4: "id-a"}


def test_explain_names_the_gang_that_capacity_is_reserved_for(service):
    gang = flow_pb2.Gang(id=7, minimum=2, created_us=NOW_US - RESERVE_AFTER_US, name="big")
    service.apply(
        classes=[task_class(1, gpu=2), task_class(2, gpu=1)],
        nodes=[node("a", gpu=2), node("b", gpu=2)],
        gangs=[gang],
        tasks=tasks([50], 2, on="a"),
    )
    service.apply(tasks=in_gang(tasks([1, 2], 1), 7))
    service.apply(tasks=tasks([9], 2))
    reported = [r for u in service.round().unscheduled for r in u.reasons if u.class_id == 2]
    assert [(r.kind, r.detail) for r in reported] == [(flow_pb2.Reason.RESERVED, "big")]
    assert list(service.explain(9).reasons) == reported


def test_explain_shows_reservations_of_single_tasks(service):
    minute = task_class(2, gpu=1)
    minute.expected_seconds = 60
    running = tasks([50], 2, on="a")
    running.started_us.append(NOW_US - 20_000_000)
    service.apply(classes=[task_class(1, gpu=2), minute, task_class(3, gpu=1)], nodes=[node("a", gpu=2)], tasks=running)
    large = tasks([1], 1)
    large.created_us[:] = [NOW_US - RESERVE_AFTER_US]
    large.name[:] = ["ns/large"]
    service.apply(tasks=large)
    service.apply(tasks=tasks([9], 3))
    service.round()
    remaining = service.explain(1)
    assert (remaining.reserves, remaining.starts_us) == (True, NOW_US + 40_000_000)
    other = service.explain(9)
    assert (other.reserves, other.starts_us) == (False, 0)
    assert [(r.kind, r.detail) for r in other.reasons] == [(flow_pb2.Reason.RESERVED, "ns/large")]
    service.apply(removed_tasks=[50])
    remaining = service.explain(1)
    assert (list(remaining.reasons), remaining.fits_now) == ([], 1), "a reservation does not exclude its own gang"


def test_explain_shows_nothing_of_a_removed_gang_to_a_new_one(service):
    old = flow_pb2.Gang(id=7, minimum=3, created_us=NOW_US - RESERVE_AFTER_US, name="old")
    service.apply(classes=[task_class(1, gpu=1)], nodes=[node("a", gpu=2)], gangs=[old])
    service.apply(tasks=in_gang(tasks([1, 2, 3], 1), 7))
    service.round()
    assert service.explain(1).gang.fits == 2
    service.apply(removed_tasks=[1, 2, 3], removed_gangs=[7])
    service.apply(gangs=[flow_pb2.Gang(id=8, minimum=2, name="new")], tasks=in_gang(tasks([4], 1), 8))
    gang = service.explain(4).gang
    assert (gang.name, gang.fits, gang.reserves, gang.starts_us) == ("new", -1, False, 0)


def test_a_huge_minimum_can_be_explained(service):
    huge = flow_pb2.Gang(id=7, minimum=5_000_000_000, name="huge")
    service.apply(classes=[task_class(1)], nodes=[node("a")], gangs=[huge], tasks=in_gang(tasks([1], 1), 7))
    service.round()
    assert service.explain(1).gang.missing == 2**32 - 1


def test_the_standing_of_all_gangs_is_that_which_explain_shows(service):
    gangs = [
        flow_pb2.Gang(id=7, minimum=2, name="whole"),
        flow_pb2.Gang(id=8, minimum=3, name="large"),
        flow_pb2.Gang(id=9, minimum=1, name="lacking", roles=[flow_pb2.GangRole(name="a", minimum=2)]),
        flow_pb2.Gang(id=10, minimum=4, name="empty"),
    ]
    service.apply(classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=4)], gangs=gangs)
    for gang, uids in ((9, [1]), (7, [2, 3]), (8, [4, 5, 6])):
        service.apply(tasks=in_gang(tasks(uids, 1), gang, *[0] * len(uids)))
    service.apply(tasks=tasks([20], 1))
    service.round()
    found = {each.name: each for each in service.flow.GetGangs(flow_pb2.GangsRequest()).gangs}
    assert {name: (g.id, g.present, g.placed, g.missing, g.fits) for name, g in found.items()} == {
        "lacking": (9, 1, 0, 1, -1),
        "whole": (7, 2, 2, 0, -1),
        "large": (8, 3, 0, 0, 2),
    }
    for uid, name in ((1, "lacking"), (2, "whole"), (4, "large")):
        assert service.explain(uid).gang == found[name]


def test_a_gang_that_has_ended_is_not_in_the_list(service):
    """Rows of removed tasks are free: what they held before is nobody's."""
    gangs = [flow_pb2.Gang(id=7, minimum=2, name="ended"), flow_pb2.Gang(id=8, minimum=1, name="runs")]
    service.apply(classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=4)], gangs=gangs)
    service.apply(tasks=in_gang(tasks([1, 2], 1), 7))
    service.apply(tasks=in_gang(tasks([3], 1), 8))
    service.round()
    service.apply(removed_tasks=[1, 2], succeeded_tasks=[1, 2])
    service.apply(removed_gangs=[7])
    assert [g.name for g in service.flow.GetGangs(flow_pb2.GangsRequest()).gangs] == ["runs"]


def test_a_gang_that_cannot_start_says_what_must_become_free(service):
    gang = flow_pb2.Gang(id=7, minimum=1, name="ns/g", start_amounts={"cpu": 11, "gpu": 1})
    service.apply(classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=4)], gangs=[gang])
    service.apply(tasks=in_gang(tasks([1, 2], 1), 7))
    reply = service.round()
    assert placed(reply) == {}
    (reason,) = [r for u in reply.unscheduled for r in u.reasons if r.kind == flow_pb2.Reason.GANG_CANNOT_START]
    assert (reason.detail, reason.value) == ("ns/g", "cpu: 7, gpu: 1")
    (standing,) = service.flow.GetGangs(flow_pb2.GangsRequest()).gangs
    assert dict(standing.lacks) == {"cpu": 7, "gpu": 1}
    explained = service.explain(1)
    assert explained.gang == standing
    assert explained.reasons[0] == reason
    service.apply(gangs=[flow_pb2.Gang(id=7, minimum=1, name="ns/g", start_amounts={"cpu": 4})])
    assert set(placed(service.round(acknowledged=reply.round))) == {1, 2}
    assert not service.flow.GetGangs(flow_pb2.GangsRequest()).gangs[0].lacks
