"""The original service driven as the Go Poseidon drives it."""

import grpc
import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.service.server import Server
from policies.load_spreading import LoadSpreading
from protos.gen import firmament_pb2 as pb
from protos.gen import flow_pb2
from tests.builders import NOW_US
from tests.effort import examples
from tests.firmament_py.service.poseidon import Poseidon, description, generate_uuid, resources, topology

# -- order and replies ----------------------------------------------------------------------------------------------


def test_schedule_works_on_an_empty_state(poseidon):
    assert poseidon.schedule() == {}
    assert poseidon.schedule() == {}


def test_tasks_can_be_submitted_before_nodes(poseidon):
    poseidon.submit(description(1), description(2))
    assert poseidon.schedule() == {}
    assert poseidon.unscheduled == {1, 2}
    poseidon.add_node(topology("n1"))
    assert poseidon.schedule() == {1: "n1", 2: "n1"}
    assert poseidon.unscheduled == set()


def test_schedule_returns_only_changes(poseidon):
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1))
    assert poseidon.schedule() == {1: "n1"}
    assert poseidon.schedule() == {}
    poseidon.submit(description(2))
    assert poseidon.schedule() == {2: "n1"}


def test_delivered_placements_count_as_bound(service, poseidon):
    """This client never confirms a placement, and cannot reject one."""
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1), description(2))
    poseidon.schedule()
    status = service.flow.GetStatus(flow_pb2.StatusRequest())
    assert dict(status.tasks) == {"waiting": 0, "assumed": 0, "bound": 2, "ended": 0}


def test_an_unscheduled_task_is_placed_when_capacity_is_released(poseidon):
    poseidon.add_node(topology("n1", cpu=1000))
    poseidon.submit(*(description(uid, resources(cpu=400)) for uid in (1, 2, 3)))
    assert len(poseidon.schedule()) == 2
    (loser,) = poseidon.unscheduled
    assert poseidon.schedule() == {}
    assert poseidon.unscheduled == {loser}, "listed in every round until it is placed"
    winner = min({1, 2, 3} - {loser})
    poseidon.complete(winner)
    assert poseidon.schedule() == {loser: "n1"}


@pytest.mark.parametrize("name", ["", "firmament"])
def test_check_is_about_the_whole_service(poseidon, name):
    expected = pb.UNKNOWN if name else pb.SERVING
    assert poseidon.stub.Check(pb.HealthCheckRequest(grpc_service=name)).status == expected


def uid(number: int) -> pb.TaskUID:
    return pb.TaskUID(task_uid=number)


def resource(name: str) -> pb.ResourceUID:
    return pb.ResourceUID(resource_uid=generate_uuid(name))


def with_the_unit_of(other: str) -> pb.ResourceTopologyNodeDescriptor:
    """A machine of another name."""
    node = topology("ny")
    node.children[0].resource_desc.uuid = generate_uuid(f"{other}_PU #0")
    return node


def not_created() -> pb.TaskDescription:
    task = description(9)
    task.task_descriptor.state = pb.TaskDescriptor.RUNNING
    return task


