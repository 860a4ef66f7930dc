"""What would be if there were other nodes, or if all others left: through the contract, and by trying all."""

from itertools import product
from unittest.mock import MagicMock

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.service.calls.caller import Caller
from firmament_py.service.flow_service import FlowService
from policies.load_spreading import LoadSpreading
from protos.gen import flow_pb2
from tests.builders import NOW_US
from tests.effort import examples
from tests.firmament_py.service.flow_messages import node, task_class, tasks
from tests.firmament_py.service.test_would_fit import ask, places

NOW, LATER, NEVER, NOT_FOUND = (
    0,
    flow_pb2.FitReply.FITS_LATER,
    flow_pb2.FitReply.NEVER_FITS,
    flow_pb2.FitReply.NOT_FOUND,
)


def added(count: int, like: str = "", **amounts: int) -> flow_pb2.AddedNodes:
    return flow_pb2.AddedNodes(count=count, like=like, allocatable=amounts)


@pytest.fixture
def full(service):
    """Node a of 4 cpu, full; node b of 2 cpu, half full."""
    service.apply(
        classes=[task_class(1, cpu=4), task_class(2, cpu=1)],
        nodes=[node("a", cpu=4), node("b", cpu=2)],
        tasks=tasks([1], 1, on="a"),
    )
    service.apply(tasks=tasks([2], 2, on="b"))
    return service


@pytest.mark.parametrize(
    ("cpu", "count", "minimum", "ever"),
    [
        pytest.param(1, 1, 0, NOW, id="now"),
        pytest.param(2, 3, 3, LATER, id="two on a, one on b"),
        pytest.param(2, 3, 0, LATER, id="likewise each for itself"),
        pytest.param(2, 4, 4, NEVER, id="three places"),
        pytest.param(5, 1, 0, NEVER, id="larger than any node"),
    ],
)
def test_whether_they_ever_fit(full, cpu, count, minimum, ever):
    reply = ask(full, (task_class(9, cpu=cpu), count), minimum=minimum, says_whether_ever=True)
    assert (reply.fits, reply.ever) == (ever == NOW, ever)
    assert bool(reply.never) == (ever == NEVER)


def test_several_classes_that_a_bound_does_not_exclude(service):
    """Two nodes of 4 cpu take 3 + 3 or 3 + 2, not 3 + 3 + 2: 8 cpu suffice, and each class fits by itself."""
    service.apply(nodes=[node("c", cpu=4), node("d", cpu=4)])
    group = (task_class(8, cpu=3), 2), (task_class(9, cpu=2), 1)
    reply = ask(service, *group, minimum=3, says_whether_ever=True)
    assert (reply.ever, reply.at_best_ever) == (NOT_FOUND, 2)


def test_it_is_not_said_unless_asked_for(full):
    assert ask(full, (task_class(9, cpu=5), 1)).ever == flow_pb2.FitReply.EVER_UNSPECIFIED


def test_the_domain_of_a_gang_counts(service):
    nodes = [node(name, cpu=2) for name in "abc"]
    for each, rack in zip(nodes, "xxy", strict=True):
        each.labels["rack"] = rack
    service.apply(nodes=nodes)
    gang = {"minimum": 3, "topology_key": "rack", "topology_required": True, "says_whether_ever": True}
    assert ask(service, (task_class(9, cpu=2), 3), **gang).ever == NEVER
    assert ask(service, (task_class(9, cpu=1), 3), **gang).fits


def test_added_nodes(full):
    wide = task_class(9, cpu=4)
    assert not ask(full, (wide, 2)).fits
    reply = ask(full, (wide, 2), added_nodes=[added(2, like="a")])
    assert places(reply) == {(9, "added-1-1"): 1, (9, "added-1-2"): 1}
    reply = ask(full, (wide, 2), added_nodes=[added(1, pods=10, cpu=8), added(1, cpu=1, pods=1)])
    assert places(reply) == {(9, "added-1-1"): 2}


def test_a_drained_node_has_no_place_and_its_tasks_seek_others(full):
    """The task of b finds none beside a's, which is full: so the only free cpu, on b, is gone, too."""
    reply = ask(full, (task_class(9, cpu=1), 1), drained_nodes=["b"])
    assert (reply.fits, reply.displaced, list(reply.stranded)) == (False, 1, ["ns/task-2"])
    reply = ask(full, (task_class(9, cpu=1), 1), drained_nodes=["b"], added_nodes=[added(1, like="b")])
    assert (reply.fits, reply.displaced, list(reply.stranded)) == (True, 1, [])


def test_a_task_that_is_being_bound_leaves_a_drained_node_too(service):
    service.apply(classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=4)], tasks=tasks([1], 1))
    assert list(service.round().placed.task_uid) == [1]
    reply = ask(service, drained_nodes=["a"])
    assert (reply.displaced, list(reply.stranded)) == (1, ["ns/task-1"])


def test_nothing_is_kept_for_successors_of_those_that_have_left(full):
    """Task 1 leaves a for b, and a task of its job is expected there."""
    state = full.engine.state
    state.tasks.job[state.task_row(2)] = 5
    state.successors.expect(np.array([state.task_row(2)]), np.array([state.nodes.row["id-a"]]), NOW_US * 2)
    assert ask(full, (task_class(9, cpu=4), 1), says_whether_ever=True).ever == LATER


