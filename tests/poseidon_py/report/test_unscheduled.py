"""Which report a pod gets that a round did not place."""

import pytest

from poseidon_py.report.messages import GangTerms
from poseidon_py.report.unscheduled import UnscheduledReports, terms_of
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.members import Needs
from poseidon_py.state.node_record import NodeRecord
from poseidon_py.state.store import Store
from protos.gen import flow_pb2
from tests.poseidon_py.builders import node, pod

R = flow_pb2.Reason


@pytest.mark.parametrize(
    ("reason", "report"),
    [
        (R(kind=R.INSUFFICIENT_RESOURCE, detail="cpu", nodes=3), "unschedulable"),
        (R(kind=R.NO_FLAVOR, detail="q"), "unschedulable"),  # a new node may suit the pod
        (R(kind=R.OVER_QUOTA, detail="q", value="cpu: 1000"), "quota"),
        (R(kind=R.QUEUE_UNKNOWN), "queue"),
        (R(kind=R.QUEUE_STOPPED, detail="q"), "quota"),
        (R(kind=R.QUEUE_BEHIND, detail="q"), "quota"),
        (R(kind=R.GANG_FULL, detail="g", value="2/2"), "gang"),
    ],
)
def test_the_report_follows_from_the_reason(reason, report):
    store, found = Store(["poseidon"]), []
    store.pod_queue._defer_seconds = 0.0
    store.observe_pod(pod("p"))
    known = store.pod_named("default", "p")
    assert known is not None
    known.described.class_id = 1
    assert known.schedulable
    reports = UnscheduledReports(
        store,
        lambda pod, message: found.append(("unschedulable", pod.name)),
        lambda pod, message: found.append(("gang", pod.name)),
        lambda pod, message: found.append(("quota", pod.name)),
        lambda pod, message: found.append(("queue", pod.name)),
    )
    reports.report([flow_pb2.Unscheduled(nodes=3, waiting=1, reasons=[reason], task_uid=[known.task])])
    assert found == [(report, "p")]


def test_of_nominated_pods_the_node_is_named():
    store, found = Store(["poseidon"]), list[str]()
    store.pod_queue._defer_seconds = 0.0
    names = ["p", "q"]
    for name in names:
        store.observe_pod(pod(name))
    pods = [store.pods[f"uid-{name}"] for name in names]
    for known in pods:
        known.described.class_id = 1
    store.nominations.set(pods[0], "n")

    def report(pod, message):
        found.append(message)

    reports = UnscheduledReports(store, *[report] * 4)
    reason = R(kind=R.INSUFFICIENT_RESOURCE, detail="cpu", nodes=3)
    group = flow_pb2.Unscheduled(nodes=3, waiting=2, reasons=[reason], task_uid=[known.task for known in pods])
    reports.report([group])
    plain = "0/3 nodes are available: 3 Insufficient cpu."
    assert found == [f"{plain} Nominated to n: it is bound once its victims have left.", plain]


@pytest.mark.parametrize(("labels", "absent"), [({"rack": "r1"}, False), ({"zone": "z"}, True)])
def test_what_is_said_of_a_gang_with_a_required_topology(labels, absent):
    store = Store(["poseidon"])
    for name in ("n1", "n2"):
        known = NodeRecord(node(name))
        known.base = flow_pb2.Node(labels=labels if name == "n2" else {})
        store.nodes[name] = known
    gang = Group("k", message=flow_pb2.Gang(topology_key="rack", topology_required=True), needs=Needs(4))
    assert terms_of(store, gang) == GangTerms(4, {}, "rack", absent)
    gang.message = flow_pb2.Gang(topology_key="rack")  # preferred: the gang does not wait for it
    assert terms_of(store, gang) == GangTerms(4)
    assert terms_of(store, None) == GangTerms()


def test_a_pod_that_fits_by_now_gets_no_report_without_a_reason():
    store, found = Store(["poseidon"]), list[str]()
    store.pod_queue._defer_seconds = 0.0
    for name in ("p", "q"):
        store.observe_pod(pod(name))
        store.pods[f"uid-{name}"].described.class_id = 1
    store.nominations.set(store.pods["uid-q"], "n")
    reports = UnscheduledReports(store, *[lambda pod, message: found.append(message)] * 4)
    tasks = [known.task for known in store.pods.values()]
    reports.report([flow_pb2.Unscheduled(nodes=2, waiting=2, task_uid=tasks)])
    assert found == ["Nominated to n: it is bound once its victims have left."]
