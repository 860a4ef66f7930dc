"""Gangs, preemption and moves over many rounds in random worlds: gangs and tasks arrive and end, evictions are carried
out late or not at all, successors arrive or do not, the engine starts anew. What may never happen is checked after each
round, and that the rounds settle at the end."""

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from firmament_py.model.events import PlacementRejected
from firmament_py.placement.migration import SUCCESSOR_US, Migrating
from firmament_py.preemption.preemptor import Preempting
from tests.builders import (
    NOW_US,
    SECOND_US,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    migrating_cluster,
    needs,
    removed,
    tasks_like,
)
from tests.effort import examples

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("numba")]  # compiles once, not in every worker


@dataclass(frozen=True)
class Shape:
    """The requests of a class, and its priority."""

    cpu: int
    memory: int
    priority: int


SHAPES = {
    1: Shape(2, 1, 0),
    2: Shape(4, 2, 0),
    3: Shape(3, 4, 10),
    4: Shape(4, 1, 10),
    5: Shape(6, 3, 100),
    6: Shape(2, 2, 100),
    7: Shape(8, 8, 10),
}
"""By the number of the class."""

CAPACITY = 8
"""Of cpu and memory, of each node."""

WEB = 1
"""The label set of the tasks of the budget."""

MOVES_AT_ONCE = 4
PLENTY_OF_ROUNDS = 60


@dataclass
class Gang:
    minimum: int
    whole: bool
    created_us: int


@dataclass
class Task:
    """on: the node that it runs on; assumed: by the engine alone. victim: it is about to be evicted, or to move;
    leaving: that is observed. nominated: what the bridge has noted. job: of a movable task."""

    number: int
    label_set: int = 0
    gang: int = 0
    job: int = 0
    created_us: int = NOW_US
    on: str | None = None
    assumed: bool = False
    victim: bool = False
    leaving: bool = False
    moves: bool = False
    nominated: str | None = None

    @property
    def shape(self) -> Shape:
        return SHAPES[self.number]

    @property
    def evictable(self) -> bool:
        return not (self.assumed or self.victim or self.leaving)

    @property
    def stays(self) -> bool:
        return self.on is not None and not (self.victim or self.leaving)


