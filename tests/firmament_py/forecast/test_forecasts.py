"""Forecasts beside the rounds of an engine: when they are made, and what is learned from them."""

import numpy as np
import pytest

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.forecast import forecasts as forecasts_module
from firmament_py.forecast.forecasts import EVERY_US, FRESH_US, PATIENCE_US, Forecasts
from firmament_py.model.events import TasksEnded
from policies.load_spreading import LoadSpreading
from tests.builders import NOW_US, SECOND_US, make_class, make_gang, make_node, make_tasks, removed
from tests.firmament_py.engine.test_searches import Scripted

S = SECOND_US


class World:
    """A node of 4 cpus and an engine whose clock follows the rounds."""

    def __init__(self, policy=None) -> None:
        self.now_us = NOW_US
        self.engine = Engine(policy or LoadSpreading(), OrToolsSolver(), lambda: self.now_us)
        self.execution = Scripted()
        self.forecasts = Forecasts(self.engine, self.execution, lambda: 0.0)
        self.tell(make_node("a", cpu=4), make_class(1, cpu=4, expected_us=100 * S))

    def tell(self, *events) -> None:
        self.forecasts.note_events(events)
        self.engine.apply(events)

    def round(self, after_s: float = 0) -> None:
        self.now_us = NOW_US + round(after_s * S)
        if (result := self.engine.run_round(self.now_us)) is not None:
            self.forecasts.round_ended(result, self.now_us)

    def start(self, uid: int, after_s: float) -> None:
        """What the last round has placed runs."""
        self.tell(make_tasks([uid], 1, on="a", started_us=NOW_US + round(after_s * S)))

    def busy(self) -> None:
        """Task 1 runs, 2 waits."""
        self.tell(make_tasks([1], 1))
        self.round()
        self.start(1, 0)
        self.tell(make_tasks([2], 1, created_us=NOW_US - PATIENCE_US))


@pytest.fixture
def world() -> World:
    found = World()
    found.busy()
    return found


def test_a_round_that_leaves_tasks_begins_one(world):
    assert world.execution.searches == 0
    world.round(1)
    assert (world.execution.searches, world.forecasts.last) == (1, None)
    world.execution.finish()
    future = world.forecasts.asked(world.now_us)
    assert future is not None
    assert (future.made_us, future.starts_us.tolist()) == (NOW_US + S, [NOW_US + 100 * S])
    assert world.execution.searches == 1, "it is fresh"


def test_none_is_made_until_something_has_waited_for_some_time():
    world = World()
    world.tell(make_tasks([1], 1, on="a", started_us=NOW_US), make_tasks([2], 1))
    world.round(1)
    assert world.execution.searches == 0
    assert world.forecasts.asked(world.now_us) is None
    assert world.execution.searches == 1, "somebody has asked"
    world = World()
    world.tell(make_tasks([1], 1, on="a", started_us=NOW_US), make_tasks([2], 1))
    world.round(1)
    world.tell(make_tasks([3], 1))
    world.round(PATIENCE_US / S)
    assert world.execution.searches == 1


def test_one_is_made_once_a_minute(world):
    for after in (1, 10, 61, 63):
        world.tell(make_tasks([100 + after], 1))
        world.round(after)
        if world.execution.running:
            world.execution.finish()
    assert world.execution.searches == 2, "after 1 and 61 seconds"
    assert EVERY_US == 60 * S


def test_it_takes_a_fiftieth_of_the_time(world, monkeypatch):
    times = iter([0.0, 4.0])
    monkeypatch.setattr(world.forecasts, "_clock", lambda: next(times))
    world.round(1)
    world.execution.finish()
    world.forecasts.asked(world.now_us)
    for after in (100, 200, 202):
        world.tell(make_tasks([100 + after], 1))
        world.round(after)
        assert world.execution.running == (after > 201)


def test_who_asks_gets_the_last_one_and_begins_another(world):
    world.round(1)
    world.execution.finish()
    world.now_us += FRESH_US
    future = world.forecasts.asked(world.now_us)
    assert future is not None
    assert future.made_us == NOW_US + S
    assert world.execution.running
    world.execution.finish()
    assert world.forecasts.asked(world.now_us) is not future


