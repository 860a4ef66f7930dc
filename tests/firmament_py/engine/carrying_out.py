"""Clusters in which plans of moves are carried out."""

from firmament_py.model.plan import Move, Step
from tests.builders import NOW_US, SECOND_US, make_class, make_node, make_tasks, removed
from tests.firmament_py.rebalance.plans import movable, resting_cluster

TASK, LARGE = 1, 2
"""Classes of 1 and 4 cpu."""


class World:
    """A cluster whose plan is carried out: the owners of evicted tasks create successors."""

    def __init__(self, *events, names="abc", cpu=4, **options):
        nodes = (make_node(name, cpu=cpu) for name in names)
        self.cluster = resting_cluster(make_class(TASK, cpu=1), make_class(LARGE, cpu=4), *nodes, *events, **options)
        self.now_us = NOW_US
        self.new = 1000
        self.under_way: list[int] = []
        self.placed: dict[int, str] = {}

    @property
    def plan(self):
        return self.cluster.scheduler.plan

    def begin(self, *steps):
        self.plan.begin(steps, self.now_us)

    def round(self, seconds=1):
        """Uid -> name of the other node of the tasks whose moves have begun."""
        self.now_us += seconds * SECOND_US
        result = self.cluster.run(self.now_us)
        self.placed |= self.cluster.names(result)
        moving = self.cluster.migrating(result)
        self.under_way += moving
        return moving

    def evicted(self, uid, *, successor=True):
        """The task is gone; its owner creates another one."""
        self.under_way.remove(uid)
        job = self.job_of(uid)
        self.cluster.tell(removed(uid))
        if successor:
            self.new += 1
            self.cluster.tell(make_tasks([self.new], TASK, job=job, movable=True))

    def job_of(self, uid):
        return int(self.cluster.state.tasks.job[self.cluster.state.task_row(uid)])

    def refused(self, uid):
        """The task is not evicted."""
        self.under_way.remove(uid)
        node = self.cluster.state.nodes.observed[int(self.cluster.state.tasks.node[self.cluster.state.task_row(uid)])]
        self.cluster.tell(make_tasks([uid], TASK, job=self.job_of(uid), movable=True, on=node.name))

    @property
    def stages(self):
        return {each.move.uid: each.stage for each in self.plan.progress}

    @property
    def reasons(self):
        return {each.move.uid: each.reason for each in self.plan.progress}


def step(*moves, after=(), nominated=()):
    return Step(tuple(Move(uid, "", f"id-{node}") for uid, node in moves), after, nominated)


def one_each(**options):
    """A task on each of three nodes; its uid is its number."""
    return World(*(movable([uid], TASK, name)[0] for uid, name in enumerate("abc", 1)), **options)
