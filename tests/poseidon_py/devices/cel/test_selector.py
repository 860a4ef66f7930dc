"""The contract of compile_selector and Selector, and the bounds that keep one expression from stopping the others."""

import inspect
import sys

import pytest

from poseidon_py.devices.cel.selector import SelectedDevice, SelectorError, Version, compile_selector
from tests.poseidon_py.devices.cel.outcomes import outcome

GPU = SelectedDevice(
    driver="gpu.example.com",
    attributes={
        "type": "gpu",
        "index": 3,
        "ready": True,
        "driverVersion": Version("535.104.5"),
        "rails": ("a", "b"),
        "net.example.com/rail": "a",
    },
    capacity={"memory": "40Gi", "other.example.com/slots": "7"},
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.attributes["gpu.example.com"].type == "gpu"', True),
        ('device.attributes["net.example.com"].rail in device.attributes["gpu.example.com"].rails', True),
        ('device.attributes["gpu.example.com"].driverVersion.compareTo(semver("535.0.0")) > 0', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0', False),
        ('device.capacity["other.example.com"].slots == quantity("7")', True),
        ('has(device.attributes["nobody.example.com"].type)', False),
        ('"nobody.example.com" in device.attributes', False),
        ('device.attributes["nobody.example.com"] == {}', True),
        ("device.allowMultipleAllocations", False),
    ],
)
def test_devices_are_seen_as_kubernetes_shows_them(expression, expected):
    assert compile_selector(expression).matches(GPU) is expected


@pytest.mark.parametrize(
    ("expression", "message", "position"),
    [
        ('device.attributes["gpu.example.com"].power', "no such key: power", 36),
        ('device.attributes["gpu.example.com"].driverVersion == "535.104.5"', "no such overload", 51),
        ('device.attributes["gpu.example.com"].index', "the result is not bool", None),
        ('true && device.attributes["gpu.example.com"].type > 1', "no such overload: _>_(string, int)", 50),
    ],
)
def test_an_error_of_the_evaluation_names_what_is_missing_and_where(expression, message, position):
    selector = compile_selector(expression)
    with pytest.raises(SelectorError) as caught:
        selector.matches(GPU)
    assert (caught.value.message, caught.value.position) == (message, position)


@pytest.mark.parametrize(
    ("expression", "message", "position"),
    [
        ("", "Syntax error: the end of the expression is not expected here", 0),
        ("1 +", "Syntax error: the end of the expression is not expected here", 3),
        ("true # false", "Syntax error: token recognition error at '#'", 5),
        ("device.vendor", "undefined field 'vendor'", 6),
        ('device.driver == "a" && node == "b"', "undeclared reference to 'node'", 24),
        ("1", "must evaluate to bool or the unknown type, not int", None),
        ('"a".matches("(")', "error parsing regexp: missing ): (", 12),
        ('"a".matches("(?=a)")', "error parsing regexp: invalid perl operator: (?=", 12),
        ("google.protobuf.BoolValue{value: true}", "messages cannot be constructed in a selector", 25),
    ],
)
def test_a_refusal_names_what_is_wrong_and_where(expression, message, position):
    with pytest.raises(SelectorError) as caught:
        compile_selector(expression)
    assert (caught.value.message, caught.value.position) == (message, position)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (SelectedDevice("d", {"version": Version("1.2")}), "attribute version: '1.2' is not a semantic version"),
        (SelectedDevice("d", {}, {"memory": "40GB"}), "capacity memory: '40GB' is not a quantity"),
    ],
)
def test_a_version_or_quantity_that_is_none_is_an_error_of_the_device(device, message):
    with pytest.raises(SelectorError) as caught:
        compile_selector("true").matches(device)
    assert caught.value.message == message


def test_what_exhausts_the_stack_of_its_caller_is_an_error():
    selector = compile_selector("1" + " + 1" * 150 + " > 0")
    assert selector.matches(GPU)

    def below(levels):
        return below(levels - 1) if levels else selector.matches(GPU)

    with pytest.raises(SelectorError, match="nested too deeply"):
        below(sys.getrecursionlimit() - len(inspect.stack()) - 100)


TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"


