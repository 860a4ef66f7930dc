"""All transitions of a pod's states."""

import pytest

from poseidon_py.state.pod_lifecycle import TRANSITIONS, PodEvent, PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import pod

S, E = PodState, PodEvent
_WAY = {
    S.GONE: (),
    S.WAITING: (E.OBSERVE_WAITING,),
    S.ASSUMED: (E.OBSERVE_WAITING, E.ASSUME),
    S.BOUND: (E.OBSERVE_BOUND,),
}
LEGAL = {
    S.GONE: {E.OBSERVE_WAITING: S.WAITING, E.OBSERVE_BOUND: S.BOUND},
    S.WAITING: {E.OBSERVE_WAITING: S.WAITING, E.OBSERVE_BOUND: S.BOUND, E.ASSUME: S.ASSUMED, E.REMOVE: S.GONE},
    S.ASSUMED: {E.OBSERVE_WAITING: S.ASSUMED, E.OBSERVE_BOUND: S.BOUND, E.RELEASE: S.WAITING, E.REMOVE: S.GONE},
    S.BOUND: {E.OBSERVE_WAITING: S.WAITING, E.OBSERVE_BOUND: S.BOUND, E.REMOVE: S.GONE},
}
"""Written down a second time, by state."""


def record_in(state: PodState) -> PodRecord:
    record = PodRecord(pod("a"), 1, 0.0)
    for event in _WAY[state]:
        assert record.advance(event, "" if event is E.OBSERVE_WAITING else "n")
    assert record.state is state
    return record


@pytest.mark.parametrize("event", PodEvent)
@pytest.mark.parametrize("state", PodState)
def test_every_pair_follows_the_table_or_is_rejected_without_a_change(state, event):
    record = record_in(state)
    before = (record.state, record.node, record.assumed)
    node = "" if event is E.OBSERVE_WAITING else "m"
    target = LEGAL[state].get(event)
    assert record.advance(event, node) is (target is not None)
    if target is None:
        assert (record.state, record.node, record.assumed) == before
        assert (state, event) not in TRANSITIONS
        return
    assert record.state is target
    assert bool(record.assumed) is (target is S.ASSUMED)
    if target is not S.GONE:
        assert bool(record.node) is (target is S.BOUND)


def test_each_state_is_reached_and_left():
    legal = [(before, after) for (before, _), after in TRANSITIONS.items() if before is not after]
    assert {after for _, after in legal} == {before for before, _ in legal} == set(PodState)


def test_rejected_events_are_counted_and_change_nothing():
    store = Store(["poseidon"])
    store.observe_pod(pod("a", node="n"))
    known = store.pods["uid-a"]
    assert not store.assume(known, "m")
    assert not store.release(known)
    assert (known.state, known.node, known.assumed) == (S.BOUND, "n", "")
    refused = {
        (sample.labels["state"], sample.labels["event"]): sample.value
        for metric in store.metrics.illegal_transitions.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }
    assert refused == {("BOUND", "ASSUME"): 1.0, ("BOUND", "RELEASE"): 1.0}
