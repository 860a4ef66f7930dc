"""Binding as a unit, with members whose volumes are ready late, never, or given to another pod."""

import asyncio

from poseidon_py.bind.placement import PlacementState
from poseidon_py.kube.client import NotFoundError
from poseidon_py.state.claim_use import ClaimUse
from poseidon_py.state.volumes.gate import VolumeError, VolumesTakenError
from tests.poseidon_py.bind.test_gang_binder import Rig
from tests.poseidon_py.bind.test_half_gangs import call
from tests.poseidon_py.settling import settle

CLAIM = ClaimUse("c")


async def test_nothing_is_sent_before_the_volumes_of_all_are_ready():
    rig = Rig()
    rig.pods("a", "b", "c")
    ready = asyncio.Event()

    async def wait():
        await ready.wait()

    rig.store.pods["uid-b"].volumes.claims = (CLAIM,)
    rig.prepare = lambda known, node: wait()
    rig.place("a", "b", "c")
    await rig.run()
    assert rig.kube.asked == []
    ready.set()
    await settle()
    assert rig.bound == ["a", "b", "c"]


async def test_unavailable_volumes_give_back_the_whole_gang():
    rig = Rig()
    rig.pods("a", "b", "c")
    rig.store.pods["uid-b"].volumes.claims = (CLAIM,)

    async def fail():
        await asyncio.sleep(0)
        raise NotFoundError(404, "NotFound", "no such claim")

    rig.prepare = lambda known, node: fail()
    rig.place("a", "b", "c")
    await rig.run()
    assert rig.kube.asked == []
    assert sorted(rig.rejected) == ["a", "b", "c"]
    assert await rig.binder.drain(0.1)


async def forever():
    await asyncio.Event().wait()


def volumes(rig, **what):
    """The preparation of members' volumes, by name: never ends, fails at once, or is not needed."""
    for name in what:
        rig.store.pods[f"uid-{name}"].volumes.claims = (CLAIM,)

    def prepare(known, node):
        then = what[known.name]
        if isinstance(then, Exception):
            raise then
        return then and then()

    rig.prepare = prepare


async def test_a_gang_with_a_member_known_to_fail_sends_no_binds():
    rig = Rig()
    rig.pods("a", "b", "c")
    volumes(rig, b=VolumeError("a persistentvolumeclaim went away"))
    rig.place("a", "b", "c")  # c is handed over after it is known of b
    await rig.run()
    assert rig.kube.asked == []
    assert sorted(rig.rejected) == ["a", "b", "c"]
    assert not len(rig.gangs)


async def test_preparing_that_is_ended_before_it_has_begun_ends():
    rig = Rig()
    rig.pods("a", "b", "c")
    volumes(rig, a=forever, b=VolumeError("a persistentvolumeclaim went away"))
    rig.place("b", "c", "a")
    await rig.run()
    assert not rig.binder.preparing(["uid-a"])
    assert await rig.binder.drain(0.1)


async def test_members_do_not_wait_for_the_volumes_of_a_deleted_one():
    rig = Rig()
    rig.pods("a", "b", "c", "d")  # one more than has to be
    volumes(rig, a=forever)
    rig.place("a", "b", "c", "d")
    await rig.run()
    assert rig.kube.asked == []
    rig.gone("a")
    await settle()
    assert rig.bound == ["b", "c", "d"]
    assert not len(rig.gangs)


async def test_the_others_wait_for_a_member_whose_volume_another_one_was_given():
    rig = Rig()
    rig.pods("a", "b", "c")
    volumes(rig, b=VolumesTakenError("the volumes that it could use there were given to other pods"))
    rig.place("a", "b", "c")
    await rig.run()
    assert (rig.kube.asked, rig.rejected) == ([], ["b"])
    assert rig.store.pods["uid-a"].assumed
    volumes(rig, b=None)
    rig.place("b")  # on another node
    await settle()
    assert (rig.bound, rig.rejected, len(rig.gangs)) == (["a", "b", "c"], ["b"], 0)


async def test_they_wait_neither_forever_nor_for_a_deleted_member():
    rig = Rig()
    rig.pods("a", "b", "c")
    taken = VolumesTakenError("the volumes that it could use there were given to other pods")
    volumes(rig, b=taken)
    rig.place("a", "b", "c")
    await rig.run()
    rig.deadlines[0].call()
    await settle()
    assert (rig.kube.asked, sorted(rig.rejected)) == ([], ["a", "b", "c"])

    volumes(rig, a=taken, b=forever)
    rig.rejected.clear()
    rig.place("a", "b", "c")
    await settle()
    rig.gone("a")  # which c and the volumes of b would be waited for
    await settle()
    assert (rig.kube.asked, sorted(rig.rejected), len(rig.gangs)) == ([], ["a", "b", "c"], 0)


def parked(rig):
    """Names of members whose binds wait for their gang."""
    found = rig.binder._placements.values()
    return {placement.known.name for placement in found if placement.state is PlacementState.PARKED}


async def parked_without_c(rig):
    """c is placed again, because its volume was given to another pod, and a and b wait for it."""
    rig.pods("a", "b", "c")
    volumes(rig, c=VolumesTakenError("the volumes that it could use there were given to other pods"))
    rig.place("a", "b", "c")
    await rig.run()
    assert parked(rig) == {"a", "b"}


async def test_waiting_members_are_bound_when_the_gang_needs_fewer():
    rig = Rig()
    await parked_without_c(rig)
    for name in "abc":
        rig.pod(name, minimum=2)
    await call(rig.deadlines)
    assert (rig.bound, rig.rejected) == (["a", "b"], ["c"])


async def test_waiting_members_are_bound_when_the_missing_one_is_bound_by_another_scheduler():
    rig = Rig()
    await parked_without_c(rig)
    rig.pod("c", node="n", put=False)
    await settle()
    assert (rig.bound, rig.rejected, len(rig.gangs)) == (["a", "b"], ["c"], 0)


async def test_waiting_members_are_bound_with_those_placed_when_others_bind_members():
    rig = Rig()
    await parked_without_c(rig)
    rig.pods("d", "e")
    rig.pod("d", node="n", put=False)
    rig.place("e")
    await rig.run()
    assert rig.bound == ["a", "b", "e"]


async def test_a_member_deleted_while_it_waits_is_dropped():
    rig = Rig()
    await parked_without_c(rig)
    rig.gone("a")
    await settle()
    await call(rig.deadlines)
    assert (rig.kube.asked, sorted(rig.rejected), parked(rig)) == ([], ["b", "c"], set())
    assert await rig.binder.drain(0.1)
