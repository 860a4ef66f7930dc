"""The suite that splits a cluster into parts, at a small scale, and how its queue is dealt to the parts."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import Options
from benchmarks.loads.split import SplitLoad, SplitSpec
from benchmarks.suites import split as suite

SMALL = SplitSpec(nodes=200, used=0.8, queued=0.2, ganged=0.5, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["load-spreading", "bin-packing"])
def test_the_suite_is_sound_at_a_small_scale(policy):
    case = specs.load("split").cases[0]
    sample = suite.measure(replace(case, sizes={**case.sizes, "policy": policy}), Options(scale=0.3, seed=0))
    assert [check for check in sample.checks if not check.ok] == []
    assert sample.facts["placed"]["1"] > 0
    assert sample.facts["gangs_placed"]["1"] > 0
    for parts in (2, 4, 8, 16):
        assert 0.8 < sample.metrics[f"tasks_{parts}"] < 1.05
        assert 0.95 < sample.metrics[f"placing_{parts}"] < 2


@pytest.mark.parametrize("by_slots", [False, True])
def test_each_task_goes_to_one_part_and_gangs_are_not_divided(by_slots):
    load = SplitLoad(SMALL)
    part, tasks = load.parts(4), np.arange(len(load.cls))
    to = load.assigned_parts(tasks, part, 4, load.free(np.full(len(tasks), -1)), by_slots=by_slots)
    assert set(to.tolist()) == {0, 1, 2, 3}
    for gang in range(len(load.gang_size)):
        assert len(set(to[load.gang == gang].tolist())) == 1


def test_single_tasks_are_dealt_in_proportion_to_what_parts_can_take():
    load = SplitLoad(SMALL)
    part, singles = load.parts(2), np.flatnonzero(load.gang < 0)
    free = load.free(np.full(len(load.cls), -1))
    free[part == 1] = 0
    singles = singles[load.slots(part, 2, free)[load.cls[singles], 0] > 0]
    assert len(singles)
    for by_slots in (False, True):
        assert not load.assigned_parts(singles, part, 2, free, by_slots=by_slots).any()


def test_racks_are_not_divided_between_parts():
    load = SplitLoad(SMALL)
    part = load.parts(4)
    for rack in np.unique(load.rack).tolist():
        assert len(set(part[load.rack == rack].tolist())) == 1
    assert set(part.tolist()) == {0, 1, 2, 3}


def test_the_load_fits_and_is_as_full_as_asked_for():
    load = SplitLoad(SMALL)
    assert (load.used <= load.allocatable).all()
    cpu = load.allocatable[:, 0].sum()
    assert load.used[:, 0].sum() / cpu == pytest.approx(0.8, abs=0.06)
    assert load.requests[load.cls, 0].sum() / cpu == pytest.approx(0.2, abs=0.05)
