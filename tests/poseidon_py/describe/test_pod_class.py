"""The messages of pods and nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.service.messages import requirement, term
from poseidon_py.describe.node import describe_node
from poseidon_py.describe.pod_class import describe_class, key_of
from poseidon_py.describe.task_classes import Classes
from poseidon_py.kube.objects import InvalidField
from tests.effort import examples
from tests.poseidon_py.builders import node, pod

TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}

RESTARTING_ALL = {"name": "main", "image": "x", "restartPolicyRules": [{"action": "RestartAllContainers"}]}
RESTARTING = {"name": "main", "image": "x", "restartPolicyRules": [{"action": "Restart"}]}


def affinity(*terms, kind="nodeAffinity"):
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}}


def test_pods_that_differ_in_name_namespace_labels_and_owner_are_of_one_class():
    a = describe_class(pod("a", owner="x"))
    b = describe_class(pod("b", namespace="other", uid="z"))
    assert a.id == b.id != 0


@pytest.mark.parametrize(
    "change",
    [
        {"cpu": "101m"},
        {"requests": {"cpu": "100m", "memory": "1Mi", "x.io/y": "1"}},
        {"spec": {"nodeSelector": {"disk": "ssd"}}},
        {"spec": affinity(TERM)},
        {"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}},
        {"spec": {"priority": 5}},
        {"spec": {"preemptionPolicy": "Never"}},
        {"spec": {"overhead": {"cpu": "1m"}}},
        {"spec": {"activeDeadlineSeconds": 60}},
        {"spec": {"containers": [RESTARTING_ALL]}},
        {"spec": {"hostNetwork": True, "hostUsers": False}},
        {"annotations": {"poseidon.io/expected-duration": "90s"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_relevant_field_changes_the_class(change):
    assert describe_class(pod(**change)).id != describe_class(pod()).id
    assert key_of(pod(**change)) != key_of(pod())


@pytest.mark.parametrize("policy", [None, "PreemptLowerPriority", "Sometimes"])
def test_only_the_policy_never_forbids_preemption(policy):
    made = pod(spec={"preemptionPolicy": policy})
    assert describe_class(made) == describe_class(pod())
    assert key_of(made) == key_of(pod())
    assert not describe_class(made).never_preempts
    assert describe_class(pod(spec={"preemptionPolicy": "Never"})).never_preempts


def test_different_spellings_of_a_pod_have_the_same_class():
    assert describe_class(pod(cpu="0.1")).id == describe_class(pod(cpu="100m")).id


def test_a_known_template_is_not_described_again(monkeypatch):
    classes = Classes()
    first = classes.of(pod("a"))
    monkeypatch.setattr("poseidon_py.describe.task_classes.describe_class", None)
    assert classes.of(pod("b")) == first
    assert len(classes) == 1


def test_a_pod_of_a_known_template_that_admission_changed_is_described_for_itself():
    classes = Classes()
    assert classes.of(pod("a", owner="job")) != classes.of(pod("b", owner="job", cpu="200m"))


def test_the_class_of_a_bound_pod_follows_its_resize():
    classes = Classes()
    status = {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "900m", "memory": "1Mi"}}}]}
    running, resized = pod(node="n"), pod(node="n", status=status)
    assert classes.of(running) == classes.of(pod())
    message = classes.get(classes.of(resized))
    assert message is not None
    assert message.requests["cpu"] == 900


AMOUNTS = st.none() | st.fixed_dictionaries({"cpu": st.sampled_from(["50m", "100m", "900m"])})
IN_FORCE = st.none() | AMOUNTS.map(lambda amounts: {"requests": amounts})


def container_status(name):
    message = st.fixed_dictionaries({"resources": IN_FORCE, "allocatedResources": AMOUNTS})
    return message.map(
        lambda parts: {"name": name, **{key: value for key, value in parts.items() if value is not None}}
    )


STATUS = st.fixed_dictionaries(
    {},
    optional={
        "containerStatuses": st.lists(container_status("main"), max_size=1),
        "initContainerStatuses": st.lists(container_status("side"), max_size=1),
        "resources": IN_FORCE,
        "allocatedResources": AMOUNTS,
        "conditions": st.sampled_from(
            [[], [{"type": "PodResizePending", "reason": "Infeasible"}], [{"type": "PodResizePending", "reason": "x"}]]
        ),
    },
)


@given(STATUS, STATUS, st.booleans())
@examples(150)
def test_bound_pods_with_the_same_key_are_of_one_class_whatever_their_status_says(one, other, whole):
    """`whole`: the pod has pod-level requests in addition to those of its containers."""
    main = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m"}}}
    spec = {
        "containers": [main],
        "initContainers": [{**main, "name": "side", "restartPolicy": "Always"}],
        **({"resources": {"requests": {"cpu": "300m"}}} if whole else {}),
    }
    a, b = pod(node="n", spec=spec, status=one), pod(node="n", spec=spec, status=other)
    if key_of(a) == key_of(b):
        assert describe_class(a).id == describe_class(b).id


def test_a_status_without_resources_in_force_does_not_make_another_key():
    started = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "containerStatuses": [{"name": "main"}]}
    assert key_of(pod(node="n", status=started)) == key_of(pod(node="n"))


def test_selectors_affinity_and_tolerations_in_the_contracts_words():
    spec = {
        "nodeSelector": {"b": "2", "a": "1"},
        "tolerations": [
            {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "team", "value": "x"},
            {"operator": "Exists"},
        ],
        "priority": -3,
        **affinity(
            {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["8"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
            {},
        ),
    }
    got = describe_class(pod(spec=spec))
    assert [(r.key, r.operator, list(r.values)) for r in got.node_selector] == [("a", "In", ["1"]), ("b", "In", ["2"])]
    terms = got.node_affinity.nodeSelectorTerms
    assert [(r.key, r.operator, list(r.values)) for r in terms[0].matchExpressions] == [("cores", "Gt", ["8"])]
    assert [(r.key, list(r.values)) for r in terms[1].matchFields] == [("metadata.name", ["n1"])]
    assert len(terms) == 3  # the empty term, which matches nothing, is kept
    assert [(t.key, t.operator, t.value, t.effect) for t in got.tolerations] == [
        ("gpu", "Exists", "", "NoSchedule"),
        ("team", "Equal", "x", ""),
        ("", "Exists", "", ""),
    ]
    assert got.priority == -3


def test_tolerations_that_compare():
    compare = {"key": "sla", "operator": "Gt", "value": "900", "effect": "NoExecute"}
    (got,) = describe_class(pod(spec={"tolerations": [compare]})).tolerations
    assert (got.key, got.operator, got.value, got.effect) == ("sla", "Gt", "900", "NoExecute")


@pytest.mark.parametrize(
    ("spec", "features"),
    [
        ({"containers": [RESTARTING_ALL]}, ["RestartAllContainersOnContainerExits"]),
        ({"initContainers": [RESTARTING_ALL]}, ["RestartAllContainersOnContainerExits"]),
        ({"containers": [RESTARTING]}, []),
        ({"hostNetwork": True, "hostUsers": False}, ["UserNamespacesHostNetworkSupport"]),
        ({"hostNetwork": True, "hostUsers": True}, []),
        ({"hostNetwork": True}, []),
        ({"hostUsers": False}, []),
        (
            {"containers": [RESTARTING_ALL], "hostNetwork": True, "hostUsers": False},
            ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"],
        ),
    ],
)
def test_features_that_a_node_has_to_have_declared(spec, features):
    got = describe_class(pod(spec=spec))
    assert list(got.further_names) == (["features"] if features else [])
    demanded = [term(one) for selector in got.further_affinity for one in selector.nodeSelectorTerms]

    def fits(*declared):
        labels = dict(describe_node(node(declared=[*declared]), "id").labels)
        return all(each.matches(labels, {}) for each in demanded)

    assert fits(*features)
    assert fits("another", *features)
    assert all(not fits(*(set(features) - {missing})) for missing in features)


def test_without_node_affinity_any_node_will_do_and_with_an_empty_one_none():
    assert not describe_class(pod(spec={"affinity": {"podAffinity": {}}})).HasField("node_affinity")
    assert describe_class(pod(spec=affinity())).HasField("node_affinity")


@pytest.mark.parametrize("bound", ["x", "", "1_0", "1.5"])
def test_a_bound_that_is_not_a_number_disables_its_term_only(bound):
    odd = {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": [bound]}]}
    given = affinity(odd, {"matchExpressions": [{"key": "z", "operator": "Exists"}]})
    terms = describe_class(pod(spec=given)).node_affinity.nodeSelectorTerms
    spoilt, other = (requirement(term.matchExpressions[0]) for term in terms)
    assert other.matches({"z": "1"})
    assert not any(spoilt.matches({"cores": value}) for value in ("9", "10", "11", bound))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (affinity({"matchExpressions": [{"key": "a", "operator": "Near"}]}), "matchExpressions"),
        (affinity({"matchFields": [{"key": "spec.x", "operator": "In", "values": ["x"]}]}), "matchFields"),
        ({"tolerations": [{"key": "a", "operator": "Like"}]}, "spec.tolerations"),
        ({"tolerations": {}}, "spec.tolerations"),
        ({"nodeSelector": ["a"]}, "spec.nodeSelector"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector"),
    ],
)
def test_an_invalid_field_is_named(spec, field):
    with pytest.raises(InvalidField) as caught:
        Classes().of(pod(spec=spec))
    assert field in caught.value.field


def test_node():
    taints = [{"key": "dedicated", "value": "x", "effect": "NoExecute"}, {"key": "slow", "effect": "PreferNoSchedule"}]
    given = node(
        allocatable={"cpu": "3900m", "memory": "1Gi", "pods": "20", "odd": "7"}, labels={"z": "1"}, taints=taints
    )
    got = describe_node(given, "id")
    assert (got.id, got.name) == ("id", "node")
    assert dict(got.allocatable) == {"cpu": 3900, "memory": 2**30, "pods": 20}
    assert dict(got.labels) == {"z": "1"}
    assert [(t.key, t.value, t.effect) for t in got.taints] == [
        ("dedicated", "x", "NoExecute"),
        ("slow", "", "PreferNoSchedule"),
    ]


def test_a_cordoned_node_has_the_taint_once():
    key = "node.kubernetes.io/unschedulable"
    for taints in (None, [{"key": key, "effect": "NoSchedule"}]):
        got = describe_node(node(unschedulable=True, taints=taints), "id")
        assert [(t.key, t.effect) for t in got.taints] == [(key, "NoSchedule")]


def test_of_a_cordoned_node_with_other_taints_that_it_is_cordoned_comes_first():
    key = "node.kubernetes.io/unschedulable"
    other = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    for taints in ([other], [other, {"key": key, "effect": "NoSchedule"}]):
        got = describe_node(node(unschedulable=True, taints=taints), "id")
        assert [t.key for t in got.taints] == [key, "dedicated"]


@pytest.mark.parametrize("allocatable", [{"cpu": "much"}, {"cpu": "-1"}, ["cpu"]])
def test_an_invalid_node(allocatable):
    with pytest.raises(InvalidField) as caught:
        describe_node(node(allocatable=allocatable), "id")
    assert caught.value.field.startswith("status.allocatable")
