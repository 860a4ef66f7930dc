"""The steps of a scheduling round: admission of jobs in order, the independent check, commit, and the reasons why tasks
wait."""

import logging
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

import numpy as np
import numpy.ma  # np.unique imports it at its first call, which would delay the first tasks by 40 ms

from firmament_py.admission.queue_order import Admission
from firmament_py.admission.rejections import Rejected
from firmament_py.engine.commit import Commit
from firmament_py.engine.plan_execution import PlanExecution
from firmament_py.engine.round import Observer, Round
from firmament_py.engine.round_result import RoundResult
from firmament_py.engine.searchable import may_get_victims, to_search
from firmament_py.engine.searches import Searches
from firmament_py.engine.verification import Verification
from firmament_py.engine.wakeups import RESERVED_STEP_US, Timer, Wakeups
from firmament_py.explain.quota_reasons import amounts_due_us, quota_reason
from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.explain.reasons import reservation_holders_among, waiting_classes
from firmament_py.explain.wakeups import ENDED_BY, Unreported
from firmament_py.flow.solver import Solver
from firmament_py.model.arrays import I64, NO_ROWS, U64
from firmament_py.model.options import EngineOptions, Migrating, Preempting
from firmament_py.model.placed_by import count_steps
from firmament_py.placement.migration import Migration, Migrator
from firmament_py.placement.move_rate import MoveRate, MovesPause
from firmament_py.placement.placer import Placer
from firmament_py.placement.repacking import Packs
from firmament_py.policy import Policy
from firmament_py.preemption.movable_tasks import MovableNearby
from firmament_py.preemption.outcome import Preemption
from firmament_py.preemption.preemptor import Preemptor
from firmament_py.preemption.reclaimer import ReclaimHistory
from firmament_py.preemption.servable import KnownBounds
from firmament_py.queues.tree import Queues
from firmament_py.sharing.passing_over import pass_over
from firmament_py.sharing.past_use import settle, shares_change_us
from firmament_py.sharing.shortage import NO_SHORTAGES, Shortages
from firmament_py.state.cluster import ClusterState
from firmament_py.usage.usage import Usage

log = logging.getLogger(__name__)

DEFAULT_OPTIONS = EngineOptions()

DELAY_STEP_US = 1_000_000
"""After which time tasks that wait for a better node are tried again, unless something changes
before."""

DROPPED_STEP_US = 10_000_000
"""After which time a round follows one that dropped decisions, unless something changes before: they stay undone, and
so does what would have followed. Not at once: the next round may decide the same."""

MOVES_STEP_US, MOVES_PAUSE_US = 1_000_000, 2_500
"""Least time between two searches of moves for waiting tasks: a constant, and this for each running task that the last
one has considered, ten times what it takes about. No clock is read: a round depends on what it is given alone."""


