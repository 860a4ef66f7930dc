"""Generated views for checking policies: the same in every run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.random import Generator

from firmament_py.model.arrays import F64, I64
from firmament_py.model.locality import BlockReplicas
from firmament_py.policy.api import NodeUsage, View
from firmament_py.policy.locality import Inputs, gather
from firmament_py.policy.preemption import Victims

PER_NODE = ("allocatable", "free", "running", "depth", "measured_load")
"""The fields of a view that have a row for each node, if given; measured_usage and inputs have such fields, too."""

_TRAITS = {"interference-class": ("devil", "rabbit", "sheep", "turtle"), "speed": ("c5=2,m5=1",)}
_DOMAINS = ("c5", "m5", "r5")

_RESOURCES = ("pods", "cpu", "memory", "x.io/device", "y.io/device")
_ENORMOUS = 2**50 - 1
_BLOCK_BYTES = (0, 1, 2**20, 10**9, 2**40, 2**50)
_BLOCKS = 3  # of a set of data
_REPLICAS = 2  # of a block
_COUNT = 40


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """Answers for every trait and label. counts (N, V): tasks with each value; domain (N,); used (V, D): mean
    millicores of the tasks with each value in each domain; measured (V, D): how many of them were measured."""

    counts: I64
    domain: I64
    used: F64
    measured: I64

    def census(self, trait: str) -> tuple[tuple[str, ...], I64]:
        values = _TRAITS.get(trait, ("a", "b"))
        return values, self.counts[:, : len(values)]

    def domains(self, key: str) -> tuple[tuple[str, ...], I64]:
        return _DOMAINS, self.domain

    def cpu(self, trait: str, key: str) -> tuple[F64, I64]:
        values = len(self.census(trait)[0])
        return self.used[:values], self.measured[:values]

    def reversed_nodes(self) -> "_Surroundings":
        return replace(self, counts=self.counts[::-1], domain=self.domain[::-1])


def victims() -> Iterator[Victims]:
    """None, one, and many running tasks; of each class some that have run for the same time and lose different work."""
    rng = np.random.default_rng(2)
    for classes, each in ((0, 0), (1, 1), (4, 30)):
        task_class = np.repeat(np.arange(classes), each)
        run_us = np.repeat(rng.integers(0, 10**13, classes * -(-each // 3)), 3)[: classes * each]
        sample = Victims(
            resources=_RESOURCES,
            requests=rng.integers(0, 1000, (classes, len(_RESOURCES))),
            priority=np.sort(rng.integers(-5, 5, classes))[::-1].copy(),
            traits=tuple({"speed": "c5=2,m5=1"} if c % 2 else {} for c in range(classes)),
            task_class=task_class,
            run_us=run_us,
            lost_us=rng.integers(0, run_us + 1),
        )
        for column in (sample.requests, sample.priority, sample.task_class, sample.run_us, sample.lost_us):
            column.flags.writeable = False
        yield sample


def views() -> Iterator[View]:
    """Corner cases, then ordinary ones. Most have `inputs`."""
    rng = np.random.default_rng(1)
    for classes, nodes, tasks in ((0, 0, 0), (0, 3, 0), (1, 0, 0), (1, 0, 2), (2, 3, 0), (1, 1, 1), (3, 0, 4)):
        yield _view(rng, classes, nodes, tasks)
    for amount in (0, 1, _ENORMOUS):
        yield _view(rng, 3, 4, 6, amounts=(amount,))
        yield _view(rng, 3, 4, 6, amounts=(amount, 8), resources=("x.io/device",))
    yield _view(rng, 2, 3, 4, resources=("pods",))
    yield _view(rng, 2, 3, 4, resources=())
    for _ in range(_COUNT):
        yield _view(rng, *rng.integers((1, 1, 0), (6, 8, 12)).tolist())


def ages(fresh_us: int, old_us: int) -> View:
    """Classes of one priority, with expected durations from none to enormous; each has a new task and an old one."""
    lengths = [0, *(10**i for i in range(6, 15, 2)), _ENORMOUS]
    task_class = np.repeat(np.arange(len(lengths)), 2)
    view = _view(np.random.default_rng(2), len(lengths), 3, 0)
    aged = replace(
        view,
        priority=np.zeros(len(lengths), np.int64),
        waiting=np.full(len(lengths), 2),
        task_class=task_class,
        task_age_us=np.tile(np.array([fresh_us, old_us]), len(lengths)),
        expected_us=np.array(lengths, np.int64),
    )
    return _frozen(aged)


def reversed_nodes(view: View) -> View:
    """The same view with its nodes in reverse order."""
    rows = {name: rows[::-1].copy() for name in PER_NODE if (rows := getattr(view, name)) is not None}
    usage = view.measured_usage
    if usage is not None:
        usage = NodeUsage(*(getattr(usage, field.name)[::-1].copy() for field in fields(usage)))
    around = view.surroundings
    if isinstance(around, _Surroundings):
        around = around.reversed_nodes()
    inputs = None if view.inputs is None else _reversed_inputs(view.inputs)
    return _frozen(replace(view, **rows, measured_usage=usage, surroundings=around, inputs=inputs))


def _reversed_inputs(inputs: Inputs) -> Inputs:
    node = len(inputs.rack) - 1 - inputs.near_node
    order = np.lexsort((node, inputs.near_set))
    return replace(inputs, near_node=node[order], near_bytes=inputs.near_bytes[order], rack=inputs.rack[::-1].copy())


def arrays(of: View | Inputs | NodeUsage) -> dict[str, I64]:
    """Arrays by name; those of a view's inputs and measured usage have names like `inputs.total`."""
    found: dict[str, I64] = {}
    for field in fields(of):
        value = getattr(of, field.name)
        if isinstance(value, np.ndarray):
            found[field.name] = value
        elif isinstance(value, (Inputs, NodeUsage)):
            found |= {f"{field.name}.{name}": array for name, array in arrays(value).items()}
    return found