class GangWorld(RuleBasedStateMachine):
    preempting = Preempting.WITHIN_BUDGETS

    def __init__(self):
        super().__init__()
        self.nodes: list[str] = []
        self.tasks: dict[int, Task] = {}
        self.gangs: dict[int, Gang] = {}
        self.allowed = 0
        self.successors: list[Task] = []  # that owners have yet to create
        self.now_us = NOW_US
        self.last_uid = 0
        self.last_gang = 0
        self.changes = 0

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
        self.nodes = [f"n{number}" for number in range(nodes)]
        self.allowed = allowed
        self.start_engine()
        for number, first, label_set, movable in running:
            task = Task(number, label_set, job=self.last_uid + 1 if movable else 0)
            self.run_together([task], first)
        for number, size, minimum, whole in gangs:
            self.run_gang(number, size, min(size, minimum), whole, 0)

    @rule(number=st.sampled_from(sorted(SHAPES)), count=st.integers(1, 3), label_set=st.integers(0, 1))
    def arrive(self, number, count, label_set):
        self.create([Task(number, label_set, created_us=self.now_us) for _ in range(count)])

    @rule(number=st.sampled_from([1, 2, 4]), label_set=st.integers(0, 1), first=st.integers(0, 4))
    def run_a_movable_task(self, number, label_set, first):
        self.run_together([Task(number, label_set, job=self.last_uid + 1)], first)

    @rule(
        number=st.sampled_from([2, 3, 5, 6]),
        size=st.integers(1, 5),
        fewer=st.integers(0, 3),
        whole=st.booleans(),
        other=st.booleans(),
    )
    def a_gang_arrives(self, number, size, fewer, whole, other):
        """other: its last member is of another class."""
        gang = self.new_gang(max(size - fewer, 1), whole)
        members = [Task(number, gang=gang, created_us=self.now_us) for _ in range(size)]
        if other:
            members[-1].number = 6
        self.create(members)

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
        self.run_together([Task(number, label_set, gang) for _ in range(size)], size)

    @precondition(lambda self: self.tasks)
    @rule(which=st.integers(0, 99))
    def end(self, which):
        self.remove(sorted(self.tasks)[which % len(self.tasks)])

    @precondition(lambda self: any(task.victim for task in self.tasks.values()))
    @rule(which=st.integers(0, 9), ending=st.sampled_from(["leaves", "leaves", "leaving", "stays"]))
    def carry_out_an_eviction(self, which, ending):
        victims = sorted(uid for uid, task in self.tasks.items() if task.victim)
        uid = victims[which % len(victims)]
        task = self.tasks[uid]
        if ending == "leaves":
            self.leave(uid)
            return
        task.victim, task.leaving = False, ending == "leaving"
        task.moves &= task.leaving
        self.observe(uid)

    @precondition(lambda self: any(task.leaving for task in self.tasks.values()))
    @rule()
    def all_that_leaves_is_gone(self):
        for uid in [uid for uid, task in self.tasks.items() if task.leaving]:
            self.leave(uid)

    @precondition(lambda self: self.successors)
    @rule(created=st.booleans())
    def an_owner_acts(self, created):
        """It creates the successor, or does not."""
        task = self.successors.pop(0)
        if created:
            task.created_us = self.now_us
            self.create([task])

    @rule(chosen=st.sets(st.integers(0, 9), max_size=3), reject=st.booleans())
    def bind(self, chosen, reject):
        """Binds are confirmed but for some, which fail."""
        assumed = sorted(uid for uid, task in self.tasks.items() if task.assumed)
        for position, uid in enumerate(assumed):
            task = self.tasks[uid]
            if position not in chosen:
                task.assumed = False
                self.observe(uid)
            elif reject:
                self.cluster.tell(PlacementRejected(uid, f"id-{task.on}", self.now_us))
                task.assumed, task.on = False, None

    @rule(chosen=st.sets(st.integers(0, 20)))
    def repeat_rows(self, chosen):
        """The bridge sends again what it has noted."""
        for position, (uid, task) in enumerate(sorted(self.tasks.items())):
            if position in chosen and not task.assumed and not task.victim:
                self.observe(uid)

    @rule(allowed=st.integers(0, 4))
    def change_budget(self, allowed):
        self.set_budget(allowed)

    @rule(lost=st.booleans())
    def fail_over(self, lost):
        """A new engine learns what can be observed. lost: no bind was carried out, and no eviction began."""
        for task in self.tasks.values():
            if task.assumed:
                task.assumed, task.on = False, None if lost else task.on
            if task.victim:
                task.victim, task.leaving = False, not lost
                task.moves &= not lost
        self.start_engine()

    @rule(seconds=st.sampled_from([1, 130]))
    def schedule(self, seconds):
        self.now_us += seconds * SECOND_US
        self.round()

    @invariant()
    def schedule_after_every_second_change(self):
        self.changes += 1
        if self.changes % 2 == 0 and self.nodes:
            self.now_us += SECOND_US // 2  # moves are considered in every second round
            self.round()

    # -- rounds -------------------------------------------------------------------------------------------------

    def round(self):
        """Runs a round and checks it; whether it has changed anything."""
        before = {uid: task.nominated for uid, task in self.tasks.items()}
        result = self.cluster.run(self.now_us)
        placed, preempted = self.cluster.names(result), self.cluster.preempted(result)
        moves = self.cluster.migrating(result)
        note(f"placed {placed}, preempted {preempted}, moves {moves}, nominated {self.cluster.nominated()}")
        for victim, preemptor in preempted.items():
            task, other = self.tasks[victim], self.tasks[preemptor]
            assert task.shape.priority < other.shape.priority, "a victim's priority is not lower"
            assert task.evictable, "a victim may not be evicted, or leaves already"
            assert task.on is not None, "a victim does not run"
            assert other.on is None, "a preemptor runs already"
        uid, migration = self.cluster.state.tasks.uid, result.migration
        assert not preempted.keys() & moves.keys(), "a victim moves"
        for mover, row in zip(moves, migration.needed_by.tolist(), strict=True):
            task = self.tasks[mover]
            assert task.job, "a task moves without an owner"
            assert task.evictable, "a task moves that leaves, or is not bound"
            assert task.on not in (None, moves[mover]), "a task moves nowhere"
            assert self.tasks[int(uid[row])].on is None, "a task moves for one that runs"
        assert len(moves) <= MOVES_AT_ONCE
        if self.preempting is Preempting.WITHIN_BUDGETS or not preempted:
            counted = sum(self.tasks[one].label_set == WEB for one in (*preempted, *moves))
            assert counted <= self.allowed, "a budget is exceeded"
        for one, name in placed.items():
            task = self.tasks[one]
            assert task.on is None
            task.on, task.assumed, task.nominated = name, True, None
        for one in (*preempted, *moves):
            self.tasks[one].victim, self.tasks[one].moves = True, one in moves
        self.note_nominations(result)
        self.check_gangs(placed, preempted)
        self.check_nodes(set(placed.values()), set(moves.values()))
        changed = {uid: task.nominated for uid, task in self.tasks.items()} != before
        return bool(placed or preempted or moves or changed)

    def note_nominations(self, result):
        uid, (rows, _) = self.cluster.state.tasks.uid, result.preemption.nominated
        nominated = self.cluster.nominated()
        for one in uid[rows].tolist():
            self.tasks[one].nominated = nominated[one]
        for one in uid[result.preemption.unnominated].tolist():
            self.tasks[one].nominated = None
        for one, name in nominated.items():
            assert self.tasks[one].on is None
            assert self.tasks[one].nominated == name, "the bridge does not learn of a nomination"

    def check_gangs(self, placed, preempted):
        """placed, preempted: uids, by this round."""
        stay = Counter(task.gang for task in self.tasks.values() if task.stays)
        waiting = Counter(self.tasks[uid].gang for uid in self.cluster.nominated())
        for number in {self.tasks[uid].gang for uid in preempted} - {0}:
            gang = self.gangs[number]
            assert stay[number] == 0 or stay[number] >= gang.minimum, "half a gang stays"
            assert stay[number] == 0 or not gang.whole, "a gang that is disrupted as a whole loses a member"
        for number in {self.tasks[uid].gang for uid in placed} - {0}:
            assert stay[number] >= self.gangs[number].minimum, "half a gang is placed"
        for number in waiting.keys() - {0}:
            assert stay[number] + waiting[number] >= self.gangs[number].minimum, "half a gang is nominated"

    def check_nodes(self, changed, targets):
        """No placement over-commits a node, and each can take all that it is kept for once what leaves it is gone.
        changed, targets: nodes on which tasks were placed, and to which they move."""
        nominated = self.cluster.nominated()
        state = self.cluster.state
        expected = {name: [0, 0] for name in self.nodes}
        names = state.resources.names
        for row, amounts in zip(*(each.tolist() for each in state.successors.reserved()), strict=True):
            of = expected[state.nodes.observed[row].name]
            of[0] += amounts[names.index("cpu")]
            of[1] += amounts[names.index("memory")]
        for name in self.nodes:
            residents = [task for task in self.tasks.values() if task.on == name]
            waiting = [self.tasks[uid] for uid, on in nominated.items() if on == name]
            if name in changed:
                assert used(residents, "cpu") <= CAPACITY
                assert used(residents, "memory") <= CAPACITY
            if waiting or name in targets:
                later = [*(task for task in residents if task.stays), *waiting]
                assert used(later, "cpu") + expected[name][0] <= CAPACITY, "what a node is kept for will not fit"
                assert used(later, "memory") + expected[name][1] <= CAPACITY, "what a node is kept for will not fit"

    def teardown(self):
        """Without arrivals all comes to rest, and nobody waits who could preempt."""
        if not self.nodes:
            return
        self.set_budget(10**6)
        self.now_us += SUCCESSOR_US  # successors that were lost are not expected any more
        for _ in range(PLENTY_OF_ROUNDS):
            self.bind(set(), reject=False)  # what is not confirmed is not evicted
            self.now_us += SECOND_US
            changed = self.round()
            leaving = [uid for uid, task in self.tasks.items() if task.leaving or task.victim]
            for uid in leaving:
                self.leave(uid)
            created = len(self.successors)
            while self.successors:
                self.an_owner_acts(created=True)
            if not (changed or leaving or created):
                break
        else:
            raise AssertionError("the rounds do not settle")
        assert not self.cluster.nominated(), "a task is nominated, and nobody leaves its node"
        assert not len(self.cluster.state.successors), "a successor is expected, and none is to come"
        for uid, task in self.tasks.items():
            if task.on is None and not task.gang:
                assert not self.places_for(task), f"task {uid} waits, and could preempt"
        for number, gang in self.gangs.items():
            members = [task for task in self.tasks.values() if task.gang == number]
            lacking = gang.minimum - sum(task.on is not None for task in members)
            waiting = [task for task in members if task.on is None]
            if 0 < lacking <= len(waiting) and len({task.number for task in waiting}) == 1:
                assert self.places_for(waiting[0]) < lacking, f"gang {number} waits, and could preempt"

    # -- details ------------------------------------------------------------------------------------------------

    def places_for(self, task):
        """How many tasks like this one fit if all single tasks of lower priority go."""
        places = 0
        for name in self.nodes:
            stay = [
                other
                for other in self.tasks.values()
                if other.on == name and (other.shape.priority >= task.shape.priority or other.gang)
            ]
            places += min(
                (CAPACITY - used(stay, "cpu")) // task.shape.cpu,
                (CAPACITY - used(stay, "memory")) // task.shape.memory,
            )
        return places

    def new_gang(self, minimum, whole):
        self.last_gang += 1
        self.gangs[self.last_gang] = Gang(minimum, whole, self.now_us)
        self.tell_gang(self.last_gang)
        return self.last_gang

    def run_together(self, tasks, first):
        """Creates tasks on the first nodes, from the position `first` on, that have what they request, if all fit."""
        first %= len(self.nodes)
        for task in tasks:
            for name in self.nodes[first:] + self.nodes[:first]:
                there = [*(each for each in [*self.tasks.values(), *tasks] if each.on == name), task]
                if used(there, "cpu") <= CAPACITY and used(there, "memory") <= CAPACITY:
                    task.on = name
                    break
            else:
                return
        for task in tasks:
            task.created_us = self.now_us
        self.create(tasks)

    def create(self, tasks):
        for task in tasks:
            self.last_uid += 1
            self.tasks[self.last_uid] = task
            self.observe(self.last_uid)

    def observe(self, uid):
        task = self.tasks[uid]
        [outcome] = self.cluster.tell(
            make_tasks(
                [uid],
                task.number,
                on=task.on,
                job=task.job,
                created_us=task.created_us,
                label_set=task.label_set,
                leaving=task.leaving,
                gang=task.gang,
                started_us=task.created_us if task.on else 0,
                nominated=None if task.on else task.nominated,
                movable=bool(task.job),
            )
        )
        assert not outcome.refused, outcome

    def leave(self, uid):
        """A task that was evicted is gone; if it was to move, its owner is to create another one."""
        task = self.tasks[uid]
        self.remove(uid)
        if task.moves:
            self.successors.append(Task(task.number, task.label_set, job=task.job))

    def remove(self, uid):
        del self.tasks[uid]
        self.cluster.tell(removed(uid))

    def set_budget(self, allowed):
        self.allowed = allowed
        self.cluster.tell(make_budget(1, tasks_like(needs("app")), allowed))

    def tell_gang(self, number):
        gang = self.gangs[number]
        self.cluster.tell(make_gang(number, gang.minimum, created_us=gang.created_us, whole=gang.whole))

    def start_engine(self):
        self.cluster = migrating_cluster(
            *(
                make_class(number, cpu=shape.cpu, memory=shape.memory, priority=shape.priority)
                for number, shape in SHAPES.items()
            ),
            make_label_set(WEB, app="web"),
            *(make_node(name, cpu=CAPACITY, memory=CAPACITY) for name in self.nodes),
            migrating=Migrating.FOR_WAITING,
            moves_at_once=MOVES_AT_ONCE,
            reserve_after_us=None,  # else what is reserved for large tasks that wait for long is left free at the end
            preempting=self.preempting,
        )
        self.set_budget(self.allowed)
        for number in self.gangs:
            self.tell_gang(number)
        for uid in sorted(self.tasks):
            self.observe(uid)


def used(tasks, resource):
    return sum(getattr(task.shape, resource) for task in tasks)


class GangWorldBeyondBudgets(GangWorld):
    preempting = Preempting.BEYOND_BUDGETS


TestGangWorld = GangWorld.TestCase
TestGangWorld.settings = examples(14, steps=20)
TestGangWorldBeyondBudgets = GangWorldBeyondBudgets.TestCase
TestGangWorldBeyondBudgets.settings = examples(5, steps=20)
