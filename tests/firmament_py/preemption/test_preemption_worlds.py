"""Preemption over many rounds in random worlds: tasks arrive and end, victims leave late or not at all, nodes and
budgets change, the bridge repeats itself, the engine starts anew. What may never happen is checked after each round,
and that the rounds settle at the end."""

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from firmament_py.model.constraints import Taint
from firmament_py.model.events import NodeRemoved, PlacementRejected
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
    needs,
    preempting_cluster,
    removed,
    selecting,
    tasks_like,
)
from tests.effort import examples

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("numba")]  # compiles once, not in every worker


@dataclass(frozen=True)
class Shape:
    """The requests and the rights of a class."""

    cpu: int
    memory: int
    priority: int
    preempts: bool = True
    disk: bool = False


SHAPES = {
    1: Shape(2, 1, 0),
    2: Shape(4, 2, 0),
    3: Shape(3, 4, 10),
    4: Shape(4, 1, 10),
    5: Shape(6, 3, 100),
    6: Shape(2, 2, 100),
    7: Shape(4, 4, 100, preempts=False),
    8: Shape(4, 2, 100, disk=True),
    9: Shape(8, 8, 50),
}
"""By the number of the class."""

GANG, GANG_MINIMUM = 1, 2
LABELLED = {1: "web", 2: "web", 3: "store"}
"""The label `app` of the tasks of a budget, by the number of their label set; the third one's budget is the second."""

UNLIMITED = 10**6
PLENTY_OF_ROUNDS = 40


@dataclass
class Node:
    cpu: int
    memory: int
    disk: bool
    tainted: bool = False


@dataclass
class Task:
    """on: the node that it runs on; assumed: by the engine alone. victim: it is about to be evicted; leaving: that is
    observed. nominated: what the bridge has noted."""

    number: int
    label_set: int = 0
    gang: int = 0
    unevictable: bool = False
    created_us: int = NOW_US
    on: str | None = None
    assumed: bool = False
    victim: bool = False
    leaving: bool = False
    nominated: str | None = None

    @property
    def shape(self) -> Shape:
        return SHAPES[self.number]

    @property
    def evictable(self) -> bool:
        return not (self.unevictable or self.assumed or self.victim or self.leaving)

    @property
    def stays(self) -> bool:
        return self.on is not None and not (self.victim or self.leaving)


