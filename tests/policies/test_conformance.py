"""Rules for every registered policy, whatever its costs: the contract, purity, determinism, no favourites."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.policy import AnywherePolicy, NodeUsage, View, checked_costs, spreads_tasks
from firmament_py.policy.conformance import check, waived
from firmament_py.policy.registry import available, load
from tests.effort import examples
from tests.policies.views import Around

VARIANTS: list[tuple[str, dict[str, str]]] = [
    ("load-spreading", {"by": "requested"}),
    ("load-spreading", {"spare-devices": "0"}),
    ("random", {"seed": "9223372036854775807"}),
    ("shortest-job-first", {"patience": "0.25", "unknown-seconds": "60"}),
]
POLICIES = {"anywhere": AnywherePolicy(), **{info.name: load(info.name, {}) for info in available()}}
FURTHER = {
    " ".join([name, *(f"{k}={v}" for k, v in options.items())]): load(name, options) for name, options in VARIANTS
}

pytestmark = pytest.mark.slow

each_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


@pytest.mark.parametrize("policy", [*POLICIES.values(), *FURTHER.values()], ids=[*POLICIES, *FURTHER])
def test_the_conformance_suite_finds_nothing(policy):
    assert check(policy) == []


RESOURCES = ("cpu", "memory", "bandwidth.egress", "r")
LABEL = "node.kubernetes.io/instance-type"
TRAITS = {
    "interference-class": ("", "devil", "rabbit", "sheep", "turtle", "wolf"),
    "program": ("", "web"),
    "speed": ("", "c5=2,m5=1", "c5=0.5", "m5=0,c5"),
}


METRICS = ("cpu", "memory", "rx", "tx", "age_seconds")


def measured_by(nodes):
    """A column of measurements; NaN where there is none."""
    amounts = st.one_of(st.just(float("nan")), st.floats(0, 9), st.just(2.0**50))
    return st.lists(amounts, min_size=nodes, max_size=nodes).map(lambda column: np.array(column, np.float64))


@st.composite
def views(draw, min_nodes=0):
    """Views as rounds make them: priorities descend, nodes may be over-committed, amounts small or enormous."""
    c, n, r = draw(st.integers(1, 4)), draw(st.integers(min_nodes, 5)), draw(st.integers(1, 3))
    amounts = st.one_of(st.integers(0, 12), st.just(2**53 - 1))

    def matrix(rows, columns, values):
        cells = draw(st.lists(values, min_size=rows * columns, max_size=rows * columns))
        return np.array(cells, np.int64).reshape(rows, columns)

    allocatable = matrix(n, r, amounts)
    task_class = np.array(sorted(draw(st.lists(st.integers(0, c - 1), max_size=6))), np.int64)
    offsets = np.array(sorted({0, *draw(st.sets(st.integers(1, 5000), max_size=3))}), np.int64)
    ages = draw(st.lists(st.integers(0, 2**62), min_size=len(task_class), max_size=len(task_class)))
    count = st.integers(0, 50)
    around = Around(
        n,
        {trait: {value: matrix(1, n, count)[0].tolist() for value in values} for trait, values in TRAITS.items()},
        {LABEL: draw(st.lists(st.sampled_from(["", "c5", "m5"]), min_size=n, max_size=n))},
        {("web", "c5"): (draw(st.floats(0, 1e15)), draw(st.integers(0, 9))), ("web", "m5"): (draw(st.floats(0, 9)), 3)},
    )
    traits = [{trait: draw(st.sampled_from(values)) for trait, values in TRAITS.items()} for _ in range(c)]
    return View(
        resources=tuple(draw(st.permutations(RESOURCES))[:r]),
        requests=matrix(c, r, amounts),
        priority=np.array(sorted(draw(st.lists(st.integers(-9, 9), min_size=c, max_size=c)), reverse=True)),
        waiting=np.bincount(task_class, minlength=c),
        allocatable=allocatable,
        free=allocatable - matrix(n, r, amounts),
        running=matrix(1, n, st.integers(0, 100_000))[0],
        slot_offsets=offsets,
        task_class=task_class,
        task_age_us=np.array(ages, np.int64),
        traits=tuple(draw(st.sampled_from([(), traits]))),
        surroundings=around,
        measured_usage=draw(st.none() | st.builds(NodeUsage, *[measured_by(n)] * 5)),
        expected_us=matrix(1, c, st.one_of(st.integers(0, 10**12), st.just(2**50)))[0],
    )


def full(costs, view):
    """place (C, N), slot (N, K), wait (T,), repeated to their shapes, and most (N,)."""
    c, n, k = len(view.requests), len(view.allocatable), len(view.slot_offsets)
    return (
        np.broadcast_to(costs.place, (c, n)).tolist(),
        np.broadcast_to(costs.slot, (n, k)).tolist(),
        costs.wait.tolist(),
        [0] * n if costs.node_limit is None else costs.node_limit.tolist(),
    )


def arrays(view):
    return {f.name: getattr(view, f.name) for f in fields(view) if isinstance(getattr(view, f.name), np.ndarray)}


@each_policy
@examples(12)
@given(view=views())
def test_costs_keep_the_contract(policy, view):
    checked_costs(policy, view)


@each_policy
@examples(12)
@given(view=views())
def test_costs_are_pure(policy, view):
    """The same view has the same costs, and is not touched."""
    before = {name: array.copy() for name, array in arrays(view).items()}
    for array in arrays(view).values():
        array.setflags(write=False)
    first = full(policy.costs(view), view)
    assert full(policy.costs(view), view) == first
    assert all((array == before[name]).all() for name, array in arrays(view).items())


@pytest.mark.parametrize(
    "policy", [p for p in POLICIES.values() if "favourites" not in waived(p)], ids=lambda p: p.name
)
@examples(12)
@given(view=views(min_nodes=2), data=st.data())
def test_the_order_of_nodes_does_not_matter(policy, view, data):
    order = np.array(data.draw(st.permutations(range(len(view.allocatable)))))
    shuffled = replace(
        view,
        allocatable=view.allocatable[order],
        free=view.free[order],
        running=view.running[order],
        surroundings=view.surroundings.in_order(order.tolist()),
        measured_usage=view.measured_usage and NodeUsage(*(getattr(view.measured_usage, f)[order] for f in METRICS)),
    )
    place, slot, wait, maximum = full(policy.costs(view), view)
    place_2, slot_2, wait_2, most_2 = full(policy.costs(shuffled), shuffled)
    assert [[row[i] for i in order] for row in place] == place_2
    assert [slot[i] for i in order] == slot_2
    assert wait == wait_2
    assert [maximum[i] for i in order] == most_2


@each_policy
@examples(12)
@given(view=views())
def test_waiting_costs_increase_with_priority_and_do_not_decrease_with_age(policy, view):
    wait = policy.costs(view).wait.tolist()
    cls, age = view.task_class.tolist(), view.task_age_us.tolist()
    tasks = list(zip(cls, view.priority[view.task_class].tolist(), age, wait, strict=True))
    for of, priority, years, cost in tasks:
        for other, other_priority, other_years, other_cost in tasks:
            if priority > other_priority:
                assert cost > other_cost
            if of == other and years >= other_years:
                assert cost >= other_cost


@each_policy
@examples(12)
@given(view=views(min_nodes=1))
def test_no_cost_of_a_placement_outweighs_a_priority(policy, view):
    """On each node, the additional cost of the task of higher priority is below its additional waiting cost. So a round
    never gives a node to the task of lower priority."""
    place, _, wait, _ = full(policy.costs(view), view)
    tasks = list(zip(view.task_class.tolist(), wait, strict=True))
    for cls, cost in tasks:
        for other, other_cost in tasks:
            if view.priority[cls] > view.priority[other]:
                dearer = max(a - b for a, b in zip(place[cls], place[other], strict=True))
                assert cost - other_cost > dearer


@pytest.mark.parametrize("info", available(), ids=lambda info: info.name)
def test_a_registered_policy_describes_itself(info):
    assert info.error == ""
    assert info.summary.endswith(".")
    assert load(info.name, {}).name == info.name


def test_policies_say_whether_their_purpose_is_to_spread_tasks():
    spreading = {info.name for info in available() if spreads_tasks(load(info.name, {}))}
    assert spreading == {"load-spreading", "cpu-memory", "octopus", "shortest-job-first"}
    assert not spreads_tasks(load("load-spreading", {"spread-label": "rack"})), "it spreads them over racks"
