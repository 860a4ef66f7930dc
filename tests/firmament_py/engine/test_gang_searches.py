"""Exact searches for gangs beside the rounds: what they find is carried out whole, or not at all."""

from collections.abc import Sequence

import pytest

from firmament_py.admission import gang_placement
from firmament_py.explain.reason import ReasonKind
from firmament_py.model.events import Event
from tests.builders import SECOND_US, make_class, make_gang, make_node, make_tasks, removed
from tests.firmament_py.engine.test_searches import Searching

NODES = make_node("a", cpu=6, memory=6), make_node("b", cpu=8, memory=3)
GANG = (
    *(make_class(11, cpu=4, memory=3), make_class(12, cpu=4, memory=1), make_gang(1, 3)),
    *(make_tasks([21], 11, gang=1), make_tasks([22, 23], 12, gang=1)),
)
"""Flows send member 21 to b, where it leaves no memory for the two others; on a, it leaves b to them."""


@pytest.fixture(autouse=True)
def every_search_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang_placement, "BRIEF_STEPS", 0)


def running(cluster: Searching) -> set[int]:
    return set(cluster.uids(cluster.engine.state.tasks.on_nodes)) - {1}


def test_others_leave_before_the_search_ends_and_the_gang_after_it():
    cluster = Searching(*NODES, *GANG, make_node("c", gpu=2), make_class(13, gpu=1), make_tasks([31], 13))
    first = cluster.round()
    assert cluster.placed(first) == [31]
    assert first is not None
    assert all(not len(each.unreported) for each in first.waiting), "the search may still find a way"
    cluster.tell(make_tasks([32], 13))
    assert cluster.placed(cluster.round()) == [32]
    cluster.search.finish()
    assert sorted(cluster.placed(cluster.round())) == [21, 22, 23]
    assert cluster.engine.quiet


def test_brief_searches_stay_in_the_round(monkeypatch):
    monkeypatch.setattr(gang_placement, "BRIEF_STEPS", 100)
    cluster = Searching(*NODES, *GANG)
    assert sorted(cluster.placed(cluster.round())) == [21, 22, 23]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([make_tasks([41], 12, on="b")], id="another-scheduler-takes-room"),
        pytest.param([removed(22)], id="a-member-is-deleted"),
        pytest.param([make_gang(1, 4)], id="the-gang-is-defined-anew"),
        pytest.param([make_node("b", cpu=8, memory=1)], id="a-node-shrinks"),
    ],
)
def test_no_member_is_placed_where_not_all_fit_any_more(events: Sequence[Event]):
    cluster = Searching(*NODES, *GANG)
    cluster.round()
    cluster.tell(*events)
    cluster.search.finish()
    for _ in range(3):
        cluster.round()
        if cluster.search.running:
            cluster.search.finish()
    assert running(cluster) <= {41}
    assert cluster.engine.quiet


def test_it_is_searched_for_again_where_the_way_still_is():
    """The node on which two members were to go is another one by now, described alike but for a label."""
    cluster = Searching(*NODES, *GANG)
    cluster.round()
    cluster.tell(make_node("b", cpu=8, memory=3, labels={"new": ""}))
    cluster.search.finish()
    assert cluster.placed(cluster.round()) == []
    cluster.search.finish()
    assert sorted(cluster.placed(cluster.round())) == [21, 22, 23]


def test_what_is_released_later_begins_a_search():
    cluster = Searching(*NODES, *GANG, make_tasks([41], 12, on="b"))
    cluster.round()
    cluster.search.finish()
    cluster.round()
    assert running(cluster) == {41}
    cluster.tell(removed(41))
    cluster.now_us += SECOND_US  # after a search in vain there is a pause
    last = cluster.round()
    assert last is not None
    assert last.waiting[0].reasons[0].kind is ReasonKind.GANG_DOES_NOT_FIT
    cluster.search.finish()
    assert sorted(cluster.placed(cluster.round())) == [21, 22, 23]
