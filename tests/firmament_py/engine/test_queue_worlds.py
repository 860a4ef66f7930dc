"""Queues over time: tasks arrive, end, and come back when they are evicted; quotas change. All of it comes to rest."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from firmament_py.model.events import QueuesObserved
from firmament_py.model.options import Preempting
from firmament_py.model.queues import (
    BorrowWithin,
    Division,
    Flavor,
    Fungibility,
    Reclaim,
    ReclaimRules,
    Sharing,
    Within,
)
from tests.builders import NOW_US, SECOND_US, make_class, make_cluster, make_gang, make_node, make_tasks, removed
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree

LEAVES = ("a", "b", "c", "d")
CPUS = {1: 1, 2: 2, 3: 1}
PRIORITIES = {1: 0, 2: 0, 3: 10}
SETTLED = 40
"""Rounds in which a world without changes comes to rest."""


class QueueWorld(RuleBasedStateMachine):
    """Four queues below two, on three nodes of 6 CPUs. Victims end at once, and come back as new tasks."""

    tree_fields: dict[str, object]
    seen: Mapping[str, dict[str, object]] = MappingProxyType({})
    """How priorities in queues are seen outside of them."""
    within = Within.LOWER_PRIORITY
    reclaim = Reclaim.ANY
    overlapping = False
    """Whether there are two flavors, one of all nodes and one of two of the three."""

    def __init__(self):
        super().__init__()
        self.now_us = NOW_US
        self.last_uid = 0
        self.waiting: dict[int, tuple[int, str, int]] = {}  # uid -> class, queue, gang
        self.running: dict[int, tuple[int, str, int, str]] = {}
        self.gangs: set[int] = set()

    @initialize(amounts=st.lists(st.integers(0, 8), min_size=4, max_size=4), lending=st.booleans())
    def start(self, amounts, lending):
        nodes = [make_node(f"n{i}", cpu=6, labels={"kind": "some" if i else "other"}) for i in range(3)]
        classes = [make_class(number, cpu=cpu, priority=PRIORITIES[number]) for number, cpu in CPUS.items()]
        self.cluster = make_cluster(*nodes, *classes, preempting=Preempting.WITHIN_BUDGETS)
        self.describe(amounts, 2 if lending else None)

    def describe(self, amounts, lending):
        queues = [queue("x"), *(queue(name, "x", **self.seen.get(name, {})) for name in "yz")]
        for name, amount, parent in zip(LEAVES, amounts, "yyzz", strict=True):
            lent = None if lending is None else min(lending, amount)
            fields = {"within": self.within, "reclaim": self.reclaim, "borrow_within": BorrowWithin()}
            fields |= self.seen.get(name, {})
            quotas = [quota(amount, lending_limit=lent)]
            if self.overlapping:
                fields["fungibility"] = Fungibility(try_next_to_avoid_preemption=name < "c")
                quotas.append(quota(8 - amount, on="blue/cpu"))
            queues.append(queue(name, parent, *quotas, **fields))
        described = tree(*queues, **self.tree_fields)
        if self.overlapping:
            described = replace(described, flavors=(Flavor("red"), Flavor("blue", {"kind": "some"})))
        self.cluster.tell(QueuesObserved(described))

    @rule(amounts=st.lists(st.integers(0, 8), min_size=4, max_size=4))
    def change_quotas(self, amounts):
        self.describe(amounts, None)

    @rule(cls=st.sampled_from(sorted(CPUS)), name=st.sampled_from(LEAVES), count=st.integers(1, 6))
    def arrive(self, cls, name, count):
        for _ in range(count):
            self.create(cls, name, 0)

    @rule(cls=st.sampled_from(sorted(CPUS)), name=st.sampled_from(LEAVES), size=st.integers(2, 4))
    def gang_arrives(self, cls, name, size):
        gang = 1 + len(self.gangs)
        self.gangs.add(gang)
        self.cluster.tell(make_gang(gang, size, created_us=self.now_us, whole=True))
        for _ in range(size):
            self.create(cls, name, gang)

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 99))
    def end(self, which):
        uid = sorted(self.running)[which % len(self.running)]
        if not self.running[uid][2]:  # members of gangs run on
            del self.running[uid]
            self.cluster.tell(removed(uid))

    @rule()
    def round(self):
        self.run()

    def create(self, cls, name, gang):
        self.last_uid += 1
        self.waiting[self.last_uid] = (cls, name, gang)
        self.tell(self.last_uid)

    def tell(self, uid):
        cls, name, gang, on = (*self.waiting[uid], None) if uid in self.waiting else self.running[uid]
        started = self.now_us if on else 0
        self.cluster.tell(
            make_tasks([uid], cls, on=on, queue=queue_id(name), gang=gang, created_us=NOW_US + uid, started_us=started)
        )

    def run(self) -> bool:
        """A round, and what it decides; whether anything was evicted or placed."""
        self.now_us += SECOND_US
        before, reserved = self.used(), self.flavors(self.cluster.nominated())
        result = self.cluster.run(self.now_us)  # checks that the independent check refuses nothing
        placed, victims = self.cluster.names(result), self.cluster.preempted(result)
        taken = self.flavors(placed)
        assert all(taken[uid] == reserved[uid] for uid in taken.keys() & reserved.keys()), (
            "the nominated flavor is kept"
        )
        for uid, node in placed.items():
            self.running[uid] = (*self.waiting.pop(uid), node)
            self.tell(uid)
        for victim, preemptor in victims.items():
            assert preemptor in self.waiting, "a victim leaves for a task that waits"
            assert self.running[victim][1] != self.waiting[preemptor][1] or (
                PRIORITIES[self.running[victim][0]] < PRIORITIES[self.waiting[preemptor][0]]
            )
        self.check_gangs(victims)
        for victim in victims:
            cls, name, gang, _ = self.running.pop(victim)
            self.cluster.tell(removed(victim))
            self.create(cls, name, gang)  # its owner creates another one
        note(f"placed {placed}, evicted {victims}, used {before} -> {self.used()}")
        return bool(placed or victims)

    def check_gangs(self, victims):
        for gang in self.gangs:
            members = {uid for uid, (_, _, of, _) in self.running.items() if of == gang}
            assert not members & set(victims) or members <= set(victims), "a gang loses all members or none"

    def flavors(self, uids):
        """Of tasks, by uid."""
        tasks = self.cluster.state.tasks
        return {uid: int(tasks.flavors[self.cluster.state.task_row(uid)]) for uid in uids}

    def used(self):
        totals = dict.fromkeys(LEAVES, 0)
        for cls, name, _, _ in self.running.values():
            totals[name] += CPUS[cls]
        return totals

    def teardown(self):
        if not hasattr(self, "cluster"):
            return
        idle = 0
        for _ in range(SETTLED):
            idle = 0 if self.run() else idle + 1
            if idle == 3:
                break
        assert idle == 3, "evictions and placements go on without any change"
        nominated = self.cluster.nominated()
        assert not nominated, "what was evicted for them is gone, and they wait nevertheless"


KAI = {"sharing": Sharing.PROPORTIONAL, "reclaim_rules": ReclaimRules.FAIR_SHARE}
GUARANTEE = {"sharing": Sharing.PROPORTIONAL, "reclaim_rules": ReclaimRules.GUARANTEE}
WORLDS = {
    "classical": {},
    "fair": {"sharing": Sharing.FAIR},
    "kai": KAI,
    "stated": {
        "sharing": Sharing.PROPORTIONAL,
        "division": Division.AS_STATED,
        "reclaim_rules": ReclaimRules.DESERVED,
    },
    "guarantee": GUARANTEE,
    "priorities": GUARANTEE | {"priority_first": True},
    "overlapping flavors": {},
}
SEEN = {
    "y": {"priority_fence": True, "priority_offset": 5},
    "a": {"priority_offset": 10},
    "d": {"priority_fence": True},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_worlds_come_to_rest(name):
    from hypothesis import settings
    from hypothesis.stateful import run_state_machine_as_test

    seen = SEEN if name == "priorities" else {}
    fields = {"tree_fields": WORLDS[name], "seen": seen, "overlapping": name == "overlapping flavors"}
    world = type("World", (QueueWorld,), fields)
    run_state_machine_as_test(world, settings=settings(max_examples=15, stateful_step_count=20, deadline=None))
