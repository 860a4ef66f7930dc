"""What nodes reach of the slices: generations, pools that are incomplete or invalid, node selection, taint rules."""

import pytest

from poseidon_py.devices.book import DeviceBook
from poseidon_py.devices.inventory import PoolId
from poseidon_py.devices.objects import (
    Attribute,
    ClassSpec,
    CounterSet,
    CounterUse,
    CounterValue,
    DeviceClass,
    DeviceSelector,
    DeviceTaintRule,
    Expression,
    SliceDevice,
    TaintRuleSpec,
    TaintSelector,
)
from poseidon_py.kube.objects import InvalidField, Metadata, RequiredTerms, Requirement, SelectorTerm
from tests.poseidon_py.devices.offers import DRIVER, device, inventory, slice_of, taint


def names(found, node="n", **labels):
    return [each.id.name for each in found.on(node, labels).devices]


def problems(found, node="n"):
    return " ".join(found.on(node, {}).problems)


def selector(**labels):
    return RequiredTerms([SelectorTerm([Requirement(key, "In", [value]) for key, value in labels.items()])])


# -- pools ------------------------------------------------------------------------------------------------------------


def test_the_newest_generation_counts_also_where_only_an_older_one_is_reached():
    found = inventory(slice_of(device("old"), name="a"), slice_of(device("new"), name="b", generation=2, node_name="m"))
    assert names(found) == []
    assert names(found, "m") == ["new"]
    assert not problems(found)  # the pool is whole, elsewhere
    found.drop_slice("b")
    assert names(found) == ["old"]


def test_an_incomplete_pool_gives_no_devices_until_its_last_slice_is_there():
    found = inventory(slice_of(device("one"), name="a", of=2))
    assert names(found) == []
    assert problems(found) == f"resource pool {DRIVER}/pool is currently being updated"
    found.put_slice(slice_of(device("two"), name="b", of=2, node_name="m"))
    assert names(found) == ["one"]
    assert not problems(found)
    assert found.drop_slice("b") == PoolId(DRIVER, "pool")
    assert problems(found)


def test_a_pool_with_more_slices_than_it_says_is_incomplete():
    found = inventory(slice_of(device("one"), name="a"), slice_of(device("two"), name="b"))
    assert "being updated" in problems(found)


def test_names_that_repeat_make_a_pool_invalid_where_both_are_reached():
    found = inventory(
        slice_of(device("one"), name="a", of=2, all_nodes=True), slice_of(device("one"), name="b", of=2, node_name="m")
    )
    assert names(found) == ["one"]
    assert names(found, "m") == []
    assert problems(found, "m") == f"resource pool {DRIVER}/pool is invalid: names repeat"


@pytest.mark.parametrize(
    ("uses", "sets", "reason"),
    [
        ([CounterUse("other")], [CounterSet("set")], "device one uses counter other, which is not there"),
        (
            [CounterUse("set", {"x": CounterValue("1")})],
            [CounterSet("set", {"y": CounterValue("1")})],
            "device one uses counter set/x, which is not there",
        ),
        (None, [CounterSet("set"), CounterSet("set")], "set of counters set is given twice"),
    ],
)
def test_counters_that_contradict_make_a_pool_invalid(uses, sets, reason):
    counters = slice_of(name="b", of=2)
    counters.spec.counters = sets
    found = inventory(slice_of(SliceDevice(name="one", consumes=uses), name="a", of=2), counters)
    assert names(found) == []
    assert problems(found) == f"resource pool {DRIVER}/pool is invalid: {reason}"


def test_pools_are_in_order_and_those_with_binding_conditions_last():
    found = inventory(
        slice_of(device("d", binding_conditions=["Ready"]), name="a", pool="1"),
        slice_of(device("c"), name="c", pool="3"),
        slice_of(device("b"), device("a"), name="b", pool="2"),
    )
    assert names(found) == ["b", "a", "c", "d"]


def test_a_slice_that_changes_its_pool_concerns_the_nodes_of_both():
    book = DeviceBook()
    assert book.put_slice(slice_of(device("one"), name="a")) == {"n"}
    assert book.put_slice(slice_of(device("one"), name="a", pool="other", node_name="m")) == {"n", "m"}
    assert [pool.id.name for pool in book.inventory.pools()] == ["other"]
    assert book.put_slice(slice_of(device("two"), name="b", all_nodes=True)) is None


def test_a_slice_that_cannot_be_read_leaves_what_was_there():
    found = inventory(slice_of(device("one", capacity={"memory": 1}), name="a"))
    with pytest.raises(InvalidField, match=r"spec.devices\[0\].capacity\[memory\].value"):
        found.put_slice(slice_of(device("one", capacity={"memory": "much"}), name="a"))
    assert names(found) == ["one"]


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_each_device_may_name_its_nodes():
    found = inventory(
        slice_of(
            device("named", node_name="n"),
            device("everywhere", all_nodes=True),
            device("matching", node_selector=selector(zone="east")),
            device("nowhere"),
            per_device=True,
        )
    )
    assert names(found) == ["named", "everywhere"]
    assert names(found, "m", zone="east") == ["everywhere", "matching"]
    assert names(found, "m") == ["everywhere"]
    assert found.nodes_of(PoolId(DRIVER, "pool")) is None


