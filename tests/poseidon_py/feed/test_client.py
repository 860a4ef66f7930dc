"""The client of a flow service that exits during a call."""

import asyncio

import grpc
import pytest

from poseidon_py.feed.client import EngineError, GrpcEngine
from protos.gen import flow_pb2, flow_pb2_grpc


class Silent(flow_pb2_grpc.FlowSchedulerServicer):
    """Accepts every call and answers none."""

    def __init__(self):
        self.called = asyncio.Event()
        self.seconds_left = 0.0

    async def Hello(self, request, context):
        self.called.set()
        await asyncio.Event().wait()

    async def PlanMoves(self, request, context):
        self.seconds_left = context.time_remaining()
        return flow_pb2.MovePlan()

    async def Resync(self, requests, context):
        self.called.set()
        async for _ in requests:
            pass


async def updates():
    while True:
        yield flow_pb2.Update()
        await asyncio.sleep(0.01)


CALLS = {"unary": lambda engine: engine.hello(), "stream": lambda engine: engine.resync(updates())}


async def in_flight(silent, kind):
    service, address = silent
    engine = GrpcEngine(address, 30)
    call = asyncio.create_task(CALLS[kind](engine))
    await service.called.wait()
    return engine, call


@pytest.fixture
async def silent():
    server, service = grpc.aio.server(), Silent()
    flow_pb2_grpc.add_FlowSchedulerServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield service, f"127.0.0.1:{port}"
    await server.stop(0)


@pytest.mark.parametrize("kind", CALLS)
async def test_a_service_that_moves_fails_the_calls_in_flight_and_cancels_no_task(silent, kind):
    engine, call = await in_flight(silent, kind)
    await engine.move(silent[1])
    with pytest.raises(EngineError) as caught:
        async with asyncio.timeout(10):
            await call
    assert caught.value.code == "CLOSED"
    await engine.close()


@pytest.mark.parametrize("kind", CALLS)
async def test_a_caller_that_is_cancelled_is_cancelled(silent, kind):
    engine, call = await in_flight(silent, kind)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await engine.close()


@pytest.mark.parametrize(("timeout", "expected"), [(30, 60), (90, 90)])
async def test_a_plan_may_take_a_minute_or_longer_if_other_calls_may(silent, timeout, expected):
    service, address = silent
    engine = GrpcEngine(address, timeout)
    await engine.plan_moves(flow_pb2.PlanRequest())
    assert expected - 20 < service.seconds_left < expected + 5
    await engine.close()
