"""The scheduler of a replay: the engine in this process, or through gRPC on loopback.

Both receive the events that a bridge would send, and are asked for rounds in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import grpc
import numpy as np

from benchmarks.traces.form import SECOND
from firmament_py.engine.engine import Engine
from firmament_py.engine.round_result import RoundResult
from firmament_py.flow.solver import SOLVERS, Solver
from firmament_py.model.arrays import U64
from firmament_py.model.events import (
    ClassDefined,
    Event,
    GangObserved,
    GangRemoved,
    InputsDefined,
    NodeObserved,
    NodeRemoved,
    PlacementRejected,
    TasksObserved,
    TasksRemoved,
)
from firmament_py.model.options import RESERVE_AFTER_US, EngineOptions, Preempting
from firmament_py.policy import counts_links, registry
from firmament_py.service.server import Server
from protos.gen import flow_pb2, flow_pb2_grpc

_LIMITS = [("grpc.max_receive_message_length", 2**30), ("grpc.max_send_message_length", 2**30)]


class RefusedError(Exception):
    """The scheduler refused an event: a defect of the replay."""


@dataclass(frozen=True, slots=True)
class Round:
    """Task uids (K,), the ids of the nodes (K) on which they are placed, and times. solve_s: the solver's share."""

    uids: U64
    nodes: Sequence[str]
    seconds: float
    solve_s: float = 0.0
    solves: int = 0
    dropped: int = 0


class Service(Protocol):
    """A scheduler."""

    name: str
    counts_links: bool
    """Whether it counts bandwidth as a resource."""
    now_us: int
    """The time of the events to come, which the replay sets."""

    @property
    def reserve_after_us(self) -> int | None:
        """The wait after which capacity may be reserved for a task; None: never."""
        ...

    def apply(self, events: Sequence[Event]) -> None:
        """Applies events, in the order of the contract: classes, inputs, gangs, nodes, removals, tasks."""
        ...

    def round(self, now_us: int) -> Round | None:
        """Runs a round, whose placements are assumed; None if nothing relevant has changed."""
        ...

    def close(self) -> None:
        """Releases resources."""
        ...


class InProcess:
    """The engine, called directly."""

    now_us = 0

    def __init__(
        self, policy: str, solver: Solver | None = None, reserve_after_us: int | None = RESERVE_AFTER_US
    ) -> None:
        self.name, self.reserve_after_us = policy, reserve_after_us
        self.engine = _engine(policy, solver, reserve_after_us)
        self.counts_links = counts_links(self.engine.policy)

    def apply(self, events: Sequence[Event]) -> None:
        outcome = self.engine.apply(events)
        if (
            outcome.refused
            or outcome.unknown
            or outcome.unknown_classes
            or outcome.unknown_gangs
            or outcome.unknown_inputs
        ):
            raise RefusedError(str(outcome))

    def round(self, now_us: int) -> Round | None:
        result = self.engine.run_round(now_us)
        if result is None:
            return None
        self.ended(result)
        state, stats = self.engine.state, result.stats
        ids = state.nodes.id
        return Round(
            state.tasks.uid[result.tasks].copy(),
            [ids[row] for row in result.nodes.tolist()],
            stats.seconds,
            stats.stage_seconds.get("solve", 0.0),
            stats.solves,
            stats.dropped,
        )

    def ended(self, result: RoundResult) -> None:
        """A round has ended."""

    def close(self) -> None:
        pass


