"""Koordinator's ElasticQuotas as a tree, and the queues of pods."""

import json

import pytest

from poseidon_py.describe.queues.model import (
    EVERY_NODE,
    UNBOUNDED,
    Queue,
    Quota,
    ReclaimRules,
    Sharing,
    Stop,
    Victims,
    id_of,
)
from tests.poseidon_py.state.queues.rig import Rig

KEYS = "quota.scheduling.koordinator.sh/"
NAME = f"{KEYS}name"
DEFAULT, SYSTEM, ROOT = "koordinator-default-quota", "koordinator-system-quota", "koordinator-root-quota"
LARGE = str((2**63 - 1) // 5)
"""What Koordinator writes into the quotas that it makes."""


@pytest.fixture
def rig():
    return Rig("koordinator")


def quota(rig, name, namespace="kube-system", *, labels=None, annotations=None, **spec):
    fields = {
        "labels": {KEYS + key: value for key, value in (labels or {}).items()},
        "annotations": {
            KEYS + key: value if isinstance(value, str) else json.dumps(value)
            for key, value in (annotations or {}).items()
        },
    }
    rig.put("KoordinatorQuota", name, spec, namespace=namespace, **fields)


def named(rig, pod, name, **labels):
    rig.pod(pod, labels={NAME: name, **{KEYS + key: value for key, value in labels.items()}})


# -- the tree -----------------------------------------------------------------------------------------------------


def test_parents_by_label_make_a_tree_of_min_and_max(rig):
    quota(rig, "org", labels={"is-parent": "true", "parent": ROOT}, min={"cpu": "8"}, max={"cpu": "16"})
    quota(rig, "team", labels={"parent": "org"}, min={"cpu": "2"}, max={"cpu": "4", "memory": "1Gi"})
    assert rig.tree() == {
        "koordinator/org": Queue(
            "koordinator/org",
            "org",
            "",
            (Quota(EVERY_NODE, "cpu", 8000, limit=16000),),
            weight=16000.0,
            within=Victims.LOWER_PRIORITY,
            reclaim=Victims.ANY,
        ),
        "koordinator/team": Queue(
            "koordinator/team",
            "team",
            "koordinator/org",
            (Quota(EVERY_NODE, "cpu", 2000, limit=4000), Quota(EVERY_NODE, "memory", limit=2**30)),
            weight=4000.0,
            within=Victims.LOWER_PRIORITY,
            reclaim=Victims.ANY,
        ),
    }
    rules = rig.queues.tree.rules
    assert (rules.sharing, rules.reclaim) == (Sharing.PROPORTIONAL, ReclaimRules.FAIR_SHARE)


def test_the_root_is_no_queue_and_what_koordinator_writes_on_it_is_not_told(rig):
    quota(rig, ROOT, labels={"is-parent": "true", "allow-lent-resource": "false", "parent": ""})
    assert (rig.tree(), rig.problems()) == ({}, {})
    named(rig, "p", ROOT)
    assert rig.problem("p") == f"queue {ROOT} takes no pods: name one below it in label {NAME}"


def test_a_missing_parent_and_a_cycle_are_named_and_other_queues_go_on(rig):
    quota(rig, "lost", labels={"parent": "nowhere"})
    quota(rig, "below", labels={"parent": "lost"})
    quota(rig, "a", labels={"parent": "b"})
    quota(rig, "b", labels={"parent": "a"})
    quota(rig, "good")
    assert set(rig.tree()) == {"koordinator/good"}
    label = f"label {KEYS}parent"
    assert rig.queues.tree.problems == {
        "koordinator/lost": f"{label}: queue nowhere does not exist; create it or name another",
        "koordinator/below": f"{label}: queue lost is not used; see its own problem",
        "koordinator/a": f"{label}: is part of the cycle a > b > a; change one of the parents",
        "koordinator/b": f"{label}: is part of the cycle a > b > a; change one of the parents",
    }
    named(rig, "p", "below")
    assert rig.problem("p") == f"queue below is not used: {label}: queue lost is not used; see its own problem"
    quota(rig, "nowhere")
    assert rig.problem("p") == ""


def test_default_and_system_quota_take_what_they_request_and_evict_nobody_of_others(rig):
    for name in (DEFAULT, SYSTEM):
        quota(rig, name, max={"cpu": LARGE, "memory": "8"})
    for name in (DEFAULT, SYSTEM):
        queue = rig.tree()[f"koordinator/{name}"]
        assert queue.quotas == (Quota(EVERY_NODE, "cpu", UNBOUNDED), Quota(EVERY_NODE, "memory", 8, limit=8))
        assert (queue.reclaim, queue.weight) == (Victims.NEVER, None)
    assert rig.tree()[f"koordinator/{DEFAULT}"].within is Victims.NEVER


@pytest.mark.parametrize(
    ("of_a", "of_b", "weights"),
    [
        pytest.param({}, {}, (8000.0, 2000.0), id="max where no weight is given"),
        pytest.param({"cpu": 3}, {}, (3000.0, 2000.0), id="its own weight"),
        pytest.param({"cpu": 0, "memory": 0}, {}, (8000.0, 2000.0), id="zeros count as none"),
        pytest.param({"memory": 3, "cpu": 1}, {"memory": 5}, (3.0, 5.0), id="a resource that both have"),
        pytest.param({"nvidia.com/gpu": 3}, {"cpu": 5}, (None, None), id="no resource that both have"),
        pytest.param({"b": 3, "a": 4}, {"a": 5, "b": 6}, (4.0, 5.0), id="others by name"),
    ],
)
def test_shared_weights_are_those_of_one_resource_of_all_siblings(rig, of_a, of_b, weights):
    for name, cpu, given in (("a", "8", of_a), ("b", "2", of_b)):
        quota(rig, name, annotations={"shared-weight": given} if given else {}, max={"cpu": cpu})
    quota(rig, "free")  # nothing limits it, so that it divides nothing
    quota(rig, "child", labels={"parent": "free"}, max={"memory": "7"})
    tree = rig.tree()
    assert tuple(tree[f"koordinator/{name}"].weight for name in "ab") == weights
    assert (tree["koordinator/free"].weight, tree["koordinator/child"].weight) == (None, 7.0)


def test_of_two_with_a_name_that_of_its_own_namespace_counts_or_the_first(rig):
    quota(rig, "b", "a", max={"cpu": "1"})
    quota(rig, "b", "b", max={"cpu": "2"})
    quota(rig, "c", "x", max={"cpu": "3"})
    quota(rig, "c", "w", max={"cpu": "4"})
    assert [queue.quotas[0].limit for _, queue in sorted(rig.tree().items())] == [2000, 4000]
    assert {each.ref[1:3]: each.inactive for each in rig.queues.declared() if each.inactive} == {
        ("a", "b"): "ElasticQuota b/b has the same name, and counts; rename one of them",
        ("x", "c"): "ElasticQuota w/c has the same name, and counts; rename one of them",
    }
    rig.drop("KoordinatorQuota", "b", namespace="b")
    assert rig.tree()["koordinator/b"].quotas[0].limit == 1000


# -- the queue of a pod -------------------------------------------------------------------------------------------


def test_a_label_then_the_namespace_then_a_list_of_namespaces_then_the_default_quota(rig):
    def queue():
        return rig.sent("p").queue

    rig.pod("p", namespace="ns")
    assert queue() == 0
    quota(rig, DEFAULT)
    assert queue() == id_of(f"koordinator/{DEFAULT}")
    quota(rig, "z", annotations={"namespaces": ["other", "ns"]})
    quota(rig, "y", annotations={"namespaces": ["ns"]})
    assert queue() == id_of("koordinator/y")
    assert rig.problems() == {
        "kube-system/z": [f"{KEYS}namespaces: ElasticQuota y is the one of namespace ns; list it in one quota"]
    }
    quota(rig, "ns", "elsewhere")
    assert queue() == id_of("koordinator/y")
    quota(rig, "ns", "ns")
    assert queue() == id_of("koordinator/ns")
    rig.pod("p", namespace="ns", labels={NAME: "z"})
    assert queue() == id_of("koordinator/z")
    rig.pod("p", namespace="ns", labels={NAME: "z", "poseidon.io/queue": "y"})
    assert queue() == id_of("koordinator/y")
    rig.pod("p", namespace="ns")
    rig.drop("KoordinatorQuota", "ns", namespace="ns")
    assert queue() == id_of("koordinator/y")


def test_a_pod_whose_quota_does_not_exist_waits_and_says_so(rig):
    named(rig, "p", "x")
    assert rig.problem("p") == f"queue x does not exist: create it or change label {NAME}"
    quota(rig, "x")
    assert (rig.problem("p"), rig.sent("p").queue) == ("", id_of("koordinator/x"))


@pytest.mark.parametrize("name", [DEFAULT, SYSTEM])
def test_quotas_that_koordinator_makes_without_limits_need_not_exist(rig, name):
    named(rig, "p", name)
    assert (rig.problem("p"), rig.sent("p").queue) == ("", 0)
    quota(rig, name)
    assert rig.sent("p").queue == id_of(f"koordinator/{name}")
    rig.drop("KoordinatorQuota", name, namespace="kube-system")
    rig.wait()
    assert rig.sent("p").queue == 0


def test_a_pod_in_a_parent_waits_and_so_in_one_that_is_called_a_parent(rig):
    quota(rig, "org", labels={"is-parent": "true"})
    named(rig, "p", "org")
    assert rig.problem("p") == (
        f"queue org is closed: label {KEYS}is-parent: its pods are in quotas below it, and there is none; create one, "
        "or remove the label"
    )
    assert rig.tree()["koordinator/org"].stop is Stop.HOLD
    quota(rig, "team", labels={"parent": "org"})
    assert rig.problem("p") == f"queue org has queues below it, which take pods: name one of them in label {NAME}"
    assert rig.tree()["koordinator/org"].stop is Stop.NONE
    quota(rig, "org")
    rig.drop("KoordinatorQuota", "team", namespace="kube-system")
    assert rig.problem("p") == ""


def test_a_pod_with_the_label_preemptible_false_is_no_victim(rig):
    quota(rig, "x")
    named(rig, "p", "x")
    named(rig, "firm", "x", preemptible="false")
    assert rig.queues.resolution_of(rig.known("p")).preemptible
    assert not rig.queues.resolution_of(rig.known("firm")).preemptible


def test_pods_of_other_schedulers_count_where_their_label_or_namespace_says_so(rig):
    quota(rig, DEFAULT)
    quota(rig, "x", annotations={"namespaces": ["ns"]})
    for name, namespace, labels in (("p", "a", {NAME: "x"}), ("q", "ns", {}), ("r", "a", {})):
        rig.pod(name, namespace=namespace, labels=labels, scheduler="other", node="n")
    found = [rig.known(name).queue for name in "pqr"]
    assert [each.running_id for each in found] == [id_of("koordinator/x")] * 2 + [0]
    assert [each.id for each in found] == [0, 0, 0]


def test_labels_of_an_owner_count(rig):
    quota(rig, "x")
    rig.job("j", {NAME: "x"})
    rig.pod("p", owner="uid-j")
    assert rig.key("p") == "koordinator/x"


# -- what is invalid or refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "problem", "closed"),
    [
        pytest.param(
            {"min": {"cpu": 2}, "max": {"cpu": 1}},
            "spec.max.cpu: is less than min; raise it, or lower spec.min",
            False,
            id="min above max",
        ),
        pytest.param(
            {"max": {"cpu": "x"}},
            "spec.max.cpu: 'x' is not valid, so the queue is closed; give a quantity like 8, 500m or 64Gi",
            True,
            id="an amount",
        ),
        pytest.param(
            {"annotations": {"shared-weight": {"cpu": "x"}}},
            f"{KEYS}shared-weight.cpu: 'x' is not valid and is ignored; give a quantity like 8, 500m or 64Gi",
            False,
            id="a weight",
        ),
        pytest.param(
            {"annotations": {"namespaces": {"a": 1}}},
            f"{KEYS}namespaces: {{'a': 1}} is not valid, so the queue is closed; give a list of texts",
            True,
            id="namespaces",
        ),
        pytest.param(
            {"labels": {"is-parent": "yes"}},
            f"{KEYS}is-parent: 'yes' is not valid and is ignored; give true, false",
            False,
            id="a boolean",
        ),
        pytest.param(
            {"labels": {"tree-id": "1"}},
            f"label {KEYS}tree-id: quota trees are not read, so the pods wait; remove it",
            True,
            id="a quota tree",
        ),
        pytest.param(
            {"labels": {"allow-lent-resource": "false"}},
            f"label {KEYS}allow-lent-resource: idle parts of min are always lent and taken back, so the queue is "
            "closed; remove it",
            True,
            id="min that is not lent",
        ),
    ],
)
def test_what_is_invalid_or_refused_is_named_and_closes_what_it_limits(rig, fields, problem, closed):
    quota(rig, "q", **fields)
    named(rig, "p", "q")
    assert rig.problems() == {"kube-system/q": [problem]}
    assert rig.problem("p") == (f"queue q is closed: {problem}" if closed else "")
    assert (rig.tree()["koordinator/q"].stop is Stop.HOLD) is closed


