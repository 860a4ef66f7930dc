"""Plans of moves, carried out round by round: examples, and random worlds in which much fails."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.engine.plan_execution import ATTEMPTS, PATIENCE_US, Stage
from firmament_py.model.events import NodeRemoved
from firmament_py.model.options import Migrating
from firmament_py.placement.migration import SUCCESSOR_US
from firmament_py.rebalance.planner import Goal
from tests.builders import (
    SECOND_US,
    make_budget,
    make_class,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    removed,
    selecting,
    tasks_like,
)
from tests.effort import examples
from tests.firmament_py.engine.carrying_out import LARGE, TASK, World, one_each, step
from tests.firmament_py.preemption.moving import needed_by
from tests.firmament_py.rebalance.plans import movable, plan_of


def test_a_move_goes_from_decision_to_successor():
    world = one_each()
    world.begin(step((1, "b")))
    assert world.stages == {1: Stage.WAITING}
    assert world.round() == {1: "b"}
    assert world.stages == {1: Stage.LEAVING}
    world.round()
    assert world.stages == {1: Stage.LEAVING}
    world.evicted(1)
    world.round()
    assert world.placed == {1001: "b"}
    world.round()
    assert world.stages == {1: Stage.DONE}
    assert not world.plan.active


def test_a_step_begins_when_those_that_it_waits_for_have_ended():
    world = one_each()
    world.begin(step((1, "b")), step((2, "c"), after=(0,)))
    assert world.round() == {1: "b"}
    assert world.round() == {}
    assert world.reasons[2] == "earlier steps have not ended"
    world.evicted(1)
    assert world.round() == {2: "c"}


def test_a_step_follows_one_that_was_dropped():
    world = one_each()
    world.begin(step((1, "b")), step((2, "c"), after=(0,)))
    world.cluster.tell(removed(1))
    assert world.round() == {2: "c"}
    assert world.stages == {1: Stage.DROPPED, 2: Stage.LEAVING}


def test_capacity_is_given_to_one_step_only():
    world = World(*movable([1], TASK, "a"), *movable([2], TASK, "c"), *movable([3, 4, 5], TASK, "b"))
    world.begin(step((1, "b")), step((2, "b")))
    assert world.round() == {1: "b"}
    assert world.reasons[2] == "its nodes have too little free capacity"


def test_a_step_waits_for_capacity():
    world = World(*movable([1], TASK, "a"), *movable([2, 3, 4, 5], TASK, "b"), names="ab")
    world.begin(step((1, "b")))
    assert world.round() == {}
    assert world.reasons == {1: "its nodes have too little free capacity"}
    world.cluster.tell(removed(5))
    assert world.round() == {1: "b"}


def test_tasks_that_exchange_places_leave_together():
    world = World(*movable([1, 2], TASK, "a"), *movable([3, 4], TASK, "b"), names="ab", cpu=2)
    world.begin(step((1, "b"), (3, "a")))
    assert world.round() == {1: "b", 3: "a"}
    for uid in (1, 3):
        world.evicted(uid)
    world.round()
    assert world.placed == {1001: "b", 1002: "a"}
    world.round()
    assert set(world.stages.values()) == {Stage.DONE}


def test_a_successor_on_another_node_is_told():
    world = one_each()
    world.begin(step((1, "b")))
    world.round()
    world.cluster.tell(NodeRemoved("id-b"))
    world.evicted(1)
    world.round()
    world.round()
    assert world.stages == {1: Stage.OTHER_NODE}


def test_without_node_and_successor_a_move_is_not_done():
    world = one_each()
    world.begin(step((1, "b")))
    world.round()
    world.cluster.tell(removed(2), NodeRemoved("id-b"))
    world.evicted(1, successor=False)
    world.round()
    assert (world.stages, world.reasons) == ({1: Stage.OTHER_NODE}, {1: "no successor has come"})


def test_a_successor_that_does_not_come_is_told():
    world = one_each()
    world.begin(step((1, "b")))
    world.round()
    world.evicted(1, successor=False)
    world.round()
    assert world.stages == {1: Stage.AWAITED}
    world.round(seconds=SUCCESSOR_US // SECOND_US + 1)
    assert (world.stages, world.reasons) == ({1: Stage.OTHER_NODE}, {1: "no successor has come"})


def test_a_task_that_is_not_evicted_is_tried_again_a_few_times():
    world = one_each()
    world.begin(step((1, "b")))
    for _ in range(ATTEMPTS - 1):
        assert world.round() == {1: "b"}
        world.refused(1)
        world.cluster.tell(make_tasks([1], TASK, job=1, on="a"))  # for a while after a refusal
        assert world.round() == {}
        assert (world.stages, world.reasons) == ({1: Stage.WAITING}, {1: "it was not evicted"})
        world.cluster.tell(*movable([1], TASK, "a"))
    assert world.round() == {1: "b"}
    world.refused(1)
    assert world.round() == {}
    assert (world.stages, world.reasons) == ({1: Stage.DROPPED}, {1: "it was not evicted"})


def test_of_tasks_that_leave_together_none_is_tried_again():
    world = one_each()
    world.begin(step((1, "b"), (2, "c")))
    world.round()
    world.refused(1)
    world.round()
    assert world.stages == {1: Stage.DROPPED, 2: Stage.LEAVING}


def test_a_successor_may_come_before_the_task_is_gone():
    world = one_each()
    world.begin(step((1, "b")))
    world.round()
    world.cluster.tell(make_tasks([1001], TASK, job=1, movable=True))
    world.round()
    assert (world.placed, world.stages) == ({1001: "b"}, {1: Stage.LEAVING})
    world.evicted(1, successor=False)
    world.round()
    assert world.stages == {1: Stage.DONE}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (removed(1), "it does not run any more"),
        (NodeRemoved("id-b"), "the node is gone"),
        (make_tasks([1], TASK, on="a", job=1), "it may not be moved any more"),
        (make_tasks([1], TASK, on="a", job=1, movable=True, unevictable=True), "it may not be moved any more"),
        (make_tasks([1], TASK, on="a", job=1, movable=True, gang=1), "it may not be moved any more"),
        (make_tasks([1], TASK, on="a", job=1, movable=True, leaving=True), "it is leaving already"),
        (make_tasks([1], TASK, on="b", job=1, movable=True), "it runs on that node already"),
    ],
)
def test_what_cannot_be_carried_out_any_more_is_dropped(change, reason):
    world = one_each()
    world.cluster.tell(make_gang(1, 1))
    world.begin(step((1, "b")))
    world.cluster.tell(change)
    assert world.round() == {}
    assert (world.stages, world.reasons) == ({1: Stage.DROPPED}, {1: reason})


def test_a_step_to_a_node_that_its_task_must_avoid_is_dropped():
    picky = make_class(5, cpu=1, demand=selecting(needs("disk")))
    world = World(picky, *movable([1], 5, "a"))
    world.begin(step((1, "b")))
    assert world.round() == {}
    assert (world.stages, world.reasons) == ({1: Stage.DROPPED}, {1: "selector, affinity or a taint forbids the node"})


def test_a_budget_lets_one_task_go_after_the_other():
    label_set = make_label_set(1, app="web")
    budget = make_budget(1, tasks_like(needs("app", "In", "web")), 1)
    tasks = [event for uid, name in ((1, "a"), (2, "b")) for event in movable([uid], TASK, name, label_set=1)]
    world = World(label_set, budget, *tasks)
    world.begin(step((1, "c")), step((2, "c")))
    assert world.round() == {1: "c"}
    assert world.round() == {}
    assert world.reasons[2] == "the disruption budget budget-1"
    world.evicted(1)
    assert world.round() == {}, "the number of the budget may still be that of before"
    world.cluster.tell(budget)
    assert world.round() == {2: "c"}


def test_few_moves_are_under_way_at_a_time():
    world = one_each(moves_at_once=2)
    world.begin(step((1, "b")), step((2, "c")), step((3, "a")))
    assert set(world.round()) == {1, 2}
    assert world.round() == {}
    world.evicted(1)
    assert set(world.round()) == {3}


def test_a_step_with_more_moves_than_that_goes_alone():
    world = one_each(moves_at_once=1)
    world.begin(step((1, "b")), step((2, "c"), (3, "a")))
    assert set(world.round()) == {1}
    world.evicted(1)
    assert set(world.round()) == {2, 3}


def test_moves_of_an_hour_are_limited():
    world = one_each(moves_per_hour=2)
    world.begin(step((1, "b")), step((2, "c")), step((3, "a")))
    assert set(world.round()) == {1, 2}
    world.evicted(1)
    world.evicted(2)
    assert world.round() == {}
    assert world.reasons[3].startswith("as many moves as permitted")
    world.plan.begin([step((3, "a"))], world.now_us + 3590 * SECOND_US)
    assert set(world.round(seconds=3600)) == {3}


def test_a_waiting_task_gets_its_place():
    world = World(*movable([1, 2], TASK, "a"), make_tasks([3], TASK, on="b"), make_tasks([10], LARGE), names="ab")
    world.begin(step((1, "b"), (2, "b"), nominated=((10, "id-a"),)))
    assert world.round() == {1: "b", 2: "b"}
    assert world.cluster.nominated() == {10: "a"}
    for uid in (1, 2):
        world.evicted(uid)
    world.round()
    assert world.placed[10] == "a"


def test_moves_are_needed_by_the_task_that_waits_for_them():
    running = *movable([1], TASK, "a"), *movable([2], TASK, "c"), make_tasks([3], TASK, on="b")
    world = World(*running, make_tasks([10], LARGE))
    world.begin(step((1, "b"), nominated=((10, "id-a"),)), step((2, "b")))
    assert needed_by(world.cluster, world.cluster.run(world.now_us)) == {1: 10, 2: 0}


def test_moves_for_a_task_that_another_node_is_kept_for_are_dropped():
    running = *movable([1], TASK, "a"), make_tasks([3], TASK, on="b"), make_tasks([4], LARGE, on="c", leaving=True)
    world = World(*running, make_tasks([10], LARGE, nominated="c"))
    world.begin(step((1, "b"), nominated=((10, "id-a"),)))
    assert world.round() == {}
    assert world.reasons == {1: "what it makes capacity for does not wait any more"}
    assert world.cluster.nominated() == {10: "c"}


@pytest.mark.parametrize(("key", "dropped"), [("", False), ("zone", False), ("kubernetes.io/hostname", True)])
def test_moves_for_a_gang_that_would_not_be_in_its_domain_any_more_are_dropped(key, dropped):
    """Its topology may be another one than when the plan was made."""
    running = *movable([1], TASK, "a"), make_tasks([3], TASK, on="b")
    world = World(*running, make_gang(7, 2), make_tasks([10, 11], LARGE, gang=7))
    world.begin(step((1, "b"), nominated=((10, "id-a"), (11, "id-c"))))
    for name in "abc":
        world.cluster.tell(make_node(name, cpu=4, labels={"kubernetes.io/hostname": name, "zone": "z"}))
    world.cluster.tell(make_gang(7, 2, topology=key, required=bool(key)))
    assert world.round() == ({} if dropped else {1: "b"})
    assert world.reasons == ({1: "gang gang-7 would not be in one domain of its topology"} if dropped else {1: ""})


def test_moves_for_a_task_that_does_not_wait_any_more_are_dropped():
    world = World(*movable([1], TASK, "a"), make_tasks([3], TASK, on="b"), make_tasks([10], LARGE), names="ab")
    world.begin(step((1, "b"), nominated=((10, "id-a"),)))
    world.cluster.tell(removed(10))
    assert world.round() == {}
    assert world.reasons == {1: "what it makes capacity for does not wait any more"}


def test_without_progress_the_rest_is_dropped():
    world = World(*movable([1], TASK, "a"), *movable([2, 3, 4, 5], TASK, "b"), names="ab")
    world.begin(step((1, "b")))
    world.round()
    assert world.cluster.scheduler.wake_us(world.now_us) == world.now_us + SECOND_US
    world.round(seconds=PATIENCE_US // SECOND_US)
    assert world.reasons == {1: "it has waited for too long: its nodes have too little free capacity"}
    assert not world.plan.active


@pytest.mark.parametrize("change", ["a step begins", "a task is gone"])
def test_patience_begins_anew_with_each_change(change):
    """Task 2 waits for capacity for two thirds of the patience before and after the change."""
    world = World(*movable([1], TASK, "a"), *movable([2], TASK, "c"), *movable([3, 4, 5, 6], TASK, "b"))
    two_thirds = PATIENCE_US // SECOND_US * 2 // 3
    world.begin(step((1, "c")), step((2, "b")))
    if change == "a step begins":
        world.cluster.tell(make_tasks([7, 8, 9], TASK, on="c"))
        assert world.round() == {}
        world.cluster.tell(removed(7))
    else:
        assert world.round() == {1: "c"}
        world.evicted(1)
    world.round(seconds=two_thirds)
    assert world.stages[2] is Stage.WAITING
    world.plan.next_steps(world.now_us + two_thirds * SECOND_US, 1)
    assert world.stages[2] is Stage.WAITING


def test_a_plan_can_be_ended():
    world = one_each()
    world.begin(step((1, "b")), step((2, "c"), after=(0,)))
    world.round()
    world.begin()
    assert world.stages == {1: Stage.LEAVING, 2: Stage.DROPPED}
    assert world.reasons[2] == "the plan was ended"


def test_a_round_is_due_while_a_plan_is_carried_out():
    world = one_each()
    world.round()
    assert not world.cluster.scheduler.due(world.now_us + 10 * SECOND_US)
    world.begin(step((1, "b")))
    assert world.cluster.scheduler.due(world.now_us)
    assert not world.cluster.scheduler.quiet


def test_clients_that_do_not_preempt_carry_out_no_plan():
    world = one_each()
    world.begin(step((1, "b")))
    result = world.cluster.scheduler.run(world.now_us, preempts=False)
    assert not len(result.migration.tasks)


@given(st.data())
@examples(25)
def test_every_plan_ends_and_no_node_is_over_committed(data):
    """Evictions are refused, tasks end, others come, nodes vanish, budgets are spent; rounds are checked by the audit
    (Cluster.run), and the state by its invariants."""
    names = "abcde"[: data.draw(st.integers(2, 5))]
    label_set = make_label_set(1, app="web")
    selector = tasks_like(needs("app", "In", "web"))
    counts = [data.draw(st.integers(0, 3)) for _ in names]
    uids = iter(range(1, 100))
    tasks = [
        event
        for name, count in zip(names, counts, strict=True)
        for event in movable([next(uids) for _ in range(count)], TASK, name, label_set=data.draw(st.integers(0, 1)))
    ]
    waiting = [make_tasks([900 + i], LARGE) for i in range(data.draw(st.integers(0, 2)))]
    budget = make_budget(1, selector, data.draw(st.integers(0, 2)))
    migrating = data.draw(st.sampled_from([Migrating.NEVER, Migrating.FOR_WAITING]))
    world = World(
        label_set,
        budget,
        *tasks,
        *waiting,
        names=names,
        moves_at_once=data.draw(st.integers(1, 4)),
        migrating=migrating,
    )
    goal = data.draw(st.sampled_from([Goal.PACK, Goal.PLACE, Goal.SPREAD]))
    plan = plan_of(world.cluster, goal, moves=data.draw(st.integers(1, 8)))
    world.begin(*plan.steps)
    state = world.cluster.state
    for _ in range(20):
        world.round(seconds=60)  # longer than moves for waiting tasks pause
        used = state.nodes.used[state.present_nodes()]
        assert (used <= state.nodes.allocatable[state.present_nodes()]).all()
        for uid in [uid for uid in world.under_way if data.draw(st.booleans())]:
            fate = data.draw(st.sampled_from(["evicted", "evicted", "evicted", "refused", "ended"]))
            if fate == "refused" and state.task_row(uid) is not None:
                world.refused(uid)
            else:
                world.evicted(uid, successor=fate == "evicted")
        if data.draw(st.integers(0, 9)) == 0:
            world.cluster.tell(make_tasks([world.new + 5000], TASK))
            world.new += 1
        if not world.plan.active:
            break
    for uid in list(world.under_way):
        world.evicted(uid)
    world.round(seconds=PATIENCE_US // SECOND_US)
    world.round(seconds=SUCCESSOR_US // SECOND_US + 1)
    world.round(seconds=PATIENCE_US // SECOND_US)
    assert not world.plan.active
    assert all(each.stage.ended for each in world.plan.progress)
