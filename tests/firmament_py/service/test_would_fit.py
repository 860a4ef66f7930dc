"""Whether a group would fit, through the contract, compared with the round after it is submitted."""

from collections import Counter

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firmament_py.model.options import Preempting
from firmament_py.snapshot.domain_limits import UNLIMITED
from protos.gen import flow_pb2
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, placed, requirement, task_class, tasks

INSUFFICIENT = flow_pb2.Reason.INSUFFICIENT_RESOURCE


def request(*members, **fields):
    """`members`: (class, count)."""
    found = flow_pb2.FitRequest(now_us=NOW_US, **fields)
    for cls, count in members:
        found.members.add(count=count, **{"class": cls})
    return found


def ask(service, *members, **fields):
    """The reply, after checks that nothing has changed in the service."""
    before, status = digest(service), service.flow.GetStatus(flow_pb2.StatusRequest())
    reply = service.flow.WouldFit(request(*members, **fields))
    assert digest(service) == before
    assert service.flow.GetStatus(flow_pb2.StatusRequest()) == status
    service.validate()
    return reply


def digest(service):
    """All tasks and the amounts in use, of the service's state."""
    state = service.engine.state
    rows = state.tasks.rows()
    columns = (state.tasks.uid, state.tasks.state, state.tasks.node, state.tasks.nominated, state.tasks.gang)
    return (
        [column[rows].tolist() for column in columns],
        state.nodes.used.tolist(),
        len(state.classes),
        len(state.gangs),
    )


def places(reply):
    return {(each.class_id, each.node): each.count for each in reply.places}


@pytest.fixture
def two_nodes(service):
    service.apply(nodes=[node("a", cpu=4), node("b", cpu=2)])
    return service


def test_a_group_that_fits_is_told_its_nodes(two_nodes):
    reply = ask(two_nodes, (task_class(1, cpu=2), 3), minimum=3)
    assert reply.fits
    assert places(reply) == {(1, "a"): 2, (1, "b"): 1}
    assert (list(reply.unscheduled), reply.problem) == ([], "")


def test_a_gang_that_does_not_fit_is_told_how_many_do_and_why(two_nodes):
    reply = ask(two_nodes, (task_class(1, cpu=2), 5), minimum=5)
    assert (reply.fits, reply.at_best, places(reply)) == (False, 3, {})
    [unscheduled] = reply.unscheduled
    assert (unscheduled.class_id, unscheduled.waiting, unscheduled.nodes) == (1, 5, 2)
    kinds = [(reason.kind, reason.value) for reason in unscheduled.reasons]
    assert (flow_pb2.Reason.GANG_DOES_NOT_FIT, "3/5") in kinds


def test_without_a_minimum_those_that_fit_are_placed(two_nodes):
    reply = ask(two_nodes, (task_class(1, cpu=2), 5))
    assert (reply.fits, reply.at_best, sum(places(reply).values())) == (False, -1, 3)
    [unscheduled] = reply.unscheduled
    assert unscheduled.waiting == 2
    assert [(r.kind, r.detail, r.nodes) for r in unscheduled.reasons] == [(INSUFFICIENT, "cpu", 2)]


def test_members_above_the_minimum_are_not_needed(two_nodes):
    reply = ask(two_nodes, (task_class(1, cpu=2), 5), minimum=3)
    assert reply.fits
    assert sum(places(reply).values()) == 3
    assert [each.waiting for each in reply.unscheduled] == [2]


def test_a_group_of_several_classes(two_nodes):
    leader, worker = task_class(1, cpu=4), task_class(2, cpu=1)
    reply = ask(two_nodes, (leader, 1), (worker, 2), minimum=3)
    assert reply.fits
    assert places(reply) == {(1, "a"): 1, (2, "b"): 2}


def test_what_waits_already_goes_first(two_nodes):
    older = tasks([1], 7)
    older.created_us[:] = [NOW_US - 1_000_000]
    two_nodes.apply(classes=[task_class(7, cpu=4)], tasks=older)
    reply = ask(two_nodes, (task_class(1, cpu=2), 2), minimum=2)
    assert (reply.fits, reply.at_best) == (False, 1)
    assert ask(two_nodes, (task_class(1, priority=1, cpu=2), 2), minimum=2).fits


def test_selectors_and_a_topology(service):
    for name, zone, cpu in (("a", "x", 2), ("b", "y", 2), ("c", "y", 2)):
        each = node(name, cpu=cpu)
        each.labels["zone"] = zone
        service.apply(nodes=[each])
    gang = {"minimum": 4, "topology_key": "zone", "topology_required": True}
    assert places(ask(service, (task_class(1, cpu=1), 4), **gang)) == {(1, "b"): 2, (1, "c"): 2}
    there = task_class(2, cpu=1)
    there.node_selector.append(requirement("zone", "In", "x"))
    reply = ask(service, (there, 4), **gang)
    assert (reply.fits, reply.at_best) == (False, 2)


