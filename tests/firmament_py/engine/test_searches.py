"""Searches beside the rounds: what they decide is carried out if it still holds, whatever happens while they go on."""

import itertools
import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from firmament_py.admission import gang_placement
from firmament_py.engine import searches, wakeups
from firmament_py.engine.engine import Engine
from firmament_py.engine.execution import POLL_US, InThread
from firmament_py.engine.late_decisions import LateDecisions
from firmament_py.engine.round_result import RoundResult
from firmament_py.explain.reason import ReasonKind
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.events import Event, NodeRemoved, PlacementRejected, QueuesObserved
from firmament_py.model.options import EngineOptions, Migrating, Preempting
from firmament_py.model.queues import Reclaim
from firmament_py.placement import repacking
from firmament_py.policy import registry
from firmament_py.preemption.preemptor import Preemptor
from firmament_py.state.cluster import ClusterState
from policies.load_spreading import LoadSpreading
from tests.builders import (
    NOW_US,
    SECOND_US,
    Cluster,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    removed,
    tasks_like,
)
from tests.effort import THOROUGH, seeds
from tests.firmament_py.engine.reclaiming import A, running
from tests.firmament_py.engine.test_kept_flavors import job as flavored_job
from tests.firmament_py.engine.test_kept_flavors import within as of_two_flavors
from tests.firmament_py.engine.wake_kinds import KINDS
from tests.firmament_py.engine.wake_worlds import World
from tests.firmament_py.queues.trees import queue, quota, tree


class Scripted:
    """An Execution that works when the test says so."""

    def __init__(self) -> None:
        self.work: Callable[[], None] | None = None
        self.searches = 0

    def start(self, work: Callable[[], None]) -> None:
        assert self.work is None, "one search at a time"
        self.work = work
        self.searches += 1

    @property
    def running(self) -> bool:
        return self.work is not None

    def finish(self) -> None:
        assert self.work is not None
        work, self.work = self.work, None
        work()


class SearchedWorld(World):
    """A World whose searches and packings end when `finish` of `search` and `packing` is called."""

    def new_cluster(self, *events: Event) -> Cluster:
        self.search, self.packing = Scripted(), Scripted()
        settings = self.settings()
        policy = settings.pop("policy") or registry.load("load-spreading", {})
        beside: dict[str, Any] = {"searching": self.search, "packing": self.packing}
        self.engine = Engine(policy, SOLVERS["or-tools"](), options=EngineOptions(**settings), **beside)
        cluster = Cluster(self.engine.state, self.engine.scheduler)
        cluster.tell(*events)
        return cluster

    def due(self) -> bool:
        searches = self.engine.searches
        assert searches is not None
        return self.engine.scheduler.due(self.now_us) or searches.due(self.now_us)

    def wake_us(self) -> int:
        return self.engine.wake_us(self.now_us)

    def run(self) -> RoundResult:
        result = self.engine.run_round(self.now_us)
        self.cluster.state.validate()
        assert result is not None
        assert result.stats.dropped == 0, "the independent check refused decisions"
        return result

    def settle(self) -> None:
        """Ends searches and packings, and runs the rounds that are due then, until none goes on."""
        for _ in range(50):
            self.rounds()
            if going_on := [each for each in (self.packing, self.search) if each.running]:
                going_on[0].finish()
            elif not (wake_us := self.wake_us()) or wake_us > self.now_us + SECOND_US:
                return
            else:
                self.now_us = wake_us
        raise AssertionError("searches go on for good although nothing changes")


STEPS = 120 if THOROUGH else 25


@pytest.mark.slow
@seeds(8)
@pytest.mark.parametrize("name", KINDS)
def test_once_the_searches_are_over_nothing_is_left_to_decide(name, seed, monkeypatch):
    """Events happen while searches and packings go on, so that their decisions do not hold any more. Whenever they are
    over and no other follows, a round that knows nothing of earlier ones and searches itself places, evicts and
    nominates nothing."""
    monkeypatch.setattr(wakeups, "REASONS_STEP_US", 10**15)
    monkeypatch.setattr(repacking, "BRIEF_TASKS", 0)
    monkeypatch.setattr(gang_placement, "BRIEF_STEPS", 0)
    world = SearchedWorld(KINDS[name], 100 * list(KINDS).index(name) + seed)
    world.settle()
    for number in range(STEPS):
        event = world.step()
        world.rounds()
        if (world.search.running or world.packing.running) and world.rng.random() < 0.5:
            continue  # the next event happens meanwhile
        world.settle()
        assert not world.missed(), f"event {number}: {event}"


