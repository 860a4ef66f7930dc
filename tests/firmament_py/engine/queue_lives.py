"""Long lives of clusters with queues: thousands of rounds with arrivals, ends, node failures, changed quotas, tasks
that are cancelled, and evictions that take time or are refused. Rules are checked in plain Python, from what runs and
waits; when nothing changes any more, the division has to be the one that the rules aim at."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from firmament_py.model.events import NodeRemoved, QueuesObserved
from firmament_py.model.options import Preempting
from firmament_py.model.queues import BorrowWithin, Quota, Reclaim, Within
from tests.builders import NOW_US, SECOND_US, make_class, make_cluster, make_gang, make_node, make_tasks, removed
from tests.firmament_py.queues.trees import queue, queue_id, tree

NAMES = "abcd"
CPU = 6
"""Of each node."""

NODES = 3
CLASSES = {1: (1, 0), 2: (1, 5), 3: (2, 0), 4: (3, 5)}
"""Class -> CPUs and priority. Worlds of small tasks have the first two only."""

SETTLED = 60
"""Rounds in which a world without changes comes to rest."""

RESTING = 12
"""Changes between two times of rest."""


@dataclass(frozen=True)
class RuleSet:
    """fields: of the tree. confined: whether the queues are below one, and may use the sum of their nominal amounts.
    fair: whether weighted shares of what is borrowed count. by_weight: whether shares of the whole do. weight_alone:
    without nominal amounts, as limits. by_priority: whether no victim is of a higher priority than its preemptor."""

    fields: Mapping[str, Any]
    confined: bool = False
    fair: bool = False
    by_weight: bool = False
    weight_alone: bool = False
    by_priority: bool = False
    dominant: bool = False
    """Whether queues take from those that still use more for their weight then."""
    final_share: bool = False
    """If `fair`: whether the victim's queue is compared as it is without the victim."""

    @property
    def parent(self) -> str:
        return "top" if self.confined else ""


def water_filling(nominal: list[int], weight: list[float], demand: list[int], total: int) -> list[float]:
    """Nominal amounts first, then the rest by weight, none above its demand."""
    share = [float(min(pair)) for pair in zip(nominal, demand, strict=True)]
    while True:
        left, lacking = total - sum(share), [i for i in range(len(share)) if demand[i] - share[i] > 1e-9]
        if left < 1e-9 or not lacking:
            return share
        step = min([left / sum(weight[i] for i in lacking), *((demand[i] - share[i]) / weight[i] for i in lacking)])
        for i in lacking:
            share[i] += step * weight[i]


@dataclass
class Task:
    cls: int
    queue: str
    gang: int
    node: str = ""
    leaves_in: int = -1
    """Rounds until an evicted task is gone, -1: it is not evicted."""

    @property
    def cpus(self) -> int:
        return CLASSES[self.cls][0]

    @property
    def priority(self) -> int:
        return CLASSES[self.cls][1]


