"""Quantities, node shapes, run times."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from benchmarks.cluster import NodeShape, RunTime
from benchmarks.cluster.store.quantities import parse, show, units


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100m", Fraction(1, 10)),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("128974848", 128974848),
        ("2k", 2000),
        (".5", Fraction(1, 2)),
        ("-1", -1),
        (4, 4),
        (0.5, Fraction(1, 2)),
        ("1E", 10**18),
        ("1E2", 100),
        ("123456789012345678901234567890123n", Fraction(123456789012345678901234567890123, 10**9)),
        ("1e-3", Fraction(1, 1000)),
    ],
)
def test_quantities_are_exact(text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    "text", ["", "1 Gi", "abc", "1e9999", "1Kib", "0x10", "--1", "1mm", "1K", "1_0", "NaN", "9" * 101]
)
def test_an_invalid_quantity_is_rejected(text):
    with pytest.raises(ValueError, match="quantities"):
        parse(text)


def test_units_round_up_and_cpu_counts_in_milli():
    assert units("cpu", "0.0001") == 1
    assert units("cpu", "2") == 2000
    assert units("memory", "1Ki") == 1024
    assert (show("cpu", 1500), show("cpu", 2000), show("memory", 2048)) == ("1500m", "2", "2Ki")


def test_shapes_and_run_times_from_text():
    shape = NodeShape.parse("cpu=16,mem=64Gi,gpu=4,weight=2,label:pool=a")
    assert (shape.cpu, shape.memory, shape.weight) == ("16", "64Gi", 2)
    assert shape.extended == {"nvidia.com/gpu": "4"}
    assert shape.labels == {"pool": "a"}
    rng = random.Random(1)
    assert RunTime.parse("forever").draw(rng) is None
    assert RunTime.parse("30").draw(rng) == 30
    assert 10 <= (RunTime.parse("uniform:10,20").draw(rng) or 0) <= 20
    assert (RunTime.parse("lognormal:10,0.5").draw(rng) or 0) > 0
    assert (RunTime.parse("exponential:10").draw(rng) or 0) > 0


@pytest.mark.parametrize("text", ["cpu", "cpu=-1", "cpus=4", "cpu=x"])
def test_bad_shapes_are_refused(text):
    with pytest.raises(ValueError, match=r"."):
        NodeShape.parse(text)


@pytest.mark.parametrize("text", ["never", "uniform:1", "fixed:1,2", "-3"])
def test_bad_run_times_are_refused(text):
    with pytest.raises(ValueError, match="run time"):
        RunTime.parse(text)
