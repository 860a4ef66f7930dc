"""Which flavors running tasks take on nodes of several, against a count task by task."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Flavor, QueueTree
from firmament_py.sharing.use import QueueUse
from tests.builders import make_class, make_cluster, make_gang, make_node, make_tasks
from tests.effort import examples
from tests.firmament_py.queues.trees import queue, queue_id, quota

FLAVORS = Flavor("any", {}), Flavor("red", {"kind": "red"}), Flavor("x", {"zone": "x"})
NODES = {"rx": {"kind": "red", "zone": "x"}, "r": {"kind": "red"}, "x": {"zone": "x"}, "none": {}}
ON = {"rx": ["any", "red", "x"], "r": ["any", "red"], "x": ["any", "x"], "none": ["any"]}
A = queue_id("a")


def cluster_of(order, nominal, *events):
    """A queue with flavors in this order; class n requests n CPUs."""
    quotas = [quota(nominal[name], on=f"{name}/cpu") for name in order]
    return make_cluster(
        *(make_node(name, cpu=99, labels=labels) for name, labels in NODES.items()),
        *(make_class(number, cpu=number) for number in (1, 2, 3)),
        QueuesObserved(QueueTree((queue("a", "", *quotas),), FLAVORS)),
        *events,
    )


def note(cluster, flavors):
    """flavors: of some uids, that they were admitted on."""
    state = cluster.state
    for uid, name in flavors.items():
        state.tasks.flavors[state.task_row(uid)] = state.flavor_choices.number((("cpu", name),))


def chosen(cluster, uids):
    """The flavor of each."""
    use, choices = QueueUse(cluster.state), cluster.state.flavor_choices
    numbers = use.choices.of_task[cluster.state.task_rows(np.array(uids, np.uint64))]
    return [dict(choices[number])["cpu"] if number >= 0 else "" for number in numbers.tolist()]


names = st.sampled_from([flavor.name for flavor in FLAVORS])
tasks = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(list(NODES)), st.one_of(st.none(), names)), max_size=12)


@examples(60)
@given(st.permutations([flavor.name for flavor in FLAVORS]), st.lists(st.integers(0, 6), min_size=3, max_size=3), tasks)
def test_the_oldest_takes_the_first_flavor_that_has_quota_left(order, amounts, running):
    nominal = dict(zip(order, amounts, strict=True))
    uids = range(1, len(running) + 1)
    on = [make_tasks([uid], cls, on=node, queue=A, created_us=uid) for uid, (cls, node, _) in enumerate(running, 1)]
    cluster = cluster_of(order, nominal, *reversed(on))
    note(cluster, {uid: name for uid, (_, _, name) in enumerate(running, 1) if name})
    used, expected = dict.fromkeys(order, 0), []
    for cls, node, name in running:
        if name in ON[node]:
            used[name] += cls
        elif len(ON[node]) == 1:
            used["any"] += cls
    for cls, node, name in running:
        of = [each for each in order if each in ON[node]]
        if name not in of and len(of) > 1:
            name = next((each for each in of if used[each] + cls <= nominal[each]), of[0])
            used[name] += cls
        expected.append(name if name in of else of[0])
    assert chosen(cluster, uids) == expected
    use = QueueUse(cluster.state)
    total = use.running(leaving=True)[0]
    assert {name: int(total[use.queues.column(name, "cpu")]) for name in order} == used


def test_a_gang_takes_one_flavor_if_there_is_one_that_has_quota_for_all():
    gang = make_gang(7, 2), make_tasks([1, 2], 1, on="r", gang=7, queue=A)
    assert chosen(cluster_of(["any", "red"], {"any": 1, "red": 2}, *gang), [1, 2]) == ["red", "red"]
    assert chosen(cluster_of(["any", "red"], {"any": 1, "red": 1}, *gang), [1, 2]) == ["any", "any"]


def test_nominated_tasks_come_after_those_that_run():
    running = make_tasks([2], 1, on="r", queue=A, created_us=5)
    cluster = cluster_of(["any", "red"], {"any": 1, "red": 1}, make_tasks([1], 1, nominated="r", queue=A), running)
    assert chosen(cluster, [2, 1]) == ["any", "red"]


def test_what_is_not_known_is_noted_in_a_round_only():
    cluster = cluster_of(["any", "red"], {"any": 1, "red": 1}, make_tasks([1, 2], 1, on="r", queue=A))
    assert chosen(cluster, [1, 2]) == ["any", "red"]
    assert (cluster.state.tasks.flavors == -1).all()
    cluster.tell(make_tasks([3], 1, queue=A))
    cluster.round()
    rows = cluster.state.task_rows(np.array([1, 2], np.uint64))
    assert (cluster.state.tasks.flavors[rows] >= 0).all()


def test_choices_of_flavors_that_nothing_refers_to_are_forgotten():
    cluster = cluster_of(["any", "red"], {"any": 9, "red": 9}, make_tasks([1, 2], 1, on="r", queue=A))
    note(cluster, {1: "x", 2: "red"})
    state, [row] = cluster.state, cluster.state.task_rows(np.array([1], np.uint64))
    state.tasks.flavors[row] = -1
    cluster.tell(QueuesObserved(state.queues.tree))
    assert len(state.flavor_choices) == 1
    assert chosen(cluster, [1, 2]) == ["any", "red"]
