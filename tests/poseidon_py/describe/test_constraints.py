"""The message of each constraint, compared with messages written by hand."""

import json
from typing import Any

import pytest

from poseidon_py.config.conversion import OptionError
from poseidon_py.config.loading import settings
from poseidon_py.describe.label_profiles import Profiles
from poseidon_py.describe.node import describe_node
from poseidon_py.describe.pod_class import describe_class, key_of
from poseidon_py.describe.ports_and_disks import tokens
from poseidon_py.describe.task_classes import Classes, Extras
from poseidon_py.kube.objects import InvalidField
from poseidon_py.report.messages import blocked, reason
from poseidon_py.state.store import Store
from protos.gen import flow_pb2
from tests.poseidon_py.builders import node, node_json, pod, pod_json

APP = {"matchLabels": {"app": "a"}}
HOST = "kubernetes.io/hostname"
R = flow_pb2.Reason


def the(owner: Any, ident: int) -> Any:
    """A description, asserted not to be None."""
    found = owner.get(ident)
    assert found is not None
    return found


def labelled(labels=None, **fields):
    return pod_of(pod_json(**fields), labels or {"app": "a", "pod-template-hash": "x1"})


def pod_of(body, labels):
    import msgspec

    from poseidon_py.kube.objects import Pod

    body["metadata"]["labels"] = labels
    return msgspec.json.decode(json.dumps(body), type=Pod)


def affinity(kind="podAffinity", rule="required", **term):
    body = {"topologyKey": HOST, **term}
    if rule == "preferred":
        body = {"weight": 7, "podAffinityTerm": body}
    return {"affinity": {kind: {f"{rule}DuringSchedulingIgnoredDuringExecution": [body]}}}


def triples(requirements):
    return [(r.key, r.operator, list(r.values)) for r in requirements]


@pytest.mark.parametrize(
    ("term", "namespaces", "every", "selected", "labels", "matches_none"),
    [
        ({"labelSelector": APP}, ["default"], False, [], [("app", "In", ["a"])], False),
        ({"labelSelector": APP, "namespaces": ["y", "x"]}, ["x", "y"], False, [], [("app", "In", ["a"])], False),
        ({"labelSelector": APP, "namespaceSelector": {}}, [], True, [], [("app", "In", ["a"])], False),
        (
            {"labelSelector": APP, "namespaceSelector": {"matchLabels": {"t": "1"}}, "namespaces": ["x"]},
            ["x"],
            False,
            [("t", "In", ["1"])],
            [("app", "In", ["a"])],
            False,
        ),
        ({}, ["default"], False, [], [], True),
        ({"labelSelector": {}}, ["default"], False, [], [], False),
        (
            {"labelSelector": {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["v"]}]}},
            ["default"],
            False,
            [],
            [("k", "NotIn", ["v"])],
            False,
        ),
        # the API server has merged the keys at creation, with the labels of then; interpodaffinity reads the selector
        (
            {
                "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["before"]}]},
                "matchLabelKeys": ["app"],
                "mismatchLabelKeys": ["pod-template-hash"],
            },
            ["default"],
            False,
            [],
            [("app", "In", ["before"])],
            False,
        ),
    ],
)
def test_a_term_between_pods(term, namespaces, every, selected, labels, matches_none):
    for kind, field in (("podAffinity", "affinity"), ("podAntiAffinity", "anti_affinity")):
        [got] = getattr(describe_class(labelled(spec=affinity(kind, **term))), field)
        selector = got.selector
        assert got.topology_key == HOST
        assert (list(selector.namespaces), selector.every_namespace) == (namespaces, every)
        assert (triples(selector.namespace_selector), triples(selector.labels)) == (selected, labels)
        assert selector.no_task == matches_none
    [near] = describe_class(labelled(spec=affinity("podAffinity", "preferred", **term))).preferred_peers
    [far] = describe_class(labelled(spec=affinity("podAntiAffinity", "preferred", **term))).preferred_peers
    assert (near.weight, far.weight) == (7, -7)
    assert near.term == far.term == got


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ({}, {"max_skew": 1}),
        ({"maxSkew": 3, "minDomains": 2}, {"max_skew": 3, "min_domains": 2}),
        ({"whenUnsatisfiable": "ScheduleAnyway"}, {"max_skew": 1, "preferred": True}),
        ({"nodeAffinityPolicy": "Ignore"}, {"max_skew": 1, "ignore_affinity": True}),
        ({"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Honor"}, {"max_skew": 1, "honor_taints": True}),
        ({"nodeTaintsPolicy": "Ignore"}, {"max_skew": 1}),
    ],
)
def test_spread(given, want):
    constraint = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": APP, **given}
    [got] = describe_class(labelled(spec={"topologySpreadConstraints": [constraint]})).spread
    assert list(got.selector.namespaces) == ["default"]
    assert triples(got.selector.labels) == [("app", "In", ["a"])]
    got.ClearField("selector")
    assert got == flow_pb2.Spread(topology_key="z", **want)