def large() -> View:
    """5,000 nodes of which few are alike, 256 classes, 20,000 tasks, most with data of their own."""
    return _view(np.random.default_rng(3), 256, 5000, 20_000, amounts=range(1000), slots=64, kinds=5000, sets=20_000)


def _view(
    rng: Generator,
    classes: int,
    nodes: int,
    tasks: int,
    *,
    amounts: Sequence[int] = (0, 1, 2, 3, 500, 4000, 64_000, 2**36),
    resources: tuple[str, ...] = _RESOURCES,
    slots: int = 0,
    kinds: int = 3,
    sets: int = 0,
) -> View:
    """A view with nodes of at most `kinds` kinds, so that some are alike; some offer nothing or are over-committed."""

    def drawn(rows: int) -> I64:
        return rng.choice(np.array(amounts, np.int64), (rows, len(resources)))

    kind = rng.integers(0, kinds, nodes)
    offered = drawn(kinds)
    allocatable = offered[kind]
    used = np.where(rng.random((kinds, len(resources))) < 0.3, 0, drawn(kinds))[kind]
    task_class = np.sort(rng.integers(0, classes, tasks)) if classes else np.zeros(0, np.int64)
    measured = bool(rng.integers(0, 2))
    jumps = rng.integers(1, 1 + rng.integers(1, 200), slots or int(rng.integers(0, 6)))
    return _frozen(
        View(
            resources=resources,
            requests=drawn(classes),
            priority=np.sort(rng.integers(-3, 3, classes))[::-1].copy(),
            waiting=np.bincount(task_class, minlength=classes),
            allocatable=allocatable,
            free=allocatable - used,
            running=rng.choice(np.array([0, 0, 1, 5, 110, 100_000]), kinds)[kind],
            slot_offsets=np.concatenate([[0], np.cumsum(jumps)]),
            task_class=task_class,
            task_age_us=rng.choice(np.array([0, 1, 10**6, 10**8, 10**11, 2**62]), len(task_class)),
            measured_load=rng.integers(0, 2 + 2 * offered)[kind] if measured else None,
            measured_usage=NodeUsage(*(_readings(rng, kinds)[kind] for _ in range(5))) if measured else None,
            traits=tuple({t: str(rng.choice(values)) for t, values in _TRAITS.items()} for _ in range(classes)),
            surroundings=_around(rng, kind, kinds),
            depth=rng.choice(np.array([0, 1, 20, 110, 10_000]), kinds)[kind],
            expected_us=rng.choice(np.array([0, 10**6, 10**9, _ENORMOUS]), classes),
            inputs=_inputs(rng, nodes, len(task_class), sets or int(rng.integers(0, len(task_class) + 1))),
        )
    )


def _inputs(rng: Generator, nodes: int, tasks: int, sets: int) -> Inputs | None:
    """`sets` input sets, whose blocks are on nodes, somewhere in racks, or nowhere; None: no data."""
    if not sets:
        return None
    rack = rng.integers(-1, 1 + nodes // 3, nodes)
    blocks = sets * _BLOCKS
    replica_node = rng.integers(-1, nodes, blocks * _REPLICAS)
    somewhere = rng.integers(-1, 1 + int(rack.max(initial=-1)), len(replica_node))
    placed = BlockReplicas(
        block_set=np.repeat(np.arange(sets), _BLOCKS),
        block_bytes=rng.choice(np.array(_BLOCK_BYTES), blocks),
        replica_block=np.repeat(np.arange(blocks), _REPLICAS),
        replica_node=replica_node,
        replica_rack=np.where(replica_node < 0, somewhere, np.append(rack, -1)[replica_node]),
    )
    of_task = rng.integers(-1, sets, tasks)
    return gather(of_task, sets, placed, rack).of_tasks(of_task)


def _around(rng: Generator, kind: I64, kinds: int) -> _Surroundings:
    """Nodes of a kind have the same neighbours and labels."""
    measured = rng.integers(0, 6, (4, len(_DOMAINS)))
    used = np.where(measured > 0, rng.random(measured.shape) * 10**4, np.nan)
    return _Surroundings(rng.integers(0, 50, (kinds, 4))[kind], rng.integers(-1, 3, kinds)[kind], used, measured)


def _readings(rng: Generator, count: int) -> F64:
    return np.where(rng.random(count) < 0.2, np.nan, rng.random(count) * 10**6)


def _frozen(view: View) -> View:
    for array in arrays(view).values():
        array.flags.writeable = False
    return view
