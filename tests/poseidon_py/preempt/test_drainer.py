"""Queues that drain: which pods are evicted, in which order, how fast, and what stops that."""

import json

import msgspec
import pytest

from poseidon_py.kube.budget_objects import DisruptionBudget
from poseidon_py.kube.client import BusyError, ConflictError, UnreachableError
from poseidon_py.preempt.drainer import Drainer
from poseidon_py.state.records import PodRecord
from tests.poseidon_py.preempt.bench import FakePods
from tests.poseidon_py.state.queues.rig import Rig

QUEUE = "poseidon.io/queue"
NAME, MINIMUM = "pod-group.scheduling.x-k8s.io/name", "pod-group.scheduling.x-k8s.io/min-available"
BUDGET = BusyError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
AWAY = UnreachableError("no route")


class Draining(Rig):
    """Queue a with pods on node n; delays pass at once."""

    def __init__(self, kind="poseidon"):
        super().__init__(kind)
        self.api = FakePods()
        self.leads = True
        self.clock = 0.0
        self.events: list[tuple[str, ...]] = []
        self.suspendable: set[str] = set()
        """UIDs of owners."""
        self.suspended: list[tuple[list[str], str, str]] = []
        self.refuses = False
        self.drainer = Drainer(
            self.api,
            self.store,
            self,
            suspender=self,
            leads=lambda: self.leads,
            rate=4.0,
            sleep=self.sleep,
            monotonic=lambda: self.clock,
            rng=lambda: 1.0,
        )

    async def sleep(self, seconds):
        self.clock += seconds

    def leaving(self, pods):
        """The pods of each owner leave together, if it can be suspended."""
        of: dict[str, list[PodRecord]] = {}
        for known in pods:
            if known.owner in self.suspendable:
                of.setdefault(known.owner, []).append(known)
        return iter(of.values())

    async def suspend(self, pods, reason, why):
        self.suspended.append(([known.name for known in pods], reason, why))
        return not self.refuses

    def drained(self, known, queue):
        self.events.append((known.name, queue))

    def remark(self, known, reason, message):
        self.events.append((known.name, reason, message))

    def running(self, *names, queue="a", labels=None, **fields):
        for name in names:
            self.api.put(name)
            self.pod(name, node="n", phase="Running", labels={QUEUE: queue, **(labels or {})}, **fields)

    def gang(self, *names, size, **labels):
        self.running(*names, labels={NAME: "g", MINIMUM: str(size), **labels})

    def budget(self, allowed, **labels):
        body = {
            "metadata": {"name": "b", "namespace": "default", "uid": "u"},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {"disruptionsAllowed": allowed},
        }
        self.store.budgets.put(msgspec.json.decode(json.dumps(body), type=DisruptionBudget))

    def ended(self, *names):
        for name in names:
            self.api.pods.pop(name)
            self.known(name).observed.deleting = True
            self.store.remove_pod(f"uid-{name}")

    async def step(self):
        before = len(self.api.requests)
        await self.drainer.step()
        return [name for kind, name, _ in self.api.requests[before:] if kind == "evict"]


@pytest.fixture
def rig():
    rig = Draining()
    for name in ("a", "b"):
        rig.put("Queue", name)
    return rig


def drain(rig, stop="drain"):
    rig.put("Queue", "a", {"stop": stop})


async def test_what_runs_in_a_queue_that_drains_is_evicted_and_nothing_else(rig):
    rig.running("a1", "a2")
    rig.running("b1", queue="b")
    rig.pod("waits", labels={QUEUE: "a"})
    assert await rig.step() == []
    drain(rig, "hold")
    assert await rig.step() == []
    drain(rig)
    assert sorted(await rig.step()) == ["a1", "a2"]
    assert sorted(rig.events) == [("a1", "a"), ("a2", "a")]
    assert rig.store.metrics.registry.get_sample_value("poseidon_drains_total", {"outcome": "evicted"}) == 2.0


async def test_queues_below_drain_as_well(rig):
    rig.put("Queue", "below", {"parent": "a"})
    rig.running("p", queue="below")
    drain(rig)
    assert await rig.step() == ["p"]


async def test_pods_that_leave_or_belong_to_their_node_stay(rig):
    rig.running("one", "two", "three", "four")
    rig.running("leaving", deleting=True)
    for name, field in (("one", "preempting"), ("two", "migrating")):
        setattr(rig.known(name), field, True)
    rig.known("three").described.daemon = True
    rig.known("four").described.unevictable = True
    drain(rig)
    assert await rig.step() == []