class ThroughGrpc:
    """The engine behind its server, on a port of loopback."""

    now_us = 0

    def __init__(
        self, policy: str, solver: Solver | None = None, reserve_after_us: int | None = RESERVE_AFTER_US
    ) -> None:
        self.name, self.reserve_after_us = policy, reserve_after_us
        engine = _engine(policy, solver, reserve_after_us)
        self.counts_links = counts_links(engine.policy)
        self._server = Server(engine, "127.0.0.1:0")
        self._server.start()
        self._channel = grpc.insecure_channel(f"127.0.0.1:{self._server.port}", options=_LIMITS)
        self._stub = flow_pb2_grpc.FlowSchedulerStub(self._channel)  # type: ignore[no-untyped-call]  # generated
        self._epoch = self._stub.Resync(iter([flow_pb2.Update(complete=True)])).epoch
        self._acknowledged = 0

    def apply(self, events: Sequence[Event]) -> None:
        reply = self._stub.Apply(update(events, self._epoch))
        if reply.status or reply.refused or reply.unknown_classes or reply.unknown_gangs or reply.unknown_inputs:
            raise RefusedError(str(reply))

    def round(self, now_us: int) -> Round | None:
        began = perf_counter()
        request = flow_pb2.RoundRequest(epoch=self._epoch, acknowledged=self._acknowledged, now_us=now_us)
        reply = self._stub.Round(request)
        if not reply.round:
            return None
        self._acknowledged = reply.round
        placed, stats = reply.placed, reply.stats
        return Round(
            np.fromiter(placed.task_uid, np.uint64, len(placed.task_uid)),
            [placed.nodes[i] for i in placed.node],
            perf_counter() - began,
            solves=stats.solves,
        )

    def close(self) -> None:
        self._channel.close()
        self._server.stop(1.0)


def _engine(policy: str, solver: Solver | None, reserve_after_us: int | None) -> Engine:
    return Engine(
        registry.load(policy, {}),
        solver or SOLVERS["or-tools"](),
        options=EngineOptions(reserve_after_us=reserve_after_us, preempting=Preempting.OFF),
    )


def update(events: Iterable[Event], epoch: int) -> flow_pb2.Update:
    """Events as one message; supports the events that a replay makes."""
    message = flow_pb2.Update(epoch=epoch)
    for event in events:
        match event:
            case ClassDefined():
                added = message.classes.add(
                    id=event.id,
                    requests=event.requests,
                    priority=event.priority,
                    name=event.name,
                    traits=event.traits,
                    expected_seconds=event.expected_us // SECOND,
                )
                for r in event.demand.selector:
                    added.node_selector.add(key=r.key, operator=str(r.operator), values=r.values)
            case InputsDefined():
                inputs = message.inputs.add(id=event.id)
                for block in event.blocks:
                    inputs.blocks.add(bytes=block.bytes, nodes=block.nodes, racks=block.racks)
            case GangObserved():
                message.gangs.add(id=event.id, minimum=event.minimum, created_us=event.created_us, name=event.name)
            case NodeRemoved():
                message.removed_nodes.append(event.id)
            case NodeObserved():
                message.nodes.add(id=event.id, name=event.name, allocatable=event.allocatable, labels=event.labels)
            case TasksRemoved():
                message.removed_tasks.extend(event.uid.tolist())
            case PlacementRejected():
                message.rejections.add(task_uid=event.uid, node_id=event.node_id)
            case GangRemoved():
                message.removed_gangs.append(event.id)
            case TasksObserved():
                _add_tasks(message.tasks, event)
            case _:
                raise ValueError(f"a replay makes no {type(event).__name__}")
    return message


def _add_tasks(message: flow_pb2.Tasks, event: TasksObserved) -> None:
    message.uid.extend(event.uid.tolist())
    message.class_id.extend(event.class_id.tolist())
    message.job_id.extend(event.job_id.tolist())
    message.created_us.extend(event.created_us.tolist())
    message.node.extend(event.node.tolist())
    message.name.extend(event.names)
    message.nodes.extend(event.nodes)
    if event.gang_id is not None:
        message.gang_id.extend(event.gang_id.tolist())
    if event.inputs_id is not None:
        message.inputs_id.extend(event.inputs_id.tolist())
    if event.started_us is not None:
        message.started_us.extend(event.started_us.tolist())
