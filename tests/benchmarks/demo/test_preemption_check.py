"""The demo's checks of preemption, on synthetic histories: they pass on sound ones and find each violation."""

import pytest

from benchmarks.demo.disruptions import PREEMPTED, Budget, Disruptions
from benchmarks.demo.evidence import Evidence
from benchmarks.demo.preemption_check import check_preemption, preemption
from benchmarks.demo.progress import Condition, Metadata, Owner, Pod, Spec, Status

BUDGET = Budget("b", {"app": "web"}, 1)


def pod(
    name, node=None, priority=0, phase="Running", owner="ReplicaSet", going=False, nominated=None, because=PREEMPTED
):
    kind, reason = because
    return Pod(
        Metadata(
            uid=name,
            name=name,
            labels={"app": "web"},
            owners=[Owner(owner)] if owner else None,
            deleting="2026-01-01T00:00:00Z" if going else None,
        ),
        Spec(node=node, priority=priority, priority_class="urgent" if priority else None),
        Status(phase=phase, nominated=nominated, conditions=[Condition(kind, "True", reason)] if going else None),
    )


def history(*changes, budgets=()):
    found = Disruptions(budgets)
    for change in changes:
        found.observe(*change if isinstance(change, tuple) else ("MODIFIED", change))
    return found


def evidence(*pairs, node="n"):
    """Events on victims and their preemptors, and the audit of the victims: bound at 1 s, deleted at 11 s."""
    events = [{"involvedObject": {"uid": victim}, "related": {"uid": preemptor}} for victim, preemptor in pairs]
    audit = [
        {"what": what, "uid": victim, "node": node, "time": time}
        for victim, _ in pairs
        for what, time in (("bind", 1.0), ("delete", 11.0))
    ]
    return Evidence([], [], audit, preempted=events)


def failed(evidence, disruptions):
    checks = check_preemption(evidence, disruptions)
    assert len(checks) == 2
    assert all(check.detail for check in checks)
    return [check.detail for check in checks if not check.ok]


VICTIM, GOING = pod("v", "n"), pod("v", "n", going=True)
NOMINATED = pod("p", priority=9, phase="Pending", nominated="n")


def test_a_sound_preemption_passes_and_is_counted():
    found = history(VICTIM, NOMINATED, GOING, ("DELETED", GOING), pod("p", "n", priority=9))
    assert failed(evidence(("v", "p")), found) == []
    assert preemption(evidence(("v", "p")), found) == {
        "victims": 1,
        "preemptors": 1,
        "lost_seconds": 10.0,
        "groups": [
            {
                "victim_class": "",
                "victim_owner": "ReplicaSet",
                "preemptor_class": "urgent",
                "preemptor_owner": "ReplicaSet",
                "victims": 1,
            }
        ],
    }
    assert found.removed == 0


def test_without_preemption_everything_passes():
    found = history(VICTIM, budgets=[BUDGET])
    assert failed(evidence(), found) == []
    assert preemption(evidence(), found) == {"victims": 0, "preemptors": 0, "lost_seconds": 0, "groups": []}


@pytest.mark.parametrize(
    ("preemptor", "pairs", "node", "says"),
    [
        pytest.param(NOMINATED, [], "n", "v has no preemptor", id="without an event"),
        pytest.param(NOMINATED, [("v", "x")], "n", "v has no preemptor", id="for an unknown pod"),
        pytest.param(
            pod("p", priority=0, nominated="n"),
            [("v", "p")],
            "n",
            "v of priority 0 was preempted by p of 0",
            id="for an equal",
        ),
        pytest.param(
            pod("p", priority=9, nominated="m"),
            [("v", "p")],
            "n",
            "v left n, which p was never to have",
            id="other node",
        ),
        pytest.param(
            NOMINATED,
            [("v", "p"), ("w", "p")],
            "n",
            "w was reported as preempted, but was not deleted",
            id="not deleted",
        ),
    ],
)
def test_a_victim_without_a_good_reason_is_found(preemptor, pairs, node, says):
    (detail,) = failed(evidence(*pairs, node=node), history(VICTIM, preemptor, GOING))
    assert says in detail


def test_a_preemptor_that_was_placed_elsewhere_in_the_end_is_fine():
    assert failed(evidence(("v", "p")), history(VICTIM, NOMINATED, GOING, pod("p", "m", priority=9))) == []


def test_pods_that_are_deleted_for_another_reason_are_no_victims():
    evicted = pod("v", "n", going=True, because=("DisruptionTarget", "EvictionByEvictionAPI"))
    assert history(VICTIM, evicted).victims == {}
    assert history(VICTIM, ("DELETED", VICTIM)).victims == {}


def test_victims_without_an_owner_are_not_replaced():
    assert history(pod("v", "n", owner=""), pod("v", "n", owner="", going=True)).removed == 1


@pytest.mark.parametrize(("phase", "removed"), [("Succeeded", 1), ("Failed", 0), ("Running", 0)])
def test_a_victim_that_completes_before_its_deletion_is_not_replaced(phase, removed):
    ended = pod("v", "n", phase=phase, owner="Job")
    going = pod("v", "n", phase=phase, owner="Job", going=True)
    assert history(pod("v", "n", owner="Job"), ended, going, ("DELETED", going)).removed == removed


@pytest.mark.parametrize(
    ("others", "ready"),
    [
        pytest.param([], 0, id="alone"),
        pytest.param([pod("o", phase="Pending")], 0, id="another that is not ready"),
        pytest.param([pod("o", "n", going=True, because=("", ""))], 0, id="another that is leaving"),
        pytest.param([pod("o", "n")], 1, id="another that is ready"),
    ],
)
def test_a_budget_counts_the_ready_pods_that_remain(others, ready):
    found = history(VICTIM, *others, GOING, ("DELETED", GOING), budgets=[BUDGET])
    assert found.counted == 1
    problems = [] if ready else ["b: 0 of 1 ready after v left"]
    assert found.exceeded == problems
    assert failed(evidence(("v", "p")), history(NOMINATED, VICTIM, *others, GOING, budgets=[BUDGET])) == problems


def test_a_budget_counts_only_pods_with_its_labels():
    found = history(VICTIM, GOING, budgets=[Budget("b", {"app": "db"}, 1)])
    assert (found.counted, found.exceeded) == (0, [])
