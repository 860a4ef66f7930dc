"""Migrations of tasks that read data."""

from firmament_py.placement import migration
from policies.quincy import Quincy
from tests.builders import make_class, make_inputs, make_node, make_tasks, migrating_cluster, removed
from tests.firmament_py.placement.migrations import SMALL


def reading(gib, *events, move_mib=1024):
    """A task on node `a` whose data is on node `b`, which is full for now."""
    return migrating_cluster(
        make_node("a", cpu=4),
        make_node("b", cpu=4),
        SMALL,
        make_class(2, cpu=4),
        make_inputs(1, (1024 * gib, "b")),
        make_tasks([1], 1, on="a", inputs=1, movable=True),
        make_tasks([2], 2, on="b"),
        *events,
        policy=Quincy(move_mib=move_mib),
    )


def test_a_task_follows_its_data_when_the_node_has_capacity():
    cluster = reading(8)
    assert not cluster.migrating(cluster.run())
    cluster.tell(removed(2))
    for _ in range(3):  # it stays for twice as many rounds each time that it has to stay
        if found := cluster.migrating(cluster.run()):
            break
    assert found == {1: "b"}


def test_little_data_is_not_worth_a_migration():
    cluster = reading(1)
    cluster.tell(removed(2))
    assert not any(cluster.migrating(cluster.run()) for _ in range(4))


def test_a_task_that_cannot_move_is_not_in_the_way_of_others(monkeypatch):
    """Only one task enters a network; the data of task 1 is on a full node, that of task 3 where there is capacity."""
    monkeypatch.setattr(migration, "CANDIDATES", 1)
    cluster = reading(
        8,
        make_node("c", cpu=1),
        make_node("d", cpu=4),
        make_inputs(2, (4 * 1024, "d")),
        make_tasks([3], 1, on="c", inputs=2, movable=True),
    )
    cluster.tell(make_tasks([4], 2, on="d"))
    cluster.run()
    cluster.tell(removed(4))
    found = [uid for _ in range(3) for uid in cluster.migrating(cluster.run())]
    assert found == [3]


def test_what_is_known_of_a_task_is_forgotten_when_it_has_moved():
    cluster = reading(8)
    cluster.run()
    cluster.tell(removed(2), make_tasks([1], 1, on="b", inputs=1, movable=True))
    assert not any(cluster.run().stats.trials for _ in range(4))


def test_a_round_notes_what_the_data_of_the_tasks_that_it_places_costs(monkeypatch):
    """So it need not be found out again: tasks 1 and 3 would follow their data, task 1 ran before the first round."""
    monkeypatch.setattr(migration, "NEW_TASKS", 0)
    cluster = reading(8)
    cluster.tell(make_tasks([3], 1, inputs=1, movable=True))
    assert cluster.round() == {3: "a"}
    cluster.tell(make_tasks([3], 1, on="a", inputs=1, movable=True), removed(2))
    found = [uid for _ in range(4) for uid in cluster.migrating(cluster.run())]
    assert found == [3]
