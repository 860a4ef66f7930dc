"""Migrations compared with the largest savings, by trying everything, and whether they come to an end."""

from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policies.load_spreading import LoadSpreading
from tests.builders import make_node, make_tasks, migrating_cluster, removed
from tests.firmament_py.placement.migrations import SMALL


@st.composite
def loads(draw):
    """Cpu of each node, and the numbers of movable tasks and of others on it; tasks of 1 cpu."""
    count = draw(st.integers(2, 5))
    nodes = [draw(st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(0, 30))) for _ in range(count)]
    return [(spare + movable + fixed, movable, fixed) for spare, movable, fixed in nodes]


@given(loads(), st.integers(1, 2000))
def test_the_savings_are_the_largest_possible(nodes, move_cost):
    uid, events = 0, list[Any]()
    for i, (cpu, movable, fixed) in enumerate(nodes):
        events.append(make_node(f"n{i}", cpu=max(cpu, 1)))
        for number, may in ((movable, True), (fixed, False)):
            if number:
                events.append(make_tasks(range(uid + 1, uid + 1 + number), 1, on=f"n{i}", movable=may))
            uid += number
    cluster = migrating_cluster(SMALL, *events, policy=LoadSpreading(move_cost=move_cost))
    on = {
        int(u): int(n) for u, n in zip(cluster.state.tasks.uid, cluster.state.tasks.node, strict=True) if u and n >= 0
    }
    name = {row: node.name for row, node in cluster.state.nodes.observed.items()}
    found = cluster.migrating(cluster.run())
    pairs = [(int(name[on[u]][1:]), int(to[1:])) for u, to in found.items()]
    assert sum(_saving(nodes, a, b, move_cost) for a, b in pairs) == _largest(nodes, move_cost)
    assert all(_saving(nodes, a, b, move_cost) > 0 for a, b in pairs)


def _cost(cpu, tasks):
    """What load-spreading says of a further task on a node: hundreds for tasks, and the used share in hundredths."""
    share = max(tasks / max(cpu, 1), tasks / 110)
    return 100 * tasks + int(share * 99)


def _saving(nodes, a, b, move_cost):
    """What migration of one task from node a to b saves."""
    (cpu_a, movable, fixed_a), (cpu_b, movable_b, fixed_b) = nodes[a], nodes[b]
    tasks_a, tasks_b = movable + fixed_a, movable_b + fixed_b
    if a == b or not movable or tasks_b + 1 > min(max(cpu_b, 1), 110):
        return -1
    return _cost(cpu_a, tasks_a - 1) - _cost(cpu_b, tasks_b) - move_cost


def _largest(nodes, move_cost):
    """The largest sum of savings of migrations that share no node, to nodes that no task gains by leaving."""
    count, best = len(nodes), 0
    left = {a for a in range(count) if any(_saving(nodes, a, b, move_cost) > 0 for b in range(count))}
    for order in permutations(range(count)):
        total = 0
        for a, b in zip(order[0::2], order[1::2], strict=False):
            total += max(_saving(nodes, a, b, move_cost), 0) if b not in left else 0
        best = max(best, total)
    return best


@given(st.lists(st.integers(0, 40), min_size=2, max_size=6), st.integers(100, 1500), st.randoms(use_true_random=False))
def test_migrations_come_to_an_end(counts, move_cost, random):
    """Each round some of the evictions are carried out, others are refused; successors are placed like any task."""
    count, uid, events = len(counts), 0, list[Any]()
    for i, number in enumerate(counts):
        events.append(make_node(f"n{i}", cpu=200))
        if number:
            events.append(make_tasks(range(uid + 1, uid + 1 + number), 1, on=f"n{i}", movable=True))
        uid += number
    cluster = migrating_cluster(SMALL, *events, policy=LoadSpreading(move_cost=move_cost))
    quiet = 0
    for _ in range(40 * count):
        result = cluster.run()
        for placed, node in cluster.names(result).items():
            cluster.tell(make_tasks([placed], 1, on=node, movable=True))
        found = cluster.migrating(result)
        quiet = 0 if found else quiet + 1
        if quiet > 2:
            break
        rows = {int(cluster.state.tasks.uid[row]): int(row) for row in result.migration.tasks}
        for mover in found:
            if random.random() < 0.7:
                uid += 1
                cluster.tell(removed(mover), make_tasks([uid], 1, movable=True))
            else:
                node = cluster.state.nodes.observed[int(cluster.state.tasks.node[rows[mover]])].name
                cluster.tell(make_tasks([mover], 1, on=node, movable=True))
    assert quiet > 2, "tasks migrate for ever"
    tasks = [int(cluster.state.nodes.tasks[row]) for row in cluster.state.nodes.observed]
    assert 100 * (max(tasks) - 1 - min(tasks)) <= move_cost + 100
