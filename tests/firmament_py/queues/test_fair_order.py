"""The order in which candidates of other queues leave under fair sharing, against Kueue's descent written plainly."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.queues import Sharing
from firmament_py.queues.dominant import dominant_shares
from firmament_py.queues.fair_order import places
from firmament_py.queues.permissions import Situation
from firmament_py.queues.quota import capacity, counted_usage
from firmament_py.queues.tree import build
from tests.effort import examples
from tests.firmament_py.queues.scene import Scene
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree

COLUMNS = "red/cpu", "red/gpu"
WEIGHTS = st.sampled_from([0.5, 1.0, 1.0, 2.0])
AMOUNTS = st.lists(st.integers(0, 3), min_size=2, max_size=2)
PARENTS = {"root": "", "top": "root", "x": "top", "y": "top", "mine": "x"}
PARENTS |= {"w": "root", "z": "top", "xa": "x", "xb": "x", "ya": "y", "yb": "y"}
LEAVES = ["w", "z", "xa", "xb", "ya", "yb"]


@st.composite
def cohorts(draw):
    """Three levels of cohorts, with queues below each."""
    described = []
    for name, parent in PARENTS.items():
        lending = draw(st.one_of(st.none(), st.none(), st.integers(0, 2)))
        quotas = (quota(amount, None, lending, on=on) for on, amount in zip(COLUMNS, draw(AMOUNTS), strict=True))
        described.append(queue(name, parent, *quotas, weight=draw(WEIGHTS)))
    return tree(*described, flavors=["red"], sharing=Sharing.FAIR)


@st.composite
def situations(draw):
    """A preemptor, and (K,) queues and (K, V) amounts of tasks of other queues of its tree."""
    queues = build(draw(cohorts()))
    rows = [queues.row[queue_id(name)] for name in LEAVES]
    tasks = draw(st.lists(st.tuples(st.sampled_from(rows), AMOUNTS), min_size=1, max_size=16))
    of_task, freed = np.array([row for row, _ in tasks]), np.array([amounts for _, amounts in tasks], np.int64)
    mine = queues.row[queue_id("mine")]
    own = np.zeros_like(queues.nominal)
    own[[*rows, mine]] = draw(st.lists(AMOUNTS, min_size=len(rows) + 1, max_size=len(rows) + 1))  # of tasks that stay
    np.add.at(own, of_task, freed)
    return Situation(queues, capacity(queues), own, mine, 0, 0, np.array(draw(AMOUNTS), np.int64)), of_task, freed


@given(situations())
@examples(300)
def test_the_first_is_below_the_highest_share_at_each_level(drawn):
    situation, queue, freed = drawn
    queues, of = situation.queues, situation.capacity
    order = np.argsort(places(situation, queue, freed), kind="stable")
    for row in np.unique(queue):
        positions = np.flatnonzero(queue[order] == row)
        assert (np.diff(order[positions]) > 0).all(), "tasks of one queue leave in their order"
    own = situation.own.copy()
    own[situation.queue] += situation.request
    for number, task in enumerate(order):
        share = dominant_shares(queues, of, counted_usage(queues, of, own)).share
        below = defaultdict(set)  # parent -> its children with candidates
        for row in {int(queue[other]) for other in order[number:]}:
            path = [int(node) for node in queues.paths[row] if node >= 0]
            for child, parent in pairwise(path):
                below[parent].add(child)
        path = [int(node) for node in queues.paths[queue[task]] if node >= 0]
        for child, parent in pairwise(path):
            assert share[child] == max(share[sibling] for sibling in below[parent])
        own[queue[task]] -= freed[task]


def test_queues_take_turns_by_what_is_left_to_them():
    """Beyond their 2, a borrows 6 and b 4 with half the weight: b's share is the higher one until it borrows 3."""
    described = tree(
        queue("top", "", quota(12)),
        queue("a", "top", quota(2)),
        queue("b", "top", quota(2), weight=0.5),
        queue("mine", "top", quota(4)),
        sharing=Sharing.FAIR,
    )
    running = [f"{name}{number} {name} red/cpu=1" for name, count in (("a", 8), ("b", 6)) for number in range(count)]
    scene = Scene(described, "; ".join(running), "p mine red/cpu=1")
    victims = scene.victims(scene.running)
    place = places(scene.situation, victims.queue, victims.amounts)
    leave = [scene.running[i].name for i in np.argsort(place, kind="stable").tolist()]
    assert leave[:8] == ["b0", "a0", "b1", "a1", "a2", "b2", "a3", "a4"]


def test_only_the_first_places_are_told_apart():
    none = quota(0)
    described = tree(
        queue("top", "", quota(90)),
        queue("a", "top", none),
        queue("b", "top", none),
        queue("mine", "top", none),
        sharing=Sharing.FAIR,
    )
    running = [f"{name}{number} {name} red/cpu=1" for number in range(40) for name in "ab"]
    scene = Scene(described, "; ".join(running), "p mine red/cpu=1")
    victims = scene.victims(scene.running)
    place = places(scene.situation, victims.queue, victims.amounts)
    assert place.tolist() == [min(number // 2, 32) for number in range(80)]
