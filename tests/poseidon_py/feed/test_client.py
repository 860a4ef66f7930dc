"""The client of the flow service: what holds whichever transport carries its calls."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from firmament_py.service.calls.caller import FailedCall, Status
from firmament_py.service.calls.registry import service_of
from firmament_py.service.direct.server import DirectServer
from firmament_py.service.over_grpc.server import GrpcServer
from poseidon_py.feed.client import EngineClient, EngineError, wait_until_serving
from poseidon_py.metrics.metrics import Metrics
from protos.addresses import DIRECT
from protos.gen import flow_pb2

CONTRACT = flow_pb2.DESCRIPTOR.services_by_name["FlowScheduler"]


class Answers:
    """Handles calls on the threads of a server: takes those of Hello and does not answer them, and reads streams."""

    def __init__(self) -> None:
        self.called = threading.Semaphore(0)
        self.may_answer = threading.Event()
        self.callers: list = []
        self.read: list[int] = []
        self.over = threading.Event()
        self.fails: Exception | None = None

    def of_contract(self) -> SimpleNamespace:
        others = dict.fromkeys(CONTRACT.methods_by_name, lambda *_: None)
        return SimpleNamespace(**others | {"Hello": self.hello, "Resync": self.resync, "Apply": self.apply})

    def hello(self, message, caller):
        self.callers.append(caller)
        self.called.release()
        self.may_answer.wait(30)
        return flow_pb2.HelloReply(epoch=7)

    def apply(self, message, caller):
        if self.fails is not None:
            raise self.fails
        return flow_pb2.UpdateReply(epoch=message.epoch, unknown_classes=message.removed_tasks)

    def resync(self, messages, caller):
        try:
            for message in messages:
                if self.fails is not None:
                    raise self.fails
                self.read.append(message.epoch)
                self.called.release()
        finally:
            self.over.set()
        return flow_pb2.UpdateReply(epoch=sum(self.read))

    async def until(self, met: threading.Semaphore | threading.Event) -> None:
        wait = met.acquire if isinstance(met, threading.Semaphore) else met.wait
        assert await asyncio.to_thread(wait, timeout=30)


@pytest.fixture
def answers():
    made = Answers()
    yield made
    made.may_answer.set()


@pytest.fixture(params=["direct", "grpc"])
def server(request, answers, tmp_path):
    service = service_of(CONTRACT, answers.of_contract())
    made: DirectServer | GrpcServer
    if request.param == "direct":
        made, address = DirectServer(service, f"{tmp_path}/s"), f"{DIRECT}{tmp_path}/s"
    else:
        address = f"unix:{tmp_path}/s"
        made = GrpcServer([service], address, 16)
    made.start()
    yield SimpleNamespace(address=address, stop=made.stop)
    answers.may_answer.set()
    made.stop(0)()


@pytest.fixture
async def engine(server):
    made = EngineClient(server.address, 30)
    yield made
    await made.close()


async def updates(*epochs: int, then=None):
    for epoch in epochs:
        yield flow_pb2.Update(epoch=epoch)
    if then is not None:
        await then.wait()


CALLS = {
    "unary": lambda engine: engine.hello(),
    "stream": lambda engine: engine.resync(updates(1, then=asyncio.Event())),
}


async def in_flight(engine, answers, kind):
    call = asyncio.create_task(CALLS[kind](engine))
    await answers.until(answers.called)
    return call


async def test_a_call_has_its_reply(engine):
    assert (await engine.apply(flow_pb2.Update(epoch=3))).epoch == 3


async def test_a_stream_arrives_in_order(engine, answers):
    assert (await engine.resync(updates(1, 2, 3))).epoch == 6
    assert answers.read == [1, 2, 3]


async def test_large_messages_both_ways(engine):
    ids = range(1 << 40, (1 << 40) + 500_000)
    update = flow_pb2.Update(removed_tasks=ids)
    assert update.ByteSize() > 2_900_000  # six bytes each: several times what a socket buffers
    assert list((await engine.apply(update)).unknown_classes) == list(ids)


async def test_calls_at_once(engine):
    found = await asyncio.gather(*(engine.apply(flow_pb2.Update(epoch=n)) for n in range(12)))
    assert [each.epoch for each in found] == list(range(12))


async def test_a_long_call_does_not_delay_others(engine, answers):
    call = await in_flight(engine, answers, "unary")
    assert (await engine.apply(flow_pb2.Update(epoch=3))).epoch == 3
    assert not call.done()
    answers.may_answer.set()
    assert (await call).epoch == 7


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("call", ["apply", "resync"])
async def test_a_failure_has_the_status_and_the_reason_of_the_service(server, answers, status, call):
    metrics = Metrics()
    engine = EngineClient(server.address, 30, None, metrics)
    answers.fails = FailedCall(status, "tasks[3].node is 7: give less")
    method, argument = ("Apply", flow_pb2.Update()) if call == "apply" else ("Resync", updates(1, 2))
    with pytest.raises(EngineError) as caught:
        await getattr(engine, call)(argument)
    assert (caught.value.code, caught.value.details) == (status, "tasks[3].node is 7: give less")
    assert metrics.rpc_errors.labels(method, status)._value.get() == 1
    answers.fails = None
    assert (await engine.apply(flow_pb2.Update(epoch=3))).epoch == 3
    await engine.close()


async def test_a_defect_of_the_service_fails_the_call(engine, answers):
    answers.fails = KeyError("a table")
    with pytest.raises(EngineError, match="a table") as caught:
        await engine.apply(flow_pb2.Update())
    assert caught.value.code == "UNKNOWN"


async def test_a_deadline_ends_a_call_and_the_service_learns_of_it(server, answers):
    engine = EngineClient(server.address, 0.05)
    with pytest.raises(EngineError) as caught:
        await engine.hello()
    assert caught.value.code == "DEADLINE_EXCEEDED"
    await answers.until(answers.called)
    await until_gone(answers)
    await engine.close()


async def until_gone(answers):
    async with asyncio.timeout(30):
        while answers.callers[0].is_active():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("kind", CALLS)
async def test_a_service_that_moves_fails_the_calls_in_flight_and_cancels_no_task(engine, server, answers, kind):
    call = await in_flight(engine, answers, kind)
    await engine.move(server.address)
    with pytest.raises(EngineError) as caught:
        async with asyncio.timeout(10):
            await call
    assert caught.value.code == "CLOSED"
    assert (await engine.apply(flow_pb2.Update(epoch=3))).epoch == 3


@pytest.mark.parametrize("kind", CALLS)
async def test_a_caller_that_is_cancelled_is_cancelled_and_the_service_learns_of_it(engine, answers, kind):
    call = await in_flight(engine, answers, kind)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    # gRPC may end a stream as if its sender had ended it: so the last update of a resync says that it is the last
    await (until_gone(answers) if kind == "unary" else answers.until(answers.over))


@pytest.mark.parametrize("kind", CALLS)
async def test_a_service_that_ends_fails_calls_in_flight_as_unavailable(engine, server, answers, kind):
    call = await in_flight(engine, answers, kind)
    stopping = asyncio.create_task(asyncio.to_thread(server.stop(0)))
    if kind == "unary" and server.address.startswith(DIRECT):
        answers.may_answer.set()  # a process ends its threads; here the one of the call goes on, and answers
        assert (await call).epoch == 7
    else:
        with pytest.raises(EngineError) as caught:
            await call
        assert caught.value.code in ("UNAVAILABLE", "CANCELLED")
    await stopping
    with pytest.raises(EngineError) as caught:
        await engine.apply(flow_pb2.Update())
    assert caught.value.code == "UNAVAILABLE"


@pytest.mark.parametrize(("timeout", "expected"), [(30, 60), (90, 90)])
async def test_a_plan_may_take_a_minute_or_longer_if_other_calls_may(timeout, expected):
    class Noting:
        def __init__(self):
            self.timeouts = []

        async def call(self, method, argument, reply, timeout):
            self.timeouts.append((method, timeout))
            return reply()

        async def close(self):
            pass

    engine, transport = EngineClient("", timeout), Noting()
    engine._transport = transport
    await engine.plan_moves(flow_pb2.PlanRequest())
    await engine.would_fit(flow_pb2.FitRequest())
    await engine.round(flow_pb2.RoundRequest())
    assert transport.timeouts == [("PlanMoves", expected), ("WouldFit", expected), ("Round", timeout)]


async def test_the_start_of_a_service_is_awaited(answers, tmp_path):
    answers.may_answer.set()
    waiting = asyncio.create_task(wait_until_serving(f"{DIRECT}{tmp_path}/s", 30))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    server = DirectServer(service_of(CONTRACT, answers.of_contract()), f"{tmp_path}/s")
    server.start()
    await waiting
    server.stop(0)()


async def test_a_service_that_is_not_there_in_time(tmp_path):
    with pytest.raises(EngineError) as caught:
        await wait_until_serving(f"{DIRECT}{tmp_path}/s", 0.01)
    assert caught.value.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
