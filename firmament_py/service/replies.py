"""Results of the engine -> messages of the contract."""

from collections.abc import Iterable
from dataclasses import fields

import numpy as np

from firmament_py.engine.stats import RoundStats
from firmament_py.explain.reason import Reason, Waiting
from firmament_py.model.arrays import F64, I64, U8, distinct
from firmament_py.model.events import Refusal
from firmament_py.model.resources import TOKEN
from firmament_py.preemption.outcome import Preemption
from firmament_py.state.cluster import ClusterState
from firmament_py.usage.usage import Usage
from protos.gen import flow_pb2

_NO_STEPS: U8 = np.zeros(0, np.uint8)
_FIGURES = tuple(figure.name for figure in fields(RoundStats))


def refusal(item: Refusal) -> flow_pb2.Refusal:
    return flow_pb2.Refusal(kind=item.kind, id=item.id, field=item.field, reason=item.reason, queue=item.queue)


def reason(item: Reason) -> flow_pb2.Reason:
    return flow_pb2.Reason(
        kind=flow_pb2.Reason.Kind.Name(item.kind.value),
        detail=item.detail,
        value=item.value,
        nodes=item.nodes,
    )


def round_stats(stats: RoundStats) -> flow_pb2.RoundStats:
    """Each field has the same name in both."""
    return flow_pb2.RoundStats(**{figure: getattr(stats, figure) for figure in _FIGURES})


def usage_status(usage: Usage, wants_usage: bool, task_ages: F64, node_ages: F64) -> flow_pb2.UsageStatus:
    """task_ages (T,) and node_ages (N,): seconds, NaN: none."""
    options, total = usage.options, usage.total
    ages = np.r_[task_ages, node_ages]
    return flow_pb2.UsageStatus(
        basis=options.basis.value,
        wants_usage=wants_usage,
        samples=options.samples,
        half_life_seconds=options.half_life,
        stale_seconds=options.stale,
        taken=total.taken,
        old=total.old,
        refused=total.refused,
        unknown=total.unknown,
        tasks_measured=int((task_ages <= options.stale).sum()),
        tasks_stale=int((task_ages > options.stale).sum()),
        nodes_measured=int((node_ages <= options.stale).sum()),
        nodes_stale=int((node_ages > options.stale).sum()),
        newest_age_seconds=float(np.min(ages, initial=np.inf, where=~np.isnan(ages))),
        memory_bytes=usage.nbytes,
    )


def placements(state: ClusterState, tasks: I64, nodes: I64, by: U8 = _NO_STEPS) -> flow_pb2.Placements:
    """Of task rows (K,) on node rows (K,). by: PlacedBy of tasks that are placed (K,), else empty."""
    if not len(tasks):
        return flow_pb2.Placements()
    first, number = distinct(nodes)
    return flow_pb2.Placements(
        task_uid=state.tasks.uid[tasks].tolist(),
        node=number.tolist(),
        nodes=[state.nodes.id[row] for row in nodes[first].tolist()],
        by=by.tolist(),
    )


def preemptions(state: ClusterState, preemption: Preemption) -> flow_pb2.Preemptions:
    if not len(preemption.victims):
        return flow_pb2.Preemptions()
    uid = state.tasks.uid
    return flow_pb2.Preemptions(
        task_uid=uid[preemption.victims].tolist(), preemptor_uid=uid[preemption.preemptors].tolist()
    )


def uids_of(state: ClusterState, rows: I64) -> list[int]:
    """Of task rows (K,); 0 for -1."""
    return [int(state.tasks.uid[row]) if row >= 0 else 0 for row in rows.tolist()]


def unscheduled(state: ClusterState, waiting: Waiting, nodes: int) -> flow_pb2.Unscheduled:
    return flow_pb2.Unscheduled(
        class_id=int(state.classes.id[waiting.cls]),
        waiting=waiting.count,
        nodes=nodes,
        reasons=[reason(r) for r in waiting.reasons],
        task_uid=state.tasks.uid[waiting.unreported].tolist(),
    )


def amounts(names: tuple[str, ...], vector: Iterable[int]) -> dict[str, int]:
    """The amounts that are not 0, by resource, without tokens."""
    return {
        name: int(amount) for name, amount in zip(names, vector, strict=False) if amount and not name.startswith(TOKEN)
    }
