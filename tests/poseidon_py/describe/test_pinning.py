"""Pods pinned to nodes by name: one class for all of a DaemonSet, and the name as a property of each task."""

import json

import msgspec
import pytest

from poseidon_py.describe.pinning import pinned_to
from poseidon_py.describe.task_classes import Classes, Extras
from poseidon_py.feed.rows import Rows
from poseidon_py.feed.update_rows import describe_pod, target
from poseidon_py.kube.objects import Pod
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import pod_json

ZONE = {"key": "zone", "operator": "In", "values": ["n1"]}


def field(*names, key="metadata.name", operator="In"):
    return {"key": key, "operator": operator, "values": list(names)}


def pinned(*terms, name="a", spread=None, **affinity) -> Pod:
    body = pod_json(name)
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    body["spec"]["affinity"] = {"nodeAffinity": required, **affinity}
    if spread:
        body["spec"]["topologySpreadConstraints"] = [spread]
    return msgspec.json.decode(json.dumps(body), type=Pod)


def to(node, **fields):
    return pinned({"matchFields": [field(node)]}, **fields)


@pytest.mark.parametrize(
    ("pod", "name"),
    [
        (to("n1"), "n1"),
        (pinned({"matchFields": [field("n1")], "matchExpressions": [ZONE]}), "n1"),
        (pinned({"matchFields": [field("n1", "n2")]}), ""),
        (pinned({"matchFields": [field("n1", operator="NotIn")]}), ""),
        (pinned({"matchFields": [field("n1"), field("n1")]}), ""),
        (pinned({"matchFields": [field("n1")]}, {"matchExpressions": [ZONE]}), ""),
        (pinned({"matchExpressions": [ZONE]}), ""),
        (to("n1", spread={"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}), ""),
        (msgspec.json.decode(json.dumps(pod_json("a")), type=Pod), ""),
    ],
)
def test_one_name_in_the_only_term_pins(pod, name):
    assert pinned_to(pod) == name


def test_pods_that_differ_in_the_name_alone_are_of_one_class():
    classes = Classes()
    ids = {classes.of(to(name), name) for name in ("n1", "n2", "n10")}
    assert len(ids) == 1
    described = classes.get(ids.pop())
    assert described is not None
    assert not described.HasField("node_affinity")


def test_other_demands_stay_in_the_class():
    classes = Classes()
    zoned = classes.of(pinned({"matchFields": [field("n1")], "matchExpressions": [ZONE]}), "n1")
    described = classes.get(zoned)
    assert described is not None
    [term] = described.node_affinity.nodeSelectorTerms
    assert not term.matchFields
    assert [each.key for each in term.matchExpressions] == ["zone"]
    others = [
        classes.of(to("n1"), "n1"),
        classes.of(pinned({"matchFields": [field("n2")], "matchExpressions": [{**ZONE, "values": ["n2"]}]}), "n2"),
        classes.of(pinned({"matchFields": [field("")], "matchExpressions": [ZONE]})),
    ]
    assert len({zoned, *others}) == 4


def test_with_the_name_a_class_is_what_the_pod_says():
    classes = Classes()
    for pod in (to("n1"), pinned({"matchFields": [field("n1")], "matchExpressions": [ZONE]})):
        without = classes.of(pod, "n1")
        assert classes.extended(without, Extras(pinned_to="n1")) == classes.of(pod)


def test_the_engine_learns_the_name_with_the_task():
    store, rows = Store(["poseidon"]), Rows()
    for name in ("n1", "n2"):
        pod = to(name, name=f"pod-{name}")
        store.observe_pod(pod)
        known = store.pods[pod.metadata.uid]
        describe_pod(store, known)
        state = target(store, known)
        assert state is not None
        assert state.required_node == name
        assert known.described.movable is False
        rows.add(known, state)
    update = rows.finish(store, set(), set())
    assert list(update.tasks.required_node) == ["n1", "n2"]
    assert len(update.classes) == 1
