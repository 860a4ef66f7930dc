"""The check of decisions between queues, by decisions of which one thing is wrong."""

import numpy as np
import pytest

from benchmarks.loads.jobs.check import Decision
from benchmarks.loads.jobs.load import JobsSpec
from benchmarks.loads.queues.reclaim import ARRIVING, OWNER, ReclaimLoad, ReclaimWorld
from firmament_py.model.queues import Sharing
from firmament_py.queues.tree import build


def load_of(guarantee=8, **changes):
    """2 nodes with 8 tasks of one GPU each, 0 to 7 and 8 to 15; jobs of a task of 4 GPUs from 16 on."""
    sizes = {"nodes": 2, "jobs": 4, "size": 1, "each": 4}
    return ReclaimLoad.of(JobsSpec(**{**sizes, **changes}), Sharing.CLASSICAL, guarantee)


def pairs(*of):
    return np.array([task for task, _ in of], np.int64), np.array([node for _, node in of], np.int64)


def test_tasks_are_in_their_queues_and_have_the_same_priority():
    load = load_of()
    queues, *_, running = load.cluster()
    assert not build(queues.tree).problems
    assert set(running.queue_id.tolist()) == {OWNER}
    [arriving] = load.arrive(np.arange(4))
    assert set(arriving.queue_id.tolist()) == {ARRIVING}
    assert len(set(load.priority.tolist())) == 1
    assert (load.total, load.guaranteed_jobs) == (16, 2)


def test_a_sound_decision():
    world = ReclaimWorld(load_of())
    assert world.apply(Decision(victims=np.arange(8), nominated=pairs((16, 0), (17, 0)))) == []
    assert world.evicted_in_vain == 0
    [anew] = load_of().created_anew(world)
    assert set(anew.queue_id.tolist()) == {OWNER}
    assert anew.uid.tolist() == list(range(21, 29))
    assert not anew.node.any()


@pytest.mark.parametrize(
    ("guarantee", "decision", "problem"),
    [
        pytest.param(
            4,
            Decision(victims=np.arange(5), nominated=pairs((16, 0))),
            "the queue of the victims keeps 11 of its guaranteed 12 GPUs",
            id="below the guarantee of the victims",
        ),
        pytest.param(
            7,
            Decision(victims=np.arange(8), nominated=pairs((16, 0), (17, 0))),
            "tasks are preempted for more than the guarantee of their queue",
            id="above the guarantee of the others",
        ),
        pytest.param(
            8,
            Decision(victims=np.array([0, 0, 1, 2, 3]), nominated=pairs((16, 0))),
            "a task is preempted twice",
            id="twice",
        ),
        pytest.param(
            8, Decision(victims=np.array([17])), "a task is preempted that does not run", id="a task that waits"
        ),
    ],
)
def test_what_is_wrong(guarantee, decision, problem):
    assert problem in ReclaimWorld(load_of(guarantee)).apply(decision)


def test_a_victim_too_many_is_evicted_in_vain():
    world = ReclaimWorld(load_of())
    world.apply(Decision(victims=np.arange(5), nominated=pairs((16, 0))))
    assert world.evicted_in_vain == 5  # any of them would fit
