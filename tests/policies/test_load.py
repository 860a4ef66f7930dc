"""Policies whose costs follow View.load, the amounts that count as used, instead of requests."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.policy import NodeUsage, View, checked_costs
from firmament_py.policy.registry import load
from policies.trivial import Trivial

BY_LOAD = [load(name, {}) for name in ("load-spreading", "cpu-memory", "bin-packing")]

each_policy = pytest.mark.parametrize("policy", BY_LOAD, ids=lambda p: p.name)


def view(allocatable, free, measured_load=None, **fields):
    """Nodes with cpu and memory, one waiting task that requests 1 of each."""
    nodes = len(allocatable)
    return View(
        resources=("cpu", "memory"),
        requests=np.ones((1, 2), np.int64),
        priority=np.zeros(1, np.int64),
        waiting=np.ones(1, np.int64),
        allocatable=np.array(allocatable, np.int64),
        free=np.array(free, np.int64),
        running=np.zeros(nodes, np.int64),
        slot_offsets=np.zeros(1, np.int64),
        task_class=np.zeros(1, np.int64),
        task_age_us=np.zeros(1, np.int64),
        measured_load=None if measured_load is None else np.array(measured_load, np.int64),
        **fields,
    )


def costs(policy, seen):
    found = checked_costs(policy, seen)
    return (found.place + found.slot[:, 0]).ravel().tolist()


amounts = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=4)


@each_policy
@given(data=st.data(), allocatable=amounts)
def test_costs_are_those_of_a_cluster_in_which_the_load_is_requested(policy, data, allocatable):
    same = st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 1500)), min_size=len(allocatable))
    load = data.draw(same)[: len(allocatable)]
    requested = np.array(allocatable) - np.array(load)
    assert costs(policy, view(allocatable, allocatable, load)) == costs(policy, view(allocatable, requested))


@each_policy
def test_an_idle_node_with_full_requests_is_distinguished_from_a_busy_one(policy):
    """Requests on node 0 are 9/10 of capacity and it is idle; node 1 the other way round."""
    full, idle = [1000, 1000], [100, 100]
    by_requests = costs(policy, view([full, full], [idle, [900, 900]]))
    by_use = costs(policy, view([full, full], [idle, [900, 900]], [[100, 100], [900, 900]]))
    assert by_requests == by_use[::-1]
    assert by_requests[0] != by_requests[1]


def test_without_measurements_the_load_is_the_requests():
    seen = view([[10, 10], [20, 20]], [[4, 10], [-5, 20]])
    assert seen.load.tolist() == [[6, 0], [25, 0]]
    assert np.isnan(seen.usage.cpu).all()
    assert seen.usage.age_seconds.shape == (2,)
    used = NodeUsage.unknown(2)
    assert replace(seen, measured_usage=used).usage is used


def test_the_baseline_ignores_load():
    assert costs(Trivial(), view([[10, 10]], [[4, 4]], [[9, 9]])) == [0]
