"""Binding as a unit, with a failing API server."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.bind.binder import Binder
from poseidon_py.bind.gang_binder import GangBinder
from poseidon_py.bind.placement import PlacedPod
from poseidon_py.bind.unwinding import Unwinder
from poseidon_py.feed.update_rows import describe_pod
from poseidon_py.kube.client import BusyError, ConflictError, LostAnswerError, NotFoundError
from poseidon_py.state.claim_use import ClaimUse
from poseidon_py.state.gangs.by_pod_group import NATIVE
from poseidon_py.state.gangs.listener import GangListener
from poseidon_py.state.store import Store
from tests.effort import examples
from tests.poseidon_py.builders import node
from tests.poseidon_py.fakes import BindReports, FakeKube
from tests.poseidon_py.settling import settle
from tests.poseidon_py.state.gangs.builders import JOB, Objects, owner_or_group, pod

MARK = {"pod-group.scheduling.x-k8s.io/name": "g"}
CLAIM = ClaimUse("c")
MIN = "pod-group.scheduling.x-k8s.io/min-available"


class Timer:
    def __init__(self, seconds, call):
        self.seconds, self.call, self.cancelled = seconds, call, False

    def cancel(self):
        self.cancelled = True


class Rig(GangListener):
    """A gang of some pods, placed by `place`; `confirm`: whether the watch reports binds; `whole`: it is one of
    Kubernetes' own, disrupted as a whole only."""

    def __init__(self, *, unwind="evict", concurrency=100, whole=False):
        self.extra = {"spec": {"schedulingGroup": {"podGroupName": "g"}}} if whole else {}
        self.unwinder = Unwinder(
            evict=self._evict,
            suspend=self._suspend,
            bound_since=self._since,
            remark=lambda known, reason, message: self.remarks.append((known.name, reason, message)),
            unwind=unwind,
        )
        self.store = Store(["poseidon"])
        self.kube = FakeKube()
        self.rejected: list[str] = []
        self.timers: list[Any] = []
        self.deadlines: list[Timer] = []
        self.remarks: list[tuple[str, str, str]] = []
        self.evicted: list[str] = []
        self.suspended: list[list[str]] = []
        self.suspends = False
        self.binder = Binder(
            self.kube,
            self.store,
            lambda known, node_id, not_before_us: self.rejected.append(known.name),
            BindReports(),
            prepare=lambda known, node: self.prepare(known, node),
            gate=self._gang_binder,
            call_later=lambda seconds, call: self.timers.append(call),
            rng=lambda: 1.0,
            concurrency=concurrency,
        )
        self.since_us = 2**60
        self.prepare: Any = lambda known, node: None
        spec = {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": "PodGroup"}
        self.store.gangs.objects = Objects((NATIVE, owner_or_group(NATIVE, spec=spec)))
        self.store.gangs.listener = self
        self.store.subscribe(self.binder)
        self.store.observe_node(node("n"))
        self.kube.on_bind = self._bound
        self.first_sent: list[tuple[int, int]] = []

    def half_bound(self, group):
        self.gangs.found_half(group)

    def _gang_binder(self, binder):
        self.gangs = GangBinder(
            self.store.gangs,
            binder,
            lambda known, node_id, not_before_us: self.rejected.append(known.name),
            self.unwinder,
            now_us=lambda: 0,
            call_later=self._deadline,
        )
        return self.gangs

    def _deadline(self, seconds, call):
        self.deadlines.append(Timer(seconds, call))
        return self.deadlines[-1]

    async def _suspend(self, pods, why):
        if self.suspends:
            self.suspended.append([known.name for known in pods])
        return self.suspends

    async def _evict(self, known):
        self.evicted.append(known.name)

    async def _since(self, known):
        return self.since_us

    def _bound(self, namespace, name):
        there = self.kube.pods[f"{namespace}/{name}"]
        self.pod(name, node=there["node"], put=False)

    def pod(self, name, minimum=3, *, put=True, owner=None, **fields):
        if put:
            self.kube.pods[f"ns/{name}"] = {"name": name, "uid": f"uid-{name}"}
        elif owner is None and f"uid-{name}" in self.store.pods and self.store.pods[f"uid-{name}"].owner:
            owner = JOB
        self.store.observe_pod(pod(name, labels=MARK | {MIN: str(minimum)}, owner=owner, **self.extra, **fields))
        describe_pod(self.store, self.store.pods[f"uid-{name}"])
        self.store.gangs.message(self.store.pods[f"uid-{name}"].gang.id)

    def pods(self, *names, **fields):
        for name in names:
            self.pod(name, **fields)

    def place(self, *names):
        known = [self.store.pods[f"uid-{name}"] for name in names]
        self.gangs.place([PlacedPod(each, "n", "id-n") for each in known])

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
    assert not len(rig.gangs)
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


async def test_a_member_beyond_the_minimum_that_is_gone_takes_no_other_with_it():
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
    assert not len(rig.gangs)


async def test_a_member_that_cannot_be_bound_is_placed_again_and_completes_the_gang():
    rig = Rig()
    rig.pods("a", "b", "c")
    rig.kube.faults = [None, ConflictError(409, "Conflict", "no"), None]
    rig.place("a", "b", "c")
    await rig.run()
    assert (rig.bound, rig.rejected, len(rig.gangs)) == (["a", "c"], ["b"], 1)
    rig.place("b")
    await rig.run()
    assert (rig.bound, len(rig.gangs)) == (["a", "b", "c"], 0)
    assert all(timer.cancelled for timer in rig.deadlines)


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


@examples(60)
@given(
    faults=st.lists(FAULTS, max_size=12),
    steps=st.lists(st.tuples(st.sampled_from(["place", "gone", "tick", "run", "new"]), st.integers(0, 9)), max_size=25),
    concurrency=st.sampled_from([1, 3]),
)
def test_binds_are_sent_only_once_the_minimum_is_placed_and_then_all_are(faults, steps, concurrency):
    asyncio.run(_sent_only_when_whole(faults, steps, concurrency))


async def _sent_only_when_whole(faults, steps, concurrency):
    rig = Rig(concurrency=concurrency)
    names = [f"p{number}" for number in range(5)]
    rig.pods(*names)
    rig.kube.faults = list(faults)
    gang = rig.store.pods["uid-p0"].gang.id
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
        waiting = [known for known in rig.store.pods.values() if known.schedulable and not known.assumed]
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
    # nothing goes wrong any more, and the whole gang is placed: all of it is bound, each pod once
    rig.pods("late-1", "late-2", "late-3")
    rig.place(*[known.name for known in rig.store.pods.values() if known.schedulable and not known.assumed])
    await rig.run()
    assert await rig.binder.drain(1.0)
    uids = [uid for uid, _ in rig.kube.binds]
    assert len(uids) == len(set(uids))
    assert set(rig.store.pods) <= set(uids)
    await rig.binder.stop()
