"""Preemption over many rounds in random worlds: tasks arrive and end, victims leave late or not at all, nodes and
budgets change, the bridge repeats itself, the engine starts anew. What may never happen is checked after each round,
and that the rounds settle at the end."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from firmament_py.model.constraints import Taint
from firmament_py.model.events import NodeRemoved
from firmament_py.model.options import Preempting
from tests.builders import (
    NOW_US,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    preempting_cluster,
    selecting,
    tasks_like,
)
from tests.effort import examples
from tests.firmament_py.preemption.world_state import BASIC_SHAPES, Gang, Node, Shape
from tests.firmament_py.preemption.worlds import World

pytestmark = pytest.mark.slow  # compiles once, not in every worker

SHAPES = {
    **BASIC_SHAPES,
    7: Shape(4, 4, 100, preempts=False),
    8: Shape(4, 2, 100, disk=True),
    9: Shape(8, 8, 50),
}

GANG, GANG_MINIMUM = 1, 2
LABELLED = {1: "web", 2: "web", 3: "store"}
"""The label `app` of the tasks of a budget, by the number of their label set; the third one's budget is the second."""

UNLIMITED = 10**6


class PreemptionWorld(World):
    shapes = SHAPES

    # -- what happens in the world ------------------------------------------------------------------------------

    @initialize(
        disks=st.lists(st.booleans(), min_size=1, max_size=4),
        allowed=st.lists(st.integers(0, 3), max_size=2),
        running=st.lists(st.tuples(st.sampled_from([1, 2, 3, 4]), st.integers(0, 3)), min_size=4, max_size=12),
    )
    def begin(self, disks, allowed, running):
        self.nodes = {f"n{number}": Node(8, 8, disk) for number, disk in enumerate(disks)}
        self.budgets = dict(enumerate(allowed, 1))
        self.gangs = {GANG: Gang(GANG_MINIMUM, whole=False, created_us=NOW_US)}
        self.restart()
        for position, (number, label_set) in enumerate(running):
            self.run_together([self.task(number, label_set=label_set)], position)

    @rule(number=st.sampled_from(sorted(SHAPES)), count=st.integers(1, 4), label_set=st.integers(0, 3))
    def arrive(self, number, count, label_set):
        self.create([self.task(number, label_set=label_set) for _ in range(count)])

    @rule(number=st.sampled_from([5, 6, 8, 9]), count=st.integers(1, 3))
    def arrive_important(self, number, count):
        self.create([self.task(number) for _ in range(count)])

    @rule(
        number=st.sampled_from([1, 2, 4]), first=st.integers(0, 3), kind=st.sampled_from(["static", "gang", "single"])
    )
    def run_a_task(self, number, first, kind):
        """One that is observed on a node: a static pod, a member of a gang, or one that another has placed."""
        task = self.task(number, gang=GANG * (kind == "gang"), unevictable=kind == "static")
        self.run_together([task], first)

    @rule(number=st.integers(0, 3), disk=st.booleans(), size=st.sampled_from([4, 8, 12]), tainted=st.booleans())
    def change_node(self, number, disk, size, tainted):
        """Adds a node, or changes its labels, size and taints."""
        name = f"n{number}"
        self.nodes[name] = Node(size, size, disk, tainted and number % 2 == 0)
        self.tell_node(name)

    @precondition(lambda self: len(self.nodes) > 1)
    @rule(which=st.integers(0, 3))
    def remove_node(self, which):
        name = sorted(self.nodes)[which % len(self.nodes)]
        del self.nodes[name]
        self.cluster.tell(NodeRemoved(f"id-{name}"))
        for task in self.tasks.values():
            if task.nominated == name:
                task.nominated = None
        for uid in [uid for uid, task in self.tasks.items() if task.on == name]:
            self.remove(uid)

    @precondition(lambda self: self.budgets)
    @rule(number=st.integers(1, 2), allowed=st.integers(0, 3))
    def change_budget(self, number, allowed):
        if number in self.budgets:
            self.set_budget(number, allowed)

    # -- details ------------------------------------------------------------------------------------------------

    def lift_limits(self):
        for number in self.budgets:
            self.set_budget(number, UNLIMITED)

    def budgets_of(self, label_set):
        return [number for number in self.budgets if label_set and LABELLED[label_set] == ("web", "store")[number - 1]]

    def set_budget(self, number, allowed):
        self.budgets[number] = allowed
        self.cluster.tell(make_budget(number, tasks_like(needs("app", "In", ("web", "store")[number - 1])), allowed))

    def tell_node(self, name):
        node = self.nodes[name]
        self.cluster.tell(
            make_node(
                name,
                cpu=node.cpu,
                memory=node.memory,
                labels={"disk": ""} if node.disk else {},
                taints=[Taint("t", "", "NoSchedule")] if node.tainted else [],
            )
        )

    def restart(self):
        self.cluster = preempting_cluster(
            *(
                make_class(
                    number,
                    cpu=shape.cpu,
                    memory=shape.memory,
                    priority=shape.priority,
                    never_preempts=not shape.preempts,
                    demand=selecting(needs("disk")) if shape.disk else None,
                )
                for number, shape in SHAPES.items()
            ),
            *(make_label_set(number, app=app) for number, app in LABELLED.items()),
            make_gang(GANG, GANG_MINIMUM),
            preempting=self.preempting,
        )
        for name in sorted(self.nodes):
            self.tell_node(name)
        for number, allowed in self.budgets.items():
            self.set_budget(number, allowed)
        for uid in sorted(self.tasks):
            self.observe(uid)


class PreemptionWorldBeyondBudgets(PreemptionWorld):
    preempting = Preempting.BEYOND_BUDGETS


TestPreemptionWorld = PreemptionWorld.TestCase
TestPreemptionWorld.settings = examples(30, steps=25)
TestPreemptionWorldBeyondBudgets = PreemptionWorldBeyondBudgets.TestCase
TestPreemptionWorldBeyondBudgets.settings = examples(15, steps=25)


def test_a_round_is_due_when_a_task_becomes_evictable():
    """A task that is assumed on its node is not evicted; once it is bound it is, and nothing else need change."""
    cluster = preempting_cluster(
        make_class(1, cpu=4), make_class(2, cpu=4, priority=1), make_node("a", cpu=4), make_tasks([1], 1)
    )
    assert cluster.round() == {1: "a"}
    cluster.tell(make_tasks([2], 2))
    assert not cluster.preempted(cluster.run())
    cluster.tell(make_tasks([1], 1, on="a"))
    assert cluster.scheduler.due(NOW_US)
