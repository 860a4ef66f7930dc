"""All transitions of a placement's states, and the slots that send placements."""

import asyncio

import pytest

from poseidon_py.bind.placement import TRANSITIONS, Placement, PlacementState
from poseidon_py.bind.slots import BindSlots
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import pod
from tests.poseidon_py.settling import settle

S = PlacementState
LEGAL = {
    (S.PREPARING, S.READY),
    (S.READY, S.SENDING),
    (S.SENDING, S.DEFERRED),
    (S.SENDING, S.PARKED),
    (S.DEFERRED, S.READY),
    (S.PARKED, S.READY),
    *((state, S.ENDED) for state in S if state is not S.ENDED),
}
"""Written down a second time, as pairs."""


def placement(name="a", on="n"):
    store = Store(["poseidon"])
    store.observe_pod(pod(name))
    known = store.pods[f"uid-{name}"]
    assert store.assume(known, on)
    return store, Placement(known, on, f"id-{on}", 0.0, prepared=True)


@pytest.mark.parametrize("to", PlacementState)
@pytest.mark.parametrize("state", PlacementState)
def test_every_pair_of_states_is_accepted_or_rejected(state, to):
    _, moved = placement()
    moved.state = state
    assert (to in TRANSITIONS[state]) is ((state, to) in LEGAL)
    if (state, to) in LEGAL:
        moved.move(to)
        assert moved.state is to
    else:
        with pytest.raises(RuntimeError, match=f"default/a cannot go from {state.name} to {to.name}"):
            moved.move(to)
        assert moved.state is state


def test_the_reason_for_an_obsolete_placement_is_named():
    store, at = placement()
    assert (at.overtaken(), at.holds) == ("", True)
    store.observe_pod(pod("a", deleting=True))
    assert at.overtaken() == "deleting"
    store.observe_pod(pod("a"))
    store.release(at.known)
    assert (at.overtaken(), at.holds) == ("replaced", False)
    store.assume(at.known, "m")
    assert at.overtaken() == "replaced"
    store.observe_pod(pod("a", node="n"))
    assert at.overtaken() == "bound"
    store.remove_pod("uid-a")
    assert at.overtaken() == "gone"


async def test_slots_take_ready_placements_in_order_without_removed_ones():
    slots = BindSlots()
    first, second, third = (placement(name)[1] for name in "abc")
    for each in (first, second, third):
        slots.put(each)
    slots.remove(second)
    slots.remove(second)
    assert (slots.busy, slots.saturated) == (True, True)
    assert [await slots.take(), await slots.take()] == [first, third]
    assert (slots.busy, slots.saturated, slots.in_flight) == (True, False, 2)
    slots.done()
    slots.done()
    assert (slots.busy, slots.in_flight) == (False, 0)


async def test_a_slot_that_is_cancelled_while_it_waits_takes_nothing():
    slots = BindSlots()
    taken: list[Placement] = []

    async def slot():
        taken.append(await slots.take())

    gone, there = asyncio.create_task(slot()), asyncio.create_task(slot())
    await settle()
    gone.cancel()
    await settle()
    each = placement()[1]
    slots.put(each)
    await settle()
    assert taken == [each]
    await asyncio.gather(gone, there, return_exceptions=True)