@pytest.mark.parametrize(
    ("method", "request_", "reply"),
    [
        pytest.param("NodeAdded", topology("n1"), pb.NODE_ALREADY_EXISTS, id="node-added-again"),
        pytest.param("NodeAdded", with_the_unit_of("n1"), pb.NODE_ALREADY_EXISTS, id="unit-of-another-node-added"),
        pytest.param("NodeUpdated", topology("nx"), pb.NODE_NOT_FOUND, id="unknown-node-updated"),
        pytest.param("NodeRemoved", resource("nx"), pb.NODE_NOT_FOUND, id="unknown-node-removed"),
        pytest.param("NodeFailed", resource("nx"), pb.NODE_NOT_FOUND, id="unknown-node-failed"),
        pytest.param("NodeRemoved", pb.ResourceUID(resource_uid="no uuid"), pb.NODE_NOT_FOUND, id="no-uuid"),
        pytest.param("TaskSubmitted", description(1), pb.TASK_ALREADY_SUBMITTED, id="submitted-again"),
        pytest.param("TaskSubmitted", description(1, job="b"), pb.TASK_ALREADY_SUBMITTED, id="uid-of-another-job"),
        pytest.param("TaskSubmitted", not_created(), pb.TASK_STATE_NOT_CREATED, id="not-created"),
        pytest.param("TaskUpdated", description(9), pb.TASK_NOT_FOUND, id="unknown-updated"),
        pytest.param("TaskCompleted", uid(9), pb.TASK_NOT_FOUND, id="unknown-completed"),
        pytest.param("TaskFailed", uid(9), pb.TASK_NOT_FOUND, id="unknown-failed"),
        pytest.param("TaskRemoved", uid(9), pb.TASK_NOT_FOUND, id="unknown-removed"),
        pytest.param("AddTaskStats", pb.TaskStats(task_id=1), pb.TASK_COMPLETED_OK, id="task-stats"),
        pytest.param("AddTaskStats", pb.TaskStats(task_id=9), pb.TASK_NOT_FOUND, id="task-stats-unknown"),
        pytest.param(
            "AddNodeStats", pb.ResourceStats(resource_id=generate_uuid("n1")), pb.NODE_ADDED_OK, id="node-stats"
        ),
        pytest.param("AddNodeStats", pb.ResourceStats(resource_id="x"), pb.NODE_NOT_FOUND, id="node-stats-unknown"),
    ],
)
def test_replies_of_the_original(service, poseidon, method, request_, reply):
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1))
    before = (len(service.engine.state.tasks), len(service.engine.state.nodes))
    assert getattr(service.wire, method)(request_).type == reply
    assert (len(service.engine.state.tasks), len(service.engine.state.nodes)) == before


def test_a_known_uid_is_reported_before_its_state(poseidon):
    poseidon.submit(description(9))
    assert poseidon.stub.TaskSubmitted(not_created()).type == pb.TASK_ALREADY_SUBMITTED


@pytest.mark.parametrize(
    ("method", "request_", "reported"),
    [
        pytest.param(
            "TaskSubmitted",
            description(9, pb.ResourceVector(cpu_cores=float("nan"))),
            "task 9: cpu_cores is nan; give millicores, 0 or more",
            id="nan",
        ),
        pytest.param(
            "TaskSubmitted", description(9, pb.ResourceVector(cpu_cores=-1)), "cpu_cores is -1.0", id="negative"
        ),
        pytest.param("NodeAdded", topology("nx", cpu=-5), "node nx: cpu_cores is -5.0", id="node-negative"),
        pytest.param("NodeAdded", pb.ResourceTopologyNodeDescriptor(), "resource_desc.uuid is empty", id="empty"),
        pytest.param("TaskSubmitted", pb.TaskDescription(), "task_descriptor is missing; set it", id="empty-task"),
    ],
)
def test_invalid_messages_are_refused_by_name_and_the_service_continues(service, poseidon, method, request_, reported):
    with pytest.raises(grpc.RpcError) as caught:
        getattr(service.wire, method)(request_)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert reported in (caught.value.details() or "")
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(9))
    assert poseidon.schedule() == {9: "n1"}


# -- lifecycles -----------------------------------------------------------------------------------------------------