VERSIONS = SelectedDevice("d", {"version": Version("1.2.3"), "versions": (Version("1.0.0"), Version("2.0.0"))})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.attributes["d"].version == "1.2.3"', "no such overload"),
        ('device.attributes["d"].version != "1.2.3"', True),
        ('"1.2.3" == device.attributes["d"].version', False),
        ('device.attributes["d"].versions == ["a", "b"]', True),
        ('["a", "b"] == device.attributes["d"].versions', False),
        ('device.attributes["d"].versions == ["a"]', False),
        ('quantity("2") == quantity("1").add(1)', "no such overload"),
        ('quantity("1").add(1) == quantity("2")', True),
        ('quantity("1000m").isInteger() || quantity("1.0").isInteger()', False),
        ('"%.2e".format([1.5]) == "1.500000×10⁰⁰"', True),
        ("1 / 0 in []", False),
    ],
)
def test_what_upstream_does_and_nobody_expects(expression, expected):
    """The table of docs/devices.md."""
    found, message = outcome(expression, VERSIONS)
    assert expected in message if isinstance(expected, str) else found is expected


def nested(template, start, times):
    for _ in range(times):
        start = template.replace("@", start)
    return start


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    [
        f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, {TEN}.all(e, {TEN}.all(f, {TEN}.all(g, a > 0)))))))",
        "lists.range(900000).map(x, x).size() > 0",
        "lists.range(9000000).size() > 0",
        # what doubles fifty times
        nested("cel.bind(a, @, a + a)", '"x"', 50) + ' == ""',
        nested("cel.bind(a, @, a + a)", "[1]", 50) + " == []",
        nested("cel.bind(a, @, dyn([a, a]))", "[1]", 25) + " == []",
        nested("@.replace('x', 'xxxxxxxxxxxxxxxx')", "'x'", 30) + " == ''",
        nested("@.replace('', 'x')", "'x'", 50) + " == ''",
        nested("[@, @].join(',')", "'x'", 7) + ".matches('x') && cel.bind(s, lists.range(1000).map(i, 'x').join(',')"
        ", lists.range(900).map(i, s).join(',').matches('(x,)*y'))",
        "'%.999999999f'.format([1.0]) == ''",
        "cel.bind(b, lists.range(400000), lists.range(9000).all(i, (b + b).size() > 0))",
        "cel.bind(b, lists.range(50000).map(i, ''), lists.range(9000).all(i, b.join() == ''))",
        "lists.range(40000).all(i, !'x'.matches('(a{500}){2}' + string(i)))",
        "cel.bind(s, lists.range(1000).map(i, 'xxxxxxxxxx').join(), lists.range(40000).all(i, '%s'.format([s]) == s))",
        nested("cel.bind(a, @, dyn([optional.of(a), optional.of(a)]))", "[1]", 25) + " == []",
        "lists.range(9000).all(i, '%.99999f'.format([1.0]) != '')",
        "cel.bind(u, url('http://h/?' + lists.range(9000).map(i, 'abcdefghijk=1').join('&')), "
        "lists.range(9000).all(i, u.getQuery().size() == 1))",
        "lists.range(9000).all(i, !'x'.matches(string(i) + lists.range(900).map(i, 'abcdefghijk').join('')))",
        "lists.range(3000).map(i, [i]).distinct().size() > 0",
        "sets.contains(lists.range(3000), lists.range(3000))",
    ],
)
def test_what_would_take_long_is_stopped(expression):
    selector = compile_selector(expression)
    with pytest.raises(SelectorError, match=r"cost limit exceeded|a value of the expression exceeds 1000000"):
        selector.matches(GPU)


def test_what_is_stopped_is_not_absorbed_by_another_operand():
    selector = compile_selector("lists.range(9000000).size() > 0 || true")
    with pytest.raises(SelectorError, match="cost limit exceeded"):
        selector.matches(GPU)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 1000 + "true" + ")" * 1000,
        "!" * 1000 + "true",
        "1" + " + 1" * 2000 + " > 0",
        "true" + " && true" * 1000,
        nested("[@]", "1", 500) + " == []",
        nested("true ? @ : false", "true", 500),
        "device" + ".a" * 3000,
        nested("@.map(x, [x])", "[1]", 300) + ".size() > 0",
        nested("optional.of(1).optMap(x, @).orValue(1)", "1", 100) + " == 1",
    ],
)
def test_deep_expressions_are_refused_or_evaluated_but_do_not_exhaust_the_stack(expression):
    try:
        selector = compile_selector(expression)
    except SelectorError:
        return
    assert selector.matches(GPU) in (True, False)


def test_an_expression_longer_than_the_api_server_accepts_is_refused():
    with pytest.raises(SelectorError, match="longer than 10240 bytes"):
        compile_selector("true" + " " * 10240)
