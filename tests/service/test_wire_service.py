"""The original service driven as the Go Poseidon drives it."""

import grpc
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from firmament_py import wire_service
from firmament_py.engine import Engine
from firmament_py.server import Server
from firmament_py.solver import OrToolsSolver
from policies.load_spreading import LoadSpreading
from policies.network_aware import NetworkAware
from protos.gen import firmament_pb2 as pb
from protos.gen import flow_pb2
from tests.builders import NOW_US
from tests.service.poseidon import MIB, Poseidon, description, generate_uuid, resources, topology


@pytest.fixture
def poseidon(service) -> Poseidon:
    return Poseidon.of(service.channel)


# -- order and replies ----------------------------------------------------------------------------------------------


def test_the_loop_starts_before_anything_is_known(poseidon):
    assert poseidon.schedule() == {}
    assert poseidon.schedule() == {}


def test_tasks_may_come_before_nodes(poseidon):
    poseidon.submit(description(1), description(2))
    assert poseidon.schedule() == {}
    assert poseidon.unscheduled == {1, 2}
    poseidon.add_node(topology("n1"))
    assert poseidon.schedule() == {1: "n1", 2: "n1"}
    assert poseidon.unscheduled == set()


def test_schedule_tells_changes_only(poseidon):
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1))
    assert poseidon.schedule() == {1: "n1"}
    assert poseidon.schedule() == {}
    poseidon.submit(description(2))
    assert poseidon.schedule() == {2: "n1"}


def test_what_was_told_is_taken_as_done(service, poseidon):
    """This client never confirms a placement, and cannot reject one."""
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1), description(2))
    poseidon.schedule()
    status = service.flow.GetStatus(flow_pb2.StatusRequest())
    assert dict(status.tasks) == {"waiting": 0, "assumed": 0, "bound": 2, "ended": 0}


def test_a_task_that_lost_is_unscheduled_and_is_placed_when_room_comes(poseidon):
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
def test_check_is_asked_of_the_service_as_a_whole(poseidon, name):
    expected = pb.UNKNOWN if name else pb.SERVING
    assert poseidon.stub.Check(pb.HealthCheckRequest(grpc_service=name)).status == expected


def uid(number: int) -> pb.TaskUID:
    return pb.TaskUID(task_uid=number)


def resource(name: str) -> pb.ResourceUID:
    return pb.ResourceUID(resource_uid=generate_uuid(name))


def not_created() -> pb.TaskDescription:
    task = description(9)
    task.task_descriptor.state = pb.TaskDescriptor.RUNNING
    return task


@pytest.mark.parametrize(
    ("method", "request_", "reply"),
    [
        pytest.param("NodeAdded", topology("n1"), pb.NODE_ALREADY_EXISTS, id="node-added-again"),
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


def test_a_known_uid_is_told_before_its_state(poseidon):
    poseidon.submit(description(9))
    assert poseidon.stub.TaskSubmitted(not_created()).type == pb.TASK_ALREADY_SUBMITTED


@pytest.mark.parametrize(
    ("method", "request_", "told"),
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
def test_nonsense_is_refused_by_name_and_the_service_lives_on(service, poseidon, method, request_, told):
    with pytest.raises(grpc.RpcError) as caught:
        getattr(service.wire, method)(request_)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert told in (caught.value.details() or "")
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
def test_no_lifecycle_gets_a_reply_that_poseidon_dies_of(service, poseidon, steps):
    """Each twice in a row: after its removal, a uid may come again."""
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


def test_an_ended_task_stays_known_until_it_is_removed_and_holds_nothing(service, poseidon):
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


def test_a_job_goes_on_after_its_first_task_has_gone(poseidon):
    """In the original the first task was the root of its job, and without it nothing was scheduled any more."""
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1), description(2))
    poseidon.schedule()
    poseidon.fail(1)
    poseidon.remove(1)
    poseidon.submit(description(3))
    assert poseidon.schedule() == {3: "n1"}


# -- units ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "request_", "count", "placed"),
    [
        pytest.param(topology("n", cpu=1000), resources(cpu=250), 5, 4, id="millicores"),
        pytest.param(topology("n", memory=1024 * MIB), resources(memory=512 * MIB), 3, 2, id="memory"),
        pytest.param(topology("n", storage=10 * MIB), resources(storage=4 * MIB), 3, 2, id="storage"),
        pytest.param(topology("n"), resources(storage=1), 1, 0, id="a-node-without-storage-has-none"),
        pytest.param(topology("n", pods=3), resources(cpu=1), 5, 3, id="max-pods"),
        pytest.param(topology("n", pods=0), resources(cpu=1), 1, 0, id="max-pods-zero"),
        pytest.param(
            topology("n", cpu=1000, capacity=resources(cpu=9000)), resources(cpu=600), 2, 1, id="available-not-capacity"
        ),
        # 1001 thousandths of a byte are 2 bytes when requested: 2 x 2 > 3
        pytest.param(topology("n", memory=3), pb.ResourceVector(ram_cap=1001), 2, 1, id="requests-are-rounded-up"),
        # 1.5 millicores are 2 when requested
        pytest.param(topology("n", cpu=3), pb.ResourceVector(cpu_cores=1.5), 2, 1, id="cpu-is-rounded-up"),
        pytest.param(topology("n"), pb.ResourceVector(ram_cap=2**64 - 1), 1, 0, id="largest"),
    ],
)
def test_what_fits(poseidon, node, request_, count, placed):
    poseidon.add_node(node)
    poseidon.submit(*(description(uid, request_) for uid in range(1, count + 1)))
    assert len(poseidon.schedule()) == placed
    assert len(poseidon.unscheduled) == count - placed


