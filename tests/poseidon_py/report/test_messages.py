"""Messages in kube-scheduler's words, which tools parse."""

import pytest

from poseidon_py.report import messages
from protos.gen import flow_pb2

R = flow_pb2.Reason


@pytest.mark.parametrize(
    ("nodes", "reasons", "text"),
    [
        (
            12,
            [
                R(kind=R.INSUFFICIENT_RESOURCE, detail="cpu", nodes=7),
                R(kind=R.UNTOLERATED_TAINT, detail="k", value="v", nodes=5),
            ],
            "0/12 nodes are available: 5 node(s) had untolerated taint(s), 7 Insufficient cpu.",
        ),
        (
            4,
            [
                R(kind=R.GANG_DOMAIN, detail="ns/g", value="rack", nodes=3),
                R(kind=R.INSUFFICIENT_RESOURCE, detail="cpu", nodes=1),
            ],
            "0/4 nodes are available: 1 Insufficient cpu, "
            "3 node(s) are outside of the domain of label rack in which gang ns/g is.",
        ),
        # sorted as text: 10 before 2
        (
            12,
            [R(kind=R.TOO_MANY_TASKS, nodes=2), R(kind=R.INSUFFICIENT_RESOURCE, detail="nvidia.com/gpu", nodes=10)],
            "0/12 nodes are available: 10 Insufficient nvidia.com/gpu, 2 Too many pods.",
        ),
        (
            3,
            [
                R(kind=R.UNTOLERATED_TAINT, detail="node.kubernetes.io/unschedulable", nodes=1),
                R(kind=R.SELECTOR_MISMATCH, nodes=2),
            ],
            "0/3 nodes are available: 1 node(s) were unschedulable, "
            "2 node(s) didn't match Pod's node affinity/selector.",
        ),
        (
            1,
            [R(kind=R.UNTOLERATED_TAINT, detail="node.kubernetes.io/not-ready", nodes=1)],
            "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
        ),
        (
            2,
            [R(kind=R.FURTHER_AFFINITY, detail="features", nodes=2)],
            "0/2 nodes are available: 2 node(s) didn't match Pod's required features.",
        ),
        # the same words are one reason
        (
            5,
            [
                R(kind=R.INSUFFICIENT_RESOURCE, detail="cpu", nodes=2),
                R(kind=R.INSUFFICIENT_RESOURCE, detail="cpu", nodes=3),
            ],
            "0/5 nodes are available: 5 Insufficient cpu.",
        ),
        (
            5,
            [R(kind=R.OVER_QUOTA, detail="team-a", value="nvidia.com/gpu: 4"), R(kind=R.TOO_MANY_TASKS, nodes=5)],
            "waits for quota of queue team-a: lacks 4 nvidia.com/gpu",
        ),
        (
            5,
            [R(kind=R.OVER_QUOTA, detail="team-a", value="cpu: 1500, memory: 1610612736")],
            "waits for quota of queue team-a: lacks 1.5 cpu, 1.5Gi memory",
        ),
        (5, [R(kind=R.OVER_QUOTA, detail="team-a")], "waits for quota of queue team-a"),
        (5, [R(kind=R.OVER_QUOTA, detail="team-a", value="odd")], "waits for quota of queue team-a: lacks odd"),
        (
            0,
            [R(kind=R.QUEUE_STOPPED, detail="team-a")],
            "queue team-a is stopped: no pods are placed until it is started again",
        ),
        (
            5,
            [R(kind=R.NO_FLAVOR, detail="team-a")],
            "no node of queue team-a suits the pod: compare the node selector, affinity and tolerations of the pod "
            "with the nodes for which the queue has quota, and with spec.nodeTaints of its flavors",
        ),
        (
            5,
            [R(kind=R.QUEUE_BEHIND, detail="team-a")],
            "waits behind older pods of queue team-a, which is strictly first in, first out",
        ),
        (
            5,
            [R(kind=R.QUEUE_UNKNOWN)],
            "its queue does not exist, or has queues below it: see `poseidon explain`",
        ),
        (0, [], "no nodes available to schedule pods"),
        (
            3,  # nodes count once, whichever sets of devices they lack
            [R(kind=R.INSUFFICIENT_RESOURCE, detail=name, nodes=3) for name in ("devices:gpu", "device-sets:0a1b")],
            "0/3 nodes are available: 3 cannot allocate all claims.",
        ),
        (2, [], ""),  # nothing is said of nodes that would take it
        (
            3,
            [R(kind=R.INSUFFICIENT_RESOURCE, detail="cpu", nodes=3), R(kind=R.BUDGETS, detail="a/b", nodes=2)],
            "0/3 nodes are available: 3 Insufficient cpu. "
            "Evictions would make room on 2 of them, which disruption budget a/b prevents.",
        ),
    ],
)
def test_message(nodes, reasons, text):
    assert messages.unscheduled(nodes, reasons) == text


def test_a_queue_that_a_problem_stops_is_not_waited_for():
    problem = "queue a is closed: spec.admissionChecks[]: admission checks are not run here"
    assert messages.unscheduled(0, [R(kind=R.QUEUE_STOPPED, detail="a")], queue_problem=problem) == problem


def test_a_resource_for_which_the_queue_has_no_quota_is_no_shortage():
    reasons = [R(kind=R.OVER_QUOTA, detail="a", value="memory: 1073741824")]
    assert messages.unscheduled(3, reasons, covered={"cpu"}) == (
        "waits for quota of queue a, which has none for memory: give it some, or remove the request"
    )
    assert messages.unscheduled(3, reasons, covered={"cpu", "memory"}) == "waits for quota of queue a: lacks 1Gi memory"


