"""Only the package state writes to the columns of its tables."""

import numpy as np
import pytest

from tests.builders import make_class, make_cluster, make_node, make_tasks
from tests.firmament_py.engine.test_searches import SearchedWorld
from tests.firmament_py.engine.wake_kinds import KINDS
from tests.firmament_py.state.sealed_columns import Sealed


@pytest.fixture
def sealed(monkeypatch):
    return Sealed(monkeypatch)


def watched(sealed, state):
    sealed.watch(state.tasks, state.nodes, state.classes, state.gangs, state.label_sets, state.inputs)


def test_columns_are_read_only_outside(sealed):
    cluster = make_cluster(make_node("a"), make_class(1), make_tasks([1], 1))
    tasks = cluster.state.tasks
    watched(sealed, cluster.state)
    with pytest.raises(ValueError, match="read-only"):
        tasks.node[0] = 0
    with pytest.raises(KeyError, match="node is no note of rounds"):
        tasks.note(np.array([0]), node=0)
    tasks.note(np.array([0]), considered_us=7)
    assert tasks.considered_us[0] == 7


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_rounds_and_searches_leave_the_writing_to_the_state(name, sealed):
    """Over some events of each kind of cluster, with searches beside the rounds."""
    world = SearchedWorld(KINDS[name], 7)
    watched(sealed, world.cluster.state)
    world.settle()
    for _ in range(6):
        world.step()
        world.settle()