def sending(uid, megabits):
    return description(uid, pb.ResourceVector(cpu_cores=1, net_tx_bw=megabits))


def a_linked_machine(megabits):
    node = topology("n")
    node.resource_desc.available_resources.net_tx_bw = megabits
    return node


@pytest.mark.parametrize(
    ("policy", "link", "placed"),
    [
        pytest.param(NetworkAware(), 10, 2, id="counted"),
        pytest.param(NetworkAware(), 0, 3, id="a-machine-that-does-not-say-has-no-limit"),
        pytest.param(LoadSpreading(), 10, 3, id="not-counted-by-other-policies"),
    ],
)
def test_bandwidth(service, poseidon, policy, link, placed):
    service.engine.policy = service.engine.scheduler.policy = policy
    poseidon.add_node(a_linked_machine(link))
    poseidon.submit(*(sending(uid, 5) for uid in (1, 2, 3)))
    assert len(poseidon.schedule()) == placed


@pytest.mark.parametrize(
    ("kind", "trait"),
    [
        pytest.param(pb.TaskDescriptor.SHEEP, "sheep", id="nothing-said"),
        pytest.param(pb.TaskDescriptor.DEVIL, "devil", id="devil"),
        pytest.param(77, "sheep", id="unheard-of"),
    ],
)
def test_the_type_of_a_task_is_told_to_policies(service, poseidon, kind, trait):
    task = description(1)
    task.task_descriptor.task_type = kind
    poseidon.submit(task)
    state = service.engine.state
    definition = state.classes.definition(int(state.tasks.cls[state.task_row(1)]))
    assert definition.traits == {"interference-class": trait}


def test_capacities_are_rounded_down(poseidon):
    node = topology("n")
    node.resource_desc.available_resources.CopyFrom(pb.ResourceVector(cpu_cores=1.9, ram_cap=1999))
    poseidon.add_node(node)
    poseidon.submit(description(1, resources(cpu=1, memory=1)), description(2, resources(cpu=1)))
    assert len(poseidon.schedule()) == 1


def test_place_names_the_processing_unit(service, poseidon):
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1))
    reply = service.wire.Schedule(pb.ScheduleRequest())
    assert [d.resource_id for d in reply.deltas] == [generate_uuid("n1_PU #0")]


# -- identity of nodes ----------------------------------------------------------------------------------------------

GPU = pb.Taint(key="gpu", value="yes", effect="NoSchedule")


def required(*expressions: pb.NodeSelectorRequirement) -> pb.Affinity:
    """As Poseidon sends it: pod affinity comes along with an empty matchLabels that means nothing."""
    term = pb.NodeSelectorTerm(matchExpressions=expressions)
    selector = pb.NodeSelector(nodeSelectorTerms=[term])
    return pb.Affinity(node_affinity=pb.NodeAffinity(requiredDuringSchedulingIgnoredDuringExecution=selector))


