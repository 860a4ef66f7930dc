"""PriorityClasses that the scheduler may read, and that it may not read."""

import pytest

from poseidon_py.feed.update_rows import target
from poseidon_py.kube.client import ApiError, Kube
from tests.poseidon_py.world import World, template, world_of

CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "batch", "annotations": {"yunikorn.apache.org/allow-preemption": "true"}},
    "value": 100,
}


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path, nodes=1) as world:
        yield world


@pytest.mark.parametrize("readable", [True, False])
async def test_pods_are_placed_but_none_is_preempted_whose_class_cannot_be_read(world, monkeypatch, caplog, readable):
    page = Kube.page

    async def guarded(self, path, parameters):
        if not readable and "priorityclasses" in path:
            raise ApiError(403, "Forbidden", "priorityclasses is forbidden")
        return await page(self, path, parameters)

    monkeypatch.setattr(Kube, "page", guarded)
    world.cluster.create(CLASS)
    bridge = await world.bridge()
    world.cluster.add_pods(1, template(priorityClassName="batch"), prefix="ranked")
    world.cluster.add_pods(1, template(), prefix="plain")
    await world.until(lambda: world.bound("ranked") and world.bound("plain"))
    pods = bridge.store.pods.values()
    await world.until(lambda: all(known.node and known.sent == target(bridge.store, known) for known in pods))
    protected = {known.name.rstrip("0"): known.sent.unevictable for known in pods}
    assert protected == {"ranked": not readable, "plain": False}
    warning = "cannot watch priorityclasses.scheduling.k8s.io, so no pod that names a PriorityClass is preempted"
    assert (warning in caplog.text) is not readable
    world.check()
