"""Quantities are exact; requests round up and capacities round down."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.kube.quantity import NANO, QuantityError, nanos, offered, requested, schedulable, shown, written


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("100m", Fraction(1, 10)),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1E-3", Fraction(1, 1000)),
        ("2e+2", 200),
        ("128974848", 128974848),
        ("129e6", 129_000_000),
        ("129M", 129_000_000),
        ("123Mi", 123 * 2**20),
        ("1k", 1000),
        ("1Ki", 1024),
        ("7T", 7 * 10**12),
        ("7Ti", 7 * 2**40),
        ("2P", 2 * 10**15),
        ("2Pi", 2 * 2**50),
        ("3Ei", 3 * 2**60),
        ("250u", Fraction(250, 10**6)),
        ("250n", Fraction(250, NANO)),
        ("1.1n", Fraction(2, NANO)),  # finer than a nano: up
        ("1e-12", Fraction(1, NANO)),
        ("100E", 2**63 - 1),  # beyond int64: its largest
        ("1e999999999", 2**63 - 1),
        ("1e-999999999", Fraction(1, NANO)),
    ],
)
def test_value(text, value):
    assert nanos(text) == value * NANO


@pytest.mark.parametrize(
    "text",
    ["", " ", "1 ", "abc", "1.2.3", "1mm", "1Gib", "Gi", "-", ".", "1e", "--1", "1e1.5", "0x10", "١", "1,5", "NaN"],
)
def test_an_invalid_quantity_is_named(text):
    with pytest.raises(QuantityError) as caught:
        nanos(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("resource", "text", "up", "down"),
    [
        ("cpu", "100m", 100, 100),
        ("cpu", "0.1001", 101, 100),  # 100.1 millicores
        ("cpu", "1n", 1, 0),
        ("cpu", "2", 2000, 2000),
        ("memory", "1.5", 2, 1),
        ("memory", "100m", 1, 0),
        ("memory", "1Gi", 2**30, 2**30),
        ("nvidia.com/gpu", "3", 3, 3),
        ("pods", "110", 110, 110),
    ],
)
def test_requests_round_up_and_capacities_round_down(resource, text, up, down):
    assert requested(resource, nanos(text)) == up
    assert offered(resource, nanos(text)) == down


@given(st.integers(0, 10**12), st.integers(0, 9), st.sampled_from(["", "n", "u", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_agrees_with_exact_fractions(digits, places, suffix):
    scale = {"": Fraction(1), "n": Fraction(1, NANO), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
    scale |= {
        "k": Fraction(1000),
        "M": Fraction(10**6),
        "Ki": Fraction(1024),
        "Mi": Fraction(2**20),
        "Gi": Fraction(2**30),
    }
    text = f"{digits:0{places + 1}d}"
    text = f"{text[:-places]}.{text[-places:]}" if places else text
    exact = Fraction(digits, 10**places) * scale[suffix] * NANO
    whole = -(-exact.numerator // exact.denominator)
    assert nanos(text + suffix) == min(whole, (2**63 - 1) * NANO)


@pytest.mark.parametrize(
    ("resource", "counts"),
    [
        ("cpu", True),
        ("memory", True),
        ("pods", True),
        ("ephemeral-storage", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-csi-x", True),
        ("example.com/fpga", True),
        ("storage", False),
        ("foo", False),
    ],
)
def test_resources_of_no_domain_are_not_counted(resource, counts):
    assert schedulable(resource) is counts


@given(st.sampled_from(["cpu", "memory", "hugepages-2Mi", "nvidia.com/gpu"]), st.integers(0, 2**62))
def test_a_written_amount_is_exact(resource, amount):
    assert requested(resource, nanos(written(resource, amount))) == amount


@pytest.mark.parametrize(
    ("resource", "amount", "exact", "readable"),
    [
        ("cpu", 1500, "1500m", "1.5"),
        ("cpu", 2000, "2", "2"),
        ("memory", 3 * 2**29, "1536Mi", "1.5Gi"),
        ("memory", 2**30 + 1, "1073741825", "1Gi"),
        ("memory", 0, "0", "0"),
        ("nvidia.com/gpu", 2048, "2048", "2048"),
    ],
)
def test_amounts_as_texts(resource, amount, exact, readable):
    assert (written(resource, amount), shown(resource, amount)) == (exact, readable)