@pytest.mark.parametrize(
    ("node", "task", "fits"),
    [
        pytest.param(topology("n"), description(1, selector={"zone": "a"}), False, id="no-such-label"),
        pytest.param(topology("n", labels={"zone": "a"}), description(1, selector={"zone": "a"}), True, id="selector"),
        pytest.param(
            topology("n", labels={"zone": "a"}),
            description(1, affinity=required(pb.NodeSelectorRequirement(key="zone", operator="NotIn", values=["a"]))),
            False,
            id="affinity",
        ),
        pytest.param(
            topology("n", labels={"cores": "8"}),
            description(1, affinity=required(pb.NodeSelectorRequirement(key="cores", operator="Gt", values=["7"]))),
            True,
            id="affinity-gt",
        ),
        pytest.param(topology("n"), description(1, affinity=pb.Affinity()), True, id="affinity-empty"),
        pytest.param(topology("n"), description(1, affinity=required()), False, id="a-term-without-expressions"),
        pytest.param(topology("n", taints=(GPU,)), description(1), False, id="taint"),
        pytest.param(
            topology("n", taints=(GPU,)),
            description(1, tolerations=(pb.Toleration(key="gpu", operator="Exists", effect="NoSchedule"),)),
            True,
            id="one-toleration",
        ),
        pytest.param(
            topology("n", taints=(pb.Taint(key="gpu", effect="PreferNoSchedule"),)), description(1), True, id="prefer"
        ),
    ],
)
def test_selectors_and_taints(poseidon, node, task, fits):
    poseidon.add_node(node)
    poseidon.submit(task)
    assert poseidon.schedule() == ({1: "n"} if fits else {})


def test_a_label_that_comes_later_takes_effect(poseidon):
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1, selector={"zone": "a"}))
    assert poseidon.schedule() == {}
    poseidon.update_node(topology("n1", labels={"zone": "a"}))
    assert poseidon.schedule() == {1: "n1"}


def test_a_task_that_is_resized_after_a_round_is_placed(poseidon):
    poseidon.add_node(topology("n1", cpu=1000))
    poseidon.submit(description(1, resources(cpu=2000)))
    assert poseidon.schedule() == {}
    poseidon.update(description(1, resources(cpu=1000)))
    assert poseidon.schedule() == {1: "n1"}


def test_an_update_does_not_make_a_task_younger(service, poseidon):
    poseidon.submit(description(1))
    service.clock.now_us += 3_600_000_000
    poseidon.update(description(1))
    state = service.engine.state
    assert int(state.tasks.created_us[state.task_row(1)]) == NOW_US


def test_a_bound_that_is_no_number_matches_nothing_and_kills_nobody(poseidon):
    word = pb.NodeSelectorRequirement(key="cores", operator="Gt", values=["many"])
    poseidon.add_node(topology("n1", labels={"cores": "8"}))
    poseidon.submit(description(1, affinity=required(word)))
    assert poseidon.schedule() == {}


def test_any_submit_time_will_do(poseidon):
    task = description(1)
    task.task_descriptor.submit_time = 2**64 - 1
    poseidon.submit(task)


# -- large replies --------------------------------------------------------------------------------------------------


def test_what_does_not_fit_a_reply_is_told_in_the_next_ones(monkeypatch, service, poseidon):
    """Five placements, two a reply; a task and a machine that are gone by then are not spoken of."""
    monkeypatch.setattr(wire_service, "_MOST_DELTAS", 2)
    poseidon.add_node(topology("n1", pods=5))
    poseidon.submit(*(description(uid) for uid in range(1, 6)))
    first = poseidon.schedule()
    assert len(first) == 2
    assert poseidon.unscheduled == set(), "the others are placed, too"
    left = sorted({1, 2, 3, 4, 5} - set(first))
    poseidon.remove(left[0])
    assert poseidon.schedule() == {left[1]: "n1", left[2]: "n1"}
    assert poseidon.schedule() == {}
    status = service.flow.GetStatus(flow_pb2.StatusRequest())
    assert dict(status.tasks) == {"waiting": 0, "assumed": 0, "bound": 4, "ended": 0}