@pytest.mark.parametrize(
    ("selector", "keys", "labels", "matches_none"),
    [
        (None, [], [], True),
        ({}, [], [], True),  # matches no pod, as in kube-scheduler
        ({}, ["app"], [("app", "In", ["a"])], False),
        (APP, ["pod-template-hash"], [("app", "In", ["a"]), ("pod-template-hash", "In", ["x1"])], False),
        # merged at creation, with another label: then it matches no pod (podtopologyspread/common.go)
        (
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["before"]}]},
            ["app"],
            [("app", "In", ["before"]), ("app", "In", ["a"])],
            False,
        ),
    ],
)
def test_the_pods_that_a_spread_counts(selector, keys, labels, matches_none):
    constraint = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": keys}
    if selector is not None:
        constraint["labelSelector"] = selector
    [got] = describe_class(labelled(spec={"topologySpreadConstraints": [constraint]})).spread
    assert (triples(got.selector.labels), got.selector.no_task) == (labels, matches_none)


def ports(*given):
    return [{"name": "c", "image": "x", "ports": list(given)}]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"containers": ports({"containerPort": 80})}, []),
        ({"containers": ports({"containerPort": 80, "hostPort": 8080})}, ["TCP:8080"]),
        ({"containers": ports({"hostPort": 53, "protocol": "UDP", "hostIP": "0.0.0.0"})}, ["UDP:53"]),
        ({"containers": ports({"hostPort": 53, "hostIP": "10.0.0.1"})}, ["TCP:53/10.0.0.1"]),
        # kube-scheduler takes this for an address like others
        ({"containers": ports({"hostPort": 53, "hostIP": "::"})}, ["TCP:53/::"]),
        ({"containers": ports({"hostPort": 5}, {"hostPort": 5, "hostIP": "10.0.0.1"})}, ["TCP:5"]),
        ({"hostNetwork": True, "containers": ports({"containerPort": 80})}, ["TCP:80"]),
        ({"initContainers": ports({"hostPort": 5}), "containers": ports()}, []),
        (
            {"initContainers": [{**ports({"hostPort": 5})[0], "restartPolicy": "Always"}], "containers": ports()},
            ["TCP:5"],
        ),
        ({"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]}, ["gce-pd:x"]),
        ({"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "x", "readOnly": True}}]}, ["gce-pd:x/"]),
        (
            {"volumes": [{"name": "d", "awsElasticBlockStore": {"volumeID": "x/y", "readOnly": True}}]},
            ["aws-ebs:x%2Fy"],
        ),
        ({"volumes": [{"name": "d", "iscsi": {"iqn": "i", "readOnly": True}}]}, ["iscsi:i/"]),
        (
            {"volumes": [{"name": "d", "rbd": {"monitors": ["m", "n"], "pool": "p", "image": "i"}}]},
            ["rbd:m:p:i", "rbd:n:p:i"],
        ),
    ],
)
def test_tokens_that_one_pod_of_a_node_can_hold(spec, want):
    assert tokens(pod(spec=spec)) == want


def test_preferred_nodes_and_images():
    term = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    wish = [{"weight": 5, "preference": term}, {"weight": 0, "preference": term}]
    spec = {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wish}},
        "containers": [{"name": "a", "image": "reg:5000/x"}, {"name": "b", "image": "reg:5000/x:v1"}],
        "initContainers": [{"name": "i", "image": "y@sha256:0"}],
    }
    got = describe_class(pod(spec=spec))
    assert [(p.weight, triples(p.preference.matchExpressions)) for p in got.preferred_nodes] == [
        (5, [("disk", "Exists", [])])
    ]
    assert list(got.images) == ["reg:5000/x:latest", "reg:5000/x:v1", "y@sha256:0"]