LIFECYCLES = {
    "completed": ["submit", "schedule", "complete", "remove"],
    "failed": ["submit", "schedule", "fail", "remove"],
    "removed-before-a-round": ["submit", "remove"],
    "removed-while-it-runs": ["submit", "schedule", "remove"],
    "failed-without-a-place": ["submit", "fail", "remove"],
    "completed-without-a-place": ["submit", "complete", "remove"],
    "completed-twice": ["submit", "schedule", "complete", "complete", "remove"],
    "failed-twice": ["submit", "schedule", "fail", "fail", "remove"],
    "completed-then-failed": ["submit", "schedule", "complete", "fail", "remove"],
    "node-failed-then-completed": ["submit", "schedule", "fail_node", "complete", "remove"],
    "node-failed-then-failed": ["submit", "schedule", "fail_node", "fail", "remove"],
    "node-failed-then-removed": ["submit", "schedule", "fail_node", "remove"],
    "node-removed-then-failed": ["submit", "schedule", "remove_node", "fail", "remove"],
    "node-removed-then-removed": ["submit", "schedule", "remove_node", "remove"],
    "node-came-back": ["submit", "schedule", "fail_node", "add_node", "complete", "remove"],
    "node-came-back-after-removal": ["submit", "schedule", "remove_node", "schedule", "add_node", "schedule", "remove"],
    "updated-while-it-waits": ["submit", "update", "schedule", "remove"],
    "updated-while-it-runs": ["submit", "schedule", "update", "schedule", "remove"],
    "updated-after-the-end": ["submit", "schedule", "complete", "update", "remove"],
    "node-updated": ["submit", "schedule", "update_node", "schedule", "complete", "remove"],
}


@pytest.mark.parametrize("steps", [pytest.param(steps, id=name) for name, steps in LIFECYCLES.items()])
def test_no_lifecycle_gets_a_reply_that_is_fatal_to_poseidon(service, poseidon, steps):
    """Each twice in a row: after its removal, a uid can be submitted again."""
    task, node = description(7), topology("n1")
    act = {
        "submit": lambda: poseidon.submit(task),
        "schedule": poseidon.schedule,
        "complete": lambda: poseidon.complete(7),
        "fail": lambda: poseidon.fail(7),
        "remove": lambda: poseidon.remove(7),
        "update": lambda: poseidon.update(task),
        "fail_node": lambda: poseidon.fail_node("n1"),
        "remove_node": lambda: poseidon.remove_node("n1"),
        "add_node": lambda: poseidon.add_node(node),
        "update_node": lambda: poseidon.update_node(node),
    }
    for _ in range(2):
        if "n1" not in poseidon.nodes:
            poseidon.add_node(node)
        for step in steps:
            act[step]()
            service.validate()
        poseidon.schedule()
    state = service.engine.state
    assert len(state.tasks) == 0
    assert not state.nodes.used.any()


def test_an_ended_task_stays_known_until_removed_and_holds_nothing(service, poseidon):
    poseidon.add_node(topology("n1", cpu=100))
    poseidon.submit(description(1))
    poseidon.schedule()
    poseidon.complete(1)
    assert service.wire.TaskSubmitted(description(1)).type == pb.TASK_ALREADY_SUBMITTED
    poseidon.submit(description(2))
    assert poseidon.schedule() == {2: "n1"}
    assert poseidon.unscheduled == set()
    poseidon.remove(1)
    poseidon.submit(description(1))
    assert poseidon.schedule() == {}


def test_a_removed_task_is_not_placed_later(poseidon):
    poseidon.submit(description(1))
    poseidon.remove(1)
    poseidon.add_node(topology("n1"))
    assert poseidon.schedule() == {}


def test_tasks_of_a_lost_node_are_not_placed_again_but_count_when_it_is_back(poseidon):
    poseidon.add_node(topology("n1", cpu=100))
    poseidon.submit(description(1))
    poseidon.schedule()
    poseidon.fail_node("n1")
    assert poseidon.schedule() == {}
    poseidon.add_node(topology("n1", cpu=100))
    poseidon.submit(description(2))
    assert poseidon.schedule() == {}
    poseidon.remove(1)
    assert poseidon.schedule() == {2: "n1"}


