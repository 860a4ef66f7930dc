"""Instances with many types of hosts, their check, their relaxations and the exact program."""

import itertools

import numpy as np
import pytest

from benchmarks.loads.cvxcluster.catalogue import HIGH, HOST, HOST_TYPES, LOW, RACK
from benchmarks.loads.cvxcluster.exact import most_placed, patterns
from benchmarks.loads.cvxcluster.instance import Instance
from benchmarks.loads.cvxcluster.relaxation import relaxation, solve


def bound_of(program):
    found = program.solve()
    assert found is not None
    return found.bound


def kind(instance, name):
    (number,) = (c for c, one in enumerate(instance.kinds) if one.name == name)
    return number


@pytest.fixture(scope="module")
def small():
    return Instance.random(3, 400, 1.15)


def test_an_instance_has_every_type_and_more_requests_than_fit(small):
    assert set(small.type_of.tolist()) == set(range(len(HOST_TYPES)))
    assert len(small.kinds) >= 100
    asked, offered = small.count @ small.requests, small.offered[small.type_of].sum(axis=0)
    assert (asked > offered)[[0, 1, 4]].all(), "cpu, memory and GPUs"
    assert small.suitable.any(axis=1).all()
    assert {one.domain for one in small.kinds} == {"", HOST, RACK}


def test_an_instance_follows_from_its_seed():
    one, same, other = (Instance.random(seed, 100, 1.1) for seed in (5, 5, 6))
    assert str(one.events()) == str(same.events())
    assert str(one.events()) != str(other.events())


@pytest.mark.parametrize(
    ("placed", "problem"),
    [
        ([("D64-high", 0, 0), ("a100-8x96-high", 11, 0)], ""),
        ([("service-0", 0, 0), ("service-0", 0, 1), ("service-3", 0, 0)], ""),
        ([("D64-high", 0, 0), ("service-0", 0, 0)], "a host is over-committed"),
        ([("a100-1x12-high", 9, 0)], "a request is on a host that it does not select"),
        ([("M128-high", 5, n) for n in range(8)], "a request is placed twice"),
        ([("service-0", 0, 0), ("service-0", 0, 0)], "two of service-0 share a kubernetes.io/hostname"),
        ([("service-3", 0, 0), ("service-3", 0, 1)], "two of service-3 share a rack"),
    ],
)
def test_violations_are_found(small, placed, problem):
    """placed: kinds, and the type and number of a host; the first hosts of a type are in one rack."""
    cls = np.array([kind(small, name) for name, _, _ in placed])
    host = np.array([np.flatnonzero(small.type_of == k)[n] for _, k, n in placed])
    small.count[kind(small, "M128-high")] = 7
    assert small.violations(cls, host) == problem


@pytest.mark.parametrize("level", [HIGH, LOW])
def test_solvers_agree_on_the_bound_of_types_and_of_racks(small, level):
    """Hosts of a type are alike and empty, so racks make no difference but for services over racks."""
    program = relaxation(small, level, 0)
    bound = bound_of(program)
    by_rack = relaxation(small, level, 0, by_rack=True)
    assert len(by_rack.upper) > len(program.upper)
    assert solve(program, "glop", 60).objective == pytest.approx(bound, rel=1e-6)
    assert solve(program, "pdlp", 60).objective == pytest.approx(bound, rel=1e-4)
    assert bound_of(by_rack) <= bound * (1 + 1e-9)


def test_the_bound_of_low_priority_falls_with_what_is_placed_of_high(small):
    high = int(bound_of(relaxation(small, HIGH)))
    bounds = [bound_of(relaxation(small, LOW, floor)) for floor in (0, high // 2, high)]
    assert bounds[0] * (1 + 1e-9) >= bounds[1] > bounds[2] > 0


def test_patterns_are_all_to_which_nothing_can_be_added():
    instance = Instance.random(0, 100, 1.15, 32)
    kinds = [kind(instance, name) for name in ("D32-high", "E32-high", "F48-high", "service-2")]
    for k in (0, 3, 6):
        rows = []
        for numbers in itertools.product(range(5), repeat=3):
            for service in (0, 1):
                row = np.array([*numbers, service])
                if (row @ instance.requests[kinds] <= instance.offered[k]).all():
                    rows.append(row)
        maximal = {tuple(a.tolist()) for a in rows if not any((b >= a).all() and (b > a).any() for b in rows)}
        assert set(patterns(instance, k, kinds)) == maximal


def test_the_exact_program_finds_the_most_of_high_priority_then_of_low():
    """One host of 128 cores, 50 Gbit/s. Two of 32 cores fit; beside one of 64, with 25.6 Gbit/s, one with 12.8."""
    instance = Instance.random(0, 1, 1.0, 32)
    d64, low = kind(instance, "D64-high"), kind(instance, "D32-low")
    instance.count[:] = 0
    instance.count[low] = 2
    assert most_placed(instance, 10) == ([0, 2], True)
    instance.count[d64] = 1
    assert most_placed(instance, 10) == ([1, 1], True)
    with pytest.raises(ValueError, match="domain 'rack'"):
        most_placed(Instance.random(0, 100, 1.0), 1)