# -- one search -------------------------------------------------------------------------------------------------------

LOW, HIGH, SMALL = make_class(1, cpu=2), make_class(2, cpu=2, priority=5), make_class(3, cpu=1)


class Searching:
    """An engine with scripted searches: node n (cpu 3) with task 1 of low priority, so one cpu is free."""

    def __init__(self, *events: Event, policy: Any = None) -> None:
        self.search = Scripted()
        self.engine = Engine(policy or LoadSpreading(), SOLVERS["or-tools"](), searching=self.search)
        self.now_us = NOW_US
        self.tell(make_node("n", cpu=3), LOW, HIGH, SMALL, make_tasks([1], 1, on="n"), *events)

    def tell(self, *events: Event) -> None:
        assert not self.engine.apply(events).refused
        self.engine.state.validate()

    def round(self) -> RoundResult | None:
        self.now_us += 1000
        result = self.engine.run_round(self.now_us)
        self.engine.state.validate()
        return result

    def uids(self, rows: Any) -> list[int]:
        found: list[int] = self.engine.state.tasks.uid[rows].tolist()
        return found

    def evicted(self, result: RoundResult | None) -> list[int]:
        return [] if result is None else self.uids(result.preemption.victims)

    def nominated(self, result: RoundResult | None) -> list[int]:
        return [] if result is None else self.uids(result.preemption.nominated[0])

    def placed(self, result: RoundResult | None) -> list[int]:
        return [] if result is None else self.uids(result.tasks)


def test_what_fits_is_placed_before_the_search_ends_and_while_it_goes_on():
    cluster = Searching(make_tasks([2], 2), make_tasks([3], 3))
    first = cluster.round()
    assert cluster.placed(first) == [3]
    assert cluster.search.running
    assert cluster.round() is None
    cluster.tell(make_node("m", cpu=1), make_tasks([4], 3))
    assert cluster.placed(cluster.round()) == [4]
    cluster.search.finish()
    last = cluster.round()
    assert (cluster.evicted(last), cluster.nominated(last)) == ([1], [2])
    assert last is not None
    assert last.stats.stage_seconds["search"] > 0
    assert last.stats.preempted == 1
    assert cluster.engine.quiet


def test_a_task_that_fits_by_then_evicts_nobody():
    cluster = Searching(make_tasks([2], 2))
    cluster.round()
    cluster.tell(make_node("m", cpu=2))
    cluster.search.finish()
    result = cluster.round()
    assert (cluster.placed(result), cluster.evicted(result), cluster.nominated(result)) == ([2], [], [])
    assert cluster.engine.quiet


@pytest.mark.parametrize(
    "event",
    [
        pytest.param([removed(2), make_tasks([9], 2, gang=0)], id="the-preemptor-is-deleted-and-its-row-used-again"),
        pytest.param([make_tasks([2], 3), make_tasks([8], 1)], id="it-is-described-anew"),
    ],
)
def test_decisions_for_what_is_not_the_same_task_any_more_are_not_carried_out(event):
    cluster = Searching(make_tasks([2], 2), make_tasks([7], 3))
    cluster.round()
    cluster.tell(*event)
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == []


@pytest.mark.parametrize(
    "event",
    [
        pytest.param([make_tasks([1], 1, on="n", unevictable=True)], id="it-may-not-leave-any-more"),
        pytest.param(
            [make_tasks([1], 1, on="n", least_preemptor=1_000, exempt_until_us=NOW_US + 3600 * SECOND_US)],
            id="it-is-exempt-by-now",
        ),
        pytest.param([make_node("n", cpu=3, labels={"a": "b"})], id="its-node-is-described-anew"),
        pytest.param([make_tasks([1], 1, on="n", leaving=True)], id="it-leaves-already"),
    ],
)
def test_a_victim_that_is_not_the_same_any_more_stays_and_the_search_is_repeated(event):
    cluster = Searching(make_tasks([2], 2))
    cluster.round()
    cluster.tell(*event)
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == []
    assert cluster.search.running, "another search follows at once"


