"""Addresses of a service: a unix socket or a port, and a separate address for statistics."""

import socket

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.service.server import Server
from policies.load_spreading import LoadSpreading
from protos.gen import flow_pb2, flow_pb2_grpc, stats_pb2, stats_pb2_grpc


@pytest.fixture
def serve():
    """Starts servers, and stops them."""
    started = []

    def make(*addresses: str) -> Server:
        server = Server(Engine(LoadSpreading(), OrToolsSolver()), addresses[0], None, *addresses[1:])
        started.append(server)
        server.start()
        return server

    yield make
    for server in started:
        server.stop(0)


def hello(channel):
    return flow_pb2_grpc.FlowSchedulerStub(channel).Hello(flow_pb2.HelloRequest(), timeout=20)


def pod_stats(channel):
    stub = stats_pb2_grpc.PoseidonStatsStub(channel)
    return [answer.type for answer in stub.ReceivePodStats(iter([stats_pb2.PodStats(name="a")]), timeout=20)]


def test_a_unix_socket_serves_all_services(serve, tmp_path):
    address = f"unix:{tmp_path}/s"
    assert serve(address).port == 0
    with grpc.insecure_channel(address) as channel:
        assert hello(channel).policy == "load-spreading"
        assert pod_stats(channel) == [stats_pb2.POD_NOT_FOUND]
        reply = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(service="firmament.FlowScheduler"), timeout=20
        )
        assert reply.status == health_pb2.HealthCheckResponse.SERVING


def test_a_stale_socket_is_replaced(serve, tmp_path):
    address = f"unix:{tmp_path}/s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{tmp_path}/s")
    serve(address)
    with grpc.insecure_channel(address) as channel:
        assert hello(channel).policy


def test_the_statistics_address_serves_only_statistics(serve, tmp_path):
    server = serve(f"unix:{tmp_path}/s", "127.0.0.1:0")
    with grpc.insecure_channel(f"127.0.0.1:{server.stats_port}") as channel:
        assert pod_stats(channel) == [stats_pb2.POD_NOT_FOUND]
        with pytest.raises(grpc.RpcError) as caught:
            hello(channel)
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
