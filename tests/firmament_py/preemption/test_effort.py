"""How much the search of victims tries."""

import pytest

from firmament_py.eviction.evict import evict
from tests.builders import make_class, make_node, make_tasks, preempting_cluster


@pytest.mark.parametrize("improve", [0.0, 1.0, 3.0])
def test_the_option_multiplies_it_and_without_effort_tasks_are_served_all_the_same(improve, monkeypatch):
    efforts = []

    def noting(*arguments, **options):
        efforts.append(options["effort"])
        return evict(*arguments, **options)

    monkeypatch.setattr("firmament_py.preemption.decision.evict", noting)
    cluster = preempting_cluster(
        make_node("a", cpu=8),
        make_class(1, cpu=4),
        make_class(2, cpu=4, priority=5),
        make_tasks([1, 2], 1, on="a"),
        make_tasks([3], 2),
        improve=improve,
    )
    assert list(cluster.preempted(cluster.run()).values()) == [3]
    assert efforts == [improve]