def test_budgets_hold_when_decisions_are_carried_out():
    app = tasks_like(needs("app", "In", "a"))
    labelled = make_label_set(1, app="a")
    cluster = Searching(labelled, make_budget(1, app, 1), make_tasks([1], 1, on="n", label_set=1), make_tasks([2], 2))
    cluster.round()
    cluster.tell(make_budget(1, app, 0))
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == []


def test_decisions_that_hold_are_carried_out_beside_those_that_do_not():
    cluster = Searching(make_node("m", cpu=2), make_tasks([5], 1, on="m"), make_tasks([2, 6], 2))
    cluster.round()
    cluster.tell(make_tasks([5], 1, on="m", unevictable=True))
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == [1]
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == []
    assert cluster.engine.quiet


def test_a_gang_is_served_whole_or_not_at_all():
    gang = make_gang(1, minimum=2)
    both: list[Event] = [make_node("m", cpu=2), make_tasks([5], 1, on="m"), gang, make_tasks([2, 6], 2, gang=1)]
    cluster = Searching(*both)
    cluster.round()
    cluster.tell(make_tasks([5], 1, on="m", unevictable=True))
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == []


def test_after_three_searches_that_came_too_late_the_round_searches_itself():
    cluster = Searching(make_tasks([2], 2))
    cluster.round()
    for change in range(searches.STALE_SEARCHES):
        cluster.tell(make_node("n", cpu=3, labels={"change": str(change)}))
        cluster.search.finish()
        assert cluster.evicted(cluster.round()) == []
    cluster.tell(make_node("n", cpu=3, labels={}))
    assert cluster.evicted(cluster.round()) == [1]


def test_reasons_are_reported_once_and_after_the_search():
    cluster = Searching(make_tasks([1], 1, on="n", unevictable=True), make_tasks([2], 2))
    first = cluster.round()
    assert first is not None
    assert all(not len(each.unreported) for each in first.waiting)
    cluster.search.finish()
    second = cluster.round()
    assert second is not None
    [waiting] = second.waiting
    assert cluster.uids(waiting.unreported) == [2]
    assert [reason.kind for reason in waiting.reasons] == [ReasonKind.INSUFFICIENT_RESOURCE]
    cluster.tell(make_tasks([1], 1, on="n"))
    cluster.tell(make_tasks([1], 1, on="n", unevictable=True))
    third = cluster.round()
    assert third is None or all(not len(each.unreported) for each in third.waiting)


def test_a_search_that_fails_is_repeated_later(monkeypatch, caplog):
    def fail(*_: Any) -> None:
        raise RuntimeError("no")

    cluster = Searching(make_tasks([2], 2))
    cluster.round()
    with monkeypatch.context() as patched:
        patched.setattr(LateDecisions, "of", fail)
        with caplog.at_level(logging.ERROR):
            cluster.search.finish()
    assert "a search of victims has failed" in caplog.text
    assert cluster.evicted(cluster.round()) == []
    assert not cluster.search.running
    wake_us = cluster.engine.wake_us(cluster.now_us)
    assert wake_us == cluster.now_us + searches.FAILED_US
    cluster.now_us = wake_us
    cluster.round()
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == [1]


def test_with_a_policy_that_cannot_be_copied_rounds_search_themselves(caplog):
    class Bound(LoadSpreading):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    cluster = Searching(make_tasks([2], 2), policy=Bound())
    with caplog.at_level(logging.WARNING):
        cluster.round()
    assert "cannot be copied" in caplog.text
    assert cluster.evicted(cluster.round()) == [1]
    assert not cluster.search.searches


def test_a_search_of_an_epoch_that_is_over_is_forgotten():
    cluster = Searching(make_tasks([2], 2))
    cluster.round()
    cluster.engine.replace(ClusterState())
    cluster.tell(make_node("n", cpu=3), LOW, HIGH, make_tasks([1], 1, on="n"), make_tasks([2], 2))
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == []
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == [1]


