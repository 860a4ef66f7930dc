"""Pods that were refused are left out for a growing time, and the engine learns both."""

from poseidon_py.preempt.refusals import Refusals
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import pod
from tests.poseidon_py.preempt.bench import Timer


class Bench:
    """A bound pod `v`."""

    def __init__(self) -> None:
        self.store = Store(["poseidon"])
        self.timers: list[Timer] = []
        self.left_out: set[str] = set()
        self.refusals = Refusals(self.store, self._mark, call_later=self._later, rng=lambda: 1.0)
        self.store.observe_pod(pod("v", node="n"))
        self.known = self.store.pods["uid-v"]
        self.known.dirty = False

    def _mark(self, known, refused):
        (self.left_out.add if refused else self.left_out.discard)(known.name)

    def _later(self, seconds, call):
        self.timers.append(Timer(seconds, call))
        return self.timers[-1]


def test_a_refused_pod_is_left_out_until_its_timer_ends():
    bench = Bench()
    bench.refusals.add(bench.known)
    assert (bench.left_out, bench.known.dirty) == ({"v"}, True)
    bench.known.dirty = False
    bench.timers[0].call()
    assert (bench.left_out, bench.known.dirty) == (set(), True)


def test_the_time_doubles_up_to_ten_minutes():
    bench = Bench()
    for _ in range(7):
        bench.refusals.add(bench.known)
    assert [timer.seconds for timer in bench.timers] == [30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0]
    assert [timer.is_cancelled for timer in bench.timers] == [True] * 6 + [False]


def test_a_pod_that_is_gone_has_no_timer():
    bench = Bench()
    bench.refusals.add(bench.known)
    bench.store.remove_pod("uid-v")
    bench.refusals.forget("uid-v")
    assert bench.timers[0].is_cancelled
    bench.refusals.add(bench.known)
    assert len(bench.timers) == 1


def test_no_timer_is_left_at_the_end():
    bench = Bench()
    bench.refusals.add(bench.known)
    bench.refusals.stop()
    assert bench.timers[0].is_cancelled
