"""Views for tests of single policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.policy import NodeUsage, View


@dataclass
class Around:
    """Surroundings of a view: counts[trait] = {value: (N,)}, labels[key] = (N,) texts, "" without the label."""

    nodes: int
    counts: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    used: Mapping[tuple[str, str], tuple[float, int]] = field(default_factory=dict)
    """(value of a trait, of a label) -> mean millicores and number of tasks."""

    def cpu(self, trait: str, key: str) -> tuple[F64, I64]:
        values, domains = self.census(trait)[0], self.domains(key)[0]
        cells = [[self.used.get((value, domain), (np.nan, 0)) for domain in domains] for value in values]
        both = np.array(cells, np.float64).reshape(len(values), len(domains), 2)
        return both[:, :, 0], both[:, :, 1].astype(np.int64)

    def census(self, trait: str) -> tuple[tuple[str, ...], I64]:
        of = dict(sorted(self.counts.get(trait, {}).items()))
        return tuple(of), np.array(list(of.values()), np.int64).reshape(len(of), self.nodes).T

    def domains(self, key: str) -> tuple[tuple[str, ...], I64]:
        texts = self.labels.get(key, [""] * self.nodes)
        values = tuple(sorted({text for text in texts if text}))
        return values, np.array([values.index(text) if text else -1 for text in texts], np.int64)

    def in_order(self, order: Sequence[int]) -> "Around":
        """The same of the nodes in another order."""
        return Around(
            self.nodes,
            {t: {v: [of[i] for i in order] for v, of in values.items()} for t, values in self.counts.items()},
            {key: [texts[i] for i in order] for key, texts in self.labels.items()},
            self.used,
        )


def node_usage(**columns: Sequence[float]) -> NodeUsage:
    """Usage of nodes; unstated metrics were not measured."""
    nodes = len(next(iter(columns.values())))
    return replace(NodeUsage.unknown(nodes), **{name: np.array(values) for name, values in columns.items()})


def make_view(
    *,
    resources: Sequence[str],
    requests: Sequence[Sequence[int]],
    allocatable: Sequence[Sequence[int]],
    free: Sequence[Sequence[int]] | None = None,
    running: Sequence[int] | None = None,
    waiting: Sequence[int] | None = None,
    traits: Sequence[Mapping[str, str]] | None = None,
    counts: Mapping[str, Mapping[str, Sequence[int]]] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    used: Mapping[tuple[str, str], tuple[float, int]] | None = None,
    usage: NodeUsage | None = None,
    offsets: Sequence[int] = (0, 1, 2),
) -> View:
    """One task of each class waits, unless `waiting` says so; all of one priority and age."""
    classes, nodes = len(requests), len(allocatable)
    number = np.array(waiting if waiting is not None else [1] * classes, np.int64)
    task_class = np.repeat(np.arange(classes), number)
    return View(
        resources=tuple(resources),
        requests=np.array(requests, np.int64),
        priority=np.zeros(classes, np.int64),
        waiting=number,
        allocatable=np.array(allocatable, np.int64),
        free=np.array(allocatable if free is None else free, np.int64),
        running=np.array(running or [0] * nodes, np.int64),
        slot_offsets=np.array(offsets, np.int64),
        task_class=task_class,
        task_age_us=np.zeros(len(task_class), np.int64),
        traits=tuple(traits or ()),
        surroundings=Around(nodes, counts or {}, labels or {}, used or {}),
        measured_usage=usage,
    )
