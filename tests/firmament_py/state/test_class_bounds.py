"""Limits on the description of a class, and that the work of a round is at most proportional to it."""

import pytest

from firmament_py.model.constraints import PeerDemand, PreferenceSet
from firmament_py.model.events import Outcome
from firmament_py.state import class_bounds
from tests.builders import NOW_US, make_class, make_cluster, make_label_set, make_node, make_tasks, needs, selecting
from tests.firmament_py.hostile import OTHERS, TERMS, many_labels, of_itself, of_others
from tests.work import calls

LIMITS = {
    "selector": ("requirements", class_bounds.MAX_REQUIREMENTS),
    "node-affinity": ("requirements", class_bounds.MAX_REQUIREMENTS),
    "further": ("requirements", class_bounds.MAX_REQUIREMENTS),
    "preferred-nodes": ("requirements", class_bounds.MAX_REQUIREMENTS),
    "tolerations": ("tolerations", class_bounds.MAX_TOLERATIONS),
    "images": ("images", class_bounds.MAX_IMAGES),
    "ports": ("tokens", class_bounds.MAX_TOKENS),
    "resources": ("requests", class_bounds.MAX_RESOURCES),
}


@pytest.mark.parametrize("kind", LIMITS)
def test_a_class_above_a_limit_is_refused_with_field_and_limit(kind):
    field, maximum = LIMITS[kind]
    cluster = make_cluster(make_class(1, **OTHERS[kind](maximum)))
    [outcome] = cluster.tell(make_class(2, **OTHERS[kind](maximum + 1)))
    [refusal] = outcome.refused
    assert (refusal.kind, refusal.id, refusal.field) == ("class", "2", field)
    assert f"makes {maximum + 1} " in refusal.reason
    assert refusal.reason.endswith(f"give at most {maximum}")
    assert cluster.tell(make_tasks([1], 2))[0].unknown_classes == {2}


@pytest.mark.parametrize("kind", TERMS)
def test_terms_of_all_kinds_count_together(kind):
    cluster = make_cluster(make_class(1, **TERMS[kind](class_bounds.MAX_TERMS)))
    [outcome] = cluster.tell(make_class(2, **TERMS[kind](class_bounds.MAX_TERMS + 1)))
    [refusal] = outcome.refused
    assert refusal.field == {"preferred-affinity": "preferred_peers", "preferred-spread": "spread"}.get(
        kind, kind.partition("-to")[0].partition("-of")[0].replace("-", "_")
    )
    assert refusal.reason == (
        f"makes {class_bounds.MAX_TERMS + 1} terms of affinity, anti-affinity and spread; give "
        f"at most {class_bounds.MAX_TERMS}"
    )


def test_the_field_that_is_named_has_the_most_terms():
    half = class_bounds.MAX_TERMS // 2
    peers = PeerDemand(affinity=of_others(half - 1), anti_affinity=of_others(half))
    wish = PreferenceSet(peers=tuple((1, term) for term in of_others(2)))
    [outcome] = make_cluster().tell(make_class(1, peers=peers, preferences=wish))
    assert [refusal.field for refusal in outcome.refused] == ["anti_affinity"]


def test_one_selector_can_have_any_number_of_values():
    many = needs("kubernetes.io/hostname", "In", *(f"n{i}" for i in range(2 * class_bounds.MAX_REQUIREMENTS)))
    assert make_cluster().tell(make_class(1, demand=selecting(many))) == [Outcome()]


def test_the_requirements_of_selectors_of_tasks_count():
    term = of_itself(1)[0]
    wide = tuple(needs(f"k{i}") for i in range(class_bounds.MAX_REQUIREMENTS))
    peers = PeerDemand(affinity=(term,))
    [outcome] = make_cluster().tell(make_class(1, demand=selecting(*wide), peers=peers))
    assert [refusal.field for refusal in outcome.refused] == ["requirements"]


def work_of_rounds(says, labelled: bool) -> int:
    """Function calls of a round with a waiting class of this description, and of the next, after placements."""
    size = class_bounds.MAX_TERMS
    keys = {f"key{i}": "v" for i in range(size)} if labelled else {}
    cluster = make_cluster(
        *(make_node(f"n{i}", cpu=4, labels={"host": f"h{i}", "zone": f"z{i % 3}", **keys}) for i in range(4)),
        *(make_label_set(1, "default", **many_labels(size)), make_class(1, cpu=1, **says), make_class(2, cpu=1)),
        *(make_tasks([1, 2, 3], 1, label_set=1), make_tasks([4], 2), make_tasks([5], 1, label_set=1, on="n0")),
    )
    first = calls(lambda: cluster.scheduler.run(NOW_US))
    assert 4 in {int(uid) for uid in cluster.state.tasks.uid} - cluster.waiting()
    return first + calls(lambda: cluster.scheduler.run(NOW_US))


@pytest.mark.parametrize("labelled", [True, False], ids=["labelled", "unlabelled"])
@pytest.mark.parametrize("kind", [*TERMS, *OTHERS])
def test_work_is_at_most_proportional_to_the_description(kind, labelled):
    says = {**TERMS, **OTHERS}[kind]
    maximum = class_bounds.MAX_TOKENS if kind == "ports" else class_bounds.MAX_TERMS
    half, whole = (work_of_rounds(says(size), labelled) for size in (maximum // 2, maximum))
    assert whole <= 2.05 * half