def test_a_job_continues_after_its_first_task_is_removed(poseidon):
    """In the original the first task was the root of its job, and without it nothing was scheduled any more."""
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1), description(2))
    poseidon.schedule()
    poseidon.fail(1)
    poseidon.remove(1)
    poseidon.submit(description(3))
    assert poseidon.schedule() == {3: "n1"}


# -- anything goes --------------------------------------------------------------------------------------------------


class AnyOrder(RuleBasedStateMachine):
    """Pods and nodes come, end and go in any order that Poseidon's two queues allow; no reply is fatal, and no node
    is over-committed by the placements that were told."""

    def __init__(self):
        super().__init__()
        self.engine = Engine(LoadSpreading(), OrToolsSolver(), lambda: NOW_US)
        self.server = Server(self.engine, "127.0.0.1:0")
        self.server.start()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.server.port}")
        self.sizes: dict[int, int] = {}
        self.over: set[int] = set()

    def teardown(self):
        self.channel.close()
        self.server.stop(0)

    @initialize()
    def start(self):
        self.poseidon = Poseidon.of(self.channel)

    @rule(uid=st.integers(1, 12), cpu=st.sampled_from([0, 100, 250, 400]))
    def submit(self, uid, cpu):
        if uid not in self.poseidon.pods:
            self.sizes[uid] = cpu
            self.poseidon.submit(self.describe(uid))

    def describe(self, uid):
        """Every third pod is of a gang that needs two."""
        return description(uid, resources(cpu=self.sizes[uid]), job=f"job-{uid % 3}", gang_of=2 if uid % 3 == 2 else 0)

    @rule(which=st.integers(0, 20), how=st.sampled_from(["complete", "fail", "remove", "update"]))
    def change(self, which, how):
        pods = sorted(self.poseidon.pods)
        if not pods:
            return
        uid = pods[which % len(pods)]
        if how == "update":
            self.poseidon.update(self.describe(uid))
            return
        getattr(self.poseidon, how)(uid)
        self.over.discard(uid)
        if how != "remove":
            self.over.add(uid)

    @rule(name=st.sampled_from(["n1", "n2", "n3"]), how=st.sampled_from(["remove_node", "fail_node", "update_node"]))
    def node(self, name, how):
        node = topology(name, cpu=500, pods=4)
        if name not in self.poseidon.nodes:
            self.poseidon.add_node(node)
        elif how == "update_node":
            self.poseidon.update_node(node)
        else:
            getattr(self.poseidon, how)(name)

    @rule()
    def schedule(self):
        placed = self.poseidon.schedule()
        for uid in placed:
            assert uid not in self.over, "a task that has ended is placed"
        if any(uid % 3 == 2 for uid in placed):
            there = [uid for uid, node in self.poseidon.pods.items() if node and uid % 3 == 2 and uid not in self.over]
            assert len(there) >= 2, "half a gang"

    @invariant()
    def nothing_is_over_committed(self):
        self.engine.state.validate()
        if not hasattr(self, "poseidon"):
            return
        for name in ("n1", "n2", "n3"):
            in_use = [uid for uid, node in self.poseidon.pods.items() if node == name and uid not in self.over]
            assert sum(self.sizes[uid] for uid in in_use) <= 500
            assert len(in_use) <= 4


AnyOrder.TestCase.settings = examples(16, suppress_health_check=[HealthCheck.too_slow])
TestAnyOrder = pytest.mark.slow(AnyOrder.TestCase)


def test_how_tasks_end_is_counted(service, poseidon):
    """As Poseidon reports it: completed or failed, later removed; or removed alone."""
    poseidon.add_node(topology("n1"))
    poseidon.submit(*(description(uid) for uid in (1, 2, 3, 4)))
    poseidon.schedule()
    poseidon.complete(1, 2, 2)
    poseidon.fail(3, 1)
    poseidon.remove(1, 3, 4)
    assert dict(service.flow.GetStatus(flow_pb2.StatusRequest()).outcomes) == {
        "succeeded": 2,
        "failed": 1,
        "removed": 1,
    }
