"""Every placement has a definite outcome with any API server; no pod is bound twice or lost."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.bind.binder import Binder
from poseidon_py.bind.slots import BindSlots
from poseidon_py.kube.client import ApiError, BusyError, ConflictError, LostAnswerError, UnreachableError
from poseidon_py.state.claim_use import ClaimUse
from poseidon_py.state.store import Store
from tests.effort import examples
from tests.poseidon_py.builders import node, pod
from tests.poseidon_py.fakes import BindReports, FakeKube
from tests.poseidon_py.settling import settle


class Bench:
    """A binder with a virtual clock; timers fire when `later` is called."""

    def __init__(self, concurrency=4, patience=60.0) -> None:
        self.now = 1000.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.kube = FakeKube()
        self.store = Store(["poseidon"])
        self.store.observe_node(node("n"))
        self.store.observe_node(node("m"))
        self.rejected: list[tuple[str, str, int]] = []
        self.reports = BindReports()
        self.slots = BindSlots()
        self.leads = True
        self.binder = Binder(
            self.kube,
            self.store,
            lambda known, node_id, not_before: self.rejected.append((known.name, node_id, not_before)),
            self.reports,
            slots=self.slots,
            prepare=lambda known, node: self.prepare(known, node),
            leads=lambda: self.leads,
            concurrency=concurrency,
            patience=patience,
            monotonic=lambda: self.now,
            now=lambda: self.now,
            call_later=lambda seconds, call: self.timers.append((self.now + seconds, call)),
            rng=lambda: 1.0,
        )
        self.store.subscribe(self.binder)

    def prepare(self, known, node):
        return None

    @property
    def bound(self):
        return self.reports.bound

    @property
    def failed(self):
        return self.reports.failures

    async def __aenter__(self):
        self.binder.start()
        return self

    async def __aexit__(self, *_):
        await self.binder.stop()

    def place(self, name="a", on="n", **fields):
        if f"default/{name}" not in self.kube.pods:
            self.kube.put(name)
        self.store.observe_pod(pod(name, **fields))
        known = self.store.pods[f"uid-{name}"]
        self.binder.bind(known, on, self.store.id_of_node(on))
        return known

    async def later(self):
        """Runs all work that is ready, then the next timer, until there is none."""
        await settle()
        while self.timers:
            self.timers.sort(key=lambda timer: timer[0])
            self.now, call = self.timers.pop(0)
            call()
            await settle()


async def test_a_placement_is_assumed_at_once_and_bound_with_the_pods_uid():
    async with Bench() as bench:
        known = bench.place()
        assert known.assumed == "n"
        await settle()
        assert bench.kube.binds == [("uid-a", "n")]
        assert bench.bound == [("a", "n")]
        assert known.assumed == "n"  # until the watch confirms
        bench.store.observe_pod(pod("a", node="n"))
        assert (known.assumed, known.node) == ("", "n")
        assert bench.rejected == []


async def test_concurrency_is_bounded_and_used():
    async with Bench(concurrency=3) as bench:
        bench.kube.hold = asyncio.Event()
        for number in range(8):
            bench.place(f"p{number}")
        await settle()
        assert (bench.kube.in_flight, bench.slots.busy) == (3, True)
        bench.kube.hold.set()
        await settle()
        assert (len(bench.kube.binds), bench.kube.most_in_flight, bench.slots.busy) == (8, 3, False)


async def test_it_is_saturated_while_binds_wait_for_a_slot_also_when_one_has_just_ended():
    seen: list[bool] = []
    async with Bench(concurrency=2) as bench:
        bench.reports.scheduled = lambda known, node: seen.append(bench.slots.saturated)
        bench.kube.hold = asyncio.Event()
        await settle()
        bench.place("p0")
        assert not bench.slots.saturated
        for number in range(1, 5):
            bench.place(f"p{number}")
        await settle()
        assert bench.slots.saturated
        bench.kube.hold.set()
        await settle()
        assert seen == [True, True, True, False, False]
        assert not bench.slots.saturated


@pytest.mark.parametrize(
    "error",
    [UnreachableError("refused"), BusyError(429, "", ""), BusyError(500, "", ""), BusyError(503, "", "", 1.0)],
    ids=["refused", "429", "500", "503"],
)
async def test_temporary_failures_are_retried(error):
    async with Bench() as bench:
        bench.kube.faults = [error, error]
        bench.place()
        await bench.later()
        assert bench.kube.binds == [("uid-a", "n")]
        assert (bench.rejected, bench.failed) == ([], [])


async def test_retry_after_is_respected_and_occupies_no_slot():
    async with Bench(concurrency=1) as bench:
        bench.kube.faults = [BusyError(429, "", "", 7.0)]
        bench.place("a")
        bench.place("b")
        await settle()
        assert bench.kube.binds == [("uid-b", "n")]
        assert [at for at, _ in bench.timers] == [1007.0]
        await bench.later()
        assert bench.kube.binds == [("uid-b", "n"), ("uid-a", "n")]


async def test_a_lost_answer_to_a_bind_that_was_done_is_a_success():
    async with Bench() as bench:
        bench.kube.faults = [("lost", LostAnswerError("reset"))]
        bench.place()
        await bench.later()
        assert bench.kube.asked == ["a"]  # not even asked for twice
        assert bench.bound == [("a", "n")]


async def test_a_lost_answer_to_a_bind_that_was_not_done_is_repeated():
    async with Bench() as bench:
        bench.kube.faults = [LostAnswerError("reset")]
        bench.place()
        await bench.later()
        assert bench.kube.binds == [("uid-a", "n")]
        assert bench.bound == [("a", "n")]


async def test_a_lost_answer_stays_in_doubt_until_the_pod_can_be_read():
    async with Bench() as bench:
        bench.kube.faults = [("lost", LostAnswerError("reset"))]
        bench.kube.read_faults = [UnreachableError("down"), BusyError(500, "", "")]
        bench.place()
        await bench.later()
        assert bench.kube.asked == ["a"]
        assert bench.bound == [("a", "n")]


async def test_409_of_a_pod_that_is_on_our_node_already_is_a_success():
    async with Bench() as bench:
        bench.kube.put("a", node="n")
        bench.place()
        await bench.later()
        assert (bench.bound, bench.rejected) == ([("a", "n")], [])


async def test_409_of_a_pod_that_is_elsewhere_ends_and_waits_for_the_watch():
    async with Bench() as bench:
        bench.kube.put("a", node="m")
        known = bench.place()
        await bench.later()
        assert (bench.bound, bench.rejected, bench.kube.binds) == ([], [], [])
        bench.store.observe_pod(pod("a", node="m"))
        assert (known.node, known.assumed) == ("m", "")


@pytest.mark.parametrize("there", [None, {"uid": "another"}, {"deleting": True}], ids=["gone", "recreated", "deleting"])
async def test_a_pod_that_is_gone_ends_and_holds_nothing(there):
    async with Bench() as bench:
        if there is not None:
            bench.kube.put("a", **there)
        else:
            bench.kube.put("a")
        known = bench.place()
        if there is None:
            bench.kube.pods.clear()
        while bench.store.pod_queue._ready:
            await bench.store.pod_queue.get(10)
        bench.store.pod_queue.done([known.uid])
        await bench.later()
        assert (bench.kube.binds, bench.bound, bench.rejected) == ([], [], [])
        assert (known.assumed, known.schedulable, known.dirty) == ("", False, True)
        assert await bench.store.pod_queue.get(10) == ["uid-a"]  # the engine is to be brought up to date


async def test_a_recreated_pod_is_not_bound_for_its_predecessor():
    async with Bench() as bench:
        bench.place("a", on="n")
        bench.kube.put("a", uid="uid-new")
        await bench.later()
        assert bench.kube.binds == []
        assert bench.kube.pods["default/a"].get("node") is None


async def test_a_pod_that_cannot_be_bound_is_given_back_with_growing_delays():
    async with Bench() as bench:
        bench.kube.put("a", gates=True)
        ident = bench.store.id_of_node("n")
        for others in (1, 2, 4):
            known = bench.place()
            await bench.later()
            assert bench.rejected.pop() == ("a", ident, int((bench.now + others) * 1_000_000))
            assert known.assumed == ""
        bench.store.observe_pod(pod("a", node="m"))  # settled: the rests start again
        assert not bench.binder._failures


async def test_a_placement_with_a_final_error_is_given_back_and_reported():
    async with Bench() as bench:
        bench.kube.faults = [ApiError(403, "Forbidden", "no binding for you")]
        bench.place()
        await bench.later()
        assert len(bench.rejected) == 1
        assert "no binding for you" in bench.failed[0]


async def test_patience_ends():
    async with Bench(patience=10.0) as bench:
        bench.kube.faults = [UnreachableError("down")] * 1000
        bench.place()
        await bench.later()
        assert bench.now < 1011
        assert len(bench.rejected) == 1


async def test_an_obsolete_placement_is_not_sent():
    async with Bench(concurrency=1) as bench:
        bench.kube.hold = asyncio.Event()
        bench.place("first")
        await settle()
        bound, gone, deleted = bench.place("bound"), bench.place("gone"), bench.place("deleted")
        bench.store.observe_pod(pod("bound", node="m"))
        bench.store.remove_pod("uid-gone")
        bench.store.observe_pod(pod("deleted", deleting=True))
        bench.kube.hold.set()
        await bench.later()
        assert bench.kube.asked == ["first"]
        assert (bound.assumed, gone.assumed, deleted.assumed, bench.rejected) == ("", "", "", [])


async def test_halt_sends_nothing_more_and_gives_back_what_was_not_sent():
    async with Bench(concurrency=1) as bench:
        bench.kube.faults = [BusyError(429, "", "")]
        bench.place("later")
        await settle()
        bench.kube.hold = asyncio.Event()
        bench.place("flying")
        await settle()
        bench.place("ready")
        bench.binder.halt()
        bench.place("after")
        assert sorted(name for name, _, _ in bench.rejected) == ["after", "later", "ready"]
        assert all(not_before == 0 for _, _, not_before in bench.rejected)
        bench.kube.hold.set()
        await bench.later()
        assert bench.kube.asked == ["later", "flying"]
        bench.binder.resume()
        bench.place("again")
        await settle()
        assert bench.bound == [("flying", "n"), ("again", "n")]


async def test_halt_while_the_pod_is_being_read_sends_nothing_more():
    async with Bench() as bench:
        bench.kube.faults = [LostAnswerError("reset")]
        bench.kube.read_faults = [UnreachableError("down")]
        bench.place()
        await settle()
        bench.kube.hold_reads = asyncio.Event()
        [(_, fire)] = bench.timers
        fire()
        await settle()
        bench.binder.halt()
        bench.kube.hold_reads.set()
        await settle()
        assert bench.kube.asked == ["a"]
        assert [not_before for _, _, not_before in bench.rejected] == [0]


async def test_drain_waits_for_what_is_in_flight_and_for_retries():
    async with Bench() as bench:
        bench.kube.faults = [BusyError(500, "", "")]
        bench.place()
        await settle()
        draining = asyncio.create_task(bench.binder.drain(5))
        await settle()
        assert not draining.done()
        await bench.later()
        assert await draining
        bench.kube.hold = asyncio.Event()
        bench.place("b")
        assert not await bench.binder.drain(0.0)


FAULT = st.sampled_from(
    [
        None,
        BusyError(429, "", "", 1.0),
        BusyError(500, "", ""),
        UnreachableError("refused"),
        LostAnswerError("reset"),
        ("lost", LostAnswerError("reset")),
        ("lost", BusyError(504, "", "")),
        ConflictError(409, "Conflict", "object was modified"),
    ]
)


@pytest.mark.slow
@given(
    st.lists(FAULT, max_size=40),
    st.lists(st.sampled_from([UnreachableError("down"), BusyError(500, "", "")]), max_size=6),
    st.lists(st.sampled_from(["", "", "", "delete", "recreate", "elsewhere"]), min_size=1, max_size=8),
)
@examples(80)
def test_no_pod_is_bound_twice_and_none_is_lost(faults, read_faults, fates):
    async def run():
        async with Bench(concurrency=3) as bench:
            bench.kube.faults, bench.kube.read_faults = list(faults), list(read_faults)
            known = {name: bench.place(name) for name in (f"p{i}" for i in range(len(fates)))}
            for name, fate in zip(known, fates, strict=True):
                if fate == "delete":
                    del bench.kube.pods[f"default/{name}"]
                elif fate == "recreate":
                    bench.kube.put(name, uid=f"new-{name}")
                elif fate == "elsewhere":
                    bench.kube.put(name, node="m")
            await bench.later()
            uids = [uid for uid, _ in bench.kube.binds]
            assert len(uids) == len(set(uids)), "bound twice"
            assert not any(uid.startswith("new-") for uid in uids), "the successor was bound"
            given_back = {name for name, _, _ in bench.rejected}
            for name, fate in zip(known, fates, strict=True):
                there = bench.kube.pods.get(f"default/{name}", {})
                mine = there.get("node") == "n" and there["uid"] == f"uid-{name}"
                reported = (name, "n") in bench.bound
                if fate == "":
                    # bound and known to be, or given back: nothing in between
                    assert reported != (name in given_back)
                    assert mine == reported or name in given_back
                else:
                    assert not reported
            assert await bench.binder.drain(0.1)

    asyncio.run(run())


async def test_a_leader_whose_lease_has_run_out_unnoticed_sends_nothing():
    """A suspended process: answers that arrived meanwhile wake workers before the election notices."""
    async with Bench(concurrency=1) as bench:
        bench.kube.hold = asyncio.Event()
        for name in ("a", "b"):
            bench.place(name)
        await settle()
        bench.leads = False
        bench.kube.hold.set()
        await settle()
        assert (bench.kube.asked, [name for name, *_ in bench.rejected], bench.failed) == (["a"], ["b"], [])


async def test_a_placement_is_revocable_while_its_bind_waits():
    """Until another attempt; not if the last one may have bound it, and not while a request is on its way."""
    async with Bench() as bench:
        bench.kube.faults = [BusyError(429, "TooManyRequests", "wait", 1.0), LostAnswerError("lost")]
        bench.kube.read_faults = [UnreachableError("no route")]
        known = bench.place()
        assert not known.revocable
        await settle()
        assert known.revocable
        bench.timers.pop()[1]()
        assert not known.revocable  # ready for the next attempt
        await settle()
        assert not known.revocable
        assert known.assumed


async def test_a_placement_that_waits_for_volumes_is_revocable_until_they_are_ready_or_it_is_withdrawn():
    async with Bench() as bench:
        ready = asyncio.Event()

        async def wait():
            await ready.wait()

        bench.prepare = lambda known, node: wait()
        bench.kube.hold = asyncio.Event()
        for name in ("a", "b"):
            bench.kube.put(name)
            bench.store.observe_pod(pod(name))
            bench.store.pods[f"uid-{name}"].volumes.claims = (ClaimUse("c"),)
            bench.binder.bind(bench.store.pods[f"uid-{name}"], "n", bench.store.id_of_node("n"))
        a, b = bench.store.pods.values()
        assert a.revocable
        bench.binder.withdraw([a.uid], "")
        assert (a.revocable, a.assumed) == (False, "")
        ready.set()
        await settle()
        assert (b.revocable, b.assumed) == (False, "n")
        bench.kube.hold.set()


async def test_draining_does_not_wait_for_volumes():
    """They may take minutes. Requests in flight complete, and so do binds that are retried."""
    async with Bench() as bench:
        bench.prepare = lambda known, node: asyncio.Event().wait()
        bench.kube.put("a")
        bench.store.observe_pod(pod("a"))
        known = bench.store.pods["uid-a"]
        known.volumes.claims = (ClaimUse("c"),)
        bench.binder.bind(known, "n", bench.store.id_of_node("n"))
        bench.kube.hold = asyncio.Event()
        bench.place("b")
        draining = asyncio.create_task(bench.binder.drain(60.0))
        await settle()
        assert [name for name, _, _ in bench.rejected] == ["a"]
        assert not draining.done()
        bench.kube.hold.set()
        assert await draining
        assert bench.bound == [("b", "n")]
