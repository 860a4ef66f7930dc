"""Forecasts of small clusters."""

from firmament_py.forecast.future import Future, future_of, trial_of
from firmament_py.forecast.run_times import RunTimes
from firmament_py.rebalance.what_if import WhatIf
from tests.builders import NOW_US, SECOND_US, Cluster


def future(cluster: Cluster, run_times: RunTimes | None = None, now_us: int = NOW_US) -> Future:
    before = cluster.state.tasks.waiting.tolist()
    trial = trial_of(WhatIf.of(cluster.scheduler, now_us), cluster.scheduler)
    found = future_of(trial, now_us, run_times or RunTimes())
    assert cluster.state.tasks.waiting.tolist() == before, "the cluster is as it was"
    cluster.state.validate()
    return found


def starts(cluster: Cluster, run_times: RunTimes | None = None) -> dict[int, float]:
    """Uids with the seconds until they start; -1: not forecast."""
    found = future(cluster, run_times)
    waits = [(start - NOW_US) / SECOND_US if start else -1 for start in found.starts_us.tolist()]
    return dict(zip(found.uids.tolist(), waits, strict=True))
