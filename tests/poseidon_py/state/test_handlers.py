"""What the handlers of watches keep of objects that become invalid, and that go while there is no watch."""

from typing import Any

import pytest

from poseidon_py.kube.objects import InvalidField, Metadata
from poseidon_py.kube.storage_objects import Namespace
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.handlers import NodeHandler, PodHandler
from poseidon_py.state.object_handler import ObjectHandler, by_name
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import node, pod


def of_pods() -> tuple[Any, Any, Any]:
    store = Store(["poseidon"])
    return PodHandler(store), pod("a"), lambda: [each.name for each in store.pods.values()]


def of_nodes() -> tuple[Any, Any, Any]:
    store = Store(["poseidon"])
    return NodeHandler(store), node("a"), lambda: list(store.nodes)


def of_others() -> tuple[Any, Any, Any]:
    known: dict[str, Namespace] = {}
    handler: ObjectHandler[Namespace] = ObjectHandler(
        "namespace", by_name, lambda item: known.update({item.metadata.name: item}), known.__delitem__, Metrics()
    )
    return handler, Namespace(metadata=Metadata(name="a", uid="uid-a")), lambda: list(known)


@pytest.mark.parametrize("kind", [of_pods, of_nodes, of_others])
def test_an_invalid_object_keeps_its_last_valid_state_until_a_list_is_without_it(kind):
    handler, item, known = kind()
    handler.observe(item)
    handler.invalid(item.metadata, "spec: is odd")
    handler.listed({"uid-a"})
    assert known() == ["a"]
    handler.invalid(item.metadata, "spec: is odd")
    handler.listed(set())
    assert known() == []


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("valid_before", [False, True])
def test_the_problem_of_a_node_is_forgotten_when_it_is_gone(valid_before, listed, caplog):
    handler, item, _ = of_nodes()
    if valid_before:
        handler.observe(item)
    for times in (1, 2):
        handler.invalid(item.metadata, "status: is odd")
        handler.invalid(item.metadata, "status: is odd")
        assert caplog.text.count("skipping node a: status: is odd") == times
        handler.listed(set()) if listed else handler.removed(item)


@pytest.mark.parametrize("listed", [False, True])
def test_the_problem_of_a_namespace_or_budget_is_forgotten_when_it_is_gone(listed, caplog):
    def put(item: Namespace) -> None:
        raise InvalidField("metadata.labels", "is odd")

    item = Namespace(metadata=Metadata(name="a", uid="uid-a"))
    handler: ObjectHandler[Namespace] = ObjectHandler("namespace", by_name, put, lambda name: None, Metrics())
    for times in (1, 2):
        handler.observe(item)
        handler.observe(item)
        assert caplog.text.count("skipping namespace a: metadata.labels: is odd") == times
        handler.listed(set()) if listed else handler.removed(item)


def test_an_invalid_object_is_named_once_until_it_is_valid(caplog):
    handler, item, _ = of_others()
    for _ in range(2):
        handler.invalid(item.metadata, "spec: is odd")
        handler.listed({"uid-a"})
    assert len(caplog.records) == 1
    handler.observe(item)
    handler.invalid(item.metadata, "spec: is odd")
    assert len(caplog.records) == 2
