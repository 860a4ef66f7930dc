"""Rounds compared with placing one task after the other: when a round is guaranteed to place no fewer.

With several resources, or with classes that repel each other, the number that fits depends on the order, and neither
way is always better. Counted from the highest priority down, a round places at least as many as any order of nodes,
one task at a time, if

- tasks differ only in node demands, priority and age: equal requests, no tokens, no inter-task constraints, and costs
  that do not depend on the class (the sets of tasks that fit are then a matroid, and the optimum is a basis);
- or one class waits, with at most one constraint for which its own tasks count, whatever its other constraints.

And in any case a round of few tasks never places fewer than placing them one by one, emptiest nodes first: it tries
that, too (placement/list_scheduling.py).
"""

import copy
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.constraints import NO_PEERS, PeerDemand
from firmament_py.model.events import TasksRemoved
from firmament_py.model.options import RESERVE_AFTER_US
from firmament_py.placement import list_scheduling
from tests.builders import NOW_US, make_class, make_cluster, make_node, make_tasks
from tests.effort import seeds
from tests.firmament_py.mixtures import Mixture
from tests.firmament_py.peer_oracle import Task, World, an_order, matches, may_place
from tests.firmament_py.strategies import demands, labels, taints

pytestmark = pytest.mark.slow


def load(world: World, node: str) -> int:
    return sum(task.node == node for task in world.tasks.values())


ORDERS = {
    "first": lambda world: list(world.nodes),
    "last": lambda world: list(world.nodes)[::-1],
    "emptiest": lambda world: sorted(world.nodes, key=lambda node: load(world, node)),
    "fullest": lambda world: sorted(world.nodes, key=lambda node: -load(world, node)),
}


def one_by_one(world: World, order) -> Counter[int]:
    """Number of tasks by priority, placed by priority, then age, then uid, each on the first node that can take it;
    repeated until no task is placed. The world is not changed."""
    world = copy.deepcopy(world)
    counts: Counter[int] = Counter()
    others = sorted(
        (uid for uid, task in world.tasks.items() if task.node is None),
        key=lambda uid: (-world.tasks[uid].cls.priority, world.tasks[uid].created_us, uid),
    )
    extra = True
    while extra:
        extra = False
        for uid in list(others):
            task = world.tasks[uid]
            node = next((n for n in order(world) if may_place(world, task, n) is None), None)
            if node is not None:
                task.node, extra = node, True
                others.remove(uid)
                counts[task.cls.priority] += 1
    return counts


def assert_no_fewer(world: World, placed: Counter[int]) -> None:
    for name, order in ORDERS.items():
        other = one_by_one(world, order)
        priorities = sorted({*placed, *other}, reverse=True)
        assert [placed[p] for p in priorities] >= [other[p] for p in priorities], name


@st.composite
def alike(draw):
    """Classes that differ in node demands and priority only."""
    nodes = [
        make_node(
            f"n{i}", pods=draw(st.integers(0, 4)), cpu=draw(st.integers(0, 4)), labels=draw(labels), taints=draw(taints)
        )
        for i in range(draw(st.integers(1, 6)))
    ]
    classes = [
        make_class(c, cpu=1, priority=draw(st.integers(0, 3)), demand=draw(demands))
        for c in range(1, draw(st.integers(2, 6)))
    ]
    of = draw(st.lists(st.tuples(st.sampled_from(classes), st.sampled_from([0, 3, 10**6])), min_size=1, max_size=14))
    return nodes, classes, of


def test_tasks_that_differ_only_in_node_demands():
    """Unless capacity is reserved for a task that has waited for long: in few of the examples, or nothing is shown."""
    cases: Counter[str] = Counter()

    @given(alike(), st.sampled_from([None, RESERVE_AFTER_US]))
    def check(problem, reserve_after_us):
        cases[judge_alike(problem, reserve_after_us)] += 1

    check()
    assert cases["judged"] >= 4 * cases["reserved"], cases


