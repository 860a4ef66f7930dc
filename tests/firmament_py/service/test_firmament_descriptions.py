"""Translation of descriptions of the original contract: amounts, labels, taints, affinity."""

import grpc
import pytest

from policies.load_spreading import LoadSpreading
from policies.network_aware import NetworkAware
from protos.gen import firmament_pb2 as pb
from tests.builders import NOW_US
from tests.firmament_py.service.poseidon import MIB, description, generate_uuid, resources, topology

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
def test_requests_and_capacities(poseidon, node, request_, count, placed):
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
def test_the_type_of_a_task_is_passed_to_policies(service, poseidon, kind, trait):
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


def test_place_names_the_processing_unit_at_any_depth(service, poseidon):
    node = topology("n1")
    unit = node.children.pop()
    socket = node.children.add().resource_desc
    socket.uuid, socket.type = generate_uuid("socket"), pb.ResourceDescriptor.RESOURCE_SOCKET
    node.children[0].children.append(unit)
    poseidon.add_node(node)
    poseidon.submit(description(1))
    assert poseidon.schedule() == {1: "n1"}


def test_an_update_can_omit_the_processing_unit(service, poseidon):
    poseidon.add_node(topology("n1"))
    without = topology("n1", labels={"zone": "a"})
    del without.children[:]
    poseidon.update_node(without)
    poseidon.submit(description(1))
    assert poseidon.schedule() == {1: "n1"}


def test_a_machine_that_comes_back_can_have_another_processing_unit(service, poseidon):
    poseidon.add_node(topology("n1"))
    poseidon.remove_node("n1")
    node = topology("n1")
    node.children[0].resource_desc.uuid = generate_uuid("another")
    assert service.wire.NodeAdded(node).type == pb.NODE_ADDED_OK
    poseidon.submit(description(1))
    assert [d.resource_id for d in service.wire.Schedule(pb.ScheduleRequest()).deltas] == [generate_uuid("another")]


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


# -- what tasks want of each other and of nodes ------------------------------------------------------------------------

ZONES = {"n1": "a", "n2": "b"}
EXISTS_APP = pb.LabelSelectorRequirement(key="app", operator="Exists")
APP_IS_DB = pb.LabelSelectorRequirement(key="app", operator="In", values=["db"])


def in_zones(poseidon, **cpu):
    for name, zone in ZONES.items():
        poseidon.add_node(topology(name, cpu=cpu.get(name, 4000), labels={"zone": zone}))


def near(*expressions, key="zone", weight=0, **parts) -> pb.Affinity:
    """To tasks with such labels; required, or preferred if there is a weight; with Poseidon's empty matchLabels."""
    selector = pb.PodLabelSelector(matchLabels=pb.MatchLabels(), matchExpressions=expressions)
    term = pb.PodAffinityTerm(labelSelector=selector, topologyKey=key, **parts)
    affinity = pb.Affinity(pod_affinity=pb.PodAffinity(), pod_anti_affinity=pb.PodAntiAffinity())
    if weight:
        affinity.pod_affinity.preferredDuringSchedulingIgnoredDuringExecution.add(weight=weight, podAffinityTerm=term)
    else:
        affinity.pod_affinity.requiredDuringSchedulingIgnoredDuringExecution.append(term)
    return affinity


def apart(*expressions, **parts) -> pb.Affinity:
    """The same with anti-affinity, whose messages have names and nothing else of their own."""
    expected = near(*expressions, **parts)
    affinity = pb.Affinity()
    affinity.pod_anti_affinity.ParseFromString(expected.pod_affinity.SerializeToString())
    return affinity


def wants(uid, affinity, job="job", cpu=100):
    return description(uid, resources(cpu=cpu), job=job, affinity=affinity)


@pytest.mark.parametrize(
    ("affinity", "where"),
    [
        pytest.param(near(APP_IS_DB), {"n2"}, id="near"),
        pytest.param(near(APP_IS_DB, namespaces=["other"]), set(), id="near-nobody-of-another-namespace"),
        pytest.param(near(APP_IS_DB, namespaces=["other", "default"]), {"n2"}, id="near-in-one-of-two-namespaces"),
        pytest.param(near(APP_IS_DB, weight=100), {"n2"}, id="rather-near"),
        pytest.param(near(APP_IS_DB, weight=0, key="no-such-label"), set(), id="no-such-domain"),
        pytest.param(apart(APP_IS_DB), {"n1"}, id="apart"),
        pytest.param(apart(APP_IS_DB, key=""), {"n1"}, id="apart-on-the-machine"),
        pytest.param(apart(), {"n1"}, id="apart-from-everybody-when-labels-are-lost"),
        pytest.param(apart(APP_IS_DB, weight=50), {"n1"}, id="rather-apart"),
    ],
)
def test_pod_affinity(poseidon, affinity, where):
    """A db runs in zone b. The machine that the task must go to runs more tasks than the other."""
    in_zones(poseidon)
    poseidon.submit(description(1, job="db", selector={"zone": "b"}))
    assert poseidon.schedule() == {1: "n2"}
    for name in where:
        for i in range(3):
            poseidon.foreign(f"other-{i}", name)
    poseidon.submit(wants(2, affinity))
    assert set(poseidon.schedule().values()) == where