@dataclass
class Life:
    rules: RuleSet
    seed: int
    small: bool
    """Whether all tasks need one CPU, so that the division is exact up to one task."""

    rng: Random = field(init=False)
    now_us: int = NOW_US
    last_uid: int = 0
    gangs: int = 0
    tasks: dict[int, Task] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)
    quotas: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    """Queue -> nominal amount, limit and weight."""

    reclaimed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(victim's queue, preemptor's queue) since the last change."""

    counts: Counter[str] = field(default_factory=Counter)
    """How often things happened, for tests that these worlds are not idle."""

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        classes = [make_class(number, cpu=cpus, priority=priority) for number, (cpus, priority) in CLASSES.items()]
        self.cluster = make_cluster(*classes, preempting=Preempting.WITHIN_BUDGETS)
        for number in range(NODES):
            self.node_returns(f"n{number}")
        self.change_quotas()

    # -- what happens -----------------------------------------------------------------------------------------

    def live(self, changes: int) -> None:
        events = {
            self.arrive: 8,
            self.end: 6,
            self.gang_arrives: 0 if self.small else 2,
            self.change_quotas: 1,
            self.node_fails: 1,
            self.cancel_preemptor: 2,
        }
        for number in range(changes):
            [event] = self.rng.choices(list(events), list(events.values()))
            event()
            self.reclaimed.clear()
            for _ in range(self.rng.randint(1, 3)):
                self.round()
            if number % RESTING == RESTING - 1:
                self.come_to_rest()

    def come_to_rest(self) -> None:
        for name in {f"n{number}" for number in range(NODES)} - self.nodes:
            self.node_returns(name)
        self.reclaimed.clear()
        idle = 0
        for _ in range(SETTLED):
            idle = 0 if self.round(refusals=False) else idle + 1
            if idle == 3:
                break
        assert idle == 3, f"evictions and placements go on: {self.reclaimed}"
        assert not self.cluster.nominated(), "what was evicted for them is gone, and they wait nevertheless"
        self.counts["rests"] += 1
        if self.small:
            self.check_division()

    def arrive(self) -> None:
        cls = self.rng.choice([1, 2] if self.small else sorted(CLASSES))
        name = self.rng.choice(NAMES)
        for _ in range(self.rng.randint(1, 8)):
            self.create(Task(cls, name, 0))

    def gang_arrives(self) -> None:
        self.gangs += 1
        size, cls, name = self.rng.randint(2, 4), self.rng.choice(sorted(CLASSES)), self.rng.choice(NAMES)
        self.cluster.tell(make_gang(self.gangs, size, created_us=self.now_us, whole=True))
        for _ in range(size):
            self.create(Task(cls, name, self.gangs))

    def end(self) -> None:
        """Some tasks, or all members of a gang, end; running or not."""
        some = [uid for uid, task in self.tasks.items() if self.rng.random() < 0.15 and not task.gang]
        gangs = {task.gang for task in self.tasks.values() if task.gang and self.rng.random() < 0.1}
        for uid in [*some, *(uid for uid, task in self.tasks.items() if task.gang in gangs)]:
            self.remove(uid)

    def change_quotas(self) -> None:
        left = CPU * NODES
        for name in NAMES:
            nominal = 0 if self.rules.weight_alone else self.rng.randint(0, min(left, 8))
            left -= nominal
            limit = self.rng.choice([CPU * NODES, CPU * NODES, nominal + self.rng.randint(0, 6)])
            self.quotas[name] = nominal, limit, self.rng.choice([1.0, 1.0, 2.0, 3.0])
        within = {"within": Within.LOWER_PRIORITY, "reclaim": Reclaim.ANY, "borrow_within": BorrowWithin()}
        described = [queue(self.rules.parent)] if self.rules.parent else []
        for name, (nominal, limit, weight) in self.quotas.items():
            bound = {"borrowing_limit": limit - nominal} if self.rules.confined else {"limit": limit}
            quotas = Quota("red", "cpu", nominal, **bound)
            described.append(queue(name, self.rules.parent, quotas, weight=weight, **within))
        self.cluster.tell(QueuesObserved(tree(*described, **self.rules.fields)))

    def node_fails(self) -> None:
        """Its tasks are lost; their owners create others."""
        if len(self.nodes) < NODES:
            return
        name = self.rng.choice(sorted(self.nodes))
        for uid in [uid for uid, task in self.tasks.items() if task.node == name]:
            self.create(self.remove(uid))
        self.nodes.remove(name)
        self.cluster.tell(NodeRemoved(f"id-{name}"))
        self.counts["node failures"] += 1

    def node_returns(self, name: str) -> None:
        self.nodes.add(name)
        self.cluster.tell(make_node(name, cpu=CPU))

    def cancel_preemptor(self) -> None:
        nominated = sorted(self.cluster.nominated())
        if nominated and not self.tasks[nominated[0]].gang:
            self.remove(nominated[0])
            self.counts["cancelled preemptors"] += 1

    # -- rounds -----------------------------------------------------------------------------------------------

    def round(self, *, refusals: bool = True) -> bool:
        """A round, and what happens to those that leave; whether anything did."""
        self.now_us += SECOND_US
        before = self.used()
        result = self.cluster.run(self.now_us)  # checks that the independent check refuses nothing
        placed, victims = self.cluster.names(result), self.cluster.preempted(result)
        for uid, node in placed.items():
            self.tasks[uid].node = node
            self.tell(uid)
        self.check_limits({self.tasks[uid].queue for uid in placed})
        self.check_victims(victims, before)
        for uid in victims:
            self.tasks[uid].leaves_in = self.rng.randint(0, 2)
        moved = self.let_leave(refusals=refusals)
        self.counts.update(rounds=1, placed=len(placed), victims=len(victims))
        return bool(placed or victims or moved)

    def let_leave(self, *, refusals: bool) -> bool:
        leaving = [uid for uid, task in self.tasks.items() if task.leaves_in >= 0]
        for uid in leaving:
            task = self.tasks[uid]
            if refusals and not task.gang and self.rng.random() < 0.05:
                task.leaves_in = -1
                self.tell(uid)  # a budget forbids it after all: it stays
                self.reclaimed.clear()
                self.counts["refused evictions"] += 1
            elif task.leaves_in == 0:
                self.create(self.remove(uid))  # its owner creates another one
            else:
                task.leaves_in -= 1
        return bool(leaving)

    def create(self, task: Task) -> None:
        self.last_uid += 1
        self.tasks[self.last_uid] = Task(task.cls, task.queue, task.gang)
        self.tell(self.last_uid)

    def remove(self, uid: int) -> Task:
        self.cluster.tell(removed(uid))
        return self.tasks.pop(uid)

    def tell(self, uid: int) -> None:
        task = self.tasks[uid]
        fields = {"queue": queue_id(task.queue), "gang": task.gang, "created_us": NOW_US + uid}
        started_us = self.now_us if task.node else 0
        self.cluster.tell(make_tasks([uid], task.cls, on=task.node or None, started_us=started_us, **fields))

    # -- rules ------------------------------------------------------------------------------------------------

    def used(self, *, staying: bool = False) -> Counter[str]:
        """CPUs of running tasks by queue. staying: those that are not evicted."""
        totals = Counter(dict.fromkeys(NAMES, 0))
        for task in self.tasks.values():
            if task.node and not (staying and task.leaves_in >= 0):
                totals[task.queue] += task.cpus
        return totals

    def demand(self) -> Counter[str]:
        totals = Counter(dict.fromkeys(NAMES, 0))
        for task in self.tasks.values():
            totals[task.queue] += task.cpus
        return totals

    def check_limits(self, names: set[str]) -> None:
        """Queues that tasks were placed for are within their limits, and all within what they have together."""
        used = self.used()
        for name in names:
            assert used[name] <= self.quotas[name][1], f"{name} uses {used[name]} of {self.quotas[name]}"
        if names and self.rules.confined:
            assert used.total() <= sum(nominal for nominal, _, _ in self.quotas.values())

    def check_victims(self, victims: Mapping[int, int], before: Mapping[str, int]) -> None:
        """What is nominated counts as used, as it will be. A queue that loses tasks to others may exchange further ones
        for its own afterwards: these victims and their preemptors do not count."""
        own = {
            uid: preemptor for uid, preemptor in victims.items() if self.tasks[uid].queue == self.tasks[preemptor].queue
        }
        nominated = Counter(dict.fromkeys(NAMES, 0))
        for uid in self.cluster.nominated():
            if uid not in own.values():
                nominated[self.tasks[uid].queue] += self.tasks[uid].cpus
        for name in NAMES:
            of_others = [
                self.tasks[uid]
                for uid, preemptor in victims.items()
                if self.tasks[uid].queue == name != self.tasks[preemptor].queue
            ]
            if of_others and not any(task.gang for task in of_others):
                staying = nominated[name] + self.used(staying=True)[name] - sum(task.cpus for task in of_others)
                largest = max(task.cpus for task in of_others)
                nominal = self.quotas[name][0]
                spared = staying >= nominal if self.rules.by_priority else staying + largest > nominal
                assert spared, f"{name} had {before[name]}, is entitled to {nominal}, and keeps {staying}"
        for uid, preemptor in victims.items():
            victim, evictor = self.tasks[uid], self.tasks[preemptor]
            assert not evictor.node, "a victim leaves for a task that waits"
            if victim.queue == evictor.queue:
                assert victim.priority < evictor.priority
                continue
            assert not self.rules.by_priority or victim.priority <= evictor.priority
            self.reclaimed[victim.queue, evictor.queue] += 1
            if self.small:  # what is left of a large victim may be borrowed, and is taken back
                assert not self.reclaimed[evictor.queue, victim.queue], "a victim evicts its evictor's queue in turn"
        for gang in {self.tasks[uid].gang for uid in victims} - {0}:
            members = {uid for uid, task in self.tasks.items() if task.gang == gang and task.node}
            assert members <= {*victims, *(uid for uid in members if self.tasks[uid].leaves_in >= 0)}

    def check_division(self) -> None:
        """At rest, with tasks of one CPU: what runs is what the rules aim at."""
        used, demand = self.used(), self.demand()
        nominal = {name: self.quotas[name][0] for name in NAMES}
        limit = {name: self.quotas[name][1] for name in NAMES}
        weight = {name: self.quotas[name][2] for name in NAMES}
        waits = {name for name in NAMES if demand[name] > used[name]}
        total, free = CPU * NODES, CPU * NODES - used.total()
        shown = f"used {used}, demand {demand}, quotas {self.quotas}"
        pool = min(total, sum(nominal.values())) - used.total() if self.rules.confined else free
        may_use_more = {name for name in waits if used[name] < limit[name]}
        if pool > 0 and free > 0 and not self.rules.weight_alone:
            assert not may_use_more, f"capacity is left over: {shown}"
        if self.rules.confined and used.total() > sum(nominal.values()):
            return  # quotas have been lowered: what leaves is not free for others
        lowered = {name for name in NAMES if used[name] > limit[name]}
        for name in waits - lowered:  # within a queue, by priority
            running = [task.priority for task in self.tasks.values() if task.queue == name and task.node]
            waiting = [task.priority for task in self.tasks.values() if task.queue == name and not task.node]
            assert max(waiting) <= min(running, default=max(waiting)), f"{name} does not serve its priorities: {shown}"
        for name in may_use_more:
            highest = max(task.priority for task in self.tasks.values() if task.queue == name and not task.node)
            lowest = {
                other: min((t.priority for t in self.tasks.values() if t.queue == other and t.node), default=99)
                for other in NAMES
            }
            others = [
                other for other in NAMES if other != name and (not self.rules.by_priority or lowest[other] <= highest)
            ]
            above = [other for other in others if used[other] > nominal[other]]
            if used[name] < nominal[name]:
                assert not above, f"{name} lacks what is its own: {shown}"
            if self.rules.fair:
                for other in above:
                    mine = (max(used[name] + 1 - nominal[name], 0)) / weight[name]
                    theirs = (used[other] - nominal[other] - self.rules.final_share) / weight[other]
                    if self.rules.final_share and mine == theirs:
                        mine = theirs - 1.0  # it is permitted
                    assert mine >= theirs, f"{other} borrows more for its weight than {name}: {shown}"
        if self.rules.dominant:
            for name in may_use_more:
                for other in NAMES:
                    mine, theirs = (used[name] + 1) / weight[name], (used[other] - 1) / weight[other]
                    assert mine >= theirs, f"{other} uses more for its weight than {name}: {shown}"
        if self.rules.by_weight:
            at_most = [min(demand[name], limit[name]) for name in NAMES]
            found = water_filling([*nominal.values()], [*weight.values()], at_most, total)
            share = dict(zip(NAMES, found, strict=True))
            for name in may_use_more:
                for other in NAMES:
                    over = used[other] - max(share[other], nominal[other]) >= 1
                    assert not (used[name] + 1 <= share[name] and over), f"of {share}: {shown}"
