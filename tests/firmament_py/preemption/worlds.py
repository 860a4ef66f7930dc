"""What worlds of preemption share: the bridge that repeats itself and fails, and the checks after each round."""

from collections import Counter

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from firmament_py.model.events import PlacementRejected
from firmament_py.model.options import Preempting
from tests.builders import SECOND_US
from tests.firmament_py.preemption.world_state import WorldState, used


class World(WorldState):
    """`step_us`: between rounds. A subclass starts engines, and has the rules that create tasks."""

    preempting = Preempting.WITHIN_BUDGETS
    step_us = SECOND_US
    rounds_to_settle = 40
    moves_at_once = 0

    # -- what happens in the world ------------------------------------------------------------------------------

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

    @precondition(lambda self: any(task.stays for task in self.tasks.values()))
    @rule(
        chosen=st.sets(st.integers(0, 9), max_size=4),
        least=st.sampled_from([0, 10, 11, 50, 100, 101, 1000]),
        seconds=st.sampled_from([1, 20, 10_000]),
    )
    def exempt(self, chosen, least, seconds):
        """Tasks that run are exempt from preemption by lower priorities, for a time, or no longer."""
        stay = sorted(uid for uid, task in self.tasks.items() if task.stays and not task.assumed)
        for position, uid in enumerate(stay):
            if position in chosen:
                task = self.tasks[uid]
                task.least, task.exempt_until_us = least, self.now_us + seconds * SECOND_US if least else 0
                self.observe(uid)

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

    @precondition(lambda self: self.nodes)
    @rule(lost=st.booleans())
    def fail_over(self, lost):
        """A new engine learns what can be observed. lost: no bind was carried out, and no eviction began."""
        for task in self.tasks.values():
            if task.assumed:
                task.assumed, task.on = False, None if lost else task.on
            if task.victim:
                task.victim, task.leaving = False, not lost
                task.moves &= not lost
        self.restart()

    @rule(seconds=st.sampled_from([1, 30, 130]))
    def schedule(self, seconds):
        self.now_us += seconds * SECOND_US
        self.round()

    @precondition(lambda self: self.nodes)
    @rule()
    def schedule_while_due(self):
        """Rounds end although each can make the next one due: by nominations that end, for one."""
        for _ in range(self.rounds_to_settle):
            if not self.cluster.scheduler.due(self.now_us):
                return
            self.round()
        raise AssertionError("rounds are due for good although nothing changes")

    @invariant()
    def schedule_after_every_second_change(self):
        self.changes += 1
        if self.changes % 2 == 0 and self.nodes:
            self.now_us += self.step_us
            self.round()

    # -- rounds -------------------------------------------------------------------------------------------------

    def round(self):
        """Runs a round and checks it; whether it has changed anything."""
        before = {uid: task.nominated for uid, task in self.tasks.items()}
        result = self.cluster.run(self.now_us)
        placed, preempted = self.cluster.names(result), self.cluster.preempted(result)
        moves = self.cluster.migrating(result)
        note(f"placed {placed}, preempted {preempted}, moves {moves}, nominated {self.cluster.nominated()}")
        self.check_victims(preempted)
        self.check_moves(preempted, moves, self.cluster.state.tasks.uid[result.migration.needed_by].tolist())
        if self.preempting is Preempting.WITHIN_BUDGETS or not preempted:
            evicted = Counter(
                number for uid in (*preempted, *moves) for number in self.budgets_of(self.tasks[uid].label_set)
            )
            assert all(count <= self.budgets[number] for number, count in evicted.items()), "a budget is exceeded"
        for uid, name in placed.items():
            task = self.tasks[uid]
            assert task.on is None
            assert self.suitable(task, name)
            task.on, task.assumed, task.nominated = name, True, None
        for uid in (*preempted, *moves):
            self.tasks[uid].victim, self.tasks[uid].moves = True, uid in moves
        self.note_nominations(result)
        self.check_gangs(placed, preempted)
        self.check_nodes(set(placed.values()), set(moves.values()))
        changed = {uid: task.nominated for uid, task in self.tasks.items()} != before
        return bool(placed or preempted or moves or changed)

    def check_victims(self, preempted):
        for victim, preemptor in preempted.items():
            task, other = self.tasks[victim], self.tasks[preemptor]
            assert task.shape.priority < other.shape.priority, "a victim's priority is not lower"
            assert task.gives_way(other.shape.priority, self.now_us), "a victim may not be evicted, or leaves already"
            assert task.on is not None, "a victim does not run"
            assert other.shape.preempts, "a preemptor may not preempt"
            assert other.on is None, "a preemptor runs already"

    def check_moves(self, preempted, moves, needed_by):
        """needed_by: uids of the tasks that fit once each has moved."""
        assert not preempted.keys() & moves.keys(), "a victim moves"
        for (mover, target), waiting in zip(moves.items(), needed_by, strict=True):
            task = self.tasks[mover]
            assert task.job, "a task moves without an owner"
            assert task.evictable, "a task moves that leaves, or is not bound"
            assert task.on not in (None, target), "a task moves to its own node"
            assert self.tasks[waiting].on is None, "a task moves for one that runs"
        assert len(moves) <= self.moves_at_once

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
        nominated = self.cluster.nominated()
        for number, gang in self.gangs.items():
            if gang.zonal:
                for chosen in (placed, nominated):
                    new = {uid: name for uid, name in chosen.items() if self.tasks[uid].gang == number}
                    self.check_zone(number, new)

    def check_zone(self, number, new):
        """new: uids of members of a zonal gang and the nodes that they have got in this round, or wait for."""
        there = [
            self.nodes[task.on].zone
            for uid, task in self.tasks.items()
            if task.gang == number and task.on is not None and task.stays and uid not in new
        ]
        minimum = self.gangs[number].minimum
        if new and len(there) < minimum:
            zones = [self.nodes[name].zone for name in new.values()]
            inside = max(sum(zone in choice for zone in zones) for choice in self.choices(there))
            assert len(there) + inside >= minimum, "a gang is in several zones"

    def check_nodes(self, changed, targets):
        """No placement over-commits a node, and each has capacity for what it is kept for once what leaves it is gone.
        changed, targets: nodes on which tasks were placed, and to which they move."""
        nominated, expected = self.cluster.nominated(), self.expected()
        for name, node in self.nodes.items():
            residents = [task for task in self.tasks.values() if task.on == name]
            if name in changed:
                assert node.takes(residents), "a node is over-committed"
            waiting = [self.tasks[uid] for uid, on in nominated.items() if on == name]
            assert all(self.suitable(task, name) for task in waiting), "nominated to a node that does not suit"
            if waiting or name in targets:
                later = [*(task for task in residents if task.stays), *waiting]
                cpu, memory = expected.get(name, (0, 0))
                assert used(later, "cpu") + cpu <= node.cpu, "what a node is kept for will not fit"
                assert used(later, "memory") + memory <= node.memory, "what a node is kept for will not fit"

    def teardown(self):
        """Without arrivals the rounds settle, and then no task waits that could preempt."""
        if not self.nodes:
            return
        self.lift_limits()
        for _ in range(self.rounds_to_settle):
            self.bind(set(), reject=False)  # what is not confirmed is not evicted
            self.now_us += SECOND_US
            changed = self.round()
            leaving = [uid for uid, task in self.tasks.items() if task.leaving or task.victim]
            for uid in leaving:
                self.leave(uid)
            created = len(self.successors)
            while self.successors:
                self.create([self.successors.pop(0)])
            if not (changed or leaving or created):
                break
        else:
            raise AssertionError("the rounds do not settle")
        assert not self.cluster.nominated(), "a task stays nominated although no task leaves its node"
        assert not len(self.cluster.state.successors), "a successor is expected, and none is to come"
        reserved = self.cluster.scheduler.reservation_holders  # for tasks that have waited for long
        for uid, task in self.tasks.items():
            if task.on is None and task.shape.preempts and not task.gang and not reserved:
                assert not self.places_for(task), f"task {uid} waits, and could preempt"
        for number, gang in self.gangs.items():
            members = [task for task in self.tasks.values() if task.gang == number]
            lacking = gang.minimum - sum(task.on is not None for task in members)
            waiting = [task for task in members if task.on is None]
            if 0 < lacking <= len(waiting) and len({task.number for task in waiting}) == 1 and not reserved:
                there = [self.nodes[task.on].zone for task in members if task.on is not None]
                for zones in self.choices(there) if gang.zonal else [None]:
                    assert self.places_for(waiting[0], zones) < lacking, f"gang {number} waits, and could preempt"

    # -- of subclasses -------------------------------------------------------------------------------------------

    def lift_limits(self):
        """Budgets permit any number of evictions."""
        raise NotImplementedError

    def restart(self):
        """Starts an engine, and tells it all that can be observed."""
        raise NotImplementedError

    def budgets_of(self, label_set):
        """Numbers of the budgets that count tasks with this label set."""
        raise NotImplementedError
