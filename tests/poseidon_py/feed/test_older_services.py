"""Flow services of other versions than the bridge."""

import grpc
import pytest

from poseidon_py.app.startup import StartError, first_hello, wait_for_engine
from poseidon_py.feed.client import ContractError, EngineClient
from protos.gen import flow_pb2, flow_pb2_grpc
from tests.other_contracts import with_more, without


class Described(flow_pb2_grpc.FlowSchedulerServicer):
    """Says that it knows a contract."""

    def __init__(self) -> None:
        self.description = b""
        self.asked = 0

    async def Hello(self, request, context):
        self.asked += 1
        return flow_pb2.HelloReply(epoch=7, version="0.0.9", policy="random", description=self.description)


@pytest.fixture
async def service():
    server, found = grpc.aio.server(), Described()
    flow_pb2_grpc.add_FlowSchedulerServicer_to_server(found, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    engine = EngineClient(f"127.0.0.1:{port}", 30)
    yield found, engine
    await engine.close()
    await server.stop(0)


@pytest.mark.parametrize(
    "description", [b"", with_more("TaskClass", "HelloReply").SerializeToString()], ids=["unknown", "newer"]
)
async def test_a_newer_service_is_used_and_one_from_before_the_descriptions(service, description):
    found, engine = service
    found.description = description
    assert (await engine.hello()).epoch == 7


async def test_a_service_that_would_skip_constraints_is_refused_at_once(service):
    found, engine = service
    found.description = without("TaskClass.anti_affinity", "Update.budgets").SerializeToString()
    with pytest.raises(ContractError) as refusal:
        await engine.hello()
    start, _, missing = refusal.value.details.removesuffix(": upgrade it first").partition(" does not know ")
    assert start == "the flow service is of version 0.0.9 and"
    assert set(missing.split(", ")) == {"TaskClass.anti_affinity", "Update.budgets"}
    for wait in (wait_for_engine(engine, engine.address, 30), first_hello(engine, 30)):
        with pytest.raises(StartError, match="upgrade it first"):
            await wait
    assert found.asked == 3  # none of them tried again


async def test_a_description_that_cannot_be_decoded_is_refused(service):
    found, engine = service
    found.description = b"\xff\xff"
    with pytest.raises(ContractError, match="cannot be decoded"):
        await engine.hello()