def test_a_task_that_comes_again_while_its_placement_waits_to_be_told(monkeypatch, poseidon):
    monkeypatch.setattr(wire_service, "_MOST_DELTAS", 1)
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1), description(2))
    (told,) = poseidon.schedule()
    other = 3 - told
    poseidon.remove(other)
    poseidon.submit(description(other))
    assert poseidon.schedule() == {other: "n1"}
    assert poseidon.schedule() == {}, "placed anew, and told once"


@pytest.mark.parametrize("how", ["complete", "fail"])
def test_a_task_that_has_ended_meanwhile_is_not_told(monkeypatch, poseidon, how):
    monkeypatch.setattr(wire_service, "_MOST_DELTAS", 1)
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1), description(2))
    (told,) = poseidon.schedule()
    getattr(poseidon, how)(3 - told)
    assert poseidon.schedule() == {}


def test_a_machine_that_has_gone_meanwhile_is_not_told(monkeypatch, poseidon):
    monkeypatch.setattr(wire_service, "_MOST_DELTAS", 1)
    poseidon.add_node(topology("n1"))
    poseidon.submit(description(1), description(2))
    assert len(poseidon.schedule()) == 1
    poseidon.remove_node("n1")
    assert poseidon.schedule() == {}


@pytest.mark.slow
def test_sixty_thousand_placements_take_two_replies(service, poseidon):
    numbers = range(1, 60_001)
    service.apply(
        classes=[flow_pb2.TaskClass(id=1, requests={"cpu": 1})],
        nodes=[
            flow_pb2.Node(id=generate_uuid(f"n{i}"), name=f"n{i}", allocatable={"pods": 7000, "cpu": 7000})
            for i in range(10)
        ],
        tasks=flow_pb2.Tasks(
            uid=numbers,
            class_id=[1] * len(numbers),
            job_id=[0] * len(numbers),
            created_us=[NOW_US] * len(numbers),
            node=[0] * len(numbers),
            name=[str(n) for n in numbers],
        ),
    )
    replies = [poseidon.stub.Schedule(pb.ScheduleRequest()) for _ in range(3)]
    assert [len(reply.deltas) for reply in replies] == [50_000, 10_000, 0]
    assert len({delta.task_id for reply in replies for delta in reply.deltas}) == 60_000
    assert all(reply.ByteSize() < 4 * MIB for reply in replies), "what the Go client takes"


# -- gangs ----------------------------------------------------------------------------------------------------------


def member(uid, minimum=3, job="mpi", cpu=1000):
    return description(uid, resources(cpu=cpu), job=job, gang_of=minimum)


def test_a_gang_job_is_placed_whole_or_not_at_all(poseidon):
    poseidon.add_node(topology("n1", cpu=2000))
    poseidon.submit(member(1), member(2))
    assert poseidon.schedule() == {}, "a third has to come"
    poseidon.submit(member(3))
    assert poseidon.schedule() == {}, "2 of 3 fit"
    poseidon.submit(description(9, resources(cpu=1500)))
    assert poseidon.schedule() == {9: "n1"}, "others use the room"
    poseidon.complete(9)
    poseidon.add_node(topology("n2", cpu=1000))
    assert set(poseidon.schedule()) == {1, 2, 3}


def test_a_job_that_is_no_gang_has_a_minimum_for_nothing(poseidon):
    poseidon.add_node(topology("n1", cpu=2000))
    task = member(1)
    task.job_descriptor.is_gang_scheduling_job = False
    poseidon.submit(task)
    assert poseidon.schedule() == {1: "n1"}


def test_a_member_that_comes_back_joins_those_that_run(poseidon):
    """Also after what was told has been taken as done."""
    poseidon.add_node(topology("n1", cpu=3000))
    poseidon.submit(member(1), member(2), member(3))
    assert set(poseidon.schedule()) == {1, 2, 3}
    poseidon.fail(2)
    poseidon.remove(2)
    poseidon.submit(member(4))
    assert poseidon.schedule() == {4: "n1"}
    poseidon.add_node(topology("n2", cpu=1000))
    poseidon.submit(member(5))
    assert poseidon.schedule() == {5: "n2"}, "beyond the minimum one is enough"


