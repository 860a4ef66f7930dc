"""GetStarts: when waiting tasks are expected to start."""

import time
from typing import Any

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.forecast.forecasts import PATIENCE_US
from firmament_py.service.flow_service import FlowService
from policies.load_spreading import LoadSpreading
from protos.gen import flow_pb2
from tests.builders import NOW_US, SECOND_US
from tests.firmament_py.engine.test_searches import Scripted
from tests.firmament_py.service.flow_messages import node, task_class, tasks
from tests.firmament_py.service.test_callers import Caller

PATIENCE_S = 30


def starts(service) -> flow_pb2.StartsReply:
    """The first forecast: it is made in a thread."""
    until = time.monotonic() + PATIENCE_S
    found = flow_pb2.StartsReply()
    while not found.made_us:
        assert time.monotonic() < until, "no forecast is made"
        time.sleep(0.01)
        found = service.flow.GetStarts(flow_pb2.StartsRequest())
    return found


def test_the_start_of_each_waiting_task(service):
    """Task 1 has the node for 100 s; 2 follows; 3 never fits."""
    small, big = task_class(1, cpu=4), task_class(2, cpu=8)
    small.expected_seconds = 100
    running = tasks([1], 1, on="a")
    running.started_us.append(NOW_US)
    service.apply(classes=[small, big], nodes=[node("a", cpu=4)], tasks=running)
    service.apply(tasks=tasks([2], 1))
    service.apply(tasks=tasks([3], 2))
    service.round()
    reply = starts(service)
    wait = 100 * SECOND_US
    assert reply == flow_pb2.StartsReply(
        made_us=NOW_US,
        uid=[2, 3],
        earliest_us=[NOW_US + wait // 5, 0],
        likely_us=[NOW_US + wait, 0],
        latest_us=[NOW_US + 3 * wait, 0],
        node=[1, 0],
        nodes=["id-a"],
        whole=True,
        probability=0.8,
    )
    of_one = service.flow.GetStarts(flow_pb2.StartsRequest(uid=[3, 99]))
    assert (list(of_one.uid), list(of_one.likely_us), list(of_one.nodes)) == ([3], [0], []), (
        "of those that were asked for"
    )


def test_nothing_waits(service):
    assert service.flow.GetStarts(flow_pb2.StartsRequest()) == flow_pb2.StartsReply()


def test_rounds_begin_forecasts_and_updates_teach_how_long_tasks_run():
    """Task 1 runs, 2 waits; nobody has asked when a round begins the forecast."""
    engine, execution, caller = Engine(LoadSpreading(), OrToolsSolver(), lambda: NOW_US), Scripted(), Caller()
    service = FlowService(engine, execution)

    def tell(**changes: Any) -> None:
        assert not service.Apply(flow_pb2.Update(epoch=engine.epoch, **changes), caller).refused

    running = tasks([1], 1, on="a")
    running.started_us.append(NOW_US - 100 * SECOND_US)
    tell(classes=[task_class(1, cpu=4)], nodes=[node("a", cpu=4)], tasks=running)
    tell(tasks=tasks([2], 1))
    first = service.Round(flow_pb2.RoundRequest(epoch=engine.epoch, now_us=NOW_US), caller)
    begun = [execution.searches]
    tell(tasks=tasks([3], 1))
    later_us = NOW_US + PATIENCE_US
    service.Round(flow_pb2.RoundRequest(epoch=engine.epoch, now_us=later_us, acknowledged=first.round), caller)
    assert [*begun, execution.searches] == [0, 1], "not before it has waited for long"
    execution.finish()
    reply = service.GetStarts(flow_pb2.StartsRequest(), caller)
    assert (list(reply.uid), reply.durations) == ([2, 3], 0)
    tell(succeeded_tasks=[1])
    assert service.GetStarts(flow_pb2.StartsRequest(), caller).durations == 1
