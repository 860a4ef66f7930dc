"""The rows of pods that migrate, from the decision until the pod is gone, also for a restarted engine."""

from poseidon_py.describe.annotations.movable import MOVABLE
from poseidon_py.kube.client import BusyError
from poseidon_py.preempt.decisions import Decisions, MigratingPod
from poseidon_py.preempt.preemptor import Preemptor
from tests.poseidon_py.preempt.bench import FakePods, Reports
from tests.poseidon_py.rig import Rig


def last_row(rig, name="a"):
    """`leaving` and `movable` in the newest row of a pod."""
    tasks = [update.tasks for update in rig.engine.updates if f"default/{name}" in update.tasks.name][-1]
    at = list(tasks.name).index(f"default/{name}")
    return tuple(column[at] if column else False for column in (tasks.leaving, tasks.movable))


def preemptor_of(rig):
    api = FakePods()
    api.put("a")
    made = Preemptor(api, rig.store, rig.feed.reject, Reports(), call_later=lambda *_: Timer())
    rig.store.subscribe(made)
    return made, api


class Timer:
    def cancel(self):
        """It never ends in these tests."""


def running(rig):
    rig.pod("a", node="n", owner="o", annotations={MOVABLE: "true"})


async def test_a_restarted_engine_learns_that_a_pod_leaves():
    async with Rig(nodes=("n", "m")) as rig:
        preemptor, _ = preemptor_of(rig)
        running(rig)
        await rig.settle()
        assert last_row(rig) == (False, True)
        preemptor.take(Decisions(migrations=[MigratingPod(rig.store.pods["uid-a"], "m")]))
        await rig.settle()
        assert last_row(rig) == (True, True)
        rig.engine.restart()
        rig.pod("b")
        await rig.settle()
        assert rig.task("a")["leaving"]
        assert last_row(rig) == (True, True)


async def test_the_engine_takes_a_pod_back_whose_eviction_was_refused():
    async with Rig(nodes=("n", "m")) as rig:
        preemptor, api = preemptor_of(rig)
        running(rig)
        await rig.settle()
        api.faults = [BusyError(429, "TooManyRequests", "budget")]
        preemptor.take(Decisions(migrations=[MigratingPod(rig.store.pods["uid-a"], "m")]))
        await rig.settle()
        assert api.of("evict") == ["a"]
        assert last_row(rig) == (False, False)


async def test_a_restarted_bridge_knows_from_the_api_server_which_pods_leave():
    async with Rig(nodes=("n", "m")) as rig:
        rig.pod("a", node="n", owner="o", annotations={MOVABLE: "true"}, deleting=True)
        await rig.settle()
        assert last_row(rig)[0]
        preemptor, api = preemptor_of(rig)
        preemptor.take(Decisions(migrations=[MigratingPod(rig.store.pods["uid-a"], "m")]))
        await rig.settle()
        assert api.requests == []