def test_preemption_is_only_counted_if_it_is_asked_for(two_nodes):
    two_nodes.apply(classes=[task_class(7, cpu=4)], tasks=tasks([1], 7, on="a"))
    urgent = task_class(1, priority=10, cpu=3)
    assert not ask(two_nodes, (urgent, 1)).fits
    reply = ask(two_nodes, (urgent, 1), preempts=True)
    assert reply.fits
    assert [(each.node, each.after_evictions) for each in reply.places] == [("a", True)]
    assert list(reply.victims) == ["ns/task-1"]


@pytest.mark.parametrize(("moved", "limited", "left"), [(0, True, 2), (2, True, 0), (2, False, UNLIMITED)])
def test_moves_of_the_last_hour_count(two_nodes, moved, limited, left):
    """A round that may move nothing any more within the hour places nothing by moves; plans may take longer."""
    two_nodes.configure(moves_per_hour=2)
    two_nodes.resync()
    scheduler = two_nodes.engine.scheduler
    scheduler._commit.rate.note(moved, NOW_US)
    beside = scheduler.beside(scheduler.state, scheduler.policy, scheduler.usage, limited=limited)
    assert beside._commit.rate.left(NOW_US) == left
    assert beside._reclaims.rates is not scheduler._reclaims.rates


@pytest.mark.parametrize(
    ("members", "fields", "says"),
    [
        ([], {}, "members is empty"),
        ([(task_class(1), 0)], {}, "members is empty, or has counts of 0"),
        ([(task_class(1), 100_001)], {}, "members has 100001 tasks; give at most 100000"),
        ([(task_class(1), 2)], {"minimum": 3}, "minimum is 3, of 2 tasks; give 0 for no gang, or up to 2"),
        ([(task_class(1, cpu=-1), 2)], {}, "members: class"),
        ([(task_class(1), 2)], {"minimum": 2, "topology_required": True}, "topology_key"),
    ],
)
def test_invalid_requests_are_refused(two_nodes, members, fields, says):
    with pytest.raises(grpc.RpcError) as error:
        ask(two_nodes, *members, **fields)
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert says in str(error.value.details())


def test_a_profile_that_is_missing_is_refused(two_nodes):
    asked = request((task_class(1), 1))
    asked.members[0].profile_id = 5
    with pytest.raises(grpc.RpcError, match="names a profile that is not in profiles"):
        two_nodes.flow.WouldFit(asked)
    asked.profiles.add(id=5, namespace="ns", labels={"app": "x"})
    assert two_nodes.flow.WouldFit(asked).fits


worlds = st.fixed_dictionaries(
    {
        "nodes": st.lists(st.integers(1, 8), min_size=1, max_size=5),
        "running": st.lists(st.integers(1, 3), max_size=4),
        "waiting": st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), max_size=4),
        "group": st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=3),
        "priority": st.integers(0, 2),
        "gang": st.booleans(),
        "preempting": st.sampled_from([Preempting.OFF, Preempting.WITHIN_BUDGETS]),
    }
)


@given(world=worlds)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_next_round_does_what_was_said(service, world):
    service.configure(preempting=world["preempting"])
    service.resync()
    service.apply(nodes=[node(f"n{i}", cpu=cpu) for i, cpu in enumerate(world["nodes"])])
    free_on = dict(enumerate(world["nodes"]))
    uid = 0
    for i, cpu in enumerate(world["running"]):
        where = i % len(free_on)
        if free_on[where] >= cpu:
            free_on[where] -= cpu
            uid += 1
            service.apply(classes=[task_class(100 + cpu, cpu=cpu)], tasks=tasks([uid], 100 + cpu, on=f"n{where}"))
    for cpu, priority in world["waiting"]:
        uid += 1
        number = 200 + 10 * cpu + priority
        service.apply(classes=[task_class(number, cpu=cpu, priority=priority)], tasks=tasks([uid], number))
    group = [
        (task_class(1 + i, cpu=cpu, priority=world["priority"]), count) for i, (cpu, count) in enumerate(world["group"])
    ]
    total = sum(count for _, count in group)
    minimum = total if world["gang"] else 0
    reply = ask(service, *group, minimum=minimum, preempts=True)
    uids = iter(range(1000, 1000 + total))
    mine = {cls.id: [next(uids) for _ in range(count)] for cls, count in group}
    gang = [flow_pb2.Gang(id=5, minimum=minimum, created_us=NOW_US, name="g")] if minimum else []
    for cls, _ in group:
        submitted = tasks(mine[cls.id], cls.id)
        submitted.job_id[:] = [77] * len(submitted.uid)
        submitted.gang_id.extend([5 if minimum else 0] * len(submitted.uid))
        service.apply(classes=[cls], gangs=gang, tasks=submitted)
    result = service.round()
    nominated = zip(result.nominated.task_uid, result.nominated.node, strict=True)
    found = placed(result) | {uid: result.nominated.nodes[at] for uid, at in nominated}
    for cls, _ in group:
        nodes = [found[uid] for uid in mine[cls.id] if uid in found]
        announced = Counter[str]()
        for each in reply.places:
            announced[each.node] += each.count * (each.class_id == cls.id)
        assert Counter(nodes) == Counter({f"id-{name}": count for name, count in announced.items()})
    assert reply.fits == (all(uid in found for uids in mine.values() for uid in uids))