def test_to_ask_again_and_again_takes_a_fifth_of_the_time(world, monkeypatch):
    times = iter([0.0, 4.0])
    monkeypatch.setattr(world.forecasts, "_clock", lambda: next(times))
    world.round(1)
    world.execution.finish()
    for after_s in (1, 20, 21):
        world.now_us = NOW_US + after_s * S
        world.forecasts.asked(world.now_us)
        assert world.execution.running == (after_s == 21), "made after 1 s, in 4 s"


def test_what_ends_by_itself_teaches_how_long_tasks_run(world):
    world.now_us = NOW_US + 40 * S
    world.tell(TasksEnded(np.array([1, 99], np.uint64)))
    assert world.forecasts.run_times.learned == 1
    world.round(40)
    world.start(2, 40)
    world.tell(make_tasks([3], 1))
    world.round(41)
    assert world.forecasts.asked(world.now_us) is None
    world.execution.finish()
    future = world.forecasts.asked(world.now_us)
    assert future is not None
    assert future.starts_us.tolist() == [NOW_US + 80 * S], "after 40 s, as the one before"


def test_starts_are_compared_with_what_was_forecast(world):
    """Forecast after 1 s: a start after 100 s; it starts after 50."""
    world.round(1)
    world.execution.finish()
    world.forecasts.asked(world.now_us)
    world.now_us = NOW_US + 50 * S
    world.tell(TasksEnded(np.array([1], np.uint64)))
    world.round(50)
    assert world.forecasts.errors.known == 1
    assert world.forecasts.errors._errors[1][0] == pytest.approx(49 / 99)


def test_what_is_withdrawn_is_awaited_no_more(world):
    world.round(1)
    world.execution.finish()
    world.forecasts.asked(world.now_us)
    assert world.forecasts.errors.awaits_starts
    world.tell(removed(2), make_class(2, cpu=8), make_tasks([3], 2, created_us=NOW_US - PATIENCE_US))
    world.round(61)
    world.execution.finish()
    world.forecasts.asked(world.now_us)
    assert not world.forecasts.errors.awaits_starts, "the other one never fits"


def test_a_forecast_is_made_from_what_was_known_when_it_began(world):
    """Meanwhile the task ends after 40 s instead of 100."""
    world.round(1)
    world.now_us = NOW_US + 40 * S
    world.tell(TasksEnded(np.array([1], np.uint64)))
    world.execution.finish()
    future = world.forecasts.asked(world.now_us)
    assert future is not None
    assert future.starts_us.tolist() == [NOW_US + 100 * S]


def test_a_gang_counts_once():
    world = World()
    world.tell(make_node("b", cpu=4), make_tasks([1], 1, on="a", started_us=NOW_US))
    world.tell(make_gang(7, 2), make_tasks([2, 3], 1, gang=7, created_us=NOW_US - PATIENCE_US))
    world.round(1)
    world.execution.finish()
    future = world.forecasts.asked(world.now_us)
    assert future is not None
    assert future.starts_us.tolist() == [NOW_US + 100 * S] * 2
    world.now_us = NOW_US + 100 * S
    world.tell(TasksEnded(np.array([1], np.uint64)))
    world.round(100)
    assert world.forecasts.errors.known == 1


def test_one_that_fails_is_logged_and_another_follows(world, monkeypatch, caplog):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(forecasts_module, "future_of", fail)
    world.round(1)
    world.execution.finish()
    assert "a forecast of starts has failed" in caplog.text
    assert world.forecasts.asked(world.now_us) is None
    assert world.execution.searches == 1, "to ask repeats it after a pause"
    monkeypatch.undo()
    world.now_us += FRESH_US
    world.forecasts.asked(world.now_us)
    world.execution.finish()
    assert world.forecasts.asked(world.now_us) is not None


def test_a_policy_that_cannot_be_copied_is_named():
    class Stubborn(LoadSpreading):
        def __deepcopy__(self, _):
            raise TypeError("no")

    world = World(Stubborn())
    world.busy()
    world.round(1)
    assert not world.execution.searches
    assert "cannot be copied" in world.forecasts.problem


def test_without_an_execution_there_are_none(world):
    forecasts = Forecasts(world.engine, None)
    world.round(1)
    assert forecasts.asked(world.now_us) is None
    assert forecasts.problem == "this service makes no forecasts"
