"""Whatever one namespace submits, tasks of another are placed in the next round, with work proportional to the number
of hostile tasks."""

import pytest

from firmament_py.model.events import Event
from firmament_py.state import class_bounds
from tests.builders import NOW_US, Cluster, make_class, make_cluster, make_label_set, make_node, make_tasks, removed
from tests.firmament_py.hostile import OTHERS, TERMS, many_labels
from tests.work import calls

LIMITS = {
    **dict.fromkeys(TERMS, class_bounds.MAX_TERMS),
    **dict.fromkeys(OTHERS, class_bounds.MAX_TERMS),
    "ports": class_bounds.MAX_TOKENS,
    "resources": class_bounds.MAX_RESOURCES - 1,  # beside cpu
    "tolerations": class_bounds.MAX_TOLERATIONS,
    "images": class_bounds.MAX_IMAGES,
}
ONE_OF_EACH = {**TERMS, **OTHERS}
KINDS = [*ONE_OF_EACH, "all"]
VICTIM = 10**6


def hostile(kind: str, first: int, tasks: int) -> list[Event]:
    """So many tasks, each of a class of its own that says as much as it may, and one that says ten times as much."""
    kinds = list(ONE_OF_EACH) if kind == "all" else [kind]
    events: list[Event] = []
    for number in range(first, first + tasks):
        of = kinds[number % len(kinds)]
        says = ONE_OF_EACH[of](LIMITS[of])
        events += [
            make_label_set(number, "harm", **many_labels(class_bounds.MAX_TERMS), number=str(number)),
            make_class(number, priority=number % 3, expected_us=number, **{"cpu": 1, **says}),
            make_tasks([number], number, label_set=number),
        ]
    return events


def under_attack(kind: str, tasks: int) -> Cluster:
    nodes = [
        make_node(f"n{i}", cpu=tasks + 9, labels={"host": f"h{i}", "zone": f"z{i % 3}", "key1": "x"}) for i in range(6)
    ]
    return make_cluster(*nodes, make_class(VICTIM, cpu=1), *hostile(kind, 1, tasks))


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_of_others_are_placed_in_the_next_round(kind):
    cluster = under_attack(kind, 8)
    cluster.tell(*hostile(kind, 100, 2), make_tasks([VICTIM], VICTIM))
    assert VICTIM in cluster.round()
    cluster.tell(make_tasks([VICTIM + 1], VICTIM))
    assert VICTIM + 1 in cluster.round(), "nor is it held up by those who are placed"


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_too_long_descriptions_are_refused_and_delay_no_others(kind):
    cluster = under_attack(kind, 1)
    says = ONE_OF_EACH[kind](2 * class_bounds.MAX_REQUIREMENTS)
    [outcome] = cluster.tell(make_class(50, **says))
    assert [refusal.id for refusal in outcome.refused] == ["50"]
    assert cluster.tell(make_tasks([50, VICTIM], [50, VICTIM]))[0].unknown_classes == {50}
    assert VICTIM in cluster.round()


def work(kind: str, tasks: int) -> int:
    """Function calls of two rounds: of all tasks, and again with a later task."""
    cluster = under_attack(kind, tasks)
    first = calls(lambda: cluster.scheduler.run(NOW_US))
    cluster.tell(make_tasks([VICTIM], VICTIM))
    return first + calls(lambda: cluster.scheduler.run(NOW_US))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_work_is_proportional_to_the_number_of_descriptions(kind):
    tasks = len(ONE_OF_EACH) if kind == "all" else 4 if kind in TERMS else 8
    few, many = work(kind, tasks), work(kind, 2 * tasks)
    assert many <= 2.4 * few


@pytest.mark.parametrize("kind", KINDS)
def test_work_returns_to_normal_after_their_removal(kind):
    cluster = under_attack(kind, 0)
    cluster.tell(make_tasks([VICTIM], VICTIM))
    before = calls(lambda: cluster.scheduler.run(NOW_US))
    cluster = under_attack(kind, 6)
    cluster.run()
    cluster.tell(removed(*range(1, 7)))
    cluster.run()
    cluster.tell(make_tasks([VICTIM], VICTIM))
    after = calls(lambda: cluster.scheduler.run(NOW_US))
    assert after <= 1.3 * before
    assert len(cluster.state.resources) <= 20
