"""The standard health service, and the server's own life."""

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.service.calls.registry import service_of
from firmament_py.service.firmament_service import FirmamentService
from firmament_py.service.flow_service import FlowService
from firmament_py.service.server import CannotListenError, Server
from firmament_py.service.stats_service import StatsService
from policies.load_spreading import LoadSpreading
from protos.gen import firmament_pb2, flow_pb2, stats_pb2

SERVING = health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("name", ["", "firmament.FirmamentScheduler", "firmament.FlowScheduler"])
def test_each_service_is_healthy(service, name):
    stub = health_pb2_grpc.HealthStub(service.channel)
    assert stub.Check(health_pb2.HealthCheckRequest(service=name)).status == SERVING


def test_an_unknown_service_is_not_found(service):
    stub = health_pb2_grpc.HealthStub(service.channel)
    with pytest.raises(grpc.RpcError) as caught:
        stub.Check(health_pb2.HealthCheckRequest(service="firmament.Nothing"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_health_checks_are_answered_during_a_round(service):
    """Neither health check waits for the engine."""
    with service.engine.lock:
        stub = health_pb2_grpc.HealthStub(service.channel)
        assert stub.Check(health_pb2.HealthCheckRequest(), timeout=30).status == SERVING
        assert service.wire.Check(firmament_pb2.HealthCheckRequest(), timeout=30).status == firmament_pb2.SERVING


def test_an_address_in_use_is_reported(service):
    address = f"127.0.0.1:{service.server.port}"
    with pytest.raises(CannotListenError, match=f"cannot listen on {address}: in use"):
        Server(Engine(LoadSpreading(), OrToolsSolver()), address)


def test_the_services_have_the_names_of_the_contract():
    names = {
        flow_pb2.DESCRIPTOR.services_by_name["FlowScheduler"].full_name,
        firmament_pb2.DESCRIPTOR.services_by_name["FirmamentScheduler"].full_name,
    }
    assert names == {"firmament.FlowScheduler", "firmament.FirmamentScheduler"}


@pytest.mark.parametrize(
    ("contract", "answers"),
    [
        pytest.param(flow_pb2.DESCRIPTOR.services_by_name["FlowScheduler"], FlowService, id="flow"),
        pytest.param(firmament_pb2.DESCRIPTOR.services_by_name["FirmamentScheduler"], FirmamentService, id="wire"),
        pytest.param(stats_pb2.DESCRIPTOR.services_by_name["PoseidonStats"], StatsService, id="statistics"),
    ],
)
def test_every_method_of_the_contract_is_implemented(contract, answers):
    """A client of the original exits at the first UNIMPLEMENTED."""
    made = service_of(contract, answers(Engine(LoadSpreading(), OrToolsSolver())))
    assert made.name == contract.full_name
    assert set(made.methods) == {each.name for each in contract.methods}
    with pytest.raises(AttributeError):
        service_of(contract, object())
