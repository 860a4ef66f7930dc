"""Calls whose callers no longer wait when they get the lock: they are dropped, and others continue."""

import threading
import time
from contextlib import contextmanager
from typing import Any

import pytest

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.rebalance.would_fit import would_fit
from firmament_py.service import flow_service
from firmament_py.service.calls.caller import FailedCall, Status
from firmament_py.service.calls.locking import locked
from firmament_py.service.firmament_service import FirmamentService
from firmament_py.service.flow_service import FlowService
from policies.load_spreading import LoadSpreading
from protos.gen import firmament_pb2, flow_pb2
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, placed, task_class, tasks


class Caller:
    """Waits until it leaves."""

    def __init__(self) -> None:
        self.there = True

    def is_active(self) -> bool:
        return self.there


class Impatient:
    """A lock whose caller no longer waits when it is acquired."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.taken = 0

    def __enter__(self) -> None:
        self.taken += 1
        self._caller.there = False

    def __exit__(self, *error: object) -> None:
        pass


def calls_of(engine: Engine):
    flow, wire, epoch = FlowService(engine), FirmamentService(engine), engine.epoch
    news: dict[str, Any] = {"classes": [task_class(1, cpu=1)], "nodes": [node("a", cpu=4)], "tasks": tasks([1], 1)}
    return {
        "hello": lambda caller: flow.Hello(flow_pb2.HelloRequest(), caller),
        "resync": lambda caller: flow.Resync(iter([flow_pb2.Update(complete=True, **news)]), caller),
        "apply": lambda caller: flow.Apply(flow_pb2.Update(epoch=epoch, **news), caller),
        "round": lambda caller: flow.Round(flow_pb2.RoundRequest(epoch=epoch, now_us=NOW_US), caller),
        "usage": lambda caller: flow.ReportUsage(flow_pb2.UsageReport(epoch=epoch), caller),
        "explain": lambda caller: flow.Explain(flow_pb2.ExplainRequest(task_uid=1), caller),
        "status": lambda caller: flow.GetStatus(flow_pb2.StatusRequest(), caller),
        "schedule": lambda caller: wire.Schedule(firmament_pb2.ScheduleRequest(), caller),
        "task stats": lambda caller: wire.AddTaskStats(firmament_pb2.TaskStats(), caller),
        "node stats": lambda caller: wire.AddNodeStats(firmament_pb2.ResourceStats(), caller),
    }


CALLS = tuple(calls_of(Engine(LoadSpreading(), OrToolsSolver())))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("waited", [False, True], ids=["before it waits", "while it waits"])
def test_a_call_whose_caller_no_longer_waits_does_nothing(name, waited):
    engine, caller = Engine(LoadSpreading(), OrToolsSolver(), lambda: NOW_US), Caller()
    call, epoch = calls_of(engine)[name], engine.epoch
    engine.lock = lock = Impatient(caller)  # type: ignore[assignment]
    caller.there = waited
    with pytest.raises(FailedCall, match="nothing was changed") as ended:
        call(caller)
    assert ended.value.status is Status.CANCELLED
    assert lock.taken == waited
    assert (engine.rounds, len(engine.state.tasks), engine.epoch) == (0, 0, epoch)


def test_abandoned_rounds_are_not_run(service, monkeypatch):
    contexts: list[Any] = []
    arrived, ended = threading.Semaphore(0), threading.Semaphore(0)

    @contextmanager
    def noted(engine, context):
        contexts.append(context)
        arrived.release()
        try:
            with locked(engine, context):
                yield
        finally:
            ended.release()

    service.tell_small()
    monkeypatch.setattr(flow_service, "locked", noted)
    with service.engine.lock:
        request = flow_pb2.RoundRequest(epoch=service.engine.epoch, now_us=NOW_US)
        given_up = [service.flow.Round.future(request) for _ in range(3)]
        for _ in given_up:
            arrived.acquire()
        for call in given_up:
            call.cancel()
        while any(context.is_active() for context in contexts):
            time.sleep(0.001)
    for _ in given_up:
        ended.acquire()
    assert service.engine.rounds == 0
    assert set(placed(service.round())) == {1, 2, 3}


def test_few_questions_are_computed_at_once(monkeypatch):
    """Two trials go on; the third is refused at once, and one more is answered when one of them has ended."""
    engine = Engine(LoadSpreading(), OrToolsSolver(), lambda: NOW_US)
    service = FlowService(engine)
    begun, may_end = threading.Semaphore(0), threading.Event()
    original = would_fit

    def slow(*args, **others):
        begun.release()
        assert may_end.wait(30)
        return original(*args, **others)

    monkeypatch.setattr(flow_service, "would_fit", slow)
    request = flow_pb2.FitRequest(now_us=NOW_US)
    request.members.add(count=1, **{"class": task_class(1, cpu=1)})
    replies: list[Any] = []
    threads = [
        threading.Thread(target=lambda: replies.append(service.WouldFit(request, Caller())))
        for _ in range(flow_service.QUESTIONS_AT_ONCE)
    ]
    for thread in threads:
        thread.start()
        assert begun.acquire(timeout=30)
    with pytest.raises(FailedCall, match="2 plans or trials are being computed") as refused:
        service.WouldFit(request, Caller())
    assert refused.value.status is Status.RESOURCE_EXHAUSTED
    with pytest.raises(FailedCall):
        service.PlanMoves(flow_pb2.PlanRequest(now_us=NOW_US), Caller())
    may_end.set()
    for thread in threads:
        thread.join(30)
    assert [reply.fits for reply in replies] == [False, False]
    assert not service.WouldFit(request, Caller()).fits
