"""Selections are evaluated once for what they see of devices."""

import json

import msgspec
import pytest

from poseidon_py.devices.allocator import SelectionError
from poseidon_py.devices.cel import selector
from poseidon_py.devices.cel.errors import LimitError
from poseidon_py.devices.device_requests import Selection
from poseidon_py.devices.objects import SliceDevice
from poseidon_py.devices.selections import Memberships, Selectors, names_in
from tests.poseidon_py.devices.cel.outcomes import TABLES
from tests.poseidon_py.devices.offers import DRIVER, device, inventory, node_with, slice_of, taint

MODEL = f'device.attributes["{DRIVER}"].model == "a"'


@pytest.fixture
def evaluations(monkeypatch):
    """The devices for which expressions are evaluated."""
    seen = []
    matches = selector.Selector.matches

    def counted(self, item):
        seen.append(item)
        return matches(self, item)

    monkeypatch.setattr(selector.Selector, "matches", counted)
    return seen


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        (MODEL, {"model"}),
        (f'device.capacity["{DRIVER}"]["memory"].compareTo(quantity("1Gi")) > 0', {"memory"}),
        (f'"model" in device.attributes["{DRIVER}"] && has(device.attributes["{DRIVER}"].numa)', {"model", "numa"}),
        (f'device.attributes["{DRIVER}"].?model.orValue("") == "a"', None),
        (f'cel.bind(mine, device.attributes["{DRIVER}"], mine.model == "a")', None),
        (f'device.attributes["{DRIVER}"].exists(name, name == "x")', None),
        ("size(device.attributes) > 1", None),
        (f'device.driver == "{DRIVER}"', set()),
    ],
)
def test_what_an_expression_depends_on(expression, names):
    """None: anything, so that each shape is evaluated."""
    assert names_in(expression) == names


def test_devices_that_differ_in_what_is_not_asked_for_are_evaluated_once(evaluations):
    selectors = Selectors()
    node = node_with(*(device(f"d{at}", model="ab"[at % 2], serial=str(at)) for at in range(10)))
    found = [selectors.suits(Selection((MODEL,)), each.shape) for each in node.devices]
    assert found == [True, False] * 5
    assert len(evaluations) == 2


def test_an_expression_that_costs_more_than_is_allowed_is_tried_once(monkeypatch):
    tried = []

    def matches(self, item):
        tried.append(item)
        raise LimitError("actual cost limit exceeded")

    monkeypatch.setattr(selector.Selector, "matches", matches)
    selectors = Selectors()
    node = node_with(*(device(f"d{at}", model=str(at)) for at in range(5)))
    for each in node.devices:
        with pytest.raises(SelectionError, match="cost limit"):
            selectors.suits(Selection((MODEL,)), each.shape)
    assert len(tried) == 1


def test_an_error_is_that_of_a_device_alone(evaluations):
    selectors = Selectors()
    node = node_with(device("d0"), device("d1", model="a"), device("d2"))
    first, second, third = node.devices
    for each in (first, third):
        with pytest.raises(SelectionError, match="model"):
            selectors.suits(Selection((MODEL,)), each.shape)
    assert selectors.suits(Selection((MODEL,)), second.shape)
    assert len(evaluations) == 2


def test_results_that_are_shared_are_those_of_each_device():
    """The expressions of drivers, on a device of each: what they see of one must not be taken for another."""
    found = json.loads((TABLES.parent / "drivers.json").read_text())
    shapes = {}
    for name, written in found["devices"].items():
        listed = msgspec.convert(written | {"name": name}, SliceDevice)
        (shapes[name],) = (
            each.shape for each in inventory(slice_of(listed, driver=written["driver"])).on("n", {}).devices
        )
    selectors, wrong = Selectors(), []
    for _, expression, outcomes in found["expressions"]:
        for expected, names in outcomes.items():
            for name in names:
                try:
                    result = str(selectors.suits(Selection((expression,)), shapes[name])).lower()
                except SelectionError:
                    result = "error"
                if result != expected.strip('"'):
                    wrong.append((expression, name, expected, result))
    assert wrong == []


def test_sets_that_are_counted_say_of_each_device_what_its_selectors_do(evaluations):
    """Nothing is evaluated again, but for devices with taints or errors, which are in no set for another reason."""
    selectors = Selectors()
    known, counted = Memberships(selectors), Selection((MODEL,))
    node = node_with(
        device("a", model="a"), device("b", model="b"), device("tainted", model="a", taints=[taint()]), device("faulty")
    )
    known.replace(node.devices[0].pool, node.devices)
    assert known.suits(counted, node.devices[0]), "before it is counted, too"
    known.add(counted)
    del evaluations[:]
    assert [known.suits(counted, each) for each in node.devices[:3]] == [True, False, True]
    with pytest.raises(SelectionError, match="model"):
        known.suits(counted, node.devices[3])
    selectors._results.clear()
    assert [known.suits(counted, each) for each in node.devices[:2]] == [True, False]
    assert evaluations == []


def test_a_device_without_errors_that_takes_the_place_of_one_with_an_error_is_judged_by_itself():
    known, counted = Memberships(Selectors()), Selection((MODEL,))
    before, after = node_with(device("d")), node_with(device("d", model="a"))
    known.add(counted)
    for node, outcome in ((before, None), (after, True)):
        known.replace(node.devices[0].pool, node.devices)
        if outcome is None:
            with pytest.raises(SelectionError):
                known.suits(counted, node.devices[0])
        else:
            assert known.suits(counted, node.devices[0]) is outcome
