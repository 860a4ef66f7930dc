"""Disruption budgets follow evictions with delay."""

import numpy as np
import pytest

from firmament_py.state.budgets import LATE_US, Budgets
from firmament_py.state.label_sets import LabelSetTable
from tests.builders import NOW_US, make_budget, needs, tasks_like

WEB, DB = np.array([1]), np.array([2])


@pytest.fixture
def labels() -> LabelSetTable:
    table = LabelSetTable()
    table.define(1, "default", {"app": "web"})
    table.define(2, "default", {"app": "db"})
    return table


def web(allowed):
    return make_budget(1, tasks_like(needs("app", "In", "web")), allowed)


def allowed(budgets, labels):
    return budgets.allowances(labels).left.tolist()


def test_it_counts_the_tasks_that_it_selects(labels):
    budgets = Budgets()
    budgets.observe(web(3))
    allowances = budgets.allowances(labels)
    assert allowances.left.tolist() == [3]
    assert allowances.counted(np.array([1, 2, 1])).tolist() == [[True, False, True]]


def test_a_negative_number_permits_none(labels):
    budgets = Budgets()
    budgets.observe(web(-2))
    assert allowed(budgets, labels) == [0]


def test_a_victim_counts_until_the_number_falls_or_it_is_gone(labels):
    budgets = Budgets()
    budgets.observe(web(3))
    budgets.evicted(labels, np.array([1, 1, 2]))
    assert allowed(budgets, labels) == [1]
    budgets.observe(web(2))  # knows one
    assert allowed(budgets, labels) == [1]
    budgets.observe(web(1))  # knows both
    assert allowed(budgets, labels) == [1]
    budgets.gone(labels, np.array([1, 1]))
    assert allowed(budgets, labels) == [1]
    budgets.observe(web(3))  # both are replaced
    assert allowed(budgets, labels) == [3]


def test_a_victim_that_is_gone_counts_until_the_budget_is_observed_again(labels):
    """Watches of different objects are in no order: the number may still be that of before."""
    budgets = Budgets()
    budgets.observe(web(1))
    budgets.evicted(labels, WEB)
    budgets.gone(labels, WEB)
    assert allowed(budgets, labels) == [0]
    budgets.observe(web(0))
    assert allowed(budgets, labels) == [0]
    budgets.observe(web(1))  # it is replaced
    assert allowed(budgets, labels) == [1]


def test_a_number_that_falls_for_one_that_is_gone_does_not_fall_for_others(labels):
    budgets = Budgets()
    budgets.observe(web(3))
    budgets.evicted(labels, np.array([1, 1]))
    budgets.gone(labels, WEB)
    assert allowed(budgets, labels) == [1]
    budgets.observe(web(2))
    assert allowed(budgets, labels) == [1]


def test_a_victim_that_was_never_counted_as_healthy_frees_the_budget_soon_after_it_is_gone(labels):
    """The number never falls for it."""
    budgets = Budgets()
    budgets.observe(web(1))
    budgets.evicted(labels, WEB)
    assert allowed(budgets, labels) == [0]
    budgets.gone(labels, WEB)
    budgets.expire(NOW_US)
    assert budgets.late_until_us == NOW_US + LATE_US
    budgets.expire(NOW_US + LATE_US - 1)
    assert allowed(budgets, labels) == [0]
    budgets.expire(NOW_US + LATE_US)
    assert allowed(budgets, labels) == [1]
    assert budgets.late_until_us == 0


def test_a_victim_that_stays_does_not_count_any_more(labels):
    budgets = Budgets()
    budgets.observe(web(1))
    budgets.evicted(labels, WEB)
    budgets.stay(labels, WEB)
    assert allowed(budgets, labels) == [1]


def test_a_number_that_falls_without_victims_is_taken_as_it_is(labels):
    budgets = Budgets()
    budgets.observe(web(5))
    budgets.observe(web(2))
    budgets.evicted(labels, WEB)
    assert allowed(budgets, labels) == [1]


@pytest.mark.parametrize(("number", "permits"), [(0, False), (1, False), (2, True)])
def test_only_a_higher_number_or_another_selector_may_permit_evictions(number, permits):
    budgets = Budgets()
    assert not budgets.observe(web(1))
    assert budgets.observe(web(number)) is permits
    assert budgets.observe(make_budget(1, tasks_like(needs("app", "In", "db")), 0))
    assert budgets.remove(1)
    assert not budgets.remove(1)
    assert len(budgets) == 0
