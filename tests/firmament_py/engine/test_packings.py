"""Packing beside the rounds: what it may move waits for it, all else leaves at once, and what it places holds."""

from collections.abc import Sequence
from typing import Any

import pytest

from firmament_py.engine.engine import Engine
from firmament_py.engine.execution import InThread
from firmament_py.engine.round_result import RoundResult
from firmament_py.flow.solver import SOLVERS
from firmament_py.model.events import Event, NodeRemoved, QueuesObserved
from firmament_py.placement import repacking
from policies.load_spreading import LoadSpreading
from tests.builders import NOW_US, SECOND_US, make_class, make_gang, make_node, make_tasks, removed
from tests.firmament_py.engine.test_searches import Scripted
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree

WAITED_US = NOW_US - 200 * SECOND_US
LARGE, SMALL, DEVICE = make_class(1, cpu=4), make_class(2, cpu=1), make_class(3, gpu=1)


class Packed:
    """An engine with scripted searches and packings, on node a (cpu 4). The flow places task 1, which needs all of it
    and has waited for long; packing gives it up for tasks 2 to 5, which need a quarter each."""

    def __init__(self, *events: Event, packing: Any = None) -> None:
        self.search, self.packing = Scripted(), packing or Scripted()
        of = LoadSpreading(), SOLVERS["or-tools"]()
        self.engine = Engine(*of, searching=self.search, packing=self.packing)
        self.now_us = NOW_US
        waiting = make_tasks([1], 1, created_us=WAITED_US), make_tasks([2, 3, 4, 5], 2)
        self.tell(make_node("a", cpu=4), LARGE, SMALL, DEVICE, *events, *waiting)

    def tell(self, *events: Event) -> None:
        assert not self.engine.apply(events).refused
        self.engine.state.validate()

    def round(self) -> dict[int, str]:
        """uid -> node of what a round places; nothing, if none is due."""
        self.now_us += 1000
        result = self.engine.run_round(self.now_us)
        self.engine.state.validate()
        return {} if result is None else self.placed(result)

    def placed(self, result: RoundResult) -> dict[int, str]:
        assert result.stats.dropped == 0, "the independent check refused decisions"
        names = self.engine.state.nodes.id
        uids = self.engine.state.tasks.uid[result.tasks].tolist()
        return {uid: names[node][3:] for uid, node in zip(uids, result.nodes.tolist(), strict=True)}

    def running(self) -> set[int]:
        tasks = self.engine.state.tasks
        return set(tasks.uid[tasks.on_nodes].tolist())


@pytest.fixture(autouse=True)
def every_packing_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repacking, "BRIEF_TASKS", 0)


def on_a(*uids: int) -> dict[int, str]:
    return dict.fromkeys(uids, "a")


def test_what_packing_may_move_waits_for_it_and_all_else_leaves_at_once():
    cluster = Packed(make_node("b", gpu=4), make_gang(1, 2), make_tasks([6, 7], 3, gang=1))
    assert cluster.round() == {6: "b", 7: "b"}
    assert cluster.round() == {}, "no round is due because of it"
    assert cluster.engine.wake_us(cluster.now_us) == cluster.now_us + 10_000
    cluster.tell(make_tasks([8], 3), make_tasks([9], 2))
    assert cluster.round() == {8: "b"}, "the place of the held task is not for others"
    cluster.packing.finish()
    assert cluster.engine.wake_us(cluster.now_us) == cluster.now_us
    assert cluster.round() == on_a(2, 3, 4, 5)
    assert not cluster.packing.running
    assert cluster.engine.quiet


def test_it_comes_to_the_same_in_a_thread():
    cluster = Packed(packing=(thread := InThread("packing", niceness=0)))
    assert cluster.round() == {}
    assert thread._thread is not None
    thread._thread.join()
    assert cluster.round() == on_a(2, 3, 4, 5)


def test_brief_packings_stay_in_the_round(monkeypatch):
    monkeypatch.setattr(repacking, "BRIEF_TASKS", 5)
    assert Packed().round() == on_a(2, 3, 4, 5)