@pytest.mark.parametrize(
    "change",
    [
        affinity(labelSelector=APP),
        affinity("podAntiAffinity", labelSelector=APP),
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
        {"containers": [{"name": "main", "image": "y", "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}}}]},
        {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_constraint_changes_the_class(change):
    assert key_of(pod(spec=change)) != key_of(pod())
    assert describe_class(pod(spec=change)).id != describe_class(pod()).id


def test_labels_affect_the_profile_but_not_the_class():
    classes, profiles = Classes(), Profiles()
    a, b = labelled({"app": "a"}), labelled({"app": "b"}, name="b")
    assert classes.of(a) == classes.of(b)
    assert profiles.of(a) != profiles.of(b) != 0
    assert dict(the(profiles, profiles.of(b)).labels) == {"app": "b"}
    assert profiles.of(pod()) == profiles.of(pod("b")) != 0  # without labels
    assert profiles.of(pod(namespace="other")) != profiles.of(pod())


def test_namespace_and_labels_affect_the_class_if_a_constraint_refers_to_them():
    classes = Classes()
    near = affinity(labelSelector=APP)
    assert classes.of(pod(spec=near)) != classes.of(pod(namespace="other", spec=near))
    assert classes.of(labelled({"r": "1"}, spec=near)) == classes.of(labelled({"r": "2"}, spec=near))
    merged = affinity(labelSelector=APP, matchLabelKeys=["r"])
    assert classes.of(labelled({"r": "1"}, spec=merged)) == classes.of(labelled({"r": "2"}, spec=merged))
    constraint = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": APP}
    keyed = {"topologySpreadConstraints": [{**constraint, "matchLabelKeys": ["r"]}]}
    assert classes.of(labelled({"r": "1"}, spec=keyed)) != classes.of(labelled({"r": "2"}, spec=keyed))


def test_generated_volume_names_do_not_change_the_class():
    def with_token(name):
        return pod(spec={"volumes": [{"name": name, "projected": {"sources": []}}]})

    assert key_of(with_token("kube-api-access-ab")) == key_of(with_token("kube-api-access-cd"))


def test_requirements_from_other_objects_extend_the_class():
    classes = Classes()
    base = classes.of(pod())
    assert classes.extended(base, Extras()) == base
    extra = classes.extended(base, Extras(avoided_as="o", requests=(("x.io/y", 2),)))
    got = the(classes, extra)
    assert extra != base
    assert got.avoided_as == "o"
    assert got.requests["x.io/y"] == 2
    assert classes.extended(base, Extras(avoided_as="o", requests=(("x.io/y", 2),))) == extra
    assert not the(classes, base).avoided_as


def annotated(name, *owners):
    import msgspec

    from poseidon_py.kube.objects import Node

    wish = [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": owner}}} for owner in owners]
    body = node_json(name)
    text = json.dumps({"preferAvoidPods": wish})
    body["metadata"]["annotations"] = {"scheduler.alpha.kubernetes.io/preferAvoidPods": text, "other": "x"}
    body["status"]["images"] = [{"names": ["a:1", "a@sha256:1"], "sizeBytes": 50}]
    return msgspec.json.decode(json.dumps(body), type=Node)


def test_images_and_avoided_owners_of_a_node():
    got = describe_node(annotated("n", "u2", "u1"), "id")
    assert list(got.avoids) == ["u1", "u2"]
    assert dict(got.images) == {"a:1": 50, "a@sha256:1": 50}
    assert list(describe_node(node("n"), "id").avoids) == []


def test_a_node_of_a_revocable_zone_repels_pods_that_do_not_tolerate_it():
    labels = {"volcano.sh/revocable-zone": "rz1"}
    found = describe_node(node("n", labels=labels), "id").taints
    assert [(each.key, each.value, each.effect) for each in found] == [(*next(iter(labels.items())), "NoSchedule")]
    assert list(describe_node(node("n"), "id").taints) == []


def test_only_pods_whose_owner_a_node_avoids_are_described_apart():
    from poseidon_py.feed.update_rows import describe_pod, node_message

    store = Store(["poseidon"])
    store.observe_pod(pod("a", owner="u1"))
    store.observe_pod(pod("b", owner="u2"))
    store.observe_node(annotated("n", "u1"))
    node_message(store, store.nodes["n"])
    for known in store.pods.values():
        describe_pod(store, known)
    a, b = (store.pods[f"uid-{name}"] for name in "ab")
    assert the(store.classes, a.described.class_id).avoided_as == "u1"
    assert (b.described.class_id, the(store.classes, b.described.class_id).avoided_as) == (a.described.template, "")
    store.remove_node("n")
    assert a.dirty
    describe_pod(store, a)
    assert a.described.class_id == a.described.template


def test_added_affinity():
    given = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "p", "operator": "Exists"}]}]}
    assert settings({"added_node_affinity": given}, {}).added_node_affinity == given
    assert settings({}, {"added_node_affinity": json.dumps(given)}).added_node_affinity == given
    bad = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "p", "operator": "Near"}]}]}
    wrongs: list[dict[str, Any]] = [{"nodeSelectorTerms": []}, bad, {"nodeSelectorTerms": 5}]
    for wrong in wrongs:
        with pytest.raises(OptionError, match="added-node-affinity"):
            settings({"added_node_affinity": wrong}, {})
    with pytest.raises(OptionError, match="mapping"):
        settings({"added_node_affinity": "x"}, {})


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (affinity(topologyKey="", labelSelector=APP), "topologyKey"),
        (
            affinity(labelSelector={"matchExpressions": [{"key": "k", "operator": "Gt", "values": ["1"]}]}),
            "labelSelector",
        ),
        ({"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z"}]}, "maxSkew"),
        ({"topologySpreadConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "Never"}]}, "whenUnsatisfiable"),
        ({"topologySpreadConstraints": [{"topologyKey": "z", "nodeTaintsPolicy": "x"}]}, "nodeTaintsPolicy"),
    ],
)
def test_an_invalid_field_is_named(spec, field):
    with pytest.raises(InvalidField) as caught:
        describe_class(pod(spec=spec))
    assert field in caught.value.field


