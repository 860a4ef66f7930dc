"""Pods by kube-scheduler's queues, and by what refuses them."""

import pytest

from poseidon_py.app.pending_pods import count_pods
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import node, pod

NOW = 1_000_000_000


@pytest.fixture
def store():
    store = Store(["poseidon", "batch"])
    store.observe_node(node("n"))
    return store


def known(store, name, **fields):
    store.observe_pod(pod(name, **fields))
    return store.pods[f"uid-{name}"]


def counted(store, sample):
    """Values of labels -> value, without zeros."""
    count_pods(store, store.metrics, NOW)
    found = (each for family in store.metrics.registry.collect() for each in family.samples if each.name == sample)
    return {tuple(value for _, value in sorted(each.labels.items())): each.value for each in found if each.value}


def test_pods_are_in_the_queues_of_kube_scheduler(store):
    known(store, "new")
    known(store, "gated", gates=["a"])
    known(store, "refused").unschedulable_by = ("NodeResourcesFit",)
    failed = known(store, "failed")
    failed.not_before_us, failed.unschedulable_by = NOW + 1, ("NodeResourcesFit",)
    known(store, "failed-before").not_before_us = NOW - 1
    known(store, "invalid").described.problem = "spec: broken"
    known(store, "on-node", node="n")
    store.assume(known(store, "assumed"), "n")
    known(store, "of-another", scheduler="default-scheduler")
    assert counted(store, "scheduler_pending_pods") == {
        ("active",): 2, ("backoff",): 1, ("gated",): 1, ("unschedulable",): 2,
    }  # fmt: skip
    assert counted(store, "scheduler_cache_size") == {("nodes",): 1, ("pods",): 2, ("assumed_pods",): 1}
    assert counted(store, "poseidon_pending_pods") == {("active",): 5, ("gated",): 1, ("invalid",): 1}


def test_a_pod_counts_for_each_plug_in_that_refuses_it_and_for_its_profile(store):
    refused = known(store, "a")
    refused.unschedulable_by = ("NodeAffinity", "NodeResourcesFit")
    known(store, "b", scheduler="batch").unschedulable_by = ("NodeResourcesFit",)
    known(store, "c").volumes.blocked = "no such claim"
    name = "scheduler_unschedulable_pods"
    assert counted(store, name) == {
        ("NodeAffinity", "poseidon"): 1,
        ("NodeResourcesFit", "poseidon"): 1,
        ("NodeResourcesFit", "batch"): 1,
        ("VolumeBinding", "poseidon"): 1,
    }
    refused.unschedulable_by = ()
    assert ("NodeAffinity", "poseidon") not in counted(store, name)