class PreemptionWorld(RuleBasedStateMachine):
    preempting = Preempting.WITHIN_BUDGETS

    def __init__(self):
        super().__init__()
        self.nodes: dict[str, Node] = {}
        self.tasks: dict[int, Task] = {}
        self.budgets: dict[int, int] = {}
        self.now_us = NOW_US
        self.last_uid = 0
        self.changes = 0
        self.cluster = preempting_cluster()

    # -- what happens in the world ------------------------------------------------------------------------------

    @initialize(
        disks=st.lists(st.booleans(), min_size=1, max_size=4),
        allowed=st.lists(st.integers(0, 3), max_size=2),
        running=st.lists(st.tuples(st.sampled_from([1, 2, 3, 4]), st.integers(0, 3)), min_size=4, max_size=12),
    )
    def begin(self, disks, allowed, running):
        for number, disk in enumerate(disks):
            self.nodes[f"n{number}"] = Node(8, 8, disk)
        self.budgets = dict(enumerate(allowed, 1))
        self.start_engine()
        for position, (number, label_set) in enumerate(running):
            self.run_on_any(Task(number, label_set), position)

    @rule(number=st.sampled_from(sorted(SHAPES)), count=st.integers(1, 4), label_set=st.integers(0, 3))
    def arrive(self, number, count, label_set):
        self.create([Task(number, label_set) for _ in range(count)])

    @rule(number=st.sampled_from([5, 6, 8, 9]), count=st.integers(1, 3))
    def arrive_important(self, number, count):
        self.create([Task(number) for _ in range(count)])

    @rule(
        number=st.sampled_from([1, 2, 4]), first=st.integers(0, 3), kind=st.sampled_from(["static", "gang", "single"])
    )
    def run_a_task(self, number, first, kind):
        """One that is observed on a node: a static pod, a member of a gang, or one that another has placed."""
        self.run_on_any(Task(number, gang=GANG * (kind == "gang"), unevictable=kind == "static"), first)

    @precondition(lambda self: self.tasks)
    @rule(which=st.integers(0, 99))
    def end(self, which):
        uid = sorted(self.tasks)[which % len(self.tasks)]
        self.remove(uid)

    @precondition(lambda self: any(task.victim for task in self.tasks.values()))
    @rule(which=st.integers(0, 9), ending=st.sampled_from(["leaves", "leaving", "stays"]))
    def carry_out_an_eviction(self, which, ending):
        victims = sorted(uid for uid, task in self.tasks.items() if task.victim)
        uid = victims[which % len(victims)]
        if ending == "leaves":
            self.remove(uid)
            return
        self.tasks[uid].victim = False
        self.tasks[uid].leaving = ending == "leaving"
        self.observe(uid)

    @precondition(lambda self: any(task.leaving for task in self.tasks.values()))
    @rule()
    def all_that_leaves_is_gone(self):
        for uid in [uid for uid, task in self.tasks.items() if task.leaving]:
            self.remove(uid)

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

    @rule(lost=st.booleans())
    def fail_over(self, lost):
        """A new engine learns what can be observed. lost: no bind was carried out, and no eviction began."""
        for task in self.tasks.values():
            if task.assumed:
                task.assumed, task.on = False, None if lost else task.on
            if task.victim:
                task.victim, task.leaving = False, not lost
        self.start_engine()

    @rule(seconds=st.sampled_from([1, 30]))
    def schedule(self, seconds):
        self.now_us += seconds * SECOND_US
        self.round()

    @invariant()
    def schedule_after_every_second_change(self):
        self.changes += 1
        if self.changes % 2 == 0:
            self.schedule(1)

    # -- rounds -------------------------------------------------------------------------------------------------

    def round(self):
        """Runs a round and checks it; whether it has changed anything."""
        before = {uid: task.nominated for uid, task in self.tasks.items()}
        result = self.cluster.run(self.now_us)
        placed, preempted = self.cluster.names(result), self.cluster.preempted(result)
        note(f"placed {placed}, preempted {preempted}, nominated {self.cluster.nominated()}")
        for victim, preemptor in preempted.items():
            task, other = self.tasks[victim], self.tasks[preemptor]
            assert task.shape.priority < other.shape.priority, "a victim's priority is not lower"
            assert task.evictable, "a victim may not be evicted, or leaves already"
            assert task.on is not None, "a victim does not run"
            assert other.shape.preempts, "a preemptor may not preempt"
            assert other.on is None, "a preemptor runs already"
        if self.preempting is Preempting.WITHIN_BUDGETS:
            evicted = Counter(
                number for victim in preempted for number in self.budgets_of(self.tasks[victim].label_set)
            )
            assert all(count <= self.budgets[number] for number, count in evicted.items()), "a budget is exceeded"
        for uid, name in placed.items():
            task = self.tasks[uid]
            assert task.on is None
            assert self.suitable(task, name)
            task.on, task.assumed, task.nominated = name, True, None
        for uid in preempted:
            self.tasks[uid].victim = True
        if any(self.tasks[uid].gang for uid in preempted):
            stay = sum(task.stays for task in self.tasks.values() if task.gang)
            assert stay == 0 or stay >= GANG_MINIMUM, "half a gang stays"
        self.note_nominations(result)
        self.check_nodes(set(placed.values()))
        changed = {uid: task.nominated for uid, task in self.tasks.items()} != before
        return bool(placed or preempted or changed)

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

    def check_nodes(self, changed):
        """No placement over-commits a node, and each can take whom it is kept for once all that leave it are gone.
        changed: nodes on which tasks were placed."""
        nominated = self.cluster.nominated()
        for name, node in self.nodes.items():
            residents = [task for task in self.tasks.values() if task.on == name]
            if name in changed:
                assert sum(task.shape.cpu for task in residents) <= node.cpu
                assert sum(task.shape.memory for task in residents) <= node.memory
            waiting = [self.tasks[uid] for uid, on in nominated.items() if on == name]
            if waiting:
                expected = [*(task for task in residents if not task.leaving and not task.victim), *waiting]
                assert all(self.suitable(task, name) for task in waiting), "nominated to a node that does not suit"
                assert sum(task.shape.cpu for task in expected) <= node.cpu, "a nominated task will not fit"
                assert sum(task.shape.memory for task in expected) <= node.memory, "a nominated task will not fit"

    def teardown(self):
        """Without arrivals all comes to rest, and nobody waits who could preempt."""
        if not self.nodes:
            return
        for number in self.budgets:
            self.set_budget(number, UNLIMITED)
        for _ in range(PLENTY_OF_ROUNDS):
            self.bind(set(), reject=False)  # what is not confirmed is not evicted
            self.now_us += SECOND_US
            changed = self.round()
            leaving = [uid for uid, task in self.tasks.items() if task.leaving or task.victim]
            for uid in leaving:
                self.remove(uid)
            if not changed and not leaving:
                break
        else:
            raise AssertionError("the rounds do not settle")
        assert not self.cluster.nominated(), "a task is nominated, and nobody leaves its node"
        for uid, task in self.tasks.items():
            if task.on is None and task.shape.preempts:
                possible = [name for name in self.nodes if self.could_preempt(task, name)]
                assert not possible, f"task {uid} waits, and could preempt on {possible}"

    # -- details ------------------------------------------------------------------------------------------------

    def could_preempt(self, task, name):
        node = self.nodes[name]
        stay = [
            other.shape
            for other in self.tasks.values()
            if other.on == name and (other.shape.priority >= task.shape.priority or other.gang or not other.evictable)
        ]
        return (
            self.suitable(task, name)
            and sum(shape.cpu for shape in stay) + task.shape.cpu <= node.cpu
            and sum(shape.memory for shape in stay) + task.shape.memory <= node.memory
        )

    def suitable(self, task, name):
        node = self.nodes[name]
        return not node.tainted and (node.disk or not task.shape.disk)

    def fits(self, number, name):
        """Whether a node has what one more task of a class requests, nominations apart."""
        node = self.nodes[name]
        used = [task.shape for task in self.tasks.values() if task.on == name]
        return (
            sum(shape.cpu for shape in used) + SHAPES[number].cpu <= node.cpu
            and sum(shape.memory for shape in used) + SHAPES[number].memory <= node.memory
        )

    def budgets_of(self, label_set):
        return [number for number in self.budgets if label_set and LABELLED[label_set] == ("web", "store")[number - 1]]

    def run_on_any(self, task, first):
        """Creates a task on the first node, from the position `first` on, that has what it requests."""
        names = sorted(self.nodes)
        first %= len(names)
        fits = [name for name in names[first:] + names[:first] if self.fits(task.number, name)]
        if fits:
            task.on = fits[0]
            self.create([task])

    def create(self, tasks):
        for task in tasks:
            self.last_uid += 1
            task.created_us = self.now_us
            self.tasks[self.last_uid] = task
            self.observe(self.last_uid)

    def observe(self, uid):
        task = self.tasks[uid]
        [outcome] = self.cluster.tell(
            make_tasks(
                [uid],
                task.number,
                on=task.on,
                created_us=task.created_us,
                label_set=task.label_set,
                leaving=task.leaving,
                gang=task.gang,
                started_us=task.created_us if task.on else 0,
                nominated=None if task.on else task.nominated,
                unevictable=task.unevictable,
            )
        )
        assert not outcome.refused, outcome

    def remove(self, uid):
        del self.tasks[uid]
        self.cluster.tell(removed(uid))

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

    def start_engine(self):
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
