"""Reports on pending pods reach a listener a moment later, in order, all others at once and after them."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.kube.objects import Metadata, Pod, PodStatus
from poseidon_py.state.deferred import DELAY, PAUSE, PORTION, DeferredListener


class Bench:
    """A listener that notes what it is told, and timers that fire when told to."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.deferred = DeferredListener(self, lambda seconds, due: self.timers.append((seconds, due)))

    def observed(self, pod: Pod) -> None:
        if pod.metadata.name == "bad":
            raise RuntimeError("this pod")
        self.told.append(pod.metadata.name)

    def removed(self, pod: Pod) -> None:
        self.told.append(("removed", pod.metadata.name))

    def listed(self, uids) -> None:
        self.told.append(("listed", *sorted(uids)))

    def fire(self) -> float:
        """The delay of the only timer."""
        ((seconds, due),) = self.timers
        self.timers.clear()
        due()
        return seconds


def pod(name: str, phase: str = "Pending", **metadata) -> Pod:
    return Pod(Metadata(name=name, **metadata), status=PodStatus(phase=phase))


def test_pending_pods_wait_and_keep_their_order():
    bench = Bench()
    for name in "abc":
        bench.deferred.observed(pod(name))
    assert bench.told == []
    assert bench.fire() == DELAY
    assert bench.told == ["a", "b", "c"]
    assert bench.timers == []


def test_many_are_passed_on_in_portions():
    bench = Bench()
    for number in range(2 * PORTION + 1):
        bench.deferred.observed(pod(str(number), ""))
    assert [bench.fire(), len(bench.told)] == [DELAY, PORTION]
    assert [bench.fire(), len(bench.told)] == [PAUSE, 2 * PORTION]
    assert [bench.fire(), len(bench.told)] == [PAUSE, 2 * PORTION + 1]
    assert bench.timers == []


def test_the_more_wait_the_larger_the_portions():
    bench = Bench()
    for number in range(100 * PORTION):
        bench.deferred.observed(pod(str(number)))
    bench.fire()
    assert len(bench.told) == 10 * PORTION


@pytest.mark.parametrize(
    ("act", "last"),
    [
        pytest.param(lambda deferred: deferred.observed(pod("b", "Running")), "b", id="running"),
        pytest.param(lambda deferred: deferred.observed(pod("b", "Failed")), "b", id="ended"),
        pytest.param(lambda deferred: deferred.observed(pod("b", deleting="2026-01-01T00:00:00Z")), "b", id="deleting"),
        pytest.param(lambda deferred: deferred.removed(pod("b")), ("removed", "b"), id="removed"),
        pytest.param(lambda deferred: deferred.listed({"x"}), ("listed", "x"), id="listed"),
    ],
)
def test_all_else_is_passed_on_at_once_after_what_waits(act, last):
    bench = Bench()
    bench.deferred.observed(pod("a"))
    act(bench.deferred)
    assert bench.told == ["a", last]
    bench.fire()
    assert bench.told == ["a", last]


def test_a_report_that_the_listener_fails_on_loses_no_other():
    bench = Bench()
    for name in ("a", "bad", "c"):
        bench.deferred.observed(pod(name))
    bench.fire()
    assert bench.told == ["a", "c"]


@given(st.lists(st.sampled_from(["Pending", "", "Running", "Failed", "fire"])))
def test_nothing_is_lost_or_overtaken(steps):
    bench = Bench()
    for number, step in enumerate(steps):
        if step != "fire":
            bench.deferred.observed(pod(str(number), step))
        elif bench.timers:
            bench.fire()
    bench.deferred.flush()
    assert bench.told == [str(number) for number, step in enumerate(steps) if step != "fire"]
