"""Preemption by tasks with constraints on others, on random clusters, against an oracle that tries all victims."""

from dataclasses import dataclass
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.constraints import NO_PEERS, PeerDemand, PeerTerm, Spread, Taint
from firmament_py.model.events import ClassDefined, NodeObserved
from firmament_py.model.options import Preempting
from tests.builders import (
    make_budget,
    make_class,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    preempting_cluster,
    removed,
    tasks_like,
)
from tests.effort import examples
from tests.firmament_py import peer_oracle

pytestmark = pytest.mark.slow  # compiles once, not in every worker

HOST, ZONE = "kubernetes.io/hostname", "zone"
APPS = ["a", "b", "c"]
PREEMPTOR_PRIORITY, OTHER_PRIORITY, BOTH = 10, 11, (90, 91)
"""Classes 90 and 91 preempt."""

selectors = st.sampled_from([tasks_like(needs("app", "In", "a")), tasks_like(needs("app", "In", "b"))])
terms = st.lists(st.builds(PeerTerm, selectors, st.sampled_from([HOST, ZONE])), max_size=1).map(tuple)
spreads = st.lists(st.builds(Spread, selectors, st.sampled_from([HOST, ZONE]), st.integers(1, 2)), max_size=1)
apart = st.builds(PeerDemand, anti_affinity=terms)
without_spread = st.builds(PeerDemand, terms, terms)
any_peers = st.builds(PeerDemand, terms, terms, spreads.map(tuple))


@dataclass
class Case:
    """allowed: of each budget, whose tasks have the label `app` of that position."""

    nodes: list[NodeObserved]
    classes: dict[int, ClassDefined]
    running: list[tuple[int, str, str]]  # class, app, node
    waiting: list[tuple[int, str]]
    allowed: list[int]

    def cluster(self, preempting):
        running = [
            make_tasks([100 + i], cls, on=node, label_set=1 + APPS.index(app), started_us=1 + i)
            for i, (cls, app, node) in enumerate(self.running)
        ]
        waiting = [
            make_tasks([200 + i], cls, label_set=1 + APPS.index(app)) for i, (cls, app) in enumerate(self.waiting)
        ]
        return preempting_cluster(
            *self.nodes,
            *(make_label_set(i, app=app) for i, app in enumerate(APPS, 1)),
            *self.classes.values(),
            *(make_budget(i, tasks_like(needs("app", "In", APPS[i])), n) for i, n in enumerate(self.allowed)),
            *running,
            *waiting,
            preempting=preempting,
        )

    def world(self):
        world = peer_oracle.World({node.id: node for node in self.nodes}, {"default": {}})
        for i, (cls, app, node) in enumerate(self.running):
            world.tasks[100 + i] = peer_oracle.Task(self.classes[cls], "default", {"app": app}, f"id-{node}")
        for i, (cls, app) in enumerate(self.waiting):
            world.tasks[200 + i] = peer_oracle.Task(self.classes[cls], "default", {"app": app})
        return world

    def violations(self, victims):
        """How many evictions of these tasks (uids) are beyond budgets."""
        apps = [self.running[uid - 100][1] for uid in victims]
        return sum(max(0, apps.count(APPS[i]) - n) for i, n in enumerate(self.allowed))

    def low_on(self, node, *, beyond_budgets):
        """The tasks on a node that may leave for the preemptor."""
        exhausted = [] if beyond_budgets else [APPS[i] for i, n in enumerate(self.allowed) if n == 0]
        return frozenset(
            100 + i
            for i, (cls, app, name) in enumerate(self.running)
            if name == node.name and self.classes[cls].priority < PREEMPTOR_PRIORITY and app not in exhausted
        )

    def found_by_a_search(self, by_node, *, beyond_budgets):
        """Of the sets of victims by node those that a search can find, and the fewest violations; None: there is no
        set. The search begins without any that may leave, as kube-scheduler's does: what the task must be near may be
        gone then."""
        sets = {
            node.id: by_node[node.id]
            for node in self.nodes
            if self.low_on(node, beyond_budgets=beyond_budgets) in by_node[node.id]
        }
        return sets, min((self.violations(each) for found in sets.values() for each in found), default=None)