async def test_the_least_important_and_newest_go_first_at_a_bounded_rate(rig):
    rig.running("old", created="2026-01-01T00:00:00Z")
    rig.running("new", created="2026-01-02T00:00:00Z")
    rig.running("high", spec={"priority": 9}, created="2026-01-03T00:00:00Z")
    drain(rig)
    assert await rig.step() == ["new", "old", "high"]
    assert rig.clock == 3 / 4.0


async def test_it_ends_when_the_queue_is_started_again_even_amid_a_pass(rig):
    rig.running("p1", "p2", "p3", "p4")
    drain(rig)

    async def start_again(seconds):
        drain(rig, "none")

    rig.drainer._sleep = start_again
    assert len(await rig.step()) == 1
    assert await rig.step() == []


async def test_a_standby_evicts_nothing_and_a_new_leader_goes_on(rig):
    rig.running("p1", "p2")
    drain(rig)
    rig.leads = False
    assert await rig.step() == []
    rig.leads = True
    assert sorted(await rig.step()) == ["p1", "p2"]


async def test_what_a_budget_protects_is_tried_again_later(rig):
    rig.running("p1", "p2")
    drain(rig)
    rig.api.faults = [BUDGET]
    first, second = await rig.step()
    assert rig.clock == 0.5
    assert rig.events == [
        (first, "DrainDelayed", f"queue a drains, but the pod stays for now: {BUDGET}"),
        (second, "a"),
    ]
    rig.ended(second)
    assert await rig.step() == []  # 5 s have not passed
    rig.clock += 5.0
    rig.api.faults = [BUDGET]
    assert await rig.step() == [first]
    rig.clock += 9.0
    assert await rig.step() == []
    rig.clock += 1.0
    assert await rig.step() == [first]
    assert rig.events[-1] == (first, "a")
    rig.clock += 100.0
    assert await rig.step() == []  # it is leaving, though the watch has not reported it


@pytest.mark.parametrize(
    "error", [AWAY, BusyError(500, "InternalError", "no"), ConflictError(409, "Conflict", "again")]
)
async def test_temporary_errors_are_tried_again(rig, error):
    rig.running("p")
    drain(rig)
    rig.api.faults = [error]
    assert await rig.step() == ["p"]
    rig.clock += 5.0
    assert await rig.step() == ["p"]
    assert rig.events[-1] == ("p", "a")


async def test_a_pod_that_is_gone_is_no_failure(rig):
    rig.running("p")
    del rig.api.pods["p"]
    drain(rig)
    assert await rig.step() == ["p"]
    assert rig.events == []


async def test_a_gang_waits_until_its_budgets_permit_all_of_it(rig):
    rig.gang("g1", "g2", "g3", size=3, app="x")
    rig.running("single", created="2026-01-09T00:00:00Z")
    rig.budget(2, app="x")
    drain(rig)
    assert await rig.step() == ["single"]
    ((_, _, message), _) = sorted(rig.events, key=len, reverse=True)
    assert message == (
        "queue a drains, but the pod stays for now: disruption budget default/b permits 2 evictions, and 3 members of "
        "its gang leave together; change the budget"
    )
    rig.budget(3, app="x")
    rig.clock += 5.0
    assert sorted(await rig.step()) == ["g1", "g2", "g3"]


async def test_a_gang_that_has_lost_members_is_drained_to_the_end(rig):
    rig.gang("g1", "g2", "g3", size=3, app="x")
    drain(rig)
    rig.budget(3, app="x")
    rig.api.faults = [None, BUDGET, BUDGET]
    first, *others = await rig.step()
    rig.ended(first)
    rig.budget(0, app="x")
    rig.clock += 5.0
    assert await rig.step() == others  # the budget decides on each
    assert [event[0] for event in rig.events if len(event) == 2][1:] == others


async def test_the_delay_of_a_gang_grows_while_its_members_leave(rig):
    rig.gang("g1", "g2", "g3", size=3)
    drain(rig)
    rig.api.faults = [None, BUDGET, BUDGET]
    first, second, third = await rig.step()
    rig.ended(first)
    assert await rig.step() == []
    rig.clock += 5.0
    rig.api.faults = [None, BUDGET]
    assert await rig.step() == [second, third]
    rig.ended(second)
    rig.clock += 9.0
    assert await rig.step() == []
    rig.clock += 1.0
    assert await rig.step() == [third]
    rig.ended(third)
    await rig.step()
    assert rig.drainer._backoffs == rig.drainer._not_before == {}


