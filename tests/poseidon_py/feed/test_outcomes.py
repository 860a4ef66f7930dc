"""How pods end, as the engine learns it; and listeners to pods."""

import pytest

from poseidon_py.state.handlers import PodHandler
from tests.poseidon_py.builders import pod
from tests.poseidon_py.rig import Rig

EVICTED = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]}


@pytest.mark.parametrize(
    ("end", "succeeded", "failed"),
    [
        pytest.param({"phase": "Succeeded"}, 1, 0, id="completed"),
        pytest.param({"phase": "Failed"}, 0, 1, id="failed"),
        pytest.param({"phase": "Failed", "status": EVICTED}, 0, 0, id="evicted"),
        pytest.param({"phase": "Failed", "status": {"reason": "Evicted"}}, 0, 0, id="evicted by its node"),
        pytest.param(None, 0, 0, id="deleted"),
    ],
)
async def test_outcomes_are_sent(end, succeeded, failed):
    async with Rig() as rig:
        rig.pod("p", node="n", phase="Running")
        await rig.settle()
        task = rig.store.pods["uid-p"].task
        if end is None:
            rig.gone("p")
        else:
            rig.store.observe_pod(pod("p", node="n", **end))
        await rig.settle()
        update = rig.engine.updates[-1]
        assert list(update.removed_tasks) == [task]
        assert list(update.succeeded_tasks) == [task] * succeeded
        assert list(update.failed_tasks) == [task] * failed
        assert rig.agrees()
        assert not rig.store.outcomes


async def test_a_pod_that_is_restored_has_not_ended():
    """The API server's data is from before its end: the update that would have reported it says nothing of it."""
    async with Rig() as rig:
        rig.pod("p", node="n", phase="Running")
        await rig.settle()
        rig.store.observe_pod(pod("p", node="n", phase="Succeeded"))
        rig.store.observe_pod(pod("p", node="n", phase="Running"))
        await rig.settle()
        assert not any(update.succeeded_tasks for update in rig.engine.updates)
        assert rig.agrees()


class Broken:
    def __init__(self):
        self.reports = []

    def observed(self, pod):
        self.reports.append(("observed", pod.metadata.name))
        raise RuntimeError("a defect")

    def removed(self, pod):
        self.reports.append(("removed", pod.metadata.name))
        raise RuntimeError("a defect")

    def listed(self, uids):
        self.reports.append(("listed", sorted(uids)))
        raise RuntimeError("a defect")


async def test_a_listener_that_fails_does_not_keep_pods_from_being_scheduled(caplog):
    listener = Broken()
    async with Rig() as rig:
        handler = PodHandler(rig.store, [listener])
        handler.observe(pod("p", node="n"))
        handler.observe(pod("q", node="n"))
        handler.listed({"uid-p", "uid-q"})
        handler.removed(pod("q"))
        await rig.settle()
        assert rig.state("p") == "bound"
        assert set(rig.store.pods) == {"uid-p"}
    assert listener.reports == [
        ("observed", "p"), ("observed", "q"), ("listed", ["uid-p", "uid-q"]), ("removed", "q"),
    ]  # fmt: skip
    assert caplog.text.count("a listener to pods failed") == 4
