"""Budgets reach the engine, and rows undo what the engine has decided by itself."""

import asyncio

from poseidon_py.feed.update_rows import describe_pod, target
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import node, pod
from tests.poseidon_py.fakes import unavailable
from tests.poseidon_py.rig import Rig
from tests.poseidon_py.state.test_budgets import APP, budget


def rows(rig, name):
    """`leaving` and id of the nominated node in all rows of a pod."""
    found = []
    for update in rig.engine.updates:
        tasks = update.tasks
        for at, each in enumerate(tasks.name):
            if each == f"default/{name}":
                nominated = tasks.nominated[at] if tasks.nominated else 0
                leaving = tasks.leaving[at] if tasks.leaving else False
                found.append((leaving, tasks.nodes[nominated - 1] if nominated else ""))
    return found


async def test_budgets_are_sent_as_they_change():
    async with Rig() as rig:
        worker = asyncio.create_task(rig.feed.budget_worker())
        rig.store.budgets.put(budget(selector=APP, allowed=1))
        await rig.settle()
        assert [each.allowed for each in rig.engine.budgets.values()] == [1]
        calls = rig.engine.calls["apply"]
        rig.store.budgets.put(budget(selector=APP, allowed=1))
        await rig.settle()
        assert rig.engine.calls["apply"] == calls
        rig.store.budgets.drop(("default", "b"))
        await rig.settle()
        assert rig.engine.budgets == {}
        assert rig.store.budgets.removed == set()
        worker.cancel()


async def test_a_restarted_engine_learns_budgets_again():
    async with Rig() as rig:
        worker = asyncio.create_task(rig.feed.budget_worker())
        rig.store.budgets.put(budget(selector=APP, allowed=1))
        rig.store.budgets.put(budget("c", uid="c", selector=APP))
        await rig.settle()
        rig.engine.restart()
        rig.store.budgets.drop(("default", "c"))
        await rig.settle()
        assert [each.name for each in rig.engine.budgets.values()] == ["default/b"]
        assert rig.store.budgets.removed == set()
        worker.cancel()


async def test_a_budget_is_sent_again_after_a_failure():
    async with Rig() as rig:
        rig.store.budgets.queue._first_delay = 0.0
        worker = asyncio.create_task(rig.feed.budget_worker())
        rig.engine.fail["apply"] = [unavailable("Apply")]
        rig.store.budgets.put(budget(selector=APP, allowed=1))
        await rig.settle()
        assert len(rig.engine.budgets) == 1
        worker.cancel()


async def test_a_row_that_has_not_changed_is_sent_if_the_engine_has_changed_its_own():
    async with Rig() as rig:
        rig.pod("a", node="n")
        await rig.settle()
        before = rows(rig, "a")
        rig.store.touch_pod("uid-a")
        await rig.settle()
        assert rows(rig, "a") == before
        rig.store.resend_pod("uid-a")
        await rig.settle()
        assert rows(rig, "a") == [*before, (False, "")]
        rig.store.touch_pod("uid-a")
        await rig.settle()
        assert len(rows(rig, "a")) == len(before) + 1


async def test_a_row_that_was_on_its_way_does_not_count():
    """It may have reached the engine before its decision."""
    async with Rig() as rig:
        rig.pod("a", node="n", cpu="1")
        await rig.settle()
        rig.pod("a", node="n", cpu="2")
        while not rig.store.pod_queue.working:  # noqa: ASYNC110
            await asyncio.sleep(0)
        rig.store.resend_pod("uid-a")
        await rig.settle()
        assert len(rows(rig, "a")) == 3


async def test_a_row_that_was_lost_is_sent_again():
    async with Rig() as rig:
        rig.store.pod_queue._first_delay = 0.0
        rig.pod("a", node="n")
        await rig.settle()
        rig.engine.fail["apply"] = [unavailable("Apply")]
        rig.store.resend_pod("uid-a")
        await rig.settle()
        assert len(rows(rig, "a")) == 2


async def test_victims_and_nominations_are_in_the_rows_until_they_end():
    async with Rig(cpu="1") as rig:
        rig.pod("v", node="n", cpu="1")
        rig.pod("p", cpu="1")
        await rig.settle()
        victim, pending = rig.store.pods["uid-v"], rig.store.pods["uid-p"]
        for on in (True, False):
            victim.preempting = on
            rig.store.touch_pod("uid-v")
            rig.store.nominations.set(pending, "n" if on else "")
            await rig.settle()
            assert rows(rig, "v")[-1] == (on, "")
            assert rows(rig, "p")[-1] == (False, rig.store.id_of_node("n") if on else "")


async def test_a_placement_whose_bind_waits_is_sent_as_bound_and_may_be_a_victim():
    """Until its bind is sent. If it fails, that task ends, and another one waits."""
    store = Store(["poseidon"])
    store.observe_node(node("n"))
    store.observe_pod(pod("a"))
    known = store.pods["uid-a"]
    describe_pod(store, known)
    store.assume(known, "n")

    def row(*, fresh=False):
        found = target(store, known, fresh=fresh)
        assert found is not None
        return found

    assert row().node == ""
    store.set_revocable(known, True)
    waits = row()
    assert (waits.node, waits.unevictable, waits.started_us) == (store.id_of_node("n"), False, 0)
    known.sent = waits
    store.set_revocable(known, False)
    sent = row()
    assert (sent.node, sent.unevictable) == (waits.node, True)
    assert row(fresh=True) == sent  # also for a new engine
    store.release(known)
    assert row().node == ""
