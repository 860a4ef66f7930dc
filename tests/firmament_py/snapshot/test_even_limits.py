"""Limits of preferred spreads, against plain Python that fills the emptiest domain one task at a time."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.constraints import PreferenceSet, Spread
from firmament_py.snapshot.preferences import Preferences
from firmament_py.snapshot.running_tasks import RunningTasks
from firmament_py.snapshot.solo_capacity import SoloCapacity
from tests.builders import make_class, make_cluster, make_label_set, make_node, make_tasks, needs, tasks_like

APPS = 3


def selecting_app(app: int):
    return tasks_like(needs("app", "In", str(app)))


def filled(counts: list[int], capacity: list[int], waiting: int) -> int:
    """The highest count of a domain after each task has gone to the emptiest with capacity."""
    counts, capacity, level = list(counts), list(capacity), 0
    for _ in range(waiting):
        some = [d for d in range(len(counts)) if capacity[d]]
        if not some:
            break
        d = min(some, key=counts.__getitem__)
        counts[d], capacity[d] = counts[d] + 1, capacity[d] - 1
        level = max(level, counts[d])
    return level


@st.composite
def clusters(draw):
    """Nodes with zones or none, tasks that run there, slots of two kinds of classes, and tasks that wait."""
    nodes = draw(st.integers(1, 5))
    labels = [{"name": str(n), **draw(st.sampled_from([{}, {"zone": "a"}, {"zone": "b"}]))} for n in range(nodes)]
    unnamed = draw(st.booleans())
    if unnamed:
        labels[0].pop("name")
    running = draw(st.lists(st.tuples(st.integers(0, APPS - 1), st.integers(0, nodes - 1)), max_size=8))
    slots = draw(st.lists(st.lists(st.integers(0, 3), min_size=nodes, max_size=nodes), min_size=2, max_size=2))
    kinds = draw(st.lists(st.integers(0, 1), min_size=APPS, max_size=APPS))
    waiting = draw(st.lists(st.integers(1, 4), min_size=APPS, max_size=APPS))
    return labels, running, np.array(slots, np.int64), np.array(kinds), waiting


@given(clusters())
def test_limits_are_levels_of_the_emptiest_domains(case):
    labels, running, slots, kinds, waiting = case
    spreads = {
        app: (Spread(selecting_app(app), "name", 3), Spread(selecting_app(app), "zone", 5)) for app in range(APPS)
    }
    cluster = make_cluster(
        *(make_node(f"n{n}", labels=of_node) for n, of_node in enumerate(labels)),
        *(make_class(app + 1, preferences=PreferenceSet(spread=spreads[app])) for app in range(APPS)),
        *(make_label_set(app + 1, app=str(app)) for app in range(APPS)),
        *(make_tasks([100 + i], app + 1, on=f"n{n}", label_set=app + 1) for i, (app, n) in enumerate(running)),
        *(make_tasks([app + 1], app + 1, label_set=app + 1) for app in range(APPS)),
    )
    state, nodes = cluster.state, cluster.state.present_nodes()
    rows = state.task_rows(np.arange(1, APPS + 1, dtype=np.uint64))
    cls, label_sets = state.tasks.cls[rows], state.tasks.label_set[rows]
    preferences = Preferences(state, nodes, cls, label_sets, RunningTasks(state, nodes))
    found = preferences.limits(np.arange(APPS), SoloCapacity(slots, kinds), np.array(waiting))

    for app in range(APPS):
        capacity = np.minimum(slots[kinds[app]], waiting[app]).tolist()
        expected = []
        for key, cost in (("name", 2 * 100 * 100 // 3), ("zone", 2 * 100 * 100 // 5)):
            values = sorted({of_node[key] for of_node in labels if key in of_node})
            there = Counter(labels[n].get(key) for of, n in running if of == app)
            takes: Counter[str | None] = Counter()
            for n, of_node in enumerate(labels):
                takes[of_node.get(key)] += capacity[n]
            level = filled([there[v] for v in values], [takes[v] for v in values], waiting[app])
            soft = {v: max(level - there[v], 0) for v in values}
            if any(soft[v] < min(takes[v], waiting[app]) for v in values):
                expected.append((key, soft, cost))
        actual = found.get(app, [])
        assert len(actual) == len(expected)
        shared = [limit.soft_limit_cost for limit in actual if not limit.is_per_node]
        for limit, (key, soft, cost) in zip(actual, expected, strict=True):
            if limit.is_per_node:
                cost = min(cost, min(shared, default=cost * 2) // 2)
            assert limit.soft_limit_cost == cost
            for n, of_node in enumerate(labels):
                capped = None if limit.domain[n] < 0 else min(int(limit.soft_limit[limit.domain[n]]), capacity[n])
                # beyond what a node or domain can take, a limit has no effect
                assert (capped is None) == (key not in of_node)
                if capped is not None and limit.is_per_node:
                    assert capped == min(soft[of_node[key]], capacity[n])
                elif capped is not None:
                    assert limit.soft_limit[limit.domain[n]] == soft[of_node[key]]