def judge_alike(problem, reserve_after_us) -> str:
    nodes, classes, of = problem
    created = [NOW_US - age * 1_000_000 for _, age in of]
    tasks = make_tasks(range(1, len(of) + 1), [cls.id for cls, _ in of], created_us=created)
    cluster = make_cluster(*nodes, *classes, tasks, reserve_after_us=reserve_after_us)
    world = World({node.id: node for node in nodes})
    world.tasks = {uid: Task(cls, created_us=created[uid - 1]) for uid, (cls, _) in enumerate(of, 1)}
    placed = Counter(world.tasks[uid].cls.priority for uid in cluster.round())
    assert reserve_after_us is not None or not cluster.scheduler.reservation_holders
    if cluster.scheduler.reservation_holders:
        return "reserved"
    assert_no_fewer(world, placed)
    return "judged"


def one_class(one) -> Mixture:
    """A mixture in which only tasks of one class and label set wait, and count for one demand of theirs at most."""
    mixture = Mixture(one)
    world, waiting = mixture.world, mixture.waiting()
    task = world.tasks[one(waiting)]
    peers = task.cls.peers
    own = [
        *([peers.affinity] if peers.affinity and all(matches(world, t.selector, task) for t in peers.affinity) else []),
        *(term for term in peers.anti_affinity if matches(world, term.selector, task)),
        *(spread for spread in peers.spread if matches(world, spread.selector, task)),
    ]
    stay = [] if len(own) > 1 else [u for u in waiting if alike_tasks(world.tasks[u], task)]
    for uid in set(waiting) - set(stay):
        mixture.cluster.tell(TasksRemoved(make_tasks([uid], 1).uid))
        del world.tasks[uid]
    return mixture


def alike_tasks(one: Task, other: Task) -> bool:
    return (one.cls.id, one.namespace, one.labels) == (other.cls.id, other.namespace, other.labels)


def judge_one_class(one) -> str:
    mixture = one_class(one)
    before = copy.deepcopy(mixture.world)
    batches, _ = mixture.round()
    placed: Counter[int] = Counter()
    for batch in batches:
        placed.update(mixture.world.tasks[uid].cls.priority for uid, _ in batch)
        assert an_order(mixture.world, batch) is not None
    if mixture.cluster.scheduler.reservation_holders:
        return "reserved"
    assert_no_fewer(before, placed)
    return "judged"


def test_one_class_with_one_constraint_on_its_own_tasks():
    cases: Counter[str] = Counter()

    @given(data=st.data())
    def check(data):
        cases[judge_one_class(lambda options: data.draw(st.sampled_from(options)))] += 1

    check()
    assert cases["judged"] >= 4 * cases["reserved"], cases


@seeds(100)
def test_one_class_in_a_full_cluster(seed):
    assert judge_one_class(random.Random(seed).choice) == "judged"


@seeds(150)
def test_a_small_round_places_no_fewer_than_one_by_one(seed):
    mixture = Mixture(random.Random(seed).choice)
    before = copy.deepcopy(mixture.world)
    batches, _ = mixture.round()
    assert not mixture.cluster.scheduler.reservation_holders  # no task has waited for so long
    placed = Counter(mixture.world.tasks[uid].cls.priority for batch in batches for uid, _ in batch)
    other = one_by_one(before, ORDERS["emptiest"])
    priorities = sorted({*placed, *other}, reverse=True)
    assert [placed[p] for p in priorities] >= [other[p] for p in priorities]


def test_rounds_with_lists_place_more(monkeypatch):
    """Fewer with the first lists alone, which do not know which tasks are left out, and fewer still without any."""

    def placed() -> int:
        return sum(len(b) for seed in (18, 32, 46, 62) for b in Mixture(random.Random(seed).choice).round()[0])

    with_all = placed()
    monkeypatch.setattr(list_scheduling, "LISTS", 1)
    with_first = placed()
    monkeypatch.setattr(list_scheduling, "MOST_TASKS", 0)
    assert with_all > with_first > placed()


def test_the_reference_does_not_change_the_world():
    cls = make_class(1, cpu=1, peers=PeerDemand())
    assert cls.peers == NO_PEERS
    world = World({"id-a": make_node("a", cpu=2)}, tasks={uid: Task(cls) for uid in range(3)})
    assert one_by_one(world, ORDERS["first"]) == {0: 2}
    assert all(task.node is None for task in world.tasks.values())
