"""The check of decisions, by decisions of which one thing is wrong, and the player with the engine of today."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.loads.jobs.check import Decision, World
from benchmarks.loads.jobs.load import JobsLoad, JobsSpec
from benchmarks.loads.jobs.play import Player
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.options import EngineOptions, Migrating
from firmament_py.policy import registry

NONE = np.zeros(0, np.int64)


def pairs(*of):
    return np.array([task for task, _ in of], np.int64), np.array([node for _, node in of], np.int64)


def tasks(*numbers):
    return np.array(numbers, np.int64)


def cluster(**changes) -> World:
    """2 nodes with 8 tasks of one GPU each, 0 to 7 and 8 to 15, and a gang of 16 and 17, which need 8 GPUs each."""
    return World(JobsLoad.generate(JobsSpec(**{"nodes": 2, "jobs": 1, "size": 2, "each": 8, **changes})))


def half_empty(**changes) -> World:
    """2 nodes with 3 tasks of one GPU each, movable, 0 to 2 and 3 to 5, and a task 6 that needs 6 GPUs."""
    sizes = {"nodes": 2, "jobs": 1, "size": 1, "each": 6, "running": 3, "preemptible": 0, "movable": True}
    return World(JobsLoad.generate(JobsSpec(**{**sizes, **changes})))


def test_a_sound_preemption():
    world = cluster()
    assert world.apply(Decision(victims=np.arange(16), nominated=pairs((16, 0), (17, 1)))) == []
    assert (world.half_served, world.served.sum()) == (0, 2)
    assert world.gone[:16].all()
    assert world.apply(Decision(placed=pairs((16, 0), (17, 1)))) == []
    assert world.node[16:].tolist() == [0, 1]
    assert (world.nominated < 0).all()


@pytest.mark.parametrize(
    ("decision", "problem"),
    [
        pytest.param(
            Decision(victims=np.arange(8), nominated=pairs((16, 0))), "1 jobs are served in part", id="half a gang"
        ),
        pytest.param(
            Decision(victims=np.arange(15), nominated=pairs((16, 0), (17, 1))),
            "a node could not take what it is reserved for once the tasks that leave it are gone",
            id="a victim too few",
        ),
        pytest.param(
            Decision(victims=np.arange(16), placed=pairs((16, 0), (17, 1))),
            "a node is over-committed",
            id="placed while the victims are there",
        ),
        pytest.param(
            Decision(victims=np.arange(8)),
            "a task is preempted, and its node is reserved for none of higher priority",
            id="for nothing",
        ),
        pytest.param(
            Decision(victims=tasks(*range(16), 3), nominated=pairs((16, 0), (17, 1))),
            "a task is preempted twice",
            id="a victim twice",
        ),
        pytest.param(
            Decision(victims=np.arange(8), nominated=pairs((8, 0))),
            "a node is reserved for a task that does not wait",
            id="nominated while it runs",
        ),
        pytest.param(Decision(moved=pairs((0, 1))), "a task moves that is not movable", id="moved"),
    ],
)
def test_a_wrong_preemption_is_found(decision, problem):
    assert problem in cluster().apply(decision)


def test_tasks_of_the_same_priority_are_no_victims():
    world = cluster(preemptible=15)
    decision = Decision(victims=np.arange(16), nominated=pairs((16, 0), (17, 1)))
    assert world.apply(decision) == ["a task is preempted, and its node is reserved for none of higher priority"]


def test_a_reservation_that_ends_leaves_half_a_gang():
    world = cluster()
    assert world.apply(Decision(victims=np.arange(16), nominated=pairs((16, 0), (17, 1)))) == []
    assert world.apply(Decision(unnominated=tasks(17))) == ["1 jobs are served in part"]
    assert world.half_served == 1


def test_a_sound_move():
    world = half_empty()
    assert world.apply(Decision(moved=pairs((0, 1)), nominated=pairs((6, 0)))) == []
    assert (len(world.cls), world.successors_waiting) == (8, 1)
    assert (world.job[7], world.cls[7], world.node[7]) == (world.job[0], world.cls[0], -1)
    assert world.apply(Decision(placed=pairs((7, 1), (6, 0)))) == []
    assert world.successors_waiting == 0


@pytest.mark.parametrize(
    ("decision", "problem"),
    [
        pytest.param(Decision(moved=pairs((0, 0))), "a task moves to the node that it leaves", id="nowhere"),
        pytest.param(Decision(moved=pairs((6, 1))), "a task moves that does not run", id="waits"),
        pytest.param(Decision(moved=pairs((0, 1), (0, 1))), "a task moves twice", id="twice"),
        pytest.param(
            Decision(moved=pairs((0, 1)), victims=tasks(0), nominated=pairs((6, 0))),
            "a task is preempted and moves",
            id="evicted, too",
        ),
        pytest.param(
            Decision(moved=pairs((0, 1), (3, 0)), nominated=pairs((6, 0))),
            "a node could not take what it is reserved for once the tasks that leave it are gone",
            id="exchanged",
        ),
    ],
)
def test_a_wrong_move_is_found(decision, problem):
    assert problem in half_empty().apply(decision)


def test_a_successor_on_another_node_than_planned_is_found():
    world = half_empty()
    assert world.apply(Decision(moved=pairs((0, 1)), nominated=pairs((6, 0)))) == []
    problems = world.apply(Decision(placed=pairs((7, 0))))
    assert "a task that has moved runs on another node than planned" in problems
    assert world.successors_waiting == 0


def test_what_does_not_wait_is_not_placed():
    world = half_empty()
    assert world.apply(Decision(placed=pairs((0, 1)))) == ["a task is placed that does not wait"]


def player(load, **options) -> Player:
    policy = registry.load("load-spreading", {"move_cost": "1"})
    return Player(load, Engine(policy, SOLVERS["or-tools"](), options=EngineOptions(**options)))


def test_victims_end_and_the_tasks_for_which_they_went_run():
    load = JobsLoad.generate(JobsSpec(4, 3, 1, 8, one_by_one=True))
    playing = player(load)
    played = playing.run()
    assert (played.victims, played.nominated, played.problems, played.endless) == (24, 3, [], False)
    assert len(played.decision_s) == 3
    assert (playing.world.node[32:] >= 0).all()
    assert played.seconds >= sum(played.decision_s)


def test_successors_of_tasks_that_move_arrive_and_run_where_planned():
    """Under load-spreading tasks leave nodes of 12 for the empty ones."""
    load = JobsLoad.generate(JobsSpec(6, 1, 1, 1, running=6, preemptible=0, movable=True))
    short = replace(load, node=load.node // 2, run_s=load.run_s * 0, allocatable=load.allocatable * 2)
    playing = player(short, migrating=Migrating.ALWAYS, migrate_after_us=0)
    played = playing.run()
    assert played.moves > 0
    assert played.problems == []
    assert (playing.world.successors_waiting, played.endless) == (0, False)
    assert len(playing.world.cls) == len(load.node) + 1 + played.moves


def test_a_gang_that_cannot_run_is_given_reasons():
    playing = player(JobsLoad.generate(JobsSpec(4, 1, 3, 8, preemptible=20)))
    played = playing.run()
    assert (played.victims, played.nominated, playing.world.served.sum()) == (0, 0, 0)
    assert sum(played.reasons.values()) == 3
    assert "" not in played.reasons
    assert played.decision_rounds == [1]
