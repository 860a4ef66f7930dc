"""A full cluster whose running tasks may all be moved, and its churn: tasks end, and as many arrive.

Each task may read data of its own; the tasks of a class are a job. A task that is evicted comes back as a new one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firmament_py.engine.engine import Engine
from firmament_py.engine.round_result import RoundResult
from firmament_py.model.arrays import I64, U64, Bools
from firmament_py.model.events import Block, ClassDefined, InputsDefined, NodeObserved, TasksObserved, TasksRemoved

START_US = 1_700_000_000_000_000
_GIB, _MIB = 2**30, 2**20
_RACK = "topology.kubernetes.io/rack"
_RACK_NODES = 40
_CPU, _MEMORY = 16_000, 64 * _GIB
_FITTING = (7, 9, 11, 13, 14, 16, 18, 20, 22, 24)
"""How many tasks of each class a node can take alone: 12 of mixed classes request nine tenths of it."""

_BLOCKS = (3, 8)
_REPLICAS = 3


@dataclass(frozen=True, slots=True)
class MovingSpec:
    """data: whether each task reads 3 to 8 blocks of its own, with 3 replicas each on random nodes."""

    nodes: int
    tasks_per_node: float = 12
    classes: int = 20
    data: bool = False
    seed: int = 0


class MovingLoad:
    """Feeds an engine, and carries out what its rounds decide. Uids count tasks in the order of arrival, from 1."""

    def __init__(self, spec: MovingSpec, engine: Engine) -> None:
        self._spec, self._engine = spec, engine
        self._rng = np.random.default_rng(spec.seed)
        self._names = [f"node-{i:05d}" for i in range(spec.nodes)]
        self.tasks = round(spec.nodes * spec.tasks_per_node)
        self._cls: I64 = np.zeros(1, np.int64)  # of each uid
        for i, name in enumerate(self._names):
            amounts = {"cpu": _CPU, "memory": _MEMORY, "pods": 110}
            engine.apply([NodeObserved(name, name, amounts, {_RACK: f"rack-{i // _RACK_NODES}"})])
        for c in range(spec.classes):
            alone = _FITTING[c % len(_FITTING)]
            engine.apply([ClassDefined(c + 1, {"cpu": _CPU // alone, "memory": _MEMORY // (2 * alone)})])

    def arrive(self, count: int) -> None:
        """New tasks of all classes that wait."""
        first = len(self._cls)
        self._submit(np.arange(first, first + count) % self._spec.classes + 1)

    def _submit(self, classes: I64) -> None:
        """New tasks of these classes (K,) that wait."""
        count = len(classes)
        uids = np.arange(len(self._cls), len(self._cls) + count)
        self._cls = np.concatenate([self._cls, classes])
        if self._spec.data:
            self._engine.apply(self._inputs(uid) for uid in uids.tolist())
        self._observe(uids.astype(np.uint64), np.zeros(count, np.int64), ())

    def end(self, count: int) -> None:
        """Running tasks end."""
        tasks = self._engine.state.tasks
        running = tasks.uid[(tasks.node >= 0) & tasks.live]
        self._engine.apply([TasksRemoved(self._rng.choice(running, min(count, len(running)), replace=False))])

    def confirm(self, result: RoundResult) -> None:
        """The placements of a round are bound; the tasks that migrate are gone, and their successors arrive."""
        state = self._engine.state
        nodes, index = np.unique(result.nodes, return_inverse=True)
        uids = state.tasks.uid[result.tasks]
        self._observe(uids, index.reshape(-1) + 1, tuple(state.nodes.id[row] for row in nodes.tolist()))
        evicted = state.tasks.uid[result.migration.tasks]
        if len(evicted):
            self._engine.apply([TasksRemoved(evicted)])
            self._submit(self._cls[evicted.astype(np.int64)])

    def _observe(self, uids: U64, node: I64, nodes: tuple[str, ...]) -> None:
        movable: Bools = np.ones(len(uids), np.bool_)
        self._engine.apply(
            [
                TasksObserved(
                    uid=uids,
                    class_id=self._cls[uids.astype(np.int64)].astype(np.uint64),
                    job_id=self._cls[uids.astype(np.int64)].astype(np.uint64),
                    created_us=np.full(len(uids), START_US),
                    node=node,
                    names=[f"default/task-{uid}" for uid in uids.tolist()],
                    nodes=nodes,
                    inputs_id=uids if self._spec.data else None,
                    movable=movable,
                )
            ]
        )

    def _inputs(self, uid: int) -> InputsDefined:
        count = int(self._rng.integers(_BLOCKS[0], _BLOCKS[1] + 1))
        at = self._rng.integers(0, self._spec.nodes, (count, _REPLICAS)).tolist()
        sizes = self._rng.integers(256, 4097, count).tolist()
        return InputsDefined(
            uid,
            tuple(Block(size * _MIB, tuple(self._names[n] for n in on)) for size, on in zip(sizes, at, strict=True)),
        )