@pytest.mark.parametrize(
    ("events", "runs"),
    [
        pytest.param([removed(1)], {2, 3, 4, 5}, id="the-held-task-is-deleted"),
        pytest.param([removed(2), make_tasks([8], 1)], {3, 4, 5}, id="one-that-would-be-placed-is-deleted"),
        pytest.param([make_tasks([2], 1)], {3, 4, 5}, id="one-is-described-anew"),
        pytest.param([make_tasks([1], 2)], {1, 2, 3, 4}, id="the-held-task-is-described-anew"),
        pytest.param([make_tasks([9], 2, on="a")], {9, 2, 3, 4}, id="another-scheduler-takes-room"),
        pytest.param([make_node("a", cpu=3)], {2, 3, 4}, id="the-node-shrinks"),
        pytest.param([NodeRemoved("id-a"), make_node("b", cpu=4)], {2, 3, 4, 5}, id="the-node-goes-and-another-comes"),
        pytest.param([NodeRemoved("id-a")], set(), id="the-node-goes"),
    ],
)
def test_whatever_happens_meanwhile_nothing_is_wrongly_placed_and_no_task_is_forgotten(
    events: Sequence[Event], runs: set[int]
):
    cluster = Packed()
    cluster.round()
    cluster.tell(*events)
    cluster.round()
    for _ in range(5):
        if cluster.packing.running:
            cluster.packing.finish()
        cluster.round()
    assert cluster.running() == runs
    assert cluster.engine.quiet
    assert (cluster.engine.state.tasks.nominated < 0).all()


def test_if_it_fails_the_placements_of_the_flow_stand(monkeypatch, caplog):
    cluster = Packed()
    cluster.round()
    monkeypatch.setattr(repacking.Repacking, "search", lambda self: 1 // 0)
    cluster.packing.finish()
    assert "packing beside the rounds has failed" in caplog.text
    assert cluster.round() == on_a(1)


def test_a_round_that_searches_itself_packs_all_and_what_goes_on_is_forgotten():
    cluster = Packed()
    cluster.round()
    cluster.tell(make_tasks([9], 2))
    original = cluster.engine.run_round(cluster.now_us + 1000, original=True)
    assert original is not None
    assert cluster.placed(original) == on_a(2, 3, 4, 5)
    cluster.packing.finish()
    assert cluster.round() == {}


def test_while_it_goes_on_no_victims_are_sought_and_nothing_is_reported():
    important = make_class(4, cpu=1, priority=0), make_class(5, cpu=4, priority=-1)
    cluster = Packed(*important, make_node("b", cpu=4), make_tasks([6], 5, on="b"))
    cluster.now_us += 1000
    result = cluster.engine.run_round(cluster.now_us)
    assert result is not None
    assert all(not len(each.unreported) for each in result.waiting)
    assert not cluster.search.running
    cluster.packing.finish()
    assert cluster.round() == on_a(2, 3, 4, 5)
    assert cluster.search.running, "task 1 may preempt now"
    cluster.search.finish()
    cluster.round()
    nominated = cluster.engine.state.tasks.nominated >= 0
    assert cluster.engine.state.tasks.uid[nominated].tolist() == [1]


def test_held_tasks_count_for_their_quotas():
    """4 cpu, of which the held task takes all until the packing is over."""
    queues = QueuesObserved(tree(queue("root"), queue("a", "root", quota(4, on="f/cpu")), flavors=("f",)))
    cluster = Packed(queues, make_node("b", cpu=4, labels={"x": ""}))
    in_queue = {"queue": queue_id("a")}
    cluster.tell(
        make_tasks([1], 1, created_us=WAITED_US, **in_queue),
        make_tasks([2, 3, 4, 5], 2, **in_queue),
        make_node("b", cpu=1),
    )
    cluster.round()
    cluster.tell(make_tasks([9], 2, **in_queue))
    for _ in range(5):
        cluster.round()
        if cluster.packing.running:
            cluster.packing.finish()
    used = sum(4 if uid == 1 else 1 for uid in cluster.running())
    assert used == 4


def test_the_same_events_have_the_same_results():
    def run() -> list[dict[int, str]]:
        cluster = Packed()
        rounds = [cluster.round()]
        cluster.tell(make_tasks([8], 2), make_node("b", cpu=2), make_tasks([9], 2, on="a"))
        rounds.append(cluster.round())
        cluster.packing.finish()
        return [*rounds, cluster.round()]

    assert run() == run()
