"""Binding as a unit, with an API server that does what it likes."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poseidon_py.binder import Binder
from poseidon_py.claims import ClaimUse
from poseidon_py.gangs.by_object import NATIVE
from poseidon_py.gangs.units import Units
from poseidon_py.kube import ApiError, BusyError, ConflictError, LostAnswerError, NotFoundError, UnreachableError
from poseidon_py.store import Store
from poseidon_py.telling import describe_pod
from tests.bridge.builders import node
from tests.bridge.fakes import FakeKube, settle
from tests.bridge.gangs.builders import JOB, Objects, pod, thing

MARK = {"pod-group.scheduling.x-k8s.io/name": "g"}
CLAIM = ClaimUse("c")
MIN = "pod-group.scheduling.x-k8s.io/min-available"


class Timer:
    def __init__(self, seconds, call):
        self.seconds, self.call, self.cancelled = seconds, call, False

    def cancel(self):
        self.cancelled = True


class Rig:
    """A gang of some pods, placed by `place`; `confirm`: whether the watch tells of binds; `whole`: it is one of
    Kubernetes' own, disrupted as a whole only."""

    def __init__(self, *, unwind="evict", concurrency=100, whole=False):
        self.more = {"spec": {"schedulingGroup": {"podGroupName": "g"}}} if whole else {}
        self.store = Store(["poseidon"])
        self.kube = FakeKube()
        self.rejected: list[str] = []
        self.timers: list[Any] = []
        self.deadlines: list[Timer] = []
        self.said: list[tuple[str, str, str]] = []
        self.evicted: list[str] = []
        self.binder = Binder(
            self.kube,
            self.store,
            lambda known, node_id, not_before_us: self.rejected.append(known.name),
            call_later=lambda seconds, call: self.timers.append(call),
            rng=lambda: 1.0,
            concurrency=concurrency,
        )
        self.since_us = 2**60
        self.units = Units(
            self.store.gangs,
            self.binder,
            lambda known, node_id, not_before_us: self.rejected.append(known.name),
            evict=self._evict,
            bound_since=self._since,
            say=lambda known, reason, message: self.said.append((known.name, reason, message)),
            unwind=unwind,
            now_us=lambda: 0,
            call_later=self._deadline,
        )
        spec = {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": "PodGroup"}
        self.store.gangs.objects = Objects((NATIVE, thing(NATIVE, spec=spec)))
        self.binder.may_send = self.units.may_send
        self.binder.on_ended = self.units.ended
        self.store.gangs.on_half = self.units.found_half
        self.store.on_settled = self.binder.settled
        self.store.observe_node(node("n"))
        self.kube.on_bind = self._bound
        self.first_sent: list[tuple[int, int]] = []

    def _deadline(self, seconds, call):
        self.deadlines.append(Timer(seconds, call))
        return self.deadlines[-1]

    async def _evict(self, known):
        self.evicted.append(known.name)

    async def _since(self, known):
        return self.since_us

    def _bound(self, namespace, name):
        there = self.kube.pods[f"{namespace}/{name}"]
        self.pod(name, node=there["node"], put=False)

    def pod(self, name, minimum=3, *, put=True, owner=None, **more):
        if put:
            self.kube.pods[f"ns/{name}"] = {"name": name, "uid": f"uid-{name}"}
        elif owner is None and f"uid-{name}" in self.store.pods and self.store.pods[f"uid-{name}"].owner:
            owner = JOB
        self.store.observe_pod(pod(name, labels=MARK | {MIN: str(minimum)}, owner=owner, **self.more, **more))
        describe_pod(self.store, self.store.pods[f"uid-{name}"])
        self.store.gangs.message(self.store.pods[f"uid-{name}"].gang)

    def pods(self, *names, **more):
        for name in names:
            self.pod(name, **more)

    def place(self, *names):
        known = [self.store.pods[f"uid-{name}"] for name in names]
        self.units.place([(each, "n", "id-n") for each in known])

    def gone(self, name):
        self.kube.pods.pop(f"ns/{name}", None)
        self.store.remove_pod(f"uid-{name}")

    async def run(self, confirm=True):
        if not confirm:
            self.kube.on_bind = lambda namespace, name: None
        if not self.binder._workers:
            self.binder.start()
        await settle()

    def tick(self):
        timers, self.timers = self.timers, []
        for call in timers:
            call()

    @property
    def bound(self):
        return sorted(uid.removeprefix("uid-") for uid, _ in self.kube.binds)


async def test_a_gang_that_was_placed_whole_is_bound_whole():
    rig = Rig()
    rig.pods("a", "b", "c", "d")
    rig.place("a", "b", "c")
    await rig.run()
    assert rig.bound == ["a", "b", "c"]
    assert not len(rig.units)
    assert rig.deadlines[0].cancelled
    rig.place("d")  # beyond the minimum
    await rig.run()
    assert rig.bound == ["a", "b", "c", "d"]


async def test_placements_of_less_than_the_minimum_are_refused():
    rig = Rig()
    rig.pods("a", "b", "c")
    rig.place("a", "b")
    await rig.run()
    assert (rig.kube.asked, rig.rejected) == ([], ["a", "b"])


async def test_a_member_that_went_before_the_first_bind_takes_the_others_with_it():
    rig = Rig()
    rig.pods("a", "b", "c")
    rig.place("a", "b", "c")
    rig.gone("b")
    await rig.run()
    assert rig.kube.asked == []
    assert sorted(rig.rejected) == ["a", "c"]
    assert not any(known.assumed for known in rig.store.pods.values())
    assert await rig.binder.drain(0.1)


async def test_a_member_beyond_the_minimum_that_went_takes_nobody_with_it():
    rig = Rig()
    rig.pods("a", "b", "c", "d")
    rig.place("a", "b", "c", "d")
    rig.gone("b")
    await rig.run()
    assert rig.bound == ["a", "c", "d"]
    assert rig.rejected == []


async def test_binds_that_may_be_repeated_are():
    rig = Rig()
    rig.pods("a", "b", "c")
    rig.kube.faults = [BusyError(500, "", ""), ("lost", LostAnswerError("reset")), BusyError(429, "", "", 1.0)]
    rig.place("a", "b", "c")
    await rig.run()
    rig.tick()
    await rig.run()
    assert rig.bound == ["a", "b", "c"]
    assert rig.rejected == []
    assert not len(rig.units)


async def test_a_member_that_cannot_be_bound_is_placed_again_and_completes_the_gang():
    rig = Rig()
    rig.pods("a", "b", "c")
    rig.kube.faults = [None, ConflictError(409, "Conflict", "no"), None]
    rig.place("a", "b", "c")
    await rig.run()
    assert (rig.bound, rig.rejected, len(rig.units)) == (["a", "c"], ["b"], 1)
    rig.place("b")
    await rig.run()
    assert (rig.bound, len(rig.units)) == (["a", "b", "c"], 0)
    assert all(timer.cancelled for timer in rig.deadlines)


async def half(rig, **more):
    rig.pods("a", "b", "c", **more)
    rig.kube.faults = [None, ConflictError(409, "Conflict", "no"), None]
    rig.place("a", "b", "c")
    await rig.run()
    rig.deadlines[0].call()
    await settle()


async def test_what_stays_half_is_evicted_after_its_time():
    rig = Rig()
    await half(rig, owner=JOB)
    assert rig.deadlines[0].seconds == 60.0
    assert rig.evicted == ["a", "c"]
    text = (
        "pod group ns/g: only 2 of 3 members could be bound in time; it is evicted, to be scheduled with its gang again"
    )
    assert rig.said == [(name, "GangUnwound", text) for name in ("a", "c")]


async def test_what_nobody_would_make_anew_stays():
    rig = Rig()
    await half(rig)
    assert rig.evicted == []
    assert {reason for _, reason, _ in rig.said} == {"GangHalfBound"}


async def test_what_is_to_be_kept_stays():
    rig = Rig(unwind="keep")
    await half(rig, owner=JOB)
    assert rig.evicted == []
    assert {reason for _, reason, _ in rig.said} == {"GangHalfBound"}


async def test_binds_that_are_still_repeated_at_the_deadline_are_given_back():
    rig = Rig()
    rig.pods("a", "b", "c", owner=JOB)
    rig.kube.faults = [None, BusyError(503, "", ""), BusyError(503, "", "")]
    rig.place("a", "b", "c")
    await rig.run()
    rig.gone("a")
    rig.deadlines[0].call()
    await settle()
    assert sorted(rig.rejected) == ["b", "c"]
    rig.tick()
    await settle()
    assert rig.bound == ["a"]
    assert await rig.binder.drain(0.1)


async def test_a_gang_that_was_whole_is_never_unwound():
    rig = Rig()
    rig.pods("a", "b", "c", owner=JOB)
    rig.place("a", "b", "c")
    await rig.run()
    rig.gone("b")
    rig.pod("d", owner=JOB)
    rig.kube.faults = [ConflictError(409, "Conflict", "no")]
    rig.place("d")
    await rig.run()
    for timer in rig.deadlines:
        if not timer.cancelled:
            timer.call()
    await settle()
    assert rig.evicted == []


def lost(rig, name, **more):
    """Somebody evicts a member."""
    rig.pod(name, node="n", deleting=True, put=False, **more)
    rig.gone(name)


async def broken(rig):
    rig.pods("a", "b", "c", owner=JOB)
    rig.place("a", "b", "c")
    await rig.run()
    lost(rig, "b")
    assert len(rig.units) == 1


async def call(deadlines):
    for timer in list(deadlines):
        if not timer.cancelled:
            timer.call()
    await settle()


async def test_a_gang_that_is_disrupted_as_a_whole_is_evicted_if_what_it_lost_is_not_replaced():
    rig = Rig(whole=True)
    await broken(rig)
    rig.pod("d", owner=JOB)
    await call(rig.deadlines)
    assert rig.evicted == ["a", "c"]
    text = (
        "pod group ns/g: only 2 of 3 members are left and the others could not be replaced in time, while it is to be "
        "disrupted as a whole; it is evicted, to be scheduled with its gang again"
    )
    assert rig.said == [(name, "GangUnwound", text) for name in ("a", "c")]


async def test_one_that_is_replaced_in_time_is_not_nor_one_of_which_nobody_waits():
    rig = Rig(whole=True)
    await broken(rig)
    await call(rig.deadlines)  # nobody came in its place
    assert rig.evicted == []
    rig.pod("d", owner=JOB)  # now somebody has
    assert len(rig.units) == 1
    rig.place("d")
    await settle()
    await call(rig.deadlines)
    assert rig.evicted == []
    assert rig.bound == ["a", "b", "c", "d"]


async def test_after_a_restart_only_a_gang_that_never_was_whole_is_unwound():
    for since_us, evicted in ((2**60, ["a"]), (0, [])):  # the others wait since before that bind; since after it
        rig = Rig()
        rig.since_us = since_us
        rig.pod("a", owner=JOB, node="n")
        rig.pods("b", "c", owner=JOB)
        assert len(rig.units) == 1
        rig.deadlines[0].call()
        await settle()
        assert rig.evicted == evicted


def under_a_budget(rig):
    """Evictions wait for the event that is returned."""
    budget = asyncio.Event()

    async def evict(known):
        if not budget.is_set():
            raise BusyError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
        rig.evicted.append(known.name)

    async def sleep(seconds):
        await budget.wait()

    rig.units._evict, rig.units._sleep = evict, sleep
    return budget


async def test_a_gang_that_became_whole_while_a_budget_was_waited_for_is_not_evicted(caplog):
    rig = Rig()
    budget = under_a_budget(rig)
    await half(rig, owner=JOB)
    await call(rig.deadlines)
    assert "cannot evict ns/a yet: 429 TooManyRequests: Cannot evict pod as it would violate" in caplog.text
    said = list(rig.said)
    rig.place("b")
    await settle()
    assert rig.bound == ["a", "b", "c"]
    budget.set()
    await settle()
    assert (rig.evicted, rig.said) == ([], said)


@pytest.mark.parametrize(
    "error",
    [BusyError(429, "TooManyRequests", "a budget"), UnreachableError("refused"), ApiError(403, "Forbidden", "no")],
)
async def test_who_cannot_be_evicted_is_asked_again_for_as_long_as_it_takes(error):
    rig, pauses = Rig(), []
    evict, tries = rig.units._evict, []

    async def refuse(known):
        tries.append(known.name)
        if known.name == "a" and tries.count("a") <= 20:
            raise error
        await evict(known)
        rig.gone(known.name)

    async def sleep(seconds):
        pauses.append(seconds)

    rig.units._evict, rig.units._sleep = refuse, sleep
    await half(rig, owner=JOB)
    await call(rig.deadlines)
    assert rig.evicted == ["c", "a"]  # who can go does not wait for who cannot
    assert (tries.count("a"), tries.count("c")) == (21, 1)
    assert (pauses[0], max(pauses), len(pauses)) == (0.5, 60.0, 20)
    assert [(name, reason) for name, reason, _ in rig.said] == [
        ("a", "GangHalfBound"),
        ("c", "GangUnwound"),
        ("a", "GangUnwound"),
    ]
    assert rig.said[0][2].endswith(f"it cannot be evicted yet: {error}")


async def test_nobody_is_evicted_any_more_for_those_who_do_not_wait_any_more():
    rig = Rig()
    budget = under_a_budget(rig)
    await half(rig, owner=JOB)
    await call(rig.deadlines)
    rig.gone("b")
    budget.set()
    await settle()
    assert rig.evicted == []


async def test_who_went_by_itself_meanwhile_is_not_evicted():
    rig = Rig()
    budget = under_a_budget(rig)
    await half(rig, owner=JOB)
    await call(rig.deadlines)
    rig.gone("a")
    budget.set()
    await settle()
    assert rig.evicted == ["c"]


async def test_who_ends_by_itself_while_another_is_evicted_is_not():
    rig = Rig()
    evict = rig.units._evict

    async def slowly(known):
        await evict(known)
        if known.name == "a":
            rig.gone("c")

    rig.units._evict = slowly
    await half(rig, owner=JOB)
    assert rig.evicted == ["a"]


async def test_while_evictions_are_refused_its_time_over_again_begins_nothing_anew():
    rig = Rig()
    budget = under_a_budget(rig)
    await half(rig, owner=JOB)
    said = list(rig.said)
    for _ in range(3):
        rig.pod("d", owner=JOB)  # any news of a member finds the gang half bound
        assert len(rig.units) == 1
        await call(rig.deadlines[-1:])
    assert (len(rig.units._tasks), rig.said) == (1, said)
    budget.set()
    await settle()
    assert rig.evicted == ["a", "c"]
    assert not rig.units._evicting


async def test_who_was_bound_while_evictions_are_refused_is_evicted_too():
    rig = Rig()
    budget = under_a_budget(rig)
    rig.pods("a", "b", "c", "d", minimum=4, owner=JOB)
    rig.kube.faults = [None, ConflictError(409, "Conflict", "no"), ConflictError(409, "Conflict", "no"), None]
    rig.place("a", "b", "c", "d")
    await rig.run()
    await call(rig.deadlines)
    rig.kube.faults = [None, ConflictError(409, "Conflict", "no")]
    rig.place("b", "c")
    await settle()
    await call(rig.deadlines[-1:])
    budget.set()
    await settle()
    assert sorted(rig.evicted) == ["a", "b", "d"]


async def test_who_does_not_lead_any_more_evicts_nobody():
    rig = Rig()
    budget = under_a_budget(rig)
    await half(rig, owner=JOB)
    await call(rig.deadlines)
    rig.binder.halt()
    rig.units.clear()
    budget.set()
    await settle()
    assert rig.evicted == []


FAULTS = st.sampled_from(
    [
        None,
        BusyError(500, "", ""),
        BusyError(429, "", "", 0.1),
        ConflictError(409, "Conflict", "no"),
        NotFoundError(404, "NotFound", "no"),
        LostAnswerError("before"),
        ("lost", LostAnswerError("after")),
    ]
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    faults=st.lists(FAULTS, max_size=12),
    steps=st.lists(st.tuples(st.sampled_from(["place", "gone", "tick", "run", "new"]), st.integers(0, 9)), max_size=25),
    concurrency=st.sampled_from([1, 3]),
)
def test_no_bind_is_ever_sent_while_fewer_than_the_minimum_are_placed(faults, steps, concurrency):
    asyncio.run(_sent_only_when_whole(faults, steps, concurrency))


async def _sent_only_when_whole(faults, steps, concurrency):
    rig = Rig(concurrency=concurrency)
    names = [f"p{number}" for number in range(5)]
    rig.pods(*names)
    rig.kube.faults = list(faults)
    gang = rig.store.pods["uid-p0"].gang
    sent = rig.kube.bind

    async def bind(namespace, name, uid, node, timeout):
        group = rig.store.gangs.groups[gang]
        if not rig.kube.binds and not rig.kube.in_flight and not later:
            assert len(list(group.settled())) >= 3
        later.append(name)
        await sent(namespace, name, uid, node, timeout)

    later: list[str] = []
    rig.kube.bind = bind  # type: ignore[method-assign]
    for what, number in steps:
        waiting = [known for known in rig.store.pods.values() if known.wanted and not known.assumed]
        if what == "place":
            rig.place(*[known.name for known in waiting[: number % 5 + 1]])
        elif what == "gone" and rig.store.pods:
            rig.gone([*rig.store.pods.values()][number % len(rig.store.pods)].name)
        elif what == "new":
            names.append(f"p{len(names)}")
            rig.pod(names[-1])
        elif what == "tick":
            rig.tick()
        else:
            await rig.run()
    rig.kube.faults = []
    for _ in range(5):
        await rig.run()
        rig.tick()
    await rig.run()
    assert await rig.binder.drain(1.0)
    uids = [uid for uid, _ in rig.kube.binds]
    assert len(uids) == len(set(uids))
    await rig.binder.stop()