def test_nothing_to_find_is_searched_for_once():
    cluster = Searching(make_tasks([1], 1, on="n", unevictable=True), make_tasks([2], 2))
    cluster.round()
    cluster.search.finish()
    cluster.round()
    for uid in range(10, 20):
        cluster.tell(make_tasks([uid], 3), removed(uid))
        cluster.round()
    assert cluster.search.searches == 1
    assert cluster.engine.searches is not None
    assert cluster.engine.searches.quiet()


def test_a_search_in_a_thread_comes_to_the_same_as_a_round_that_searches():
    done = threading.Event()
    cluster = Searching(make_tasks([2], 2))
    cluster.engine = Engine(LoadSpreading(), SOLVERS["or-tools"](), searching=(thread := InThread()))
    cluster.tell(make_node("n", cpu=3), LOW, HIGH, SMALL, make_tasks([1], 1, on="n"), make_tasks([2], 2))
    cluster.round()
    while thread.running:
        done.wait(0.001)
    last = cluster.round()
    assert last is not None
    assert (cluster.evicted(last), cluster.nominated(last)) == ([1], [2])
    assert np.array_equal(cluster.engine.state.tasks.leaving[last.preemption.victims], [True])


# -- what must not be carried out, and what must not be forgotten ------------------------------------------------------

TOP = make_class(5, cpu=2, priority=9)


def test_a_task_that_a_round_has_served_meanwhile_gets_no_second_victims():
    cluster = Searching(make_tasks([2], 2))
    cluster.round()
    assert cluster.engine.searches is not None
    cluster.engine.searches._stale = searches.STALE_SEARCHES
    cluster.tell(make_class(4, cpu=2, priority=-3), make_node("m", cpu=2), make_tasks([5], 4, on="m"))
    assert cluster.evicted(cluster.round()) == [5]
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == []


def test_a_task_that_is_nominated_meanwhile_gets_no_second_victims():
    cluster = Searching(make_node("m", cpu=2), make_tasks([5], 1, on="m"), make_tasks([2], 2))
    cluster.round()
    cluster.tell(make_tasks([2], 2, nominated="m"), make_tasks([5], 1, on="m", leaving=True))
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == []


def test_a_postponed_task_is_searched_for_again_when_its_time_has_come():
    """Its victim stays: the bridge could not evict it. A round for another task runs before."""
    cluster = Searching(make_tasks([2], 2))
    cluster.round()
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == [1]
    later_us = cluster.now_us + 5 * SECOND_US
    cluster.tell(make_tasks([1], 1, on="n"), PlacementRejected(2, "id-n", later_us), make_tasks([30], 3))
    cluster.round()
    cluster.now_us = later_us
    cluster.round()
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == [1]


def test_a_round_that_searches_itself_leaves_its_timers(monkeypatch):
    cluster = Searching(make_tasks([1], 1, on="n", unevictable=True), make_tasks([2], 2))
    cluster.round()
    cluster.search.finish()
    cluster.round()
    found = cluster.engine.searches
    assert found is not None
    found._stale = searches.STALE_SEARCHES
    due_us, run = cluster.now_us + 60 * SECOND_US, Preemptor.run

    def later(self: Preemptor, *arguments: Any) -> Any:
        removed_tasks = run(self, *arguments)
        self.due_us = 0 if self._preempting is Preempting.OFF else due_us  # as where a queue waits before it preempts
        return removed_tasks

    monkeypatch.setattr(Preemptor, "run", later)
    cluster.tell(make_node("z", cpu=1))
    cluster.round()
    cluster.tell(make_tasks([40], 3))
    cluster.round()
    assert not cluster.engine.quiet
    cluster.now_us = due_us
    assert found.due(due_us)
    cluster.round()
    assert cluster.search.running


@pytest.mark.parametrize(
    "event",
    [
        pytest.param([removed(7)], id="the-more-important-one-is-deleted"),
        pytest.param([make_node("n", cpu=3, labels={"a": "b"})], id="its-node-is-described-anew"),
    ],
)
def test_a_nomination_is_not_taken_for_a_task_that_does_not_get_it(event):
    cluster = Searching(TOP, make_tasks([2], 2))
    cluster.round()
    cluster.search.finish()
    assert cluster.nominated(cluster.round()) == [2]
    cluster.tell(make_tasks([7], 5))
    cluster.round()
    cluster.tell(*event)
    cluster.search.finish()
    late = cluster.round()
    assert late is not None
    assert cluster.uids(late.preemption.unnominated) == []