def test_a_daemon_ends_with_its_node(full):
    daemon = tasks([7], 2, on="b")
    daemon.daemon.append(True)
    full.apply(tasks=daemon)
    reply = ask(full, (task_class(9, cpu=1), 1), drained_nodes=["b"], added_nodes=[added(1, cpu=9, pods=9)])
    assert (reply.fits, reply.displaced) == (True, 1)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"added_nodes": [added(1, like="aa")]}, "added_nodes[0].like is 'aa', which is no node; did you mean a?"),
        ({"added_nodes": [added(1)]}, "added_nodes[0] has no amounts"),
        (
            {"added_nodes": [added(9_999, like="a"), added(2, like="a")]},
            "added_nodes has 10001 nodes; give at most 10000",
        ),
        ({"added_nodes": [added(1, cpu=-1)]}, "added_nodes[0].allocatable[cpu] is -1; give an amount of 0 or more"),
        ({"drained_nodes": ["zzz"]}, "drained_nodes has 'zzz', which is no node; name one of the cluster"),
    ],
)
def test_what_cannot_be_supposed(full, asked, problem):
    with pytest.raises(grpc.RpcError) as refused:
        ask(full, (task_class(9, cpu=1), 1), **asked)
    assert str(refused.value.details()).startswith(problem)


def possible(nodes: list[tuple[int, int]], groups: list[tuple[int, int, int]], needed: int) -> bool:
    """Whether so many of the tasks fit on the nodes (cpu, memory), by trying all. groups: cpu, memory, count."""
    items = [(cpu, memory) for cpu, memory, count in groups for _ in range(count)]
    for where in product(range(-1, len(nodes)), repeat=len(items)):
        if sum(at >= 0 for at in where) < needed:
            continue
        left = [list(each) for each in nodes]
        for (cpu, memory), at in zip(items, where, strict=True):
            if at >= 0:
                left[at][0] -= cpu
                left[at][1] -= memory
        if all(min(each) >= 0 for each in left):
            return True
    return False


AMOUNT = st.integers(1, 4)


@examples(40)
@given(
    st.lists(st.tuples(AMOUNT, AMOUNT), min_size=1, max_size=3),
    st.lists(st.tuples(AMOUNT, AMOUNT, st.integers(1, 2)), min_size=1, max_size=2),
    st.lists(st.tuples(AMOUNT, AMOUNT), max_size=2),
    st.booleans(),
)
def test_never_is_proved_and_later_is_so(nodes, groups, running, together):
    engine = Engine(LoadSpreading(), OrToolsSolver(), lambda: NOW_US)
    service, context = FlowService(engine), MagicMock(spec=Caller)
    total = sum(count for *_, count in groups)
    update = flow_pb2.Update(
        epoch=engine.epoch, nodes=[node(f"n{i}", cpu=c, memory=m) for i, (c, m) in enumerate(nodes)]
    )
    service.Apply(update, context)
    for i, (cpu, memory) in enumerate(running):
        described = task_class(100 + i, cpu=cpu, memory=memory)
        service.Apply(flow_pb2.Update(epoch=engine.epoch, classes=[described]), context)
        on = tasks([i + 1], 100 + i, on=f"n{i % len(nodes)}")
        service.Apply(flow_pb2.Update(epoch=engine.epoch, tasks=on), context)
    request = flow_pb2.FitRequest(now_us=NOW_US, minimum=total if together else 0, says_whether_ever=True)
    for i, (cpu, memory, count) in enumerate(groups):
        request.members.add(count=count, **{"class": task_class(1 + i, cpu=cpu, memory=memory)})
    reply = service.WouldFit(request, context)
    truth = possible(nodes, groups, total)
    if reply.fits or reply.ever == LATER:
        assert truth
    elif reply.ever == NEVER:
        assert not truth
    else:
        assert reply.ever == NOT_FOUND
        assert len(groups) > 1, "of one class, all is proved"


@pytest.mark.parametrize(
    ("counts", "minimum", "ever"),
    [
        pytest.param((1, 1), 0, NOT_FOUND, id="the first takes what only the second can use, but need not"),
        pytest.param((4, 0), 0, NEVER, id="one class: there are three places"),
        pytest.param((4, 0), 4, NEVER, id="likewise together"),
        pytest.param((0, 2), 0, NEVER, id="one place of the only flavor"),
    ],
)
def test_a_quota_is_a_proof_unless_another_choice_of_flavors_could_do(service, counts, minimum, ever):
    """A quota of one cpu on fast nodes, which come first, and two on slow ones."""
    nodes = [node(kind, cpu=9) for kind in ("fast", "slow")]
    for each in nodes:
        each.labels["kind"] = each.name
    flavors = [flow_pb2.Flavor(name=kind, node_labels={"kind": kind}) for kind in ("fast", "slow")]
    quotas = [flow_pb2.Quota(flavor=kind, resource="cpu", nominal=n) for kind, n in (("fast", 1), ("slow", 2))]
    queues = flow_pb2.Queues(queues=[flow_pb2.Queue(id=5, name="team", quotas=quotas)], flavors=flavors)
    service.apply(nodes=nodes, queues=queues)
    anywhere, on_fast = task_class(8, cpu=1), task_class(9, cpu=1)
    on_fast.node_selector.add(key="kind", operator="In", values=["fast"])
    asked = flow_pb2.FitRequest(now_us=NOW_US, minimum=minimum, says_whether_ever=True)
    for described, count in zip((anywhere, on_fast), counts, strict=True):
        if count:
            asked.members.add(count=count, queue_id=5, **{"class": described})
    assert service.flow.WouldFit(asked).ever == ever