@pytest.mark.parametrize("key", ["zone", "kubernetes.io/hostname", ""])
def test_tasks_with_anti_affinity_to_each_other_are_spread_in_one_round(poseidon, key):
    in_zones(poseidon)
    poseidon.submit(*(wants(uid, apart(EXISTS_APP, key=key)) for uid in (1, 2, 3)))
    assert sorted(poseidon.schedule().values()) == ["n1", "n2"]
    assert len(poseidon.unscheduled) == 1


def test_anti_affinity_of_running_tasks_counts(poseidon):
    in_zones(poseidon)
    poseidon.submit(wants(1, apart(APP_IS_DB)))
    (taken,) = poseidon.schedule().values()
    poseidon.submit(*(description(uid, job="db") for uid in range(2, 7)))
    placed = poseidon.schedule()
    assert len(placed) == 5
    assert set(placed.values()) == set(ZONES) - {taken}


def test_match_labels_of_other_clients(poseidon):
    in_zones(poseidon)
    poseidon.submit(description(1, job="db", selector={"zone": "b"}), description(2, job="web", selector={"zone": "a"}))
    poseidon.schedule()
    affinity = near()
    [term] = affinity.pod_affinity.requiredDuringSchedulingIgnoredDuringExecution
    term.labelSelector.matchLabels.CopyFrom(pb.MatchLabels(key="app", value="db"))
    poseidon.submit(wants(3, affinity))
    assert poseidon.schedule() == {3: "n2"}


def test_labels_that_change_while_a_task_runs_count(poseidon):
    in_zones(poseidon)
    poseidon.submit(description(1, job="web", selector={"zone": "b"}))
    poseidon.schedule()
    poseidon.submit(wants(2, near(APP_IS_DB)))
    assert poseidon.schedule() == {}
    relabelled = description(1, job="web")
    relabelled.task_descriptor.labels[0].value = "db"
    poseidon.update(relabelled)
    assert poseidon.schedule() == {2: "n2"}


def test_an_unknown_operator_of_a_pod_term_is_refused_by_name(service):
    with pytest.raises(grpc.RpcError) as caught:
        service.wire.TaskSubmitted(wants(1, near(pb.LabelSelectorRequirement(key="app", operator="Like"))))
    assert "operator of 'app' is 'Like'" in (caught.value.details() or "")


@pytest.mark.parametrize(("weight", "node"), [(100, "n1"), (0, "n2"), (-5, "n2")])
def test_preferred_node_affinity(poseidon, weight, node):
    """Zone a, rather than the larger machine; a weight of 0 or less is none."""
    in_zones(poseidon, n2=8000)
    expression = pb.NodeSelectorRequirement(key="zone", operator="In", values=["a"])
    affinity = pb.Affinity()
    affinity.node_affinity.preferredDuringSchedulingIgnoredDuringExecution.add(
        weight=weight, preference=pb.NodeSelectorTerm(matchExpressions=[expression])
    )
    poseidon.submit(description(9, resources(cpu=8000), selector={"zone": "none"}), wants(1, affinity))
    poseidon.submit(*(description(uid, job="other", selector={"zone": "a"}) for uid in (2, 3, 4)))
    assert poseidon.schedule()[1] == node


def test_machines_that_avoid_tasks_of_an_owner(poseidon):
    node = topology("n1", cpu=8000)
    node.resource_desc.avoids.add(kind="ReplicaSet", uid="web")
    poseidon.add_node(node, topology("n2", cpu=1000))
    poseidon.submit(*(description(uid, job="web") for uid in range(1, 6)), description(9, job="other"))
    placed = poseidon.schedule()
    assert [placed[uid] for uid in range(1, 6)] == ["n2"] * 5
    assert placed[9] == "n1"


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


def test_a_bound_that_is_not_a_number_matches_nothing_and_is_harmless(poseidon):
    word = pb.NodeSelectorRequirement(key="cores", operator="Gt", values=["many"])
    poseidon.add_node(topology("n1", labels={"cores": "8"}))
    poseidon.submit(description(1, affinity=required(word)))
    assert poseidon.schedule() == {}


def test_any_submit_time_is_accepted(poseidon):
    task = description(1)
    task.task_descriptor.submit_time = 2**64 - 1
    poseidon.submit(task)
