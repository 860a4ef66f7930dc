"""Tasks that the engine refuses are sent again, ever more seldom."""

import pytest

from tests.poseidon_py.rig import Rig


class Refusing:
    """Refuses the first `times` updates with tasks; `whole`: all of their tasks together, as if one was malformed;
    `name`: of a pod, only updates with its task."""

    def __init__(self, rig, times=1, *, whole=False, name=""):
        self._apply, self._times, self._whole, self._name = rig.engine.apply, times, whole, name
        self.updates = []
        rig.engine.apply = self.apply

    async def apply(self, update):
        if not update.tasks.uid:
            return await self._apply(update)
        names = list(update.tasks.name)
        self.updates.append((len(update.removed_tasks), names))
        if len(self.updates) > self._times or (self._name and f"default/{self._name}" not in names):
            return await self._apply(update)
        if self._whole:
            update.ClearField("tasks")
        reply = await self._apply(update)
        for name in [f"all {len(names)}"] if self._whole else names:
            reply.refused.add(kind="task", id=name, field="state", reason="no")
        return reply


def retries_at_once(rig):
    """The delays of retries, which pass at once."""
    delays = []

    def later(seconds, call):
        delays.append(seconds)
        call()

    rig.store.pod_queue._call_later = later
    return delays


async def test_the_delay_of_a_task_that_is_refused_again_and_again_grows():
    async with Rig(nodes=()) as rig:
        delays, refusing = retries_at_once(rig), Refusing(rig, 4)
        rig.pod("a")
        await rig.settle()
        assert delays == [0.05, 0.1, 0.2, 0.4]
        assert len(refusing.updates) == 5
        assert rig.store.pod_queue._attempts == {}
        assert rig.agrees()


@pytest.mark.parametrize("node", ["", "n"])
async def test_a_task_that_is_refused_is_removed_and_added_again(node):
    async with Rig() as rig:
        retries_at_once(rig)
        refusing = Refusing(rig)
        rig.pod("a", node=node)
        await rig.settle()
        assert refusing.updates[:2] == [(0, ["default/a"]), (1, ["default/a"])]
        assert rig.agrees()


async def test_tasks_that_are_refused_together_are_all_sent_again():
    async with Rig() as rig:
        rig.pod("running", node="n")
        rig.pod("ends", node="n")
        await rig.settle()
        delays, refusing = retries_at_once(rig), Refusing(rig, whole=True)
        rig.pod("a")
        rig.gone("ends")
        rig.store.resend_pod("uid-running")
        await rig.settle()
        assert refusing.updates[0] == (1, ["default/a", "default/running"])
        assert {name for _, names in refusing.updates[1:] for name in names} == {"default/a", "default/running"}
        assert delays == [0.05] * 3
        assert rig.bound == ["a"]
        assert rig.agrees()


async def test_a_malformed_task_keeps_no_other_from_the_engine():
    async with Rig() as rig:
        retries_at_once(rig)
        refusing = Refusing(rig, 20, whole=True, name="bad")
        for name in ("a", "bad", "b"):
            rig.pod(name)
        await rig.settle()
        assert ["default/bad"] in [names for _, names in refusing.updates[:10]]
        assert rig.bound[:2] == ["a", "b"]
        assert rig.agrees()