def test_a_reason_of_a_newer_service_is_not_hidden():
    newer = R(kind=99)  # type: ignore[arg-type]
    assert "99" in messages.reason(newer)


def test_events_have_a_longest_message():
    assert messages.note("x" * 1024) == "x" * 1024
    assert len(messages.note("ü" * 1024).encode()) <= 1024
    assert messages.note("x" * 2000).endswith(" ...")


def test_a_pod_that_a_later_round_considers():
    text = "has many pod affinity, anti-affinity and topology spread terms: a later round considers it"
    assert messages.unscheduled(7, [R(kind=R.DEFERRED)]) == text


def test_a_pod_that_waits_for_a_better_node():
    text = "waits for up to two minutes for a node that costs less by the policy; other nodes have capacity"
    assert messages.unscheduled(7, [R(kind=R.DELAYED)]) == text


def test_gangs_that_wait():
    missing = R(kind=R.GANG_INCOMPLETE, detail="ns/g", value="2")
    text = "pod group ns/g: 2 more members are needed before it can be scheduled"
    assert messages.unscheduled(0, [missing], messages.GangTerms(5)) == f"{text} (3/5)"
    assert messages.unscheduled(3, [missing]) == text
    one = R(kind=R.GANG_INCOMPLETE, detail="ns/g", value="1")
    assert messages.unscheduled(3, [one], messages.GangTerms(2)).startswith("pod group ns/g: 1 more member is needed")
    unfit = R(kind=R.GANG_DOES_NOT_FIT, detail="ns/g", value="3/5")
    why = R(kind=R.INSUFFICIENT_RESOURCE, detail="cpu", nodes=9)
    start = "0/12 nodes are available: gang ns/g needs 5 members placed together, 3 fit"
    assert messages.unscheduled(12, [unfit, why]) == f"{start}: 9 Insufficient cpu."
    assert messages.unscheduled(12, [unfit]) == f"{start}."
    poor = R(kind=R.GANG_CANNOT_START, detail="ns/g", value="cpu: 7000, nvidia.com/gpu: 2")
    assert messages.unscheduled(12, [poor, why]) == (
        "0/12 nodes are available: gang ns/g cannot start until 7 cpu, 2 nvidia.com/gpu more are free in the cluster: "
        "9 Insufficient cpu."
    )
    bound = R(kind=R.NOT_BY_PREEMPTION, detail="ns/g", value="4/5")
    proved = "no evictions or moves help: at most 4 of 5 would fit"
    assert messages.unscheduled(12, [unfit, bound, why]) == f"{start}; {proved}: 9 Insufficient cpu."
    assert messages.unscheduled(12, [bound, why]) == f"0/12 nodes are available: {proved}: 9 Insufficient cpu."
    full = R(kind=R.GANG_FULL, detail="ns/g", value="4/4")
    assert messages.unscheduled(12, [full]) == "pod group ns/g: 4 of its members are placed, and it has 4 at most"
    one = R(kind=R.GANG_DOES_NOT_FIT, detail="ns/g", value="0/1")
    assert messages.unscheduled(12, [one]) == "0/12 nodes are available: gang ns/g needs 1 member placed, 0 fit."


def test_the_problem_of_a_queue_is_the_message_of_its_pods():
    problem = "queue x does not exist: create it or change label poseidon.io/queue"
    assert messages.unscheduled(5, [R(kind=R.QUEUE_UNKNOWN)], queue_problem=problem) == problem


def test_the_node_of_a_nominated_pod_is_a_sentence_of_its_own():
    for message in ("waits for quota of queue q", "waits for quota of queue q."):
        assert messages.with_nomination(message, "n").startswith("waits for quota of queue q. Nominated to n: ")


@pytest.mark.parametrize(
    ("count", "of_roles", "text"),
    [
        (1, {}, "1 more member is"),
        (2, {"": 2}, "2 more members are"),
        (1, {"ps": 1}, "1 more member (of role ps) is"),
        (3, {"worker": 3}, "3 more members (of role worker) are"),
        (4, {"worker": 2}, "4 more members (2 of role worker) are"),
        (3, {"worker": 2, "ps": 1}, "3 more members (1 of role ps and 2 of role worker) are"),
    ],
)
def test_the_roles_that_lack_members_are_named(count, of_roles, text):
    assert messages.more_members(count, of_roles) == text
    missing = R(kind=R.GANG_INCOMPLETE, detail="ns/g", value=str(count))
    terms = messages.GangTerms(9, of_roles)
    assert messages.unscheduled(3, [missing], terms) == (
        f"pod group ns/g: {text} needed before it can be scheduled ({9 - count}/9)"
    )


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        (messages.GangTerms(4), "placed together, 3 fit."),
        (messages.GangTerms(4, topology="rack"), "placed together on nodes with one value of label rack, 3 fit."),
        (
            messages.GangTerms(4, topology="rack", absent=True),
            "placed together on nodes with one value of label rack, which no node has, 3 fit.",
        ),
    ],
)
def test_the_topology_that_a_gang_requires_is_named(terms, text):
    unfit = R(kind=R.GANG_DOES_NOT_FIT, detail="ns/g", value="3/4")
    assert messages.unscheduled(6, [unfit], terms) == f"0/6 nodes are available: gang ns/g needs 4 members {text}"