@st.composite
def cases(draw, peers, waiting):
    names = ["n0", "n1", "n2"][: draw(st.integers(1, 3))]
    nodes = [
        make_node(
            name,
            cpu=draw(st.integers(2, 4)),
            labels={HOST: name, ZONE: draw(st.sampled_from("xy"))},
            taints=[Taint("t", "", "NoSchedule")] if draw(st.integers(0, 7)) == 0 else [],
        )
        for name in names
    ]
    classes = {
        1: make_class(1, cpu=1),
        2: make_class(2, cpu=1, priority=5),
        3: make_class(3, cpu=1, peers=draw(apart)),
        4: make_class(4, cpu=1, priority=20),
        90: make_class(90, cpu=draw(st.integers(1, 2)), priority=PREEMPTOR_PRIORITY, peers=draw(peers)),
        91: make_class(91, cpu=1, priority=OTHER_PRIORITY, peers=draw(st.one_of(st.just(NO_PEERS), peers))),
    }
    running = []
    for node in nodes:
        count = node.allocatable["cpu"] - draw(st.sampled_from([0, 0, 0, 1]))
        kinds = st.tuples(st.sampled_from([1, 1, 1, 2, 2, 3, 4]), st.sampled_from(APPS), st.just(node.name))
        running += draw(st.lists(kinds, min_size=count, max_size=count))
    allowed = draw(st.lists(st.integers(0, 2), max_size=2))
    return Case(nodes, classes, running, draw(waiting), allowed)


def solutions(case, world, task, node):
    """All sets of tasks of lower priority on the node without which the task may run there."""
    low = [uid for uid, other in world.tasks.items() if other.node == node and other.cls.priority < task.cls.priority]
    for count in range(len(low) + 1):
        for victims in combinations(low, count):
            gone = {uid: world.tasks.pop(uid) for uid in victims}
            if peer_oracle.may_place(world, task, node) is None:
                yield frozenset(victims)
            world.tasks |= gone


one = st.tuples(st.just(90), st.sampled_from(APPS)).map(lambda each: [each])


@examples(300)
@given(case=cases(any_peers, one), beyond_budgets=st.booleans())
def test_one_finds_victims_where_there_are_some_and_no_more_than_it_needs(case, beyond_budgets):
    cluster = case.cluster(Preempting.BEYOND_BUDGETS if beyond_budgets else Preempting.WITHIN_BUDGETS)
    result = cluster.run()
    world = case.world()
    task = world.tasks[200]
    by_node = {node.id: list(solutions(case, world, task, node.id)) for node in case.nodes}
    victims = frozenset(cluster.preempted(result))
    if any(frozenset() in found for found in by_node.values()):
        assert not victims
        assert frozenset() in by_node["id-" + cluster.names(result)[200]]
        return
    sets, fewest = case.found_by_a_search(by_node, beyond_budgets=False)
    if beyond_budgets and fewest != 0:
        sets, fewest = case.found_by_a_search(by_node, beyond_budgets=True)
    if fewest is None or (fewest and not beyond_budgets):
        assert not victims
        assert not cluster.nominated()
        return
    (node,) = cluster.nominated().values()
    assert victims in sets[f"id-{node}"]
    assert not any(each < victims for each in sets[f"id-{node}"])
    assert case.violations(victims) == fewest


several = st.lists(st.tuples(st.sampled_from(BOTH), st.sampled_from(APPS)), min_size=2, max_size=4)


@examples(300)
@given(case=cases(without_spread, several))
def test_several_get_places_side_by_side(case):
    cluster = case.cluster(Preempting.WITHIN_BUDGETS)
    result = cluster.run()
    placed, victims, nominated = cluster.names(result), cluster.preempted(result), cluster.nominated()
    world = case.world()
    assert case.violations(victims) == 0
    for victim, preemptor in victims.items():
        assert world.tasks[victim].cls.priority < world.tasks[preemptor].cls.priority
        assert world.tasks[victim].node == "id-" + nominated[preemptor]
        del world.tasks[victim]
    for uid, node in placed.items():
        world.tasks[uid].node = f"id-{node}"
    order = peer_oracle.an_order(world, [(uid, f"id-{node}") for uid, node in nominated.items()])
    if victims:
        cluster.tell(removed(*victims))
    further = set().union(*(cluster.round() for _ in nominated))  # one may wait for another one that it must be near
    left = [task.cls.priority for uid, task in world.tasks.items() if task.node is None and uid not in nominated]
    if order is not None:
        assert {uid for uid in nominated if world.tasks[uid].cls.priority >= max(left, default=0)} <= further
    else:  # a later one has evicted what an earlier one must be near
        assert any(world.tasks[uid].cls.peers.affinity for uid in nominated)