def test_nothing_leaves_for_a_gang_that_needs_more_by_now():
    gang: list[Event] = [make_gang(1, minimum=2), make_tasks([2, 6], 2, gang=1)]
    cluster = Searching(make_node("m", cpu=2), make_tasks([5], 1, on="m"), *gang)
    cluster.round()
    cluster.tell(make_gang(1, minimum=3))
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == []


def test_no_round_is_due_because_a_search_of_an_epoch_that_is_over_goes_on():
    cluster = Searching(make_tasks([2], 2))
    cluster.round()
    cluster.engine.replace(ClusterState())
    cluster.tell(make_node("n", cpu=3), LOW, HIGH, make_tasks([1], 1, on="n"), make_tasks([2], 2))
    assert cluster.round() is not None
    assert cluster.round() is None
    assert cluster.engine.wake_us(cluster.now_us) == cluster.now_us + POLL_US


@pytest.mark.parametrize("used", [0, 1])
def test_moves_hold_their_limits_when_they_are_carried_out(used):
    """Task 1 moves to m, so that 2 fits; or all moves of the hour are used up meanwhile."""
    cluster = Searching()
    cluster.search = Scripted()
    settings: dict[str, Any] = {"migrating": Migrating.FOR_WAITING, "migrate_after_us": 0, "moves_per_hour": 1}
    cluster.engine = Engine(
        LoadSpreading(), SOLVERS["or-tools"](), searching=cluster.search, options=EngineOptions(**settings)
    )
    wide = make_class(6, cpu=3)
    runs = make_tasks([1], 1, on="n", movable=True, job=1)
    cluster.tell(make_node("n", cpu=3), make_node("m", cpu=2), LOW, wide, runs)
    cluster.tell(make_tasks([2], 6))
    cluster.round()
    cluster.engine.scheduler._commit.rate.note(used, cluster.now_us)
    cluster.search.finish()
    late = cluster.round()
    assert late is not None
    assert cluster.uids(late.migration.tasks) == ([] if used else [1])
    assert cluster.engine.scheduler._moves_pause.until_us > cluster.now_us, "moves are not searched for all the time"


@pytest.mark.parametrize("used", [0, 2])
def test_queues_lose_no_more_in_an_hour_when_decisions_are_carried_out(used):
    """Queue a reclaims two of the tasks that b borrows; or b has lost meanwhile what it may lose in an hour."""
    cluster = Searching()
    cluster.search = Scripted()
    cluster.engine = Engine(LoadSpreading(), SOLVERS["or-tools"](), searching=cluster.search)
    entitled = queue("x", "top", quota(8)), queue("a", "x", quota(0), reclaim=Reclaim.ANY)
    limited = queue("b", "top", quota(0), evictions_per_hour=2)
    owners = QueuesObserved(tree(queue("top"), *entitled, limited))
    cluster.tell(make_node("n", cpu=8), SMALL, owners, running(range(11, 19), 3))
    cluster.tell(make_tasks([2, 3], 3, queue=A))
    cluster.round()
    waits, runs = (cluster.engine.state.task_rows(np.array(uids, np.uint64)) for uids in ([2, 3], [17, 18]))
    cluster.engine.scheduler._reclaims.rates.note(cluster.engine.state, runs[:used], waits[:used], cluster.now_us)
    cluster.search.finish()
    assert len(cluster.evicted(cluster.round())) == 2 - used


def test_a_task_whose_bind_fails_after_it_was_searched_for_in_vain_is_searched_for_again():
    cluster = Searching(make_tasks([1], 1, on="n", unevictable=True), make_tasks([2], 2))
    cluster.round()
    cluster.search.finish()
    cluster.round()
    cluster.tell(make_node("m", cpu=2))
    assert cluster.placed(cluster.round()) == [2]
    later_us = cluster.now_us + 5 * SECOND_US
    lost = PlacementRejected(2, "id-m", later_us), NodeRemoved("id-m"), make_tasks([1], 1, on="n")
    cluster.tell(*lost)
    cluster.round()  # considers that, but not the task
    cluster.now_us = later_us
    cluster.round()
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == [1]