class Scheduler:
    """Runs rounds on a cluster state. Not safe for concurrent use with other users of the state."""

    def __init__(
        self,
        state: ClusterState,
        policy: Policy,
        solver: Solver,
        observer: Observer | None = None,
        usage: Usage | None = None,
        options: EngineOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.state = state
        self.usage = usage or Usage()
        self.policy = policy
        self.solver = solver
        self._observer = observer
        self.options = options
        self._migrator = Migrator(state, options)
        self.plan = PlanExecution(state, options.moves_at_once)
        self.verification = Verification(state, beyond_budgets=options.preempting is Preempting.BEYOND_BUDGETS)
        self._moves_pause = MovesPause()
        self._unmoved = False  # whether the last round has left them out
        self._known_bounds = KnownBounds()
        self._reclaims = ReclaimHistory()
        rates = MoveRate(options.moves_per_hour), options.moves_at_once, self._reclaims.rates
        self._commit = Commit(state, self.verification, *rates)
        self.wakeups = Wakeups(state, self._migrator, self.plan, options)
        self._change_us = 0  # the first round that has considered the last change
        self._quota_reasons: tuple[Queues, U64, Shortages] | None = None
        self.commits = 0
        """Number of rounds whose decisions the state has assumed, also of those that failed afterwards."""
        self.searchable = NO_ROWS
        """Rows of the waiting tasks of the last round that evictions or moves may serve."""
        self.gang_fits: dict[int, int] = {}
        """Ids of gangs that the last round did not place -> how many of the members that they lack fitted at best."""
        self.gang_shortages: dict[int, tuple[tuple[str, int], ...]] = {}
        """Ids of those that cannot start -> what must become free: resources and amounts."""
        self.gangs_at_best: dict[int, tuple[int, int]] = {}
        """Ids of those that evictions and moves cannot serve -> how many members would fit at best, and are lacking."""
        self.gang_starts_us: dict[int, int] = {}
        """Ids of gangs that the last round reserved capacity for -> when they are expected to fit, 0: unknown."""
        self.task_starts_us: dict[int, int] = {}
        """Uids of single tasks that the last round reserved capacity for -> likewise."""
        self.delayed_until_us: dict[int, int] = {}
        """Uids of tasks that fit, but wait for a node that costs less -> when they are tried again."""
        self.reservation_holders: list[tuple[int, str]] = []
        """Their priorities and names."""

    def beside(
        self,
        state: ClusterState,
        policy: Policy,
        usage: Usage,
        *,
        limited: bool = False,
        options: EngineOptions | None = None,
    ) -> "Scheduler":
        """A scheduler with the same settings, None, or other `options`, on another state. limited: with what is left of
        the hourly limits."""
        found = Scheduler(state, policy, self.solver, usage=usage, options=options or self.options)
        found._reclaims.rates = found._commit.evictions = self._reclaims.rates.copy(limited)
        found._commit.rate = self._commit.rate.copy(limited)
        return found

    def searching(self) -> "Scheduler | None":
        """A scheduler with the same settings, limits and history on a copy of the state, for a search beside the
        rounds. It moves no tasks that do not move for others. None, which is logged: the policy cannot be copied."""
        try:
            policy = deepcopy(self.policy)
        except Exception as error:  # it is the user's code
            why = f"the policy {self.policy.name} cannot be copied ({error}); let its object support copy.deepcopy"
            log.warning("rounds wait for the search of victims: %s", why)
            return None
        found = self.beside(self.state.copy(), policy, deepcopy(self.usage), limited=True)
        found._migrator = Migrator(found.state, replace(self.options, migrating=Migrating.NEVER))
        found.learn_from(self)
        return found

    def learn_from(self, other: "Scheduler") -> None:
        """Takes over what another scheduler knows of the searches so far: one of the two searches for the other."""
        self._known_bounds, self._reclaims.tried = other._known_bounds.copy(), other._reclaims.tried.copy()
        self._moves_pause = replace(other._moves_pause)

    @property
    def timers(self) -> Mapping[Timer, int]:
        """When the next rounds are due though nothing changes, as the last one has left it."""
        return self.wakeups.timers

    def due(self, now_us: int) -> bool:
        """Whether a round could do anything that the last one could not."""
        return self.wakeups.due(now_us)

    def wake_us(self, now_us: int) -> int:
        """When the next round is due if nothing changes any more, `now_us` if at once, 0: never."""
        return self.wakeups.wake_us(now_us)

    @property
    def quiet(self) -> bool:
        """Whether no round is due, now or later, unless the state changes."""
        return self.wakeups.quiet()

    def run(self, now_us: int, *, preempts: bool = True, searches: Searches | None = None) -> RoundResult:
        """Runs a round at `now_us`, microseconds since the epoch; the state assumes its placements. preempts: False: no
        task is evicted in this round. searches: those beside the rounds, which find victims instead of this one; None:
        there are none."""
        # What has happened since the last round.
        settle(self.state, now_us)
        if searches is not None:
            searches.round_begins(now_us, again=self.wakeups.time_counts(now_us))
        packings = None if searches is None else searches.packings
        packing = None if packings is None else packings.take()
        packed = NO_ROWS, NO_ROWS
        if packings is not None and packing is not None:
            packed = self._commit.packed(packings, packing, now_us).placed
            self.commits += 1
        self._change_us = now_us if self.state.changes.happened else self._change_us
        self.state.tasks.begin_anew(self.wakeups.woken(now_us))
        self.state.changes.round_begins()
        self.state.successors.expire(now_us)
        self.state.budgets.expire(now_us)

        # Placements, and victims unless they are searched for beside the rounds.
        of = self.state, self.usage, self.policy, self.solver
        provisional = NO_ROWS if packings is None else packings.provisional()
        current = Round(*of, now_us, self.options, self._observer, provisional)
        placer = current.first_placer()
        in_round = preempts and searches is None
        movable = self._movable(current, in_round=in_round)
        nearby = movable if movable is not None and movable.some and not self._unmoved else None
        known = self._known_bounds if in_round else KnownBounds(), current.queues, self._reclaims
        asked = placer.ledger, self.options, current.eviction_costs
        preemptor = Preemptor(*asked, nearby, movable, *known, preempts=in_round)
        packs = Packs.ALL if packings is None else packings.packs
        admission = self._admit(current, placer, preemptor, packs, beside=searches is not None)
        if nearby is not None:
            self._moves_pause.until_us = now_us + max(MOVES_STEP_US, nearby.considered * MOVES_PAUSE_US)

        # Nothing is assumed that has not passed the check.
        tasks, nodes, by = self.verification.placements(placer.ledger, current.stats)
        current.telemetry.lap("check")
        preemption = self.verification.preemption(preemptor.outcome.preemption(), tasks, nodes, now_us, current.stats)
        self.commits += 1
        if packings is not None and admission.postponed is not None:
            at_once = packings.begin(admission.postponed, placer.snapshot, (tasks, nodes, by))
            tasks, nodes, by = tasks[at_once], nodes[at_once], by[at_once]
        self.state.place(tasks, nodes, by)
        self._commit.preemption(preemption, now_us)
        tasks, nodes = np.concatenate([packed[0], tasks]), np.concatenate([packed[1], nodes])
        by = self.state.tasks.placed_by[tasks]
        current.telemetry.lap("commit")

        # What others have decided: a search, a plan; then, which tasks cost less elsewhere.
        search = None if searches is None else searches.take(now_us)
        if searches is not None and search is not None:
            decided = self._commit.found(searches, search, now_us)
            tasks, nodes = np.concatenate([tasks, decided.placed[0]]), np.concatenate([nodes, decided.placed[1]])
            by = self.state.tasks.placed_by[tasks]
            preemption = decided.preemption.after(preemption)
            current.stats.dropped += search.stats.dropped
            current.telemetry.lap("late")
        migration = moved = preemption.moved
        if preempts:
            planned = self._follow_plan(current)
            preemption = preemption.nominating(*planned.nominated)
            migration = moved.followed_by(planned.moved).followed_by(self._migrate(current, placer, now_us))

        # Why tasks wait, and for which of them a search is due.
        delayed = placer.snapshot.tasks[placer.ledger.delayed & (placer.ledger.node_of < 0)]
        queues = current.queues
        shortages, ranking = (NO_SHORTAGES, None) if queues is None else (queues.shortages, queues.unranked)
        of_others = current.deferred, delayed, shortages, ranking
        able = may_get_victims(self.state, self.options.preempting, self.options.migrating)
        sought = np.union1d(able, admission.unsearched)
        self.searchable = to_search(self.state, sought, np.concatenate([delayed, current.deferred]), now_us)
        undecided = unsaid = NO_ROWS
        if searches is not None:
            admission.note_bounds(searches.at_best)
            undecided, unsaid = searches.undecided(self.searchable)
            provisional = NO_ROWS if packings is None else packings.provisional()
        within_budgets = self.options.preempting is Preempting.WITHIN_BUDGETS
        waiting = waiting_classes(
            self.state,
            admission.rejected,
            *of_others,
            now_us=now_us,
            within_budgets=within_budgets,
            unsaid=unsaid,
            provisional=provisional,
        )
        self.state.wait_for(np.setdiff1d(able, provisional, assume_unique=True), ENDED_BY[Unreported.NO_VICTIMS])
        self._remember(admission.rejected)
        self.delayed_until_us = dict.fromkeys(self.state.tasks.uid[delayed].tolist(), now_us + DELAY_STEP_US)
        current.telemetry.lap("explain")

        # Until when, and the statistics.
        self.state.sweep()
        reserved = any(reason.kind is ReasonKind.RESERVED for each in waiting for reason in each.reasons)
        self._set_timers(current, preemptor, now_us, delayed, tasks, undecided, reserved=reserved)
        self._quota_reasons = (self.state.queues, self.state.tasks.uid[shortages.rows], shortages)
        stats = current.finish(len(tasks), sum(w.count for w in waiting))
        stats.preempted, stats.migrated = len(preemption.victims), len(migration.tasks)
        stats.migrated_for_waiting, stats.least_moves = len(moved.tasks), preemption.least_moves
        stats.delayed = len(delayed)
        stats.placed_by = count_steps(by)
        if search is not None:
            stats.stage_seconds["search"] = search.seconds  # no part of the round's time
        if packing is not None:
            stats.stage_seconds["pack-beside"] = packing.seconds  # likewise
        stats.nominated = len(self.state.tasks.nominees) - len(provisional)
        networks = current.telemetry.networks or ()
        return RoundResult(tasks, nodes, by, waiting, stats, preemption, migration, networks)

    def _set_timers(
        self,
        current: Round,
        preemptor: Preemptor,
        now_us: int,
        delayed: I64,
        placed: I64,
        undecided: I64,
        *,
        reserved: bool,
    ) -> None:
        """delayed (K,): rows of tasks that wait for another node. placed (K,): rows of tasks that the round has
        placed. undecided (K,): of those for which victims are searched for beside the rounds. reserved: whether tasks
        wait for what is reserved for others."""
        unconsidered = (self.state.tasks.considered_us[current.deferred] < self._change_us).any()
        some_passed = current.queues is not None and pass_over(self.state, current.queues, placed, delayed, undecided)
        shares_us = 0 if current.queues is None else shares_change_us(self.state, now_us)
        timers = {
            Timer.DEFERRED: now_us if unconsidered else 0,
            Timer.PASSED_OVER: now_us if some_passed else 0,
            Timer.DELAYED: now_us + DELAY_STEP_US if len(delayed) else 0,
            Timer.RESERVED: now_us + RESERVED_STEP_US if reserved else 0,
            Timer.DROPPED: now_us + DROPPED_STEP_US if current.stats.dropped else 0,
            Timer.CLAIMS: min((time for time in (preemptor.due_us, shares_us) if time), default=0),
            Timer.MOVES: self._moves_pause.until_us if self._unmoved else 0,
            Timer.AMOUNTS: 0 if current.queues is None else amounts_due_us(self.state, current.queues.shortages),
        }
        self.wakeups.round_ended(now_us, timers)

    def _admit(self, current: Round, placer: Placer, preemptor: Preemptor, packs: Packs, *, beside: bool) -> Admission:
        """Places by priority and age, then preempts."""
        demands = placer.snapshot.gang_demands
        admission = Admission(placer, demands, self.options, preemptor, packs, beside=beside)
        admission.run()
        current.stats.gap = admission.repacked.gap
        first = placer.columns.first
        if first is not None:
            current.stats.vertices, current.stats.arcs, current.stats.objective = first.vertices, first.arcs, first.cost
        return admission

    def _movable(self, current: Round, *, in_round: bool) -> MovableNearby | None:
        """Which running tasks may move for waiting ones; None: none. Notes whether this round leaves them out."""
        self._unmoved = False
        if self.options.migrating is Migrating.NEVER or not in_round:
            return None
        limit = self._commit.moves_left(current.now_us)
        of = self.state, current.running_snapshot, current.eviction_costs
        movable = MovableNearby(*of, self.options.migrate_after_us, limit, self.options.moves_at_once)
        self._unmoved = movable.some and current.now_us < self._moves_pause.until_us
        return movable if movable.later else None

    def _follow_plan(self, current: Round) -> Preemption:
        """Begins the next steps of the plan that is carried out; the state assumes them."""
        now_us = current.now_us
        steps = self.plan.next_steps(now_us, self._commit.rate.left(now_us))
        steps = self.verification.preemption(steps, NO_ROWS, NO_ROWS, now_us, current.stats)
        self._commit.preemption(steps, now_us)
        current.telemetry.lap("plan")
        return steps

    def _migrate(self, current: Round, placer: Placer, now_us: int) -> Migration:
        """Decides which running tasks leave for nodes that cost them less; the state assumes that they do."""
        migration = self._migrator.run(placer, current, self._commit.rate.left(now_us))
        current.telemetry.lap("migrate")
        migration = self.verification.migration(migration, current.stats)
        self._commit.migration(migration, now_us)
        return migration

    def quota_reason(self, uid: int) -> Reason | None:
        """For which quota a task has waited since the last round; None: for none."""
        found = self._quota_reasons
        if found is None:
            return None
        queues, uids, shortages = found
        at = np.flatnonzero(uids == uid)
        return quota_reason(queues, shortages, int(at[0])) if len(at) else None

    def _remember(self, rejected: list[Rejected]) -> None:
        """Stores what explanations of waiting gangs and tasks need."""
        gangs = [(each.demand.gang.id, each) for each in rejected if each.demand.gang is not None]
        self.gang_starts_us = {gang: each.starts_us for gang, each in gangs if each.reserves}
        self.gang_fits = {gang: each.fitted for gang, each in gangs if not each.untried}
        self.gang_shortages = {gang: each.shortage for gang, each in gangs if each.shortage}
        self.gangs_at_best = {gang: (each.at_best, each.demand.lacking) for gang, each in gangs if each.at_best >= 0}
        single, uid = [each for each in rejected if each.demand.gang is None], self.state.tasks.uid
        self.task_starts_us = {int(uid[each.demand.row]): each.starts_us for each in single}
        self.reservation_holders = reservation_holders_among(self.state, rejected)
