"""Gangs, preemption and moves over many rounds in random worlds: gangs and tasks arrive and end, evictions are carried
out late or not at all, successors arrive or do not, the engine starts anew. What may never happen is checked after each
round, and that the rounds settle at the end."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from firmament_py.model.options import Migrating, Preempting
from firmament_py.placement.migration import SUCCESSOR_US
from tests.builders import (
    SECOND_US,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    migrating_cluster,
    needs,
    tasks_like,
)
from tests.effort import examples
from tests.firmament_py.preemption.world_state import BASIC_SHAPES, Gang, Node, Shape
from tests.firmament_py.preemption.worlds import World

pytestmark = pytest.mark.slow  # compiles once, not in every worker

SHAPES = {**BASIC_SHAPES, 7: Shape(8, 8, 10)}

CAPACITY = 8
"""Of cpu and memory, of each node."""

WEB, BUDGET = 1, 1
"""The label set of the tasks of the budget."""


class GangWorld(World):
    shapes = SHAPES
    step_us = SECOND_US // 2  # moves are considered in every second round
    rounds_to_settle = 60
    moves_at_once = 4

    # -- what happens in the world ------------------------------------------------------------------------------

    @initialize(
        nodes=st.integers(2, 5),
        allowed=st.integers(0, 4),
        running=st.lists(
            st.tuples(st.sampled_from([1, 2, 3, 4]), st.integers(0, 4), st.integers(0, 1), st.booleans()),
            min_size=2,
            max_size=8,
        ),
        gangs=st.lists(
            st.tuples(st.sampled_from([1, 2, 3]), st.integers(1, 4), st.integers(1, 4), st.booleans()), max_size=3
        ),
    )
    def begin(self, nodes, allowed, running, gangs):
        self.nodes = {f"n{number}": Node(CAPACITY, CAPACITY, zone="xy"[number % 2]) for number in range(nodes)}
        self.budgets[BUDGET] = allowed
        self.restart()
        for number, first, label_set, movable in running:
            task = self.task(number, label_set=label_set, job=self.last_uid + 1 if movable else 0)
            self.run_together([task], first)
        for number, size, minimum, whole in gangs:
            self.run_gang(number, size, min(size, minimum), whole, 0)

    @rule(number=st.sampled_from(sorted(SHAPES)), count=st.integers(1, 3), label_set=st.integers(0, 1))
    def arrive(self, number, count, label_set):
        self.create([self.task(number, label_set=label_set) for _ in range(count)])

    @rule(number=st.sampled_from([1, 2, 4]), label_set=st.integers(0, 1), first=st.integers(0, 4))
    def run_a_movable_task(self, number, label_set, first):
        self.run_together([self.task(number, label_set=label_set, job=self.last_uid + 1)], first)

    @rule(
        number=st.sampled_from([2, 3, 5, 6]),
        size=st.integers(1, 5),
        fewer=st.integers(0, 3),
        whole=st.booleans(),
        other=st.booleans(),
        zonal=st.booleans(),
    )
    def a_gang_arrives(self, number, size, fewer, whole, other, zonal):
        """other: its last member is of another class."""
        gang = self.new_gang(max(size - fewer, 1), whole, zonal)
        numbers = [*[number] * (size - 1), 6 if other else number]
        self.create([self.task(each, gang=gang) for each in numbers])

    @rule(
        number=st.sampled_from([1, 2, 3]),
        size=st.integers(1, 4),
        minimum=st.integers(1, 4),
        whole=st.booleans(),
        label_set=st.integers(0, 1),
    )
    def run_gang(self, number, size, minimum, whole, label_set):
        """A gang that is observed on nodes, if it fits."""
        gang = self.new_gang(min(size, minimum), whole)
        self.run_together([self.task(number, label_set=label_set, gang=gang) for _ in range(size)], size)

    @precondition(lambda self: self.successors)
    @rule(created=st.booleans())
    def an_owner_acts(self, created):
        """It creates the successor, or does not."""
        task = self.successors.pop(0)
        if created:
            self.create([task])

    @rule(allowed=st.integers(0, 4))
    def change_budget(self, allowed):
        self.set_budget(allowed)

    # -- details ------------------------------------------------------------------------------------------------

    def lift_limits(self):
        self.set_budget(10**6)
        self.now_us += SUCCESSOR_US  # successors that were lost are not expected any more

    def budgets_of(self, label_set):
        return [BUDGET] if label_set == WEB else []

    def new_gang(self, minimum, whole, zonal=False):
        number = len(self.gangs) + 1
        self.gangs[number] = Gang(minimum, whole, self.now_us, zonal)
        self.tell_gang(number)
        return number

    def set_budget(self, allowed):
        self.budgets[BUDGET] = allowed
        self.cluster.tell(make_budget(BUDGET, tasks_like(needs("app")), allowed))

    def tell_gang(self, number):
        gang = self.gangs[number]
        self.cluster.tell(
            make_gang(
                number,
                gang.minimum,
                created_us=gang.created_us,
                whole=gang.whole,
                topology="zone" if gang.zonal else "",
                required=gang.zonal,
            )
        )

    def restart(self):
        self.cluster = migrating_cluster(
            *(
                make_class(number, cpu=shape.cpu, memory=shape.memory, priority=shape.priority)
                for number, shape in SHAPES.items()
            ),
            make_label_set(WEB, app="web"),
            *(
                make_node(name, cpu=node.cpu, memory=node.memory, labels={"zone": node.zone})
                for name, node in self.nodes.items()
            ),
            migrating=Migrating.FOR_WAITING,
            moves_at_once=self.moves_at_once,
            reserve_after_us=None,  # else what is reserved for large tasks that wait for long is left free at the end
            preempting=self.preempting,
        )
        self.set_budget(self.budgets[BUDGET])
        for number in self.gangs:
            self.tell_gang(number)
        for uid in sorted(self.tasks):
            self.observe(uid)


class GangWorldBeyondBudgets(GangWorld):
    preempting = Preempting.BEYOND_BUDGETS


TestGangWorld = GangWorld.TestCase
TestGangWorld.settings = examples(14, steps=20)
TestGangWorldBeyondBudgets = GangWorldBeyondBudgets.TestCase
TestGangWorldBeyondBudgets.settings = examples(5, steps=20)