async def test_budgets_of_other_pods_do_not_protect_a_gang(rig):
    rig.gang("g1", "g2", size=2, app="x")
    rig.budget(0, app="y")
    drain(rig)
    assert sorted(await rig.step()) == ["g1", "g2"]


async def test_kueues_local_queues_drain_on_their_own():
    rig = Draining("kueue")
    rig.put("ResourceFlavor", "f")
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 9}]}]}
    rig.put("ClusterQueue", "q", {"resourceGroups": [group], "namespaceSelector": {}})
    for name, stop in (("one", "HoldAndDrain"), ("two", "Hold")):
        rig.put("LocalQueue", name, {"clusterQueue": "q", "stopPolicy": stop}, namespace="default")
        rig.api.put(name)
        rig.pod(name, node="n", phase="Running", labels={"kueue.x-k8s.io/queue-name": name})
    assert await rig.step() == ["one"]
    rig.put("ClusterQueue", "q", {"resourceGroups": [group], "namespaceSelector": {}, "stopPolicy": "HoldAndDrain"})
    assert await rig.step() == ["two"]
    rig.queues.set_running("kueue", "kueue-controller-manager")  # evicts its workloads by itself
    rig.api.put("three")
    rig.pod("three", node="n", phase="Running", labels={"kueue.x-k8s.io/queue-name": "one"})
    assert await rig.step() == []


async def test_pods_that_only_count_in_a_queue_are_left_to_those_who_decide_about_them():
    rig = Draining("kueue")
    rig.put("ResourceFlavor", "f")
    rig.put("ClusterQueue", "q", {"namespaceSelector": {}, "stopPolicy": "HoldAndDrain"})
    rig.put("LocalQueue", "lq", {"clusterQueue": "q"}, namespace="default")
    label = {"kueue.x-k8s.io/queue-name": "lq"}
    for name, fields in (
        ("own", {"labels": label}),
        ("of-kueue", {"labels": label | {"kueue.x-k8s.io/podset": "main"}}),
        ("of-another", {"labels": label, "scheduler": "default-scheduler"}),
    ):
        rig.api.put(name)
        rig.pod(name, node="n", phase="Running", **fields)
    assert await rig.step() == ["own"]


async def test_an_error_in_a_pass_does_not_end_the_task(rig, monkeypatch, caplog):
    sleeps = []

    async def sleep(seconds):
        sleeps.append(seconds)
        if len(sleeps) == 3:
            raise EOFError

    monkeypatch.setattr(rig.drainer, "_sleep", sleep)
    monkeypatch.setattr(rig.drainer, "step", None)
    with pytest.raises(EOFError):
        await rig.drainer.run()
    assert sleeps == [1.0, 1.0, 1.0]
    assert "draining queues failed" in caplog.text


# -- workloads -------------------------------------------------------------------------------------------------------


def eight_pods_of_a_job(rig, **fields):
    rig.suspendable = {"uid-j"}
    rig.running(*"abcdefgh", owner="uid-j", **fields)
    rig.put("Queue", "a", {"stop": "drain"})


async def test_a_job_leaves_by_its_suspension(rig):
    """Eight evictions are more than its backoffLimit: `drain` would end it for good."""
    eight_pods_of_a_job(rig)
    assert await rig.step() == []
    assert rig.suspended == [([*"abcdefgh"], "QueueDrained", "queue a drains")]
    assert [name for name, queue in rig.events if queue == "a"] == [*"abcdefgh"]
    assert rig.clock == 2.0  # 8 pods at 4 in a second
    assert await rig.step() == []
    assert len(rig.suspended) == 1


async def test_if_it_cannot_be_suspended_its_pods_are_evicted(rig):
    eight_pods_of_a_job(rig)
    rig.refuses = True
    assert sorted(await rig.step()) == [*"abcdefgh"]


async def test_a_suspension_respects_budgets(rig):
    """Its controller deletes the pods whatever their budgets say. One by one, some of them may be evicted."""
    rig.budget(7, app="x")
    eight_pods_of_a_job(rig, labels={"app": "x"})
    rig.api.only, rig.api.faults = "evict", [None] * 7 + [BUDGET]
    assert len(await rig.step()) == 8
    assert rig.suspended == []
    rig.budget(8, app="x")
    await rig.step()
    assert rig.suspended[0][0] == ["h"] or len(rig.suspended[0][0]) == 1


async def test_nothing_is_suspended_by_a_replica_that_does_not_lead(rig):
    eight_pods_of_a_job(rig)
    rig.leads = False
    await rig.step()
    assert rig.suspended == []
