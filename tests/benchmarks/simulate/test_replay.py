"""Replays by hand and with the engine, and the checks of a replay."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulate.audit import AuditedSolver
from benchmarks.simulate.baselines import BASELINES, first_fit, least_allocated
from benchmarks.simulate.events import BEGIN_US, rounded_s
from benchmarks.simulate.metrics import summary
from benchmarks.simulate.replay import Settings, replay
from benchmarks.simulate.running import MUST_HOLD, Run, run
from benchmarks.simulate.service import InProcess, RefusedError, Round, ThroughGrpc
from benchmarks.simulate.world import State
from benchmarks.traces.form import FOREVER, SECOND, MachineEvent, Shape, TraceBuilder
from benchmarks.traces.generate import generate, preset
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.events import ClassDefined, PlacementRejected
from firmament_py.policy import registry
from tests.benchmarks.simulate.tiny_traces import tiny
from tests.benchmarks.traces.made import small
from tests.effort import examples

ADD, REMOVE, UPDATE = MachineEvent.ADD, MachineEvent.REMOVE, MachineEvent.UPDATE
FAST = Settings(round_ms=1, bind_ms=1, check_waiting_every=1)


def played(trace, service=None, seconds=100, settings=FAST):
    return replay(trace, service or first_fit(), seconds * SECOND, settings)


def seconds(column):
    return [None if us < 0 else us / SECOND for us in column.tolist()]


# -- with the engine ------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(trace=tiny(), policy=st.sampled_from([info.name for info in registry.available() if not info.error]))
@examples(25)
def test_the_engine_keeps_every_rule_on_random_traces(trace, policy):
    sample, outcome = run(
        trace, Run(policy, Settings(round_ms=7, bind_ms=3, check_waiting_every=1), audit_every=1), SECOND
    )
    assert [check for check in sample.checks if not check.ok] == []
    # nothing is lost or run twice: every task that came is in exactly one state, and ended at most once
    came = outcome.trace.task_us <= SECOND
    assert (outcome.state[came] != State.NOT_YET).all()
    assert ((outcome.end_us >= 0) == (outcome.state == State.DONE)).all()
    durations = outcome.trace.task_duration_us
    done = outcome.state == State.DONE
    assert (outcome.end_us[done] - outcome.first_start_us[done] >= durations[done]).all()
    once = done & (outcome.attempts == 0)
    assert (outcome.end_us[once] - outcome.first_start_us[once] == durations[once]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("google2011", "load-spreading"),
        ("alibaba-gpu", "network-aware"),
        ("google2011", "interference"),
        ("google2011", "quincy"),
    ],
)
def test_grpc_changes_nothing(name, policy):
    trace = generate(preset(name), 10, 0.25, seed=2, load=1.2, labels=True)
    outcomes = []
    for make in (InProcess, ThroughGrpc):
        service = make(policy)
        try:
            outcomes.append(played(trace, service, 900, Settings(expectations=True)))
        finally:
            service.close()
    assert outcomes[0].placements > 20
    for column in ("first_start_us", "end_us", "machine", "attempts"):
        assert (getattr(outcomes[0], column) == getattr(outcomes[1], column)).all()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_figures_and_lines():
    samples = []
    for _ in range(2):
        trace = generate(preset("alibaba-gpu"), 10, 0.25, seed=5, load=1.3, labels=True)
        samples.append(run(trace, Run("load-spreading"), 900 * SECOND)[0])
    assert samples[0] == samples[1]
    assert [check for check in samples[0].checks if not check.ok] == []


@pytest.mark.parametrize("policy", [*BASELINES, "load-spreading"])
def test_with_enough_capacity_all_tasks_end(policy):
    trace = small([(f"j{i % 3}", i / 10, 1, 1, 1) for i in range(12)], ((4, 4), (4, 4)), gangs={"j1": 4})
    _, outcome = run(trace, Run(policy, FAST), 60 * SECOND)
    assert (outcome.state == State.DONE).all()
    assert not outcome.violations


# -- by hand --------------------------------------------------------------------------------------------------


def test_a_round_and_a_bind_take_their_time():
    # submitted at 1 s, the round lasts 0.1 s and the bind 0.05 s; it runs for 2 s
    found = played(small([("a", 1, 2, 1, 1)]), settings=Settings(round_ms=100, bind_ms=50))
    assert seconds(found.first_start_us) == [1.15]
    assert seconds(found.end_us) == [3.15]


def test_tasks_submitted_during_a_round_wait_for_the_next_one():
    found = played(small([("a", 1, 9, 1, 1), ("b", 1.02, 9, 1, 1)]), settings=Settings(round_ms=100, bind_ms=0))
    assert seconds(found.first_start_us) == [1.1, 1.2]
    assert found.rounds == 2


def test_rounds_keep_a_minimum_gap():
    found = played(
        small([("a", 1, 9, 1, 1), ("b", 1.02, 9, 1, 1)]), settings=Settings(round_ms=100, bind_ms=0, gap_ms=500)
    )
    assert seconds(found.first_start_us) == [1.1, 1.6]


def test_tasks_of_a_removed_machine_are_pending_again():
    # starts at 0.002 on the first of two machines, which goes at 3 s; starts again at 3.002 and runs its 5 s
    found = played(small([("a", 0, 5, 4, 4)], ((4, 4), (4, 4)), events=[(3, 0, REMOVE, 0, 0)]))
    assert seconds(found.first_start_us) == [0.002]
    assert seconds(found.end_us) == [8.002]
    assert (found.restarts, found.attempts.tolist()) == (1, [1])


def test_a_bind_to_a_removed_machine_fails():
    found = played(
        small([("a", 1, 5, 4, 4)], ((4, 4), (4, 4)), events=[(1.05, 0, REMOVE, 0, 0)]),
        settings=Settings(round_ms=100, bind_ms=50),
    )
    # the bind at 1.15 fails, the second round ends at 1.25, its bind is at 1.3
    assert seconds(found.first_start_us) == [1.3]
    assert (found.bind_failures, found.restarts) == (1, 0)


def test_a_gang_that_loses_a_member_starts_again_as_a_whole():
    trace = small([("g", 0, 5, 4, 4)] * 2, ((4, 4), (4, 4), (4, 4)), gangs={"g": 2}, events=[(3, 0, REMOVE, 0, 0)])
    found = played(trace)
    assert found.attempts.tolist() == [1, 1]
    assert seconds(found.end_us) == [8.002, 8.002]


def test_utilisation_is_weighted_with_time():
    # 4 cpu for 10 s; 2 are used from 0.002 to 5.002, and 4 more are asked for from 3 s on, which wait until 5.004
    trace = small([("a", 0, 5, 2, 0), ("b", 3, None, 4, 0)], ((4, 4),))
    found = played(trace, seconds=10)
    cpu = found.resources.index("cpu")
    # from 0 on what a round places is held: 5.002 s x 2, then 4.998 s x 4 less the round's own start
    assert found.utilisation[cpu] == pytest.approx((5.002 * 2 + 4.998 * 4) / 40, rel=1e-3)
    assert found.contended == "cpu"
    # contested from 3 s to 5.002 s, when 2 of 4 were used
    assert found.utilisation_contested == pytest.approx(0.5)
    assert found.contested_share == pytest.approx(2.002 / 10, rel=1e-3)


def test_samples_are_of_the_state_at_their_moments():
    # one task of 2 of 4 cpu runs from 0.002 s to 5.002 s; samples at 0, 1, ..., 10 s
    found = played(small([("a", 0, 5, 2, 0)], ((4, 4),)), seconds=10, settings=dataclasses.replace(FAST, samples=10))
    assert seconds(found.samples_us) == list(range(11))
    assert found.sampled["running"].tolist() == [0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert found.sampled["utilisation cpu"].tolist() == [0, *[0.5] * 5, *[0] * 5]


# -- labels in the policies' views ------------------------------------------------------------------------------


def labelled(*labels, links=("1000", "1000")):
    """A trace of tasks of one cpu that stay, one a second, each with its labels; machines with such links (kbps)."""
    builder = TraceBuilder("labelled")
    for i, kbps in enumerate(links):
        builder.event(0, builder.machine(f"m{i}", {"link-kbps": kbps}), ADD, {"cpu": 9})
    for i, of in enumerate(labels):
        builder.task(i * SECOND, builder.job(f"j{i}", 0, of), FOREVER, builder.shape(Shape.of({"cpu": 1})))
    return builder.build()


def test_links_are_never_over_committed_by_a_policy_that_counts_them():
    # 600 of 1,000 kbps each: one a machine, and the third waits; load-spreading does not look at links
    trace = labelled(*[{"bandwidth-kbps": "600"}] * 3)
    assert sorted(played(trace, InProcess("network-aware")).machine.tolist()) == [-1, 0, 1]
    assert (played(trace, InProcess("load-spreading")).machine >= 0).all()


def test_policies_see_interference_classes():
    trace = labelled(
        {"interference-class": "devil"}, {"interference-class": "rabbit"}, {"interference-class": "turtle"}
    )
    machine = played(trace, InProcess("interference")).machine
    assert machine[0] != machine[1]


def test_policies_see_the_location_of_data():
    # machines are filled with the others in the order in which they come; quincy looks where the data is
    where = [{"data-bytes": str(2**30), "data-machines": name} for name in ("m1", "m2", "m0", "m2")]
    trace = labelled(*where, links=("1000",) * 3)
    assert played(trace, InProcess("quincy")).machine.tolist() == [1, 2, 0, 2]
    assert played(trace, InProcess("load-spreading")).machine.tolist() != [1, 2, 0, 2]


def test_quincy_moves_fewer_bytes():
    trace = generate(preset("alibaba-gpu"), 20, 0.25, seed=1, load=0.5, labels=True)
    moved = {name: run(trace, Run(name), 900 * SECOND)[0].metrics for name in ("quincy", "load-spreading")}
    assert moved["quincy"]["bytes_moved"] < 0.8 * moved["load-spreading"]["bytes_moved"]
    assert moved["quincy"]["bytes_across_racks"] <= moved["load-spreading"]["bytes_across_racks"]


class Heard:
    """Places nothing, and records all events."""

    name, counts_links, reserve_after_us = "heard", False, None

    def __init__(self):
        self.events = []

    def apply(self, events):
        self.events += events

    def round(self, now_us):
        return None

    def close(self):
        pass


def test_expected_durations_are_given_only_with_expectations():
    trace = small([("a", 0, 61.234, 1, 1), ("a", 0, 3599.2, 1, 1), ("b", 0, None, 1, 1), ("b", 0, 0.2, 1, 1)])
    for expectations, expected in ((False, [0]), (True, [0, 1, 62, 3600])):
        service = Heard()
        played(trace, service, 1, dataclasses.replace(FAST, check_waiting_every=0, expectations=expectations))
        classes = [event for event in service.events if isinstance(event, ClassDefined)]
        assert sorted(event.expected_us // SECOND for event in classes) == expected


@given(us=st.integers(1, 10**16))
def test_expectations_are_rounded_as_the_bridge_does(us):
    seconds = -(-us // SECOND)
    [found] = rounded_s(np.array([us])).tolist()
    assert len(str(found).rstrip("0")) <= 2
    assert abs(found - seconds) * 20 <= seconds
    # half a unit of the second digit at most, and up from there on
    unit = 10 ** max(len(str(seconds)) - 2, 0)
    assert -unit < 2 * (found - seconds) <= unit
    assert rounded_s(np.array([FOREVER])).tolist() == [0]


def test_policies_see_the_start_of_a_task():
    service = InProcess("load-spreading")
    played(small([("a", 1, None, 1, 1)]), service, settings=Settings(round_ms=100, bind_ms=50))
    tasks = service.engine.state.tasks
    assert tasks.started_us[tasks.rows()].tolist() == [BEGIN_US + 1_150_000]


# -- the checks -----------------------------------------------------------------------------------------------


class Wrong:
    """Places all pending tasks as configured, validly or not."""

    name, counts_links, reserve_after_us = "wrong", False, None

    def __init__(self, where):
        self.where = where

    def apply(self, events):
        pass

    def round(self, now_us):
        where, self.where = self.where, {}
        return Round(np.array(list(where), np.uint64), list(where.values()), 0.0)

    def close(self):
        pass


class Twice(Wrong):
    def round(self, now_us):
        return Round(np.array([1, 1], np.uint64), ["m0", "m1"], 0.0)


PAIR = [("g", 0, None, 3, 1), ("g", 0, None, 3, 1)]


@pytest.mark.parametrize(
    ("service", "gangs", "rule"),
    [
        pytest.param(Wrong({1: "m0", 2: "m0"}), {}, "no machine is over-committed", id="over-committed"),
        pytest.param(Wrong({1: "m0"}), {"g": 2}, "no gang is placed in part", id="half a gang"),
        pytest.param(Wrong({1: "nix"}), {}, "no task is placed on a removed machine", id="no machine"),
        pytest.param(Twice({}), {}, "only pending tasks are placed, each once", id="twice"),
        pytest.param(Wrong({1 + (1 << 40): "m0"}), {}, "no task is placed after it was lost", id="stale"),
        pytest.param(Wrong({1: "m0"}), {}, "no task waits that fits on a machine", id="waste"),
    ],
)
def test_the_checks_find_every_violation(service, gangs, rule):
    found = played(small(PAIR, ((4, 4), (4, 4)), gangs), service, seconds=1)
    assert rule in found.violations
    assert rule in MUST_HOLD


def test_the_checks_find_a_broken_selector():
    trace = generate(preset("google2011"), 200, 1)
    bound = np.flatnonzero([bool(s.selector) for s in trace.shapes])
    task = int(np.flatnonzero(np.isin(trace.task_shape, bound))[0])
    selector = trace.shapes[int(trace.task_shape[task])].selector
    bad = next(m.name for m in trace.machines if not all(r.matches(m.labels) for r in selector))
    found = played(trace, Wrong({task + 1: bad}), seconds=1)
    assert "every placement matches the selector of its task" in found.violations


def test_the_checks_pass_on_sound_placements():
    assert played(small(PAIR, ((4, 4), (4, 4)), {"g": 2}), Wrong({1: "m0", 2: "m1"}), seconds=1).violations == {}


def test_a_scheduler_that_rejects_an_event_ends_the_replay():
    service = InProcess("load-spreading")
    with pytest.raises(RefusedError):
        service.apply([PlacementRejected(5, "nowhere")])


# -- baselines and audit --------------------------------------------------------------------------------------


def test_first_fit_takes_the_first_and_least_allocated_the_emptiest():
    trace = small([("a", 0, None, 1, 1), ("b", 1, None, 1, 1), ("c", 2, None, 1, 1)], ((2, 2), (4, 4)))
    assert played(trace, first_fit()).machine.tolist() == [0, 0, 1]
    # left after it: 1/2 and 3/4, then 1/2 and 2/4: the first of equals, then 0/2 and 2/4
    assert played(trace, least_allocated()).machine.tolist() == [1, 0, 1]


def test_least_allocated_goes_by_priority_first():
    # both wait when the machine comes at 1 s
    trace = small([("low", 0, None, 4, 4, 0), ("high", 0.5, None, 4, 4, 9)], ((1, 1), (4, 4)))
    late = small([("low", 0, None, 4, 4, 0), ("high", 0.5, None, 4, 4, 9)], ((1, 1),), events=[(1, 0, UPDATE, 4, 4)])
    assert played(trace, least_allocated()).machine.tolist() == [1, -1]
    assert played(late, least_allocated()).machine.tolist() == [-1, 0]
    assert played(late, first_fit()).machine.tolist() == [0, -1]


def test_the_audit_finds_no_gap_in_ortools_and_one_in_a_bad_solver():
    trace = generate(preset("google2011"), 10, 1)
    audit = AuditedSolver(every=1)
    played(trace, InProcess("load-spreading", audit), 3600)
    assert audit.audits > 0
    assert audit.gap == 0

    class Bad:
        name = "bad"

        def solve(self, network):
            solution = SOLVERS["or-tools"]().solve(network)
            return dataclasses.replace(solution, cost=solution.cost + 1)

    audit = AuditedSolver(every=1)
    audit._solver = Bad()
    played(trace, InProcess("load-spreading", audit), 3600)
    assert audit.gap > 0


def test_on_no_machines_all_wait():
    builder = TraceBuilder("none")
    builder.task(0, builder.job("j"), SECOND, builder.shape(Shape.of({"cpu": 1})))
    outcome = replay(builder.build(), first_fit(), 10 * SECOND, Settings())
    assert outcome.state.tolist() == [State.WAITING]
    assert summary(outcome)["waiting_tasks"] == 1