def test_a_queue_that_is_entitled_to_less_by_now_gets_no_more():
    cluster = Searching()
    cluster.search = Scripted()
    cluster.engine = Engine(LoadSpreading(), SOLVERS["or-tools"](), searching=cluster.search)

    def owners(entitled: int) -> QueuesObserved:
        owning = queue("a", "x", quota(0), reclaim=Reclaim.ANY), queue("b", "top", quota(8 - entitled))
        return QueuesObserved(tree(queue("top"), queue("x", "top", quota(entitled)), *owning))

    cluster.tell(make_node("n", cpu=8), SMALL, owners(2), running(range(11, 19), 3))
    cluster.tell(make_tasks([2, 3], 3, queue=A))
    cluster.round()
    cluster.tell(owners(1))
    cluster.search.finish()
    assert cluster.evicted(cluster.round()) == []
    cluster.search.finish()
    assert len(cluster.evicted(cluster.round())) == 1


def test_what_a_search_says_of_a_gang_is_in_the_reasons_of_later_rounds():
    gang: list[Event] = [make_gang(1, minimum=2), make_tasks([2, 6], 2, gang=1)]
    cluster = Searching(*gang)
    cluster.round()
    cluster.search.finish()
    late = cluster.round()
    assert late is not None
    kinds = {reason.kind for waiting in late.waiting for reason in waiting.reasons}
    assert ReasonKind.NOT_BY_PREEMPTION in kinds
    cluster.tell(make_tasks([30], 3))
    later = cluster.round()
    assert later is not None
    assert all(not len(waiting.unreported) for waiting in later.waiting), "the reasons are the same"


def test_a_search_that_has_found_nothing_is_followed_by_a_pause_of_its_own_length():
    cluster = Searching(make_tasks([1], 1, on="n", unevictable=True), make_tasks([2], 2))
    cluster.round()
    cluster.search.finish()
    found = cluster.engine.searches
    assert found is not None
    assert found._search is not None
    found._search.seconds = 5.0
    cluster.round()
    over_us = cluster.now_us + 5 * SECOND_US
    cluster.tell(make_tasks([1], 1, on="n"))
    cluster.round()
    assert not cluster.search.running
    assert found.wake_us(cluster.now_us) == over_us
    cluster.now_us = over_us
    cluster.round()
    assert cluster.search.running


@pytest.mark.parametrize("ended", list(itertools.product((False, True), repeat=3)))
def test_what_a_search_says_of_a_part_of_a_gang_is_not_so_of_the_whole_gang(ended):
    """The members arrive one by one, each in a round of its own, and searches of fewer end at any time. Together they
    preempt on the first flavor; what was in vain for one of them must not pass it over."""
    search = Scripted()
    engine = Engine(
        LoadSpreading(),
        SOLVERS["or-tools"](),
        searching=search,
        options=EngineOptions(preempting=Preempting.WITHIN_BUDGETS),
    )
    cluster = Cluster(engine.state, engine.scheduler)
    cluster.tell(
        *(make_node(f"n{n}", cpu=8, labels={"fl": name}) for n, name in ((1, "one"), (2, "two"))),
        *(make_class(1, cpu=1), make_class(11, cpu=1, priority=1000), QueuesObserved(of_two_flavors())),
        *(*flavored_job(1, 1, 3, A, gang=1, on="n1"), make_gang(2, 3, whole=True)),
    )
    placed, now_us = dict[int, str](), NOW_US

    def run() -> None:
        nonlocal now_us
        now_us += 50_000
        result = engine.run_round(now_us)
        if result is not None:
            placed.update(cluster.names(result))
            cluster.tell(*[removed(uid) for uid in cluster.preempted(result)])

    for uid, ends in zip((11, 12, 13), ended, strict=True):
        cluster.tell(make_tasks([uid], 11, queue=A, gang=2))
        run()
        if ends and search.running:
            search.finish()
    for _ in range(12):
        run()
        if search.running:
            search.finish()
    assert placed == dict.fromkeys((11, 12, 13), "n1")
