"""Reports on pods reach a listener a moment later, in order, ends and deletions at once."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.kube.objects import Metadata, Pod, PodStatus
from poseidon_py.state.deferred import DELAY, PAUSE, PORTION, STEP, DeferredListener, ReportClock

ANNOUNCED = b'{"poseidon.io/preemption-state":"WillEvicted"}'


class Bench:
    """A listener that notes what it is told, and timers that fire when told to."""

    def __init__(self) -> None:
        self.received: list[object] = []
        self.reports: list[Pod] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.time = 100.0
        self.clock = ReportClock(lambda: self.time)
        self.deferred = DeferredListener(self, self.clock, lambda seconds, due: self.timers.append((seconds, due)))

    def observed(self, pod: Pod) -> None:
        if pod.metadata.name == "bad":
            raise RuntimeError("this pod")
        self.received.append(pod.metadata.name)
        self.reports.append(pod)

    def removed(self, pod: Pod) -> None:
        self.received.append(("removed", pod.metadata.name))

    def listed(self, uids) -> None:
        self.received.append(("listed", *sorted(uids)))

    def fire(self) -> float:
        """The delay of the only timer."""
        ((seconds, due),) = self.timers
        self.timers.clear()
        due()
        return seconds


def pod(name: str, phase: str = "Pending", **metadata) -> Pod:
    return Pod(Metadata(name=name, uid=f"uid-{name}", **metadata), status=PodStatus(phase=phase))


def test_reports_wait_and_keep_their_order():
    bench = Bench()
    for name, phase in (("a", "Pending"), ("b", "Running"), ("c", "")):
        bench.deferred.observed(pod(name, phase))
    assert bench.received == []
    bench.time += DELAY
    assert bench.fire() == DELAY
    assert bench.received == ["a", "b", "c"]
    assert bench.timers == []


def test_many_are_passed_on_in_portions():
    bench = Bench()
    for number in range(2 * PORTION + 1):
        bench.deferred.observed(pod(str(number), ""))
    bench.time += DELAY
    assert [bench.fire(), len(bench.received)] == [DELAY, PORTION]
    assert [bench.fire(), len(bench.received)] == [PAUSE, 2 * PORTION]
    assert [bench.fire(), len(bench.received)] == [PAUSE, 2 * PORTION + 1]
    assert bench.timers == []


def test_the_more_wait_the_larger_the_portions():
    bench = Bench()
    for number in range(100 * PORTION):
        bench.deferred.observed(pod(str(number)))
    bench.time += DELAY
    bench.fire()
    assert len(bench.received) == 10 * PORTION


@pytest.mark.parametrize(
    ("act", "last"),
    [
        pytest.param(lambda deferred: deferred.observed(pod("b", "Succeeded")), "b", id="succeeded"),
        pytest.param(lambda deferred: deferred.observed(pod("b", "Failed")), "b", id="failed"),
        pytest.param(lambda deferred: deferred.observed(pod("b", deleting="2026-01-01T00:00:00Z")), "b", id="deleting"),
        pytest.param(lambda deferred: deferred.removed(pod("b")), ("removed", "b"), id="removed"),
        pytest.param(lambda deferred: deferred.listed({"x"}), ("listed", "x"), id="listed"),
    ],
)
def test_ends_and_deletions_are_passed_on_at_once_after_what_waits(act, last):
    bench = Bench()
    bench.deferred.observed(pod("a"))
    act(bench.deferred)
    assert bench.received == ["a", last]
    bench.fire()
    assert bench.received == ["a", last]


def test_the_clock_shows_the_time_of_the_report_that_is_passed_on():
    bench = Bench()
    bench.deferred.observed(pod("a"))
    bench.time = 101.0
    bench.deferred.observed(pod("bad"))
    bench.time = 102.0
    seen: list[float] = []
    received = bench.observed
    bench.observed = lambda pod: seen.append(bench.clock()) or received(pod)  # type: ignore[func-returns-value,method-assign]
    bench.time = 101.0 + DELAY
    bench.fire()
    assert (seen, bench.clock()) == ([100.0, 101.0], 101.0 + DELAY)
    bench.time = 103.0
    bench.deferred.observed(pod("b", "Failed"))
    assert seen[2:] == [103.0]


def test_the_time_of_a_report_that_replaces_another_is_its_own():
    bench = Bench()
    seen: list[float] = []
    bench.observed = lambda pod: seen.append(bench.clock())  # type: ignore[method-assign]
    bench.deferred.observed(pod("a"))
    bench.time += DELAY / 2
    bench.deferred.observed(pod("a"))
    bench.time += DELAY / 2
    assert bench.fire() == DELAY
    assert seen == []  # the one report that waits is not due
    bench.time += DELAY / 2
    assert bench.fire() == DELAY / 2
    assert seen == [100.0 + DELAY / 2]


def test_a_report_that_replaces_another_follows_those_before_it():
    bench = Bench()
    for name in "aba":
        bench.deferred.observed(pod(name))
    bench.deferred.flush()
    assert bench.received == ["b", "a"]


def test_what_follows_soon_is_passed_on_together():
    bench = Bench()
    for name in "abc":
        bench.deferred.observed(pod(name))
        bench.time += 0.001
    bench.time = 100.0 + DELAY
    bench.fire()
    assert bench.received == ["a"]
    assert bench.fire() == STEP


def test_a_clock_that_is_set_back_delays_no_report_for_long():
    bench = Bench()
    bench.deferred.observed(pod("a"))
    bench.time -= 3600
    bench.fire()
    assert bench.fire() == DELAY


@pytest.mark.parametrize(
    "between",
    [
        pytest.param({"annotations": msgspec.Raw(ANNOUNCED)}, id="announcement"),
        pytest.param({"phase": "Unknown"}, id="phase"),
    ],
)
def test_what_was_so_for_a_moment_is_reported(between):
    bench = Bench()
    usual = {"phase": "Running"}
    for fields in (usual, usual | between, usual):
        bench.deferred.observed(pod("a", **fields))
    bench.deferred.flush()
    assert bench.received == ["a", "a", "a"]


def test_a_report_that_the_listener_fails_on_loses_no_other():
    bench = Bench()
    for name in ("a", "bad", "c"):
        bench.deferred.observed(pod(name))
    bench.time += DELAY
    bench.fire()
    assert bench.received == ["a", "c"]


STEPS = st.tuples(
    st.sampled_from("ab"),
    st.sampled_from(["Pending", "Pending", "Running", "Failed"]),
    st.sampled_from([b"", b"", ANNOUNCED]),
    st.sampled_from([0.0, DELAY / 2, DELAY]),
)


@given(st.lists(STEPS))
def test_reports_are_passed_on_in_order_and_the_newer_of_two_like_ones_stands_for_both(steps):
    bench = Bench()
    expected: list[Pod] = []
    waiting: list[tuple[float, Pod]] = []

    def pass_on(until: float) -> None:
        expected.extend(report for at, report in waiting if at <= until)
        waiting[:] = [each for each in waiting if each[0] > until]

    for name, phase, annotations, seconds in steps:
        report = pod(name, phase, annotations=msgspec.Raw(annotations))
        earlier = [each for _, each in waiting if each.metadata.name == name]
        if any((each.status.phase, bytes(each.metadata.annotations)) != (phase, annotations) for each in earlier):
            pass_on(bench.time)
        waiting = [each for each in waiting if each[1].metadata.name != name] + [(bench.time, report)]
        bench.deferred.observed(report)
        if phase == "Failed":
            pass_on(bench.time)
        assert [*map(id, bench.reports)] == [*map(id, expected)]
        bench.time += seconds
        if bench.timers:
            bench.fire()
            pass_on(bench.time - DELAY)
        assert [*map(id, bench.reports)] == [*map(id, expected)]
    bench.deferred.flush()
    pass_on(bench.time)
    assert [*map(id, bench.reports)] == [*map(id, expected)]