def test_an_annotation_that_is_no_json_closes_the_queue_if_it_names_namespaces(rig):
    quota(rig, "q", annotations={"namespaces": "{", "shared-weight": "{"})
    assert [text.partition(":")[0] for text in rig.problems()["kube-system/q"]] == [
        f"{KEYS}namespaces",
        f"{KEYS}shared-weight",
    ]
    assert rig.tree()["koordinator/q"].stop is Stop.HOLD


def test_lending_is_what_happens_anyway(rig):
    quota(rig, "q", labels={"allow-lent-resource": "true"})
    assert rig.problems() == {}


# -- which kind is in force ---------------------------------------------------------------------------------------


def test_quotas_that_koordinator_makes_put_nothing_in_force():
    rig = Rig("auto")
    for name in (ROOT, DEFAULT, SYSTEM):
        quota(rig, name)
    assert rig.kind == "poseidon"
    quota(rig, "x")
    assert rig.kind == "koordinator"


def test_the_quotas_of_both_groups_are_told_apart():
    rig = Rig("auto")
    rig.put("ElasticQuota", "x", {"max": {"cpu": 1}}, namespace="default")
    quota(rig, "x")
    named(rig, "p", "x")
    assert (rig.kind, rig.key("p")) == ("elasticquota", "elasticquota/default/x")
    rig.drop("ElasticQuota", "x", namespace="default")
    assert (rig.kind, rig.key("p")) == ("koordinator", "koordinator/x")


def test_pods_that_name_a_quota_wait_while_another_kind_is_in_force_unless_koordinator_runs():
    rig = Rig("auto")
    rig.put("Queue", "own")
    named(rig, "p", "x")
    assert rig.problem("p") == f"queue x does not exist: create it or change label {NAME}"
    rig.queues.set_running("koordinator", "koord-scheduler")
    rig.work()
    assert (rig.problem("p"), rig.key("p")) == ("", "")