@pytest.mark.parametrize(
    ("why", "text"),
    [
        (R(kind=R.AFFINITY), "node(s) didn't match pod affinity rules"),
        (R(kind=R.ANTI_AFFINITY), "node(s) didn't match pod anti-affinity rules"),
        (R(kind=R.ANTI_AFFINITY_OF_OTHERS), "node(s) didn't satisfy existing pods anti-affinity rules"),
        (R(kind=R.SPREAD), "node(s) didn't match pod topology spread constraints"),
        (R(kind=R.TOKEN_TAKEN, detail="TCP:80"), "node(s) didn't have free ports for the requested pod ports"),
        (R(kind=R.TOKEN_TAKEN, detail="gce-pd:x"), "node(s) had no available disk"),
        (R(kind=R.INSUFFICIENT_RESOURCE, detail="attachable-volumes-csi-d"), "node(s) exceed max volume count"),
        (R(kind=R.FURTHER_AFFINITY, detail="volume zone"), "node(s) had no available volume zone"),
    ],
)
def test_kube_schedulers_words(why, text):
    assert reason(why) == text


def test_a_blocked_pod_in_kube_schedulers_words():
    assert blocked(3, "x") == "0/3 nodes are available: x."
    assert blocked(3, "x", anywhere=False) == "0/3 nodes are available: 3 x."
    assert blocked(0, "x") == "no nodes available to schedule pods"
