"""What disruption budgets permit while a decision grows, beside counts by hand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.state.budgets import Budgets
from firmament_py.state.label_sets import LabelSetTable
from tests.builders import make_budget, needs, tasks_like
from tests.effort import examples

APPS = ("web", "db", "batch", "web-canary")
SELECTED = (("web",), ("web", "web-canary"), ("db",), APPS, ("none",))


@st.composite
def worlds(draw):
    """Label set rows 1 .. 4 of the APPS; budgets as (apps that it counts, what it permits)."""
    labels = LabelSetTable()
    for number, app in enumerate(APPS, start=1):
        labels.define(number, "default", {"app": app})
    budgets, expected = Budgets(), []
    for number, apps in enumerate(draw(st.lists(st.sampled_from(SELECTED), max_size=4)), start=1):
        permits = draw(st.integers(0, 4))
        budgets.observe(make_budget(number, tasks_like(needs("app", "In", *apps)), permits))
        expected.append((apps, permits))
    groups = draw(st.lists(st.lists(st.sampled_from(APPS), max_size=5), max_size=4))
    return budgets.allowances(labels), expected, groups


def rows(apps):
    return np.array([1 + APPS.index(app) for app in apps], np.int64)


class Ledger:
    """The oracle: a list of budgets, each with what is left."""

    def __init__(self, budgets):
        self.apps, self.left = [set(apps) for apps, _ in budgets], [permits for _, permits in budgets]

    def numbers(self, tasks):
        return [sum(task in apps for task in tasks) for apps in self.apps]

    def exceeded(self, tasks):
        return [b for b, number in enumerate(self.numbers(tasks)) if number and number > self.left[b]]

    def spend(self, tasks):
        self.left = [left - number for left, number in zip(self.left, self.numbers(tasks), strict=True)]


@given(worlds(), st.integers(0, 3))
@examples(100)
def test_they_count_as_by_hand(world, limit):
    allowances, budgets, groups = world
    ledger = Ledger(budgets)
    assert len(allowances) == len(budgets)
    for tasks in groups:
        assert allowances.counted(rows(tasks)).tolist() == [[task in apps for task in tasks] for apps in ledger.apps]
        assert allowances.exceeded(rows(tasks)).tolist() == ledger.exceeded(tasks)
        assert allowances.permitted(rows(tasks)).tolist() == [not ledger.exceeded([task]) for task in tasks]
        of = [tuple(task in apps for apps in ledger.apps) for task in tasks]
        pattern = allowances.pattern(rows(tasks)).tolist()
        assert all((of[i] == of[j]) == (pattern[i] == pattern[j]) for i in range(len(of)) for j in range(i))
        fits = not ledger.exceeded(tasks)
        assert allowances.take(rows(tasks)) == fits
        if fits:
            ledger.spend(tasks)
        assert allowances.left.tolist() == ledger.left
    for tasks in groups:
        taken = list[int]()
        for i, task in enumerate(tasks):
            if len(taken) < limit and not ledger.exceeded([task]):
                ledger.spend([task])
                taken.append(i)
        assert allowances.take_in_order(rows(tasks), limit).tolist() == taken
    everything = [task for tasks in groups for task in tasks]
    allowances.spend(rows(everything))
    ledger.spend(everything)
    assert allowances.left.tolist() == ledger.left
    for task in APPS:  # some budgets have less than nothing left: only they count that count the task
        assert allowances.exceeded(rows([task])).tolist() == ledger.exceeded([task])
