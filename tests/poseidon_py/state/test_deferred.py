"""Reports on pods reach a listener a moment later, in order, the newest of each; ends and deletions at once."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.kube.objects import Metadata, Pod, PodStatus
from poseidon_py.state.deferred import DELAY, PAUSE, PORTION, DeferredListener, ReportClock


class Bench:
    """A listener that notes what it is told, and timers that fire when told to."""

    def __init__(self) -> None:
        self.received: list[object] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.time = 100.0
        self.clock = ReportClock(lambda: self.time)
        self.deferred = DeferredListener(self, self.clock, lambda seconds, due: self.timers.append((seconds, due)))

    def observed(self, pod: Pod) -> None:
        if pod.metadata.name == "bad":
            raise RuntimeError("this pod")
        self.received.append(pod.metadata.name)

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
    assert bench.fire() == DELAY
    assert bench.received == ["a", "b", "c"]
    assert bench.timers == []


def test_many_are_passed_on_in_portions():
    bench = Bench()
    for number in range(2 * PORTION + 1):
        bench.deferred.observed(pod(str(number), ""))
    assert [bench.fire(), len(bench.received)] == [DELAY, PORTION]
    assert [bench.fire(), len(bench.received)] == [PAUSE, 2 * PORTION]
    assert [bench.fire(), len(bench.received)] == [PAUSE, 2 * PORTION + 1]
    assert bench.timers == []


def test_the_more_wait_the_larger_the_portions():
    bench = Bench()
    for number in range(100 * PORTION):
        bench.deferred.observed(pod(str(number)))
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
    bench.fire()
    assert (seen, bench.clock()) == ([100.0, 101.0], 102.0)
    bench.deferred.observed(pod("b", "Failed"))
    assert seen[2:] == [102.0]


def test_the_time_of_a_report_that_replaces_another_is_its_own():
    bench = Bench()
    seen: list[float] = []
    bench.observed = lambda pod: seen.append(bench.clock())  # type: ignore[method-assign]
    bench.deferred.observed(pod("a"))
    bench.time = 101.0
    bench.deferred.observed(pod("a", "Running"))
    bench.fire()
    assert seen == [101.0]


def test_a_report_that_the_listener_fails_on_loses_no_other():
    bench = Bench()
    for name in ("a", "bad", "c"):
        bench.deferred.observed(pod(name))
    bench.fire()
    assert bench.received == ["a", "c"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["Pending", "", "Running", "Failed", "fire"]))))
def test_of_each_pod_the_newest_report_is_passed_on_in_the_order_of_reports(steps):
    bench = Bench()
    passed: list[Pod] = []
    bench.observed = passed.append  # type: ignore[method-assign]
    expected: list[Pod] = []
    waiting: list[Pod] = []
    for name, phase in steps:
        if phase != "fire":
            report = pod(name, phase)
            waiting = [each for each in waiting if each.metadata.uid != report.metadata.uid] + [report]
            bench.deferred.observed(report)
        elif bench.timers:
            bench.fire()
        if phase in ("fire", "Failed"):
            expected += waiting
            waiting = []
        assert [*map(id, passed)] == [*map(id, expected)]
    bench.deferred.flush()
    assert [*map(id, passed)] == [*map(id, expected + waiting)]