def test_a_slice_selects_nodes_by_labels_and_by_name():
    by_name = RequiredTerms([SelectorTerm(fields=[Requirement("metadata.name", "In", ["n"])])])
    found = inventory(
        slice_of(device("one"), name="a", pool="1", node_selector=selector(zone="east", rack="1")),
        slice_of(device("two"), name="b", pool="2", node_selector=by_name),
        slice_of(device("three"), name="c", pool="3", node_selector=RequiredTerms([])),
    )
    assert names(found, zone="east", rack="1") == ["one", "two"]
    assert names(found, "m", zone="east") == []


def test_a_slice_that_selects_nodes_in_an_unknown_way_is_reached_by_none():
    found = inventory(slice_of(device("one"), node_name=None))
    assert names(found) == []
    assert not problems(found)


# -- devices ----------------------------------------------------------------------------------------------------------


def test_names_have_domains_and_single_values_are_lists_of_one():
    given = device("one", capacity={"memory": 1, "other.example.com/slots": 2}, model="a", cores=1)
    given.attributes["other.example.com/models"] = Attribute(texts=["a", "b"])
    given.attributes["unknown"] = Attribute()
    (found,) = inventory(slice_of(given)).on("n", {}).devices
    assert found.attributes == {
        f"{DRIVER}/model": {("string", "a")},
        f"{DRIVER}/cores": {("int", 1)},
        "other.example.com/models": {("string", "a"), ("string", "b")},
        f"{DRIVER}/unknown": set(),
    }
    assert {name: facts.value for name, facts in found.capacity.items()} == {
        f"{DRIVER}/memory": 10**9,
        "other.example.com/slots": 2 * 10**9,
    }
    assert found.written[f"{DRIVER}/memory"] == "memory"


# -- taint rules ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selects", "tainted"),
    [
        (TaintSelector(), ["1/a", "1/b", "2/a"]),
        (TaintSelector(driver=DRIVER), ["1/a", "1/b", "2/a"]),
        (TaintSelector(driver="other.example.com"), []),
        (TaintSelector(pool="1"), ["1/a", "1/b"]),
        (TaintSelector(device="a"), ["1/a", "2/a"]),
        (TaintSelector(DRIVER, "2", "b"), []),
        (None, []),
    ],
)
def test_a_rule_taints_what_its_selector_names_until_it_is_gone(selects, tainted):
    book = DeviceBook()
    book.put_slice(slice_of(device("a"), device("b", taints=[taint("None", "own")]), name="1", pool="1"))
    book.put_slice(slice_of(device("a"), name="2", pool="2"))

    def found():
        return [
            f"{each.id.pool}/{each.id.name}"
            for each in book.on("n", {}).devices
            if "ruled" in {of.key for of in each.taints}
        ]

    assert found() == []
    rule = DeviceTaintRule(Metadata(name="rule"), TaintRuleSpec(selects, taint(key="ruled")))
    book.put_rule(rule)
    assert found() == tainted
    rule.metadata.deleting = "2026-01-01T00:00:00Z"
    book.put_rule(rule)
    assert found() == tainted
    book.drop_rule("rule")
    assert found() == []
    assert [each.key for each in book.on("n", {}).devices[1].taints] == ["own"]


def test_a_rule_with_an_unknown_effect_is_refused():
    with pytest.raises(InvalidField, match=r"spec\.taint\.effect"):
        DeviceBook().put_rule(DeviceTaintRule(spec=TaintRuleSpec(TaintSelector(), taint("Later"))))


@pytest.mark.parametrize(
    ("selector", "tainted"),
    [
        (TaintSelector(class_name="a"), ["d0"]),
        (TaintSelector(class_name="gone"), []),
        (TaintSelector(selectors=[DeviceSelector(Expression(f'device.attributes["{DRIVER}"].model == "b"'))]), ["d1"]),
        (TaintSelector(selectors=[DeviceSelector(Expression(f'device.attributes["{DRIVER}"].none == "b"'))]), []),
        (TaintSelector(class_name="a", device="d1"), []),
    ],
)
def test_a_rule_of_an_older_version_taints_a_class_and_what_selectors_select(selector, tainted):
    """v1alpha3 of Kubernetes 1.33 and 1.34 has both. Ignored, they would taint all devices."""
    book = DeviceBook()
    book.put_slice(slice_of(device("d0", model="a"), device("d1", model="b")))
    book.put_rule(DeviceTaintRule(Metadata(name="rule"), TaintRuleSpec(selector, taint(key="ruled"))))
    of_class = [DeviceSelector(Expression(f'device.attributes["{DRIVER}"].model == "a"'))]
    book.put_class(DeviceClass(Metadata(name="a"), ClassSpec(of_class)))

    def found():
        return [each.id.name for each in book.on("n", {}).devices if each.taints]

    assert found() == tainted
    book.drop_class("a")
    assert found() == ([] if selector.class_name else tainted)


def test_a_rule_whose_selector_cannot_be_evaluated_is_refused():
    rule = TaintSelector(selectors=[DeviceSelector(Expression("device.colour"))])
    with pytest.raises(InvalidField, match=r"spec\.deviceSelector\.selectors"):
        DeviceBook().put_rule(DeviceTaintRule(spec=TaintRuleSpec(rule, taint())))
