"""Random clusters with gangs, their roles, limits and topologies, and all inter-task constraints."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.events import GangObserved
from firmament_py.placement import list_scheduling, placer
from tests.builders import NOW_US, SECOND_US, make_gang
from tests.effort import seeds
from tests.firmament_py.mixtures import Mixture, One
from tests.firmament_py.peer_oracle import an_order, may_place

pytestmark = pytest.mark.slow


class GangMixture(Mixture):
    """Two of three batches of tasks are of a gang, a new one or one that is there."""

    def __init__(self, one: One, *, preferences: bool = False) -> None:
        self.gangs: dict[int, GangObserved] = {}
        self.of: dict[int, tuple[int, int]] = {}
        """Gang, 0: none, and role of each task that ever was."""
        self._batch = 0
        super().__init__(one, preferences=preferences)

    def add_tasks(self, count: int = 1, bound: bool = False) -> None:
        one = self.one
        if one([True, True, False]):
            self._batch = one(sorted(self.gangs)) if self.gangs and one([True, False]) else self._new_gang()
        super().add_tasks(count, bound)
        self._batch = 0

    def _new_gang(self) -> int:
        one, gang = self.one, len(self.gangs) + 1
        roles = one([None, None, None, {"a": 1, "b": 0}, {"a": 1, "b": 1}, {"a": 0, "b": 2}])
        minimum, topology = one([0, 1, 2, 2, 3, 4]), one(["", "", "", "zone", "rack"])
        needed = max(minimum, sum((roles or {}).values()))
        self.gangs[gang] = make_gang(
            gang,
            minimum,
            created_us=NOW_US - one([0, 1, 50, 400]) * SECOND_US,
            roles=roles,
            topology=topology,
            required=bool(topology) and one([True, False]),
            maximum=one([0, 0, 0, needed, needed + 1]),
        )
        self.cluster.tell(self.gangs[gang])
        return gang

    def member(self, uid: int) -> tuple[int, int]:
        if uid not in self.of:
            role = self.one([0, 1]) if self._batch and self.gangs[self._batch].roles else 0
            self.of[uid] = self._batch, role
        return self.of[uid]

    def standing(self, gang: int) -> tuple[int, int]:
        """How many tasks a gang lacks, and how many it has."""
        reported = self.gangs[gang]
        placed = [
            uid
            for uid, task in self.world.tasks.items()
            if self.of[uid][0] == gang and task.node is not None and not task.leaving
        ]
        by_role = sum(
            max(least - sum(self.of[uid][1] == role for uid in placed), 0)
            for role, (_, least) in enumerate(reported.roles)
        )
        undecided = reported.topology_required and not self.domains_of(gang)
        return max(reported.minimum - len(placed), by_role, int(undecided)), len(placed)

    def domains_of(self, gang: int) -> set[str]:
        """The domains of its topology in which a gang has tasks."""
        tasks = [task for uid, task in self.world.tasks.items() if self.of[uid][0] == gang and not task.leaving]
        return {found for task in tasks if task.node is not None if (found := self.domain(gang, task.node)) is not None}

    def domain(self, gang: int, node: str) -> str | None:
        found = self.world.nodes.get(node)
        return None if found is None else found.labels.get(self.gangs[gang].topology_key)


def carry_out(mixture: GangMixture) -> None:
    """Runs a round: the oracle accepts each batch in some order, no gang with placed tasks is below its minimum or
    above its maximum, and waiting tasks that can be placed alone fit nowhere, unless capacity is reserved."""
    world = mixture.world
    requires = [gang for gang, reported in mixture.gangs.items() if reported.topology_required]
    settled = {gang: mixture.domains_of(gang) for gang in requires}
    starting = {gang for gang in requires if mixture.standing(gang)[0]}
    batches, _ = mixture.round()
    placed = {uid for batch in batches for uid, _ in batch}
    for batch in batches:
        assert an_order(world, batch) is not None, f"no order of {batch} is right"
    for gang, reported in mixture.gangs.items():
        if any(mixture.of[uid][0] == gang for uid in placed):
            lacking, there = mixture.standing(gang)
            assert lacking == 0, f"gang {gang} is half placed"
            assert not reported.maximum or there <= reported.maximum, f"gang {gang} has too many"
    for gang in requires:
        at = {mixture.domain(gang, node) for batch in batches for uid, node in batch if mixture.of[uid][0] == gang}
        in_one = at <= settled[gang] if settled[gang] else len(at) <= 1 and None not in at
        assert in_one, f"gang {gang} is not in its domain"
    if mixture.cluster.scheduler.reservation_holders:
        return
    for uid in mixture.waiting():
        gang = mixture.of[uid][0]
        if gang:
            lacking, there = mixture.standing(gang)
            maximum = mixture.gangs[gang].maximum
            if lacking or (maximum and there >= maximum) or gang in starting:
                continue  # of those that start in this round others follow in the next
        nodes = [node for node in world.nodes if may_place(world, world.tasks[uid], node) is None]
        if gang in settled:
            nodes = [node for node in nodes if mixture.domain(gang, node) in settled[gang]]
        assert nodes == [], f"task {uid} could go there"


def rounds_of(mixture: GangMixture) -> None:
    carry_out(mixture)
    for _ in range(2):
        for _ in range(mixture.one(range(1, 5))):
            mixture.change()
        carry_out(mixture)


@given(data=st.data(), preferences=st.booleans())
def test_rounds_keep_constraints_and_gangs_whole_and_leave_no_task_that_fits(data, preferences):
    rounds_of(GangMixture(lambda options: data.draw(st.sampled_from(options)), preferences=preferences))


@seeds(200)
def test_rounds_of_full_clusters(seed):
    rounds_of(GangMixture(random.Random(seed).choice, preferences=seed % 2 == 1))


@seeds(200, 400)
def test_rounds_with_few_flows_and_stages_and_without_lists(seed, monkeypatch):
    monkeypatch.setattr(list_scheduling, "MOST_TASKS", 0)
    monkeypatch.setattr(placer, "CELLS_AT_ONCE", 0)
    monkeypatch.setattr(placer, "CLASSES_AT_ONCE", 1 + seed % 3)
    monkeypatch.setattr(placer, "FLOWS_PER_STAGE", 1 + seed % 2 * 11)
    rounds_of(GangMixture(random.Random(seed).choice, preferences=seed % 2 == 1))
