"""A server on loopback and clients of its services; only tests advance the time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import grpc
import pytest

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.service.server import Server
from policies.load_spreading import LoadSpreading
from protos.gen import firmament_pb2_grpc, flow_pb2, flow_pb2_grpc
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, task_class, tasks
from tests.firmament_py.service.poseidon import Poseidon


class Clock:
    def __init__(self) -> None:
        self.now_us = NOW_US

    def __call__(self) -> int:
        return self.now_us


@dataclass
class Service:
    """A running service, from both sides."""

    engine: Engine
    server: Server
    channel: grpc.Channel
    clock: Clock

    def __post_init__(self) -> None:
        self.flow = flow_pb2_grpc.FlowSchedulerStub(self.channel)
        self.wire = firmament_pb2_grpc.FirmamentSchedulerStub(self.channel)

    def validate(self) -> None:
        self.engine.state.validate()

    def configure(self, **options: Any) -> None:
        """These options of the engine are others from the next resync on."""
        self.engine.options = replace(self.engine.options, **options)

    def resync(self, *updates: flow_pb2.Update) -> flow_pb2.UpdateReply:
        reply: flow_pb2.UpdateReply = self.flow.Resync(iter([*updates, flow_pb2.Update(complete=True)]))
        self.validate()
        return reply

    def apply(self, epoch: int | None = None, **parts) -> flow_pb2.UpdateReply:
        epoch = self.engine.epoch if epoch is None else epoch
        reply: flow_pb2.UpdateReply = self.flow.Apply(flow_pb2.Update(epoch=epoch, **parts))
        self.validate()
        return reply

    def round(self, acknowledged: int = 0, epoch: int | None = None) -> flow_pb2.RoundReply:
        epoch = self.engine.epoch if epoch is None else epoch
        request = flow_pb2.RoundRequest(epoch=epoch, acknowledged=acknowledged, now_us=self.clock())
        reply: flow_pb2.RoundReply = self.flow.Round(request)
        self.validate()
        return reply

    def explain(self, uid: int) -> flow_pb2.ExplainReply:
        reply: flow_pb2.ExplainReply = self.flow.Explain(flow_pb2.ExplainRequest(task_uid=uid))
        return reply

    def tell_small(self) -> None:
        """Node a of 4 cpu, tasks 1, 2, 3 of 1 cpu waiting."""
        reply = self.apply(classes=[task_class(1, cpu=1)], nodes=[node("a", cpu=4)], tasks=tasks([1, 2, 3], 1))
        assert reply == flow_pb2.UpdateReply(epoch=self.engine.epoch, quiet=reply.quiet)


@pytest.fixture
def service() -> Iterator[Service]:
    clock = Clock()
    engine = Engine(LoadSpreading(), OrToolsSolver(), clock)
    server = Server(engine, "127.0.0.1:0")
    server.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
    try:
        yield Service(engine, server, channel, clock)
        engine.state.validate()
    finally:
        channel.close()
        server.stop(0)


@pytest.fixture
def preempting(service) -> Poseidon:
    """A client of an engine that preempts for it, too."""
    service.configure(original_preempts=True)
    return Poseidon.of(service.channel)


@pytest.fixture
def poseidon(service) -> Poseidon:
    return Poseidon.of(service.channel)
