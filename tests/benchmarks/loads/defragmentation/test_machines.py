"""Machines of two NUMA nodes: the generator, the checks of moves, the baseline, and the optimum against all plans."""

from itertools import product

import numpy as np
import pytest

from benchmarks.loads.defragmentation.greedy import greedy_plan
from benchmarks.loads.defragmentation.machines import Machines, Tasks, fragment_rate, fragments
from benchmarks.loads.defragmentation.optimum import best_plan
from tests.effort import seeds


def machines(count, *tasks) -> Machines:
    """tasks: machine, and cores on each of its NUMA nodes."""
    rows = np.array(tasks, np.int64).reshape(-1, 3)
    return Machines(count, Tasks(rows[:, 0], rows[:, 1:]))


def moves(*of):
    return np.array(of, np.int64).reshape(-1, 3)


@seeds(8)
def test_the_published_marginals(seed):
    load = Machines.random(seed, 280)
    size, on_machine = load.tasks.cores.sum(axis=1), load.free.sum(axis=1)
    assert len(size) == 2089
    counts = dict(zip(*(column.tolist() for column in np.unique(size, return_counts=True)), strict=True))
    assert counts == {2: 337, 4: 909, 8: 368, 16: 230, 32: 111, 64: 130, 88: 4}
    assert (size <= 16).mean() == pytest.approx(0.8827, abs=5e-5)
    assert 1 - on_machine.sum() / (280 * 88) == pytest.approx(0.93985, abs=1e-5)
    assert (1 - on_machine / 88 > 0.8).mean() == pytest.approx(0.8144, abs=0.03)
    assert load.free.min() >= 0
    assert 0.45 < fragment_rate(load.free) < 0.7  # 0.579 in the snapshot


def test_tasks_on_both_nodes_have_half_of_their_cores_on_each():
    tasks = Machines.random(0, 280).tasks
    assert (tasks.cores[tasks.both, 0] == tasks.cores[tasks.both, 1]).all()
    assert tasks.both.sum() == 130 + 4 + 50 + 46 + 57 + 3
    assert tasks.both[tasks.cores.sum(axis=1) >= 64].all()


def test_machines_follow_from_their_seed():
    one, same, other = (Machines.random(seed, 56).free.tolist() for seed in (1, 1, 2))
    assert one == same != other


def test_fragments_are_what_pieces_of_16_leave():
    """44 - 32 = 12 and 44 - 8 = 36 = 2 x 16 + 4 are free, and twice 44 = 2 x 16 + 12."""
    load = machines(2, (0, 32, 8))
    assert load.free.tolist() == [[12, 36], [44, 44]]
    assert fragments(load.free) == 12 + 4 + 12 + 12
    assert fragment_rate(load.free) == 40 / 136


def test_moves_change_the_node_or_the_side():
    load = machines(2, (0, 8, 0), (0, 4, 4))
    after = load.after(moves((0, 1, 1), (1, 1, 0)))
    assert after.tasks.machine.tolist() == [1, 1]
    assert after.tasks.cores.tolist() == [[0, 8], [4, 4]]
    assert load.after(moves((0, 0, 1))).tasks.cores.tolist() == [[0, 8], [4, 4]]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        pytest.param([(0, 1, 0)], "a NUMA node is over-committed", id="full"),
        pytest.param([(0, 0, 0)], "a task moves to where it is", id="stays"),
        pytest.param([(3, 1, 1)], "a task moves to where it is", id="stays on both"),
        pytest.param([(1, 1, 1), (1, 0, 1)], "a task moves twice", id="twice"),
        pytest.param([(1, 1, 1), (2, 0, 1), (0, 0, 1)], "3 moves, and 2 are allowed", id="too many"),
        pytest.param([(9, 1, 1)], "a task or a place is unknown", id="no task"),
        pytest.param([(1, 2, 1)], "a task or a place is unknown", id="no machine"),
        pytest.param([(1, 1, -1)], "a task or a place is unknown", id="no side"),
    ],
)
def test_a_wrong_plan_is_found(wrong, problem):
    load = machines(2, (0, 32, 0), (0, 8, 0), (1, 36, 0), (1, 2, 2))
    assert problem in load.violations(moves(*wrong), 2)


def test_a_sound_plan_is_accepted():
    load = machines(2, (0, 32, 0), (0, 8, 0), (1, 36, 0), (1, 2, 2))
    assert load.violations(moves((0, 1, 1), (3, 0, 0)), 2) == []
    assert load.violations(moves((2, 0, 1)), 1) == []


def test_moves_that_wait_for_each_other_are_blocked():
    load = machines(2, (0, 40, 40), (1, 30, 30))
    exchange = moves((0, 1, 0), (1, 0, 0))
    assert load.violations(exchange, 2) == []
    assert load.blocked(exchange) == 2
    chain = machines(3, (0, 40, 40), (1, 30, 30))
    assert chain.blocked(moves((0, 1, 0), (1, 2, 0))) == 0  # the second is carried out first


def test_the_first_move_of_the_baseline_is_the_best():
    load = machines(2, (0, 28, 0), (0, 4, 0), (1, 2, 2))
    plan = greedy_plan(load.free, load.tasks, 1)
    saved = fragments(load.free) - fragments(load.after(plan).free)
    assert saved == best_saving(load, 1) == 12 + 4  # 12 and 4 are 16, and 42 - 4 leaves 6 instead of 10


@seeds(12)
def test_the_optimum_is_the_best_of_all_plans(seed):
    """Five tasks on two machines."""
    rng = np.random.default_rng(seed)
    while True:
        sizes = rng.choice((2, 4, 8, 16, 32), 5)
        both = rng.random(5) < 0.3
        side = rng.integers(0, 2, 5)
        rows = [
            (int(n), *((c // 2, c // 2) if b else (c * (s == 0), c * (s == 1))))
            for n, c, b, s in zip(rng.integers(0, 2, 5), sizes.tolist(), both, side, strict=True)
        ]
        load = machines(2, *rows)
        if load.free.min() >= 0:
            break
    limit = int(rng.integers(1, 4))
    best = best_plan(load.free, load.tasks, limit, 30.0)
    assert best is not None
    assert load.violations(best.moves, limit) == []
    before, after = fragments(load.free), fragments(load.after(best.moves).free)
    assert before - after == best_saving(load, limit)
    assert best.pieces == best.bound == (int(load.free.sum()) - after) // 16
    greedy = greedy_plan(load.free, load.tasks, limit)
    assert load.violations(greedy, limit) == []
    assert after <= fragments(load.after(greedy).free) <= before


def best_saving(load, limit) -> int:
    """The greatest number of fragments that at most `limit` moves save, by trying them all."""
    both, side = load.tasks.both.tolist(), load.tasks.cores.argmax(axis=1).tolist()
    stay = [(n, 0 if b else s) for n, b, s in zip(load.tasks.machine.tolist(), both, side, strict=True)]
    best = 0
    for places in product(product(range(load.count), (0, 1)), repeat=len(stay)):
        chosen = [
            (t, *place)
            for t, (place, before) in enumerate(zip(places, stay, strict=True))
            if place != before and not (load.tasks.both[t] and place[0] == before[0])
        ]
        if len(chosen) <= limit and not load.violations(moves(*chosen), limit):
            best = max(best, fragments(load.free) - fragments(load.after(moves(*chosen)).free))
    return best
