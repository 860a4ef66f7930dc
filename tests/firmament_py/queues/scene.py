"""Running tasks in a tree of queues, and a preemptor: which sets of victims are permitted.

Tasks are "name queue flavor/resource=amount,... priority @created", victims "name:reason".
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from firmament_py.model.queues import FairStrategy
from firmament_py.queues.judgement import Victims, judge
from firmament_py.queues.permissions import Situation
from firmament_py.queues.quota import capacity
from firmament_py.queues.shares import fair_shares
from firmament_py.queues.tree import build
from tests.firmament_py.queues.trees import queue_id, tree


class Case(NamedTuple):
    name: str
    queues: list
    running: str
    preemptor: str
    victims: str = ""
    strategies: tuple = ()


class Task:
    def __init__(self, described, queues):
        self.name, self.queue, amounts, *words = described.split()
        self.row = queues.row[queue_id(self.queue)]
        self.amounts = np.zeros(queues.nominal.shape[1], np.int64)
        for amount in amounts.split(","):
            on, _, units = amount.partition("=")
            self.amounts[queues.column(*on.split("/"))] += int(units)
        created = [int(word[1:]) for word in words if word.startswith("@")]
        self.created = created[0] if created else 0
        self.priority = next((int(word) for word in words if not word.startswith("@")), 0)


class Scene:
    """Running tasks in a tree of queues, and a preemptor."""

    def __init__(self, described, running, preemptor, total=None, **fields):
        self.queues = build(described)
        self.running = [Task(task, self.queues) for task in running.split("; ") if task]
        incoming = Task(preemptor, self.queues)
        own = np.zeros_like(self.queues.nominal)
        for task in self.running:
            own[task.row] += task.amounts
        if total is not None:
            request = own.copy()
            request[incoming.row] += incoming.amounts
            fields["share"] = fair_shares(self.queues, np.array(total), request)
            fields["total"] = np.array(total)
        self.situation = Situation(
            self.queues,
            capacity(self.queues),
            own,
            incoming.row,
            incoming.priority,
            incoming.created,
            incoming.amounts,
            **fields,
        )

    def victims(self, tasks):
        width = self.queues.nominal.shape[1]
        return Victims(
            queue=np.array([task.row for task in tasks], np.int64),
            priority=np.array([task.priority for task in tasks], np.int64),
            created_us=np.array([task.created for task in tasks], np.int64),
            amounts=np.array([task.amounts for task in tasks], np.int64).reshape(-1, width),
            preemptible=np.ones(len(tasks), np.bool_),
        )

    def judge(self, *names):
        return judge(self.situation, self.victims([task for task in self.running if task.name in names]))

    def permitted(self, at_least=1, at_most=4):
        """The smallest permitted sets of victims, as sets of names; alike tasks count once."""
        for size in range(at_least, at_most + 1):
            found = [
                {task.name for task in chosen}
                for chosen in combinations(self.running, size)
                if judge(self.situation, self.victims(chosen))
            ]
            if found:
                return found
        return []


def scene(case, sharing):
    strategies = {"LessThanOrEqualToFinalShare": FairStrategy(0), "LessThanInitialShare": FairStrategy(1)}
    fields = {"strategies": tuple(strategies[name] for name in case.strategies)} if case.strategies else {}
    names = dict.fromkeys(
        word.partition("/")[0]
        for word in (case.running + " " + case.preemptor).replace(",", " ").split()
        if "/" in word
    )
    named = dict.fromkeys([*(q.flavor for described in case.queues for q in described.quotas), *names])
    return Scene(tree(*case.queues, flavors=list(named), sharing=sharing, **fields), case.running, case.preemptor)