def test_a_gang_job_is_as_old_as_its_first_task(service, poseidon):
    poseidon.submit(member(1, job="old"))
    service.clock.now_us += 10
    poseidon.submit(member(2, job="young", minimum=1))
    service.clock.now_us += 10
    poseidon.submit(member(3, job="old"), member(4, job="old"))
    poseidon.add_node(topology("n1", cpu=3000))
    assert set(poseidon.schedule()) == {1, 3, 4}


def test_a_gang_job_without_tasks_is_forgotten(service, poseidon):
    poseidon.submit(member(1), member(2))
    poseidon.update(member(2))
    assert len(service.engine.state.gangs) == 1
    poseidon.remove(1)
    assert len(service.engine.state.gangs) == 1
    poseidon.remove(2)
    assert len(service.engine.state.gangs) == 0


@pytest.mark.parametrize("minimum", [1, 2**63, 2**64 - 1])
def test_any_minimum_will_do(poseidon, minimum):
    poseidon.add_node(topology("n1"))
    poseidon.submit(member(1, minimum))
    poseidon.schedule()


# -- tasks of others ------------------------------------------------------------------------------------------------


def test_tasks_of_other_schedulers_hold_what_they_request_in_plain_bytes(poseidon):
    poseidon.add_node(topology("n1", cpu=1000, memory=1024 * MIB, pods=3))
    assert poseidon.foreign("other", "n1", cpu=500, memory=512 * MIB) == pb.TASKINFO_SUBMITTED_OK
    poseidon.submit(description(1, resources(memory=513 * MIB)), description(2, resources(cpu=501)))
    assert poseidon.schedule() == {}
    poseidon.submit(description(3, resources(cpu=500, memory=512 * MIB)))
    assert poseidon.schedule() == {3: "n1"}
    assert poseidon.foreign("other", "n1", remove=True) == pb.TASKINFO_REMOVED_OK
    # one pod of three is taken; 512 MiB and 500m are free: neither of the two fits
    assert poseidon.schedule() == {}


def test_tasks_of_other_schedulers_count_as_pods(poseidon):
    poseidon.add_node(topology("n1", pods=1))
    poseidon.foreign("other", "n1")
    poseidon.submit(description(1))
    assert poseidon.schedule() == {}
    poseidon.foreign("other", "n1", remove=True)
    assert poseidon.schedule() == {1: "n1"}


def test_a_task_of_others_that_comes_before_its_node_counts(poseidon):
    poseidon.foreign("other", "n1", cpu=500)
    poseidon.add_node(topology("n1", cpu=1000))
    poseidon.submit(description(1, resources(cpu=501)))
    assert poseidon.schedule() == {}


def test_replies_about_tasks_of_others(poseidon):
    poseidon.add_node(topology("n1"))
    assert poseidon.foreign("x", "n1", remove=True) == pb.TASKINFO_REMOVE_FAILED
    assert poseidon.foreign("x", "n1") == pb.TASKINFO_SUBMITTED_OK
    assert poseidon.foreign("x", "n1") == pb.TASKINFO_SUBMIT_FAILED
    assert poseidon.foreign("x", "n1", remove=True) == pb.TASKINFO_REMOVED_OK
    assert poseidon.foreign("x", "n1", remove=True) == pb.TASKINFO_REMOVE_FAILED
    assert poseidon.foreign("x", "n1") == pb.TASKINFO_SUBMITTED_OK, "the name may come again"


def test_amounts_below_zero_of_others_count_as_nothing(poseidon):
    poseidon.add_node(topology("n1", cpu=100))
    assert poseidon.foreign("x", "n1", cpu=-500, memory=-1) == pb.TASKINFO_SUBMITTED_OK
    poseidon.submit(description(1), description(2))
    assert len(poseidon.schedule()) == 1


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
            held = [uid for uid, node in self.poseidon.pods.items() if node == name and uid not in self.over]
            assert sum(self.sizes[uid] for uid in held) <= 500
            assert len(held) <= 4


AnyOrder.TestCase.settings = settings(
    max_examples=settings().max_examples // 5, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestAnyOrder = pytest.mark.slow(AnyOrder.TestCase)
