"""The original PoseidonStats service: streams of node and pod samples, with a reply to each sample.

Each stream has a reader thread. Samples that arrive while the engine is busy are taken in as one batch, under one hold
of its lock; a sender that waits for each reply before the next sample gets it at once.

Nodes are identified by host name, which is the node's name, pods by namespace and name. Invalid samples get the same
reply as valid ones (the contract has no reply for them), are refused one by one, and are counted.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from firmament_py.engine.engine import Engine
from firmament_py.service import usage_samples
from firmament_py.service.calls.caller import BrokenStream, Caller
from firmament_py.state.cluster import ClusterState
from firmament_py.state.tables import TaskTable
from protos.gen import stats_pb2 as pb

_MOST_AT_ONCE = 2000
_PATIENCE_SECONDS = 0.5

T = TypeVar("T")
R = TypeVar("R")


class StatsService:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._pods = _Pods()

    def ReceiveNodeStats(
        self, request_iterator: Iterator[pb.NodeStats], caller: Caller
    ) -> Iterator[pb.NodeStatsResponse]:
        return _Batches(request_iterator, caller, self._take_nodes).answers()

    def ReceivePodStats(self, request_iterator: Iterator[pb.PodStats], caller: Caller) -> Iterator[pb.PodStatsResponse]:
        return _Batches(request_iterator, caller, self._take_pods).answers()

    def _take_nodes(self, batch: list[pb.NodeStats]) -> list[pb.NodeStatsResponse]:
        engine = self._engine
        with engine.lock:
            state, now_us = engine.state, engine.now_us()
            rows = _rows_of_nodes(state, [message.hostname for message in batch])
            read = [
                (usage_samples.micros(message.timestamp, now_us), usage_samples.of_node(message, state.offered(row)))
                for row, message in zip(rows, batch, strict=True)
            ]
            engine.usage.note_nodes(state, *usage_samples.columns(rows, read), now_us)
        kinds = [pb.NODE_STATS_OK if row >= 0 else pb.NODE_NOT_FOUND for row in rows]
        return [pb.NodeStatsResponse(type=k, hostname=m.hostname) for k, m in zip(kinds, batch, strict=True)]

    def _take_pods(self, batch: list[pb.PodStats]) -> list[pb.PodStatsResponse]:
        read = [usage_samples.of_pod(message) for message in batch]
        names = [f"{message.namespace}/{message.name}" for message in batch]
        engine = self._engine
        with engine.lock:
            state, now_us = engine.state, engine.now_us()
            rows = self._pods.rows(engine, names)
            engine.usage.note_tasks(state, *usage_samples.columns(rows, [(now_us, values) for values in read]), now_us)
        kinds = [pb.POD_STATS_OK if row >= 0 else pb.POD_NOT_FOUND for row in rows]
        return [
            pb.PodStatsResponse(type=kind, name=message.name, namespace=message.namespace)
            for kind, message in zip(kinds, batch, strict=True)
        ]


class _Pods:
    """Rows of tasks by name, from a map that is rebuilt when a name is missing and tasks were added since."""

    def __init__(self) -> None:
        self._row: dict[str, int] = {}
        self._made_of = (0, 0)

    def rows(self, engine: Engine, names: list[str]) -> list[int]:
        """Task rows (K,) of names; -1: there is no such task."""
        tasks, now = engine.state.tasks, (engine.epoch, engine.state.tasks.allocations)
        found = [self._find(tasks, name) for name in names]
        if -1 in found and self._made_of != now:
            rows = tasks.rows()
            rows = rows[tasks.generation[rows].argsort()]  # of two tasks with one name the later counts
            self._row = dict(zip(tasks.name[rows].tolist(), rows.tolist(), strict=True))
            self._made_of = now
            found = [self._find(tasks, name) for name in names]
        return found

    def _find(self, tasks: TaskTable, name: str) -> int:
        row = self._row.get(name, -1)
        there = 0 <= row < tasks.capacity and tasks.live[row] and tasks.name[row] == name
        return row if there else -1


def _rows_of_nodes(state: ClusterState, names: list[str]) -> list[int]:
    """Node rows (K,) of names; -1: there is no such node."""
    named = {node.name: row for row, node in state.nodes.observed.items()}
    return [named.get(name, -1) for name in names]


class _Batches(Generic[T, R]):
    """Turns a stream of messages into batches, and the replies to batches into a stream."""

    def __init__(self, messages: Iterator[T], caller: Caller, take: Callable[[list[T]], list[R]]) -> None:
        self._messages = messages
        self._take = take
        self._queue: queue.Queue[T | None] = queue.Queue(_MOST_AT_ONCE)
        self._caller = caller

    def answers(self) -> Iterator[R]:
        threading.Thread(target=self._read, name="stats reader", daemon=True).start()
        ended = False
        while not ended:
            batch: list[T] = []
            try:
                message = self._queue.get(timeout=_PATIENCE_SECONDS)
                while message is not None:
                    batch.append(message)
                    if len(batch) == _MOST_AT_ONCE:
                        break
                    message = self._queue.get_nowait()
                else:
                    ended = True
            except queue.Empty:
                ended = not self._caller.is_active()
            if batch:
                yield from self._take(batch)

    def _read(self) -> None:
        try:
            for message in self._messages:
                if not self._put(message):
                    return
        except BrokenStream:
            pass  # the stream broke off: samples received so far count
        self._put(None)

    def _put(self, message: T | None) -> bool:
        """Queues a message; false if the stream is over."""
        while self._caller.is_active():
            try:
                self._queue.put(message, timeout=_PATIENCE_SECONDS)
                return True
            except queue.Full:
                continue
        return False
