"""Policies written for version 1 of the interface: loaded, checked and called like current ones."""

import importlib.util
from dataclasses import fields, replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from firmament_py.model.events import Event
from firmament_py.policy import (
    MOST_MAX,
    NODE_LIMIT_MAX,
    AnywherePolicy,
    Costs,
    DataCosts,
    DataPrices,
    Policy,
    PolicyError,
    Prices,
    View,
    checked_costs,
    checked_prices,
    registry,
    waiting_cost,
)
from firmament_py.policy.conformance import RULES, check
from firmament_py.policy.registry import UnknownPolicyError, load
from firmament_py.policy.version_1 import Version1Policy, in_current_version, prices_of
from tests.builders import make_class, make_cluster, make_node, make_tasks
from tests.firmament_py.policy.headroom_version_1 import Headroom
from tests.firmament_py.policy.test_api import make_view
from tests.paths import DOCS

FLAT = np.zeros((1, 1), np.int64)


class Everything:
    """Returns every field of version 1."""

    name = "everything"
    api_version = 1
    wants_usage = True
    counts_links = True
    rack_labels = ("rack",)

    def price(self, view):
        classes, nodes = len(view.requests), len(view.allocatable)
        return Prices(
            place=FLAT,
            slot=FLAT,
            wait=waiting_cost(view),
            enough=np.ones((classes, nodes), np.int64),
            beyond=np.full(classes, 2),
            turn=np.arange(classes),
            most=np.full(nodes, 3),
        )


class TodaysEverything(AnywherePolicy):
    name = "everything"

    def costs(self, view):
        classes, nodes = len(view.requests), len(view.allocatable)
        return replace(
            super().costs(view),
            soft_limit=np.ones((classes, nodes), np.int64),
            soft_limit_cost=np.full(classes, 2),
            stage=np.arange(classes),
            node_limit=np.full(nodes, 3),
        )


class Derived(AnywherePolicy):
    """Builds on the base that version 1 had, too."""

    def price(self, view):
        return replace(super().price(view), place=np.full((1, 1), 7))


class Typed(Policy):
    """Inherits the protocol, as typed code may."""

    name = "typed"

    def price(self, view: View) -> Prices:
        return prices_of(AnywherePolicy().costs(view))


class Silent(Derived):
    def price(self, view):
        return None


class Late(Derived):
    """States the current version, but defines only the method of version 1."""

    api_version = 2


class Neither:
    name = "neither"
    api_version = 2

    def price(self, view):
        return Prices(FLAT, FLAT, waiting_cost(view))


def same(one: Costs | Prices, other: Costs | Prices) -> bool:
    return type(one) is type(other) and all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)
    )


def test_the_template_of_version_1_conforms():
    assert check(Headroom()) == []


def test_its_costs_equal_those_of_the_current_template():
    spec = importlib.util.spec_from_file_location("headroom_policy", DOCS / "policy-template" / "headroom_policy.py")
    assert spec is not None
    assert spec.loader is not None
    today = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(today)
    view = make_view()
    assert same(in_current_version(Headroom(keep=0.5)).costs(view), today.Headroom(keep=0.5).costs(view))


def test_it_is_loaded_by_name_with_its_options(monkeypatch):
    entry = EntryPoint("headroom", "tests.firmament_py.policy.headroom_version_1:Headroom", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    policy = load("headroom", {"keep": "0.4"})
    assert policy.name == "headroom"
    view = make_view()
    assert checked_costs(policy, view).slot.tolist() == Headroom(keep=0.4).price(view).slot.tolist()


def test_every_field_is_renamed():
    view = make_view()
    assert same(checked_costs(in_current_version(Everything()), view), TodaysEverything().costs(view))
    assert same(checked_prices(Everything(), view), Everything().price(view))
    assert MOST_MAX == NODE_LIMIT_MAX
    assert DataPrices is DataCosts


def test_other_attributes_of_a_policy_are_passed_on():
    adapted = in_current_version(Everything())
    assert isinstance(adapted, Version1Policy)
    assert (adapted.name, adapted.wants_usage, adapted.counts_links) == ("everything", True, True)
    assert adapted.rack_labels == ("rack",)
    assert not hasattr(adapted, "waives")


def test_a_round_places_as_under_the_current_version_of_the_policy():
    events: list[Event] = [
        *(make_class(number, cpu=number) for number in (1, 2)),
        *(make_node(f"n{i}", cpu=20) for i in range(3)),
        make_tasks(range(1, 6), 1),
        make_tasks(range(6, 11), 2),
    ]
    rounds = []
    for policy in (in_current_version(Everything()), TodaysEverything()):
        result = make_cluster(*events, policy=policy).run()
        assert result.stats.fallback == ""
        rounds.append((result.tasks.tolist(), result.nodes.tolist()))
    assert rounds[0] == rounds[1]
    assert len(rounds[0][0]) == 10


@pytest.mark.parametrize("policy", [AnywherePolicy(), TodaysEverything(), Late(), Neither()])
def test_current_policies_are_not_wrapped(policy):
    assert in_current_version(policy) is policy


def test_the_most_derived_class_with_either_method_decides():
    assert in_current_version(Derived()).costs(make_view()).place.tolist() == [[7]]
    assert isinstance(in_current_version(Typed()), Version1Policy)  # type: ignore[abstract]
    assert Late().costs(make_view()).place.tolist() == [[0]]


def test_a_current_policy_with_only_the_old_method_is_refused(monkeypatch):
    entry = EntryPoint("neither", "tests.firmament_py.policy.test_version_1:Neither", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    with pytest.raises(UnknownPolicyError, match=r"it needs a text `name` and a method costs\(view\)"):
        load("neither", {})
    assert [finding.rule for finding in check(Neither())] == ["identity"]


def test_a_result_that_is_not_prices_is_named():
    with pytest.raises(PolicyError, match=r"price\(\) returned NoneType, not Prices"):
        checked_costs(in_current_version(Silent()), make_view())
    assert {finding.rule for finding in check(Silent())} == {"contract"} <= set(RULES)
