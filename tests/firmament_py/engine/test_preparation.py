"""Compiled functions, and the memory that they take, are asked for only when they are likely to be needed."""

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.events import QueuesObserved
from firmament_py.model.queues import Flavor, QueueDefinition, QueueTree, Quota
from firmament_py.state.cluster import ClusterState
from policies.load_spreading import LoadSpreading
from tests.builders import NOW_US, make_class, make_node, make_tasks

TREE = QueueTree((QueueDefinition(1, "queue", quotas=(Quota("all", "cpu", 1),)),), (Flavor("all"),))


class Prepared:
    """An engine with one node for one task, and how often it has asked."""

    def __init__(self) -> None:
        self.count = 0
        self.engine = Engine(LoadSpreading(), OrToolsSolver(), prepare=self._prepare)
        self.engine.apply([make_node("a", cpu=1), make_class(1, cpu=1)])

    def _prepare(self) -> None:
        self.count += 1

    def submit(self, uid: int) -> int:
        """Runs a round with one more task; how often the engine has asked so far."""
        self.engine.apply([make_tasks([uid], 1)])
        self.engine.run_round(NOW_US)
        return self.count


def test_a_round_that_leaves_a_task_waiting_asks_once():
    prepared = Prepared()
    assert [prepared.submit(uid) for uid in (1, 2, 3)] == [0, 1, 1]


def test_queues_ask():
    prepared = Prepared()
    prepared.engine.apply([QueuesObserved(TREE)])
    assert prepared.count == 1
    assert prepared.submit(1) == 1


def test_a_state_that_has_queues_asks():
    prepared = Prepared()
    prepared.engine.replace(ClusterState())
    assert prepared.count == 0
    state = ClusterState()
    state.apply(QueuesObserved(TREE))
    prepared.engine.replace(state)
    assert prepared.count == 1


def test_the_solver_is_loaded_once_when_tasks_wait_in_a_state_on_its_way():
    loaded = []
    engine = Engine(LoadSpreading(), OrToolsSolver(), load_solver=lambda: loaded.append("or-tools"))
    engine.expect(engine.state)
    state = ClusterState()
    for event in (make_node("a", cpu=4), make_class(1, cpu=1), make_tasks([1, 2], 1, on="a")):
        state.apply(event)
    engine.expect(state)
    engine.replace(state)
    assert loaded == []
    state.apply(make_tasks([3], 1))
    engine.expect(state)
    engine.expect(state)
    assert loaded == ["or-tools"]
