"""Nodes, tasks, gangs and budgets, and an engine that is told all that can be observed of them."""

from dataclasses import dataclass

from hypothesis.stateful import RuleBasedStateMachine

from tests.builders import NOW_US, Cluster, make_tasks, removed


@dataclass(frozen=True)
class Shape:
    """The requests and the rights of a class."""

    cpu: int
    memory: int
    priority: int
    preempts: bool = True
    disk: bool = False


BASIC_SHAPES = {
    1: Shape(2, 1, 0),
    2: Shape(4, 2, 0),
    3: Shape(3, 4, 10),
    4: Shape(4, 1, 10),
    5: Shape(6, 3, 100),
    6: Shape(2, 2, 100),
}
"""Two of each of three priorities, by the number of the class."""


@dataclass
class Task:
    """on: the node that it runs on; assumed: by the engine alone. victim: it is about to be evicted, or to move
    (`moves`); leaving: that is observed. nominated: as the bridge has noted. job: of a movable task. Until
    exempt_until_us only tasks of the priority `least` or a higher one preempt it."""

    number: int
    shape: Shape
    label_set: int = 0
    gang: int = 0
    job: int = 0
    unevictable: bool = False
    created_us: int = NOW_US
    on: str | None = None
    assumed: bool = False
    victim: bool = False
    leaving: bool = False
    moves: bool = False
    nominated: str | None = None
    least: int = 0
    exempt_until_us: int = 0

    def gives_way(self, priority, now_us):
        """Whether it may be evicted for a task of this priority."""
        exempt = self.exempt_until_us > now_us and self.least > priority
        return self.evictable and self.shape.priority < priority and not exempt

    @property
    def evictable(self) -> bool:
        return not (self.unevictable or self.assumed or self.victim or self.leaving)

    @property
    def stays(self) -> bool:
        return self.on is not None and not (self.victim or self.leaving)


@dataclass
class Gang:
    minimum: int
    whole: bool
    created_us: int
    zonal: bool = False  # the members up to the minimum are in one zone


@dataclass
class Node:
    cpu: int
    memory: int
    disk: bool = False
    tainted: bool = False
    zone: str = ""

    def takes(self, tasks):
        return used(tasks, "cpu") <= self.cpu and used(tasks, "memory") <= self.memory


def used(tasks, resource):
    return sum(getattr(task.shape, resource) for task in tasks)


class WorldState(RuleBasedStateMachine):
    """`shapes`: by the number of the class. A subclass starts engines."""

    shapes: dict[int, Shape]
    cluster: Cluster

    def __init__(self):
        super().__init__()
        self.nodes: dict[str, Node] = {}
        self.tasks: dict[int, Task] = {}
        self.gangs: dict[int, Gang] = {}
        self.budgets: dict[int, int] = {}
        self.successors: list[Task] = []  # that owners have yet to create
        self.now_us = NOW_US
        self.last_uid = 0
        self.changes = 0

    def task(self, number, **fields):
        return Task(number, self.shapes[number], **fields)

    def run_together(self, tasks, first):
        """Creates tasks on the first nodes, from the position `first` on, that have what they request, if all fit."""
        names = sorted(self.nodes)
        first %= len(names)
        for task in tasks:
            for name in names[first:] + names[:first]:
                there = [each for each in [*self.tasks.values(), *tasks] if each.on == name]
                if self.nodes[name].takes([*there, task]):
                    task.on = name
                    break
            else:
                return
        self.create(tasks)

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
                job=task.job,
                created_us=task.created_us,
                label_set=task.label_set,
                leaving=task.leaving,
                gang=task.gang,
                started_us=task.created_us if task.on else 0,
                nominated=None if task.on else task.nominated,
                unevictable=task.unevictable,
                movable=bool(task.job),
                least_preemptor=task.least,
                exempt_until_us=task.exempt_until_us,
            )
        )
        assert not outcome.refused, outcome

    def leave(self, uid):
        """A task that was evicted is gone; if it was to move, its owner is to create another one."""
        task = self.tasks[uid]
        self.remove(uid)
        if task.moves:
            self.successors.append(self.task(task.number, label_set=task.label_set, job=task.job))

    def remove(self, uid):
        del self.tasks[uid]
        self.cluster.tell(removed(uid))

    # -- what nodes have capacity for ---------------------------------------------------------------------------

    def suitable(self, task, name):
        return not self.nodes[name].tainted and (self.nodes[name].disk or not task.shape.disk)

    def places_for(self, task, zones=None):
        """How many tasks like this one fit, in some zones or all, if all evictable single tasks of lower priority are
        evicted."""
        places = 0
        for name, node in self.nodes.items():
            stay = [
                other
                for other in self.tasks.values()
                if other.on == name and (other.gang or not other.gives_way(task.shape.priority, self.now_us))
            ]
            cpu, memory = node.cpu - used(stay, "cpu"), node.memory - used(stay, "memory")
            if self.suitable(task, name) and (zones is None or node.zone in zones):
                places += max(min(cpu // task.shape.cpu, memory // task.shape.memory), 0)
        return places

    def choices(self, there):
        """Sets of zones of which one has what a zonal gang lacks, whose members are in the zones `there`."""
        return [set(there)] if there else [{node.zone} for node in self.nodes.values()]

    def expected(self):
        """Name of a node -> cpu and memory that it reserves for successors."""
        state = self.cluster.state
        cpu, memory = (state.resources.names.index(name) for name in ("cpu", "memory"))
        found: dict[str, tuple[int, int]] = {}
        for row, amounts in zip(*(each.tolist() for each in state.successors.reserved()), strict=True):
            name = state.nodes.observed[row].name
            before = found.get(name, (0, 0))
            found[name] = before[0] + amounts[cpu], before[1] + amounts[memory]
        return found
