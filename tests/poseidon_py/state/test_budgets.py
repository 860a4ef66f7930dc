"""Disruption budgets: what the engine should have of them."""

import json

import msgspec
import pytest

from poseidon_py.describe.budgets import describe_budget
from poseidon_py.kube.budget_objects import DisruptionBudget
from poseidon_py.state.object_handler import ObjectHandler, by_namespace
from poseidon_py.state.store import Store


def budget(name="b", *, uid="u", selector=None, allowed=None, namespace="default"):
    body = {"metadata": {"name": name, "namespace": namespace, "uid": uid}, "spec": {"selector": selector}}
    if allowed is not None:
        body["status"] = {"disruptionsAllowed": allowed}
    return msgspec.json.decode(json.dumps(body), type=DisruptionBudget)


APP = {"matchLabels": {"app": "a"}}


def test_a_budget_selects_pods_of_its_namespace_by_their_labels():
    expressions = [{"key": "tier", "operator": "NotIn", "values": ["x"]}]
    message = describe_budget(budget(selector={**APP, "matchExpressions": expressions}, allowed=2))
    assert (message.allowed, message.name) == (2, "default/b")
    assert list(message.selector.namespaces) == ["default"]
    assert [(each.key, each.operator, list(each.values)) for each in message.selector.labels] == [
        ("app", "In", ["a"]),
        ("tier", "NotIn", ["x"]),
    ]
    assert not message.selector.no_task


@pytest.mark.parametrize("selector", [None, {}, {"matchLabels": {}, "matchExpressions": []}])
def test_an_absent_and_an_empty_selector_match_no_pod(selector):
    assert describe_budget(budget(selector=selector)).selector.no_task


@pytest.mark.parametrize("allowed", [None, 0, -1])
def test_without_a_positive_status_nothing_is_allowed(allowed):
    assert describe_budget(budget(selector=APP, allowed=allowed)).allowed == 0


def ids(store):
    return set(store.budgets.messages)


async def test_only_changes_are_sent():
    store = Store(["poseidon"])
    store.budgets.put(budget(selector=APP, allowed=1))
    (ident,) = ids(store)
    queue = store.budgets.queue
    assert await queue.get(9) == [ident]
    queue.done([ident])
    store.budgets.put(budget(selector=APP, allowed=1))
    assert len(queue) == 0
    store.budgets.put(budget(selector=APP, allowed=0))
    assert len(queue) == 1
    assert store.budgets.messages[ident].allowed == 0


def test_a_budget_that_is_created_again_is_another_one():
    store = Store(["poseidon"])
    store.budgets.put(budget(selector=APP))
    (first,) = ids(store)
    store.budgets.put(budget(selector=APP, uid="v"))
    assert first not in ids(store)
    assert store.budgets.removed == {first}
    store.budgets.drop(("default", "b"))
    store.budgets.drop(("default", "b"))
    assert ids(store) == set()
    assert len(store.budgets.removed) == 2


def test_a_budget_with_an_invalid_selector_limits_nothing(caplog):
    store = Store(["poseidon"])
    handler = ObjectHandler("disruption budget", by_namespace, store.budgets.put, store.budgets.drop, store.metrics)
    handler.observe(budget(selector=APP))
    bad = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    for _ in range(2):
        handler.observe(budget(selector=bad))
    assert ids(store) == set()
    assert caplog.text.count("skipping disruption budget default/b: spec.selector.matchExpressions") == 1
    handler.observe(budget(selector=APP))
    assert not store.budgets.removed & ids(store)
