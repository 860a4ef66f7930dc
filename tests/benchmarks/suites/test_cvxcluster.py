"""The suite `cvxcluster` at a small scale."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import Options
from benchmarks.suites import cvxcluster as suite
from tests.effort import THOROUGH
from tests.paths import DOCS


def case_of(name, **sizes):
    (case,) = (case for case in specs.load("cvxcluster").cases if case.name == name)
    return replace(case, sizes={**case.sizes, **sizes})


@pytest.mark.slow
def test_the_suite_is_sound_at_a_small_scale():
    sample = suite.measure(case_of("100480-hosts", limit_s=5), Options(scale=0.003, seed=1))
    assert [check for check in sample.checks if not check.ok] == []
    assert sample.facts["kinds"] == 128
    assert 0 <= sample.metrics["gap_high"] < 0.02
    assert sample.metrics["gap"] == max(sample.metrics["gap_high"], sample.metrics["gap_low"])
    assert sample.metrics["pdlp_error"] < 1e-3
    assert {"racks_glop_s", "racks_pdlp_s", "round_of_racks_pdlp", "relaxation_of_pdlp"} <= set(sample.metrics)


def published(name):
    """The row of a case in docs/benchmarks.md."""
    (row,) = (line for line in (DOCS / "benchmarks.md").read_text().splitlines() if line.startswith(f"| `{name}` | "))
    return row


def row_of(name, sample):
    of = sample.metrics
    shares = (f"{of[gap]:.2%}".replace("%", " %") for gap in ("gap_high", "gap_low"))
    numbers = (sample.facts["requests"], int(of["placed_high"]), int(of["placed_low"]))
    return f"| `{name}` | {' | '.join((*(f'{number:,}' for number in numbers), *shares))} |"


@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="a minute; in the thorough profile")
def test_the_figures_of_thousand_hosts_are_those_that_the_command_prints():
    assert published("1000-hosts") == row_of("1000-hosts", suite.measure(case_of("1000-hosts", limit_s=5), Options()))


@pytest.mark.slow
def test_the_best_is_proved_for_hundreds_of_hosts():
    """The figures of docs/benchmarks.md for 200 hosts; on another processor, where floating-point numbers can end
    otherwise, the search places some more or fewer requests of the lower priority."""
    sample = suite.measure(case_of("200-hosts/exact", limit_s=5, exact_s=600), Options())
    shown, measured = (row.split(" | ") for row in (published("200-hosts/exact"), row_of("200-hosts/exact", sample)))
    assert shown[:3] == measured[:3]
    assert int(measured[3]) == pytest.approx(int(shown[3]), abs=3)
    assert [check for check in sample.checks if not check.ok] == []
    assert sample.metrics["proved"] == 1.0
    assert sample.facts["best"] == [271, 131]


def test_placements_that_break_a_constraint_fail_the_sample(monkeypatch):
    real = suite._round

    def on_one_host(instance, policy):
        cls, host, stats = real(instance, policy)
        return cls, np.zeros_like(host), stats

    monkeypatch.setattr(suite, "_round", on_one_host)
    sample = suite.measure(case_of("1000-hosts", limit_s=1, least_cores=32), Options(scale=0.1))
    assert [check.detail for check in sample.checks if not check.ok] == ["a host is over-committed"]
