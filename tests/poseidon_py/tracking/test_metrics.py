"""Prometheus metrics: by queue, state and outcome, never by job."""

from dataclasses import replace

from poseidon_py.metrics.declarations import OTHER
from poseidon_py.metrics.table import TABLE
from tests.poseidon_py.tracking.histories import START, Life, Watched

T = START


def samples(watched):
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in watched.metrics.collect()
        for sample in family.samples
    }


def test_metrics_of_queues_and_states():
    """Two pods of queue a wait 3 and 20 s; one runs for 60 s and succeeds."""
    watched = Watched()
    watched.queues = {"uid-p": "a", "uid-q": "a"}
    short, long = Life("p").bind(T + 3).start(T + 5), Life("q").bind(T + 20)
    watched.tell(Life("p"), short, Life("q"), long, short.succeed(T + 65))
    found = samples(watched)
    assert found["poseidon_observed_jobs", "Succeeded"] == 1
    assert found["poseidon_observed_jobs", "Pending"] == 1
    assert found["poseidon_queue_pods_ended_total", "a", "succeeded"] == 1
    assert found["poseidon_queue_pods_ended_total", "a", "failed"] == 0
    assert found["poseidon_queue_run_seconds_total", "a"] == 60
    assert found["poseidon_queue_resource_seconds_total", "a", "cpu"] == 62
    waits = {key[1]: value for key, value in found.items() if key[0] == "poseidon_queue_pod_wait_seconds_bucket"}
    expected = {"1": 0, "4": 1, "16": 1, "64": 2, "+Inf": 2}
    assert {bound: waits[bound] for bound in expected} == expected
    assert found["poseidon_queue_pod_wait_seconds_sum", "a"] == 23
    named = [key for key in found if {"p", "q", "default"} & set(key[1:])]
    assert not named, "no job, pod or user is a label"


def test_queues_beyond_the_bound_are_added_up(monkeypatch):
    name = "poseidon_queue_run_seconds_total"
    monkeypatch.setitem(TABLE, name, replace(TABLE[name], bound=1))
    watched = Watched()
    for pod, queue in (("p", "a"), ("q", "b"), ("r", "c")):
        watched.queues[f"uid-{pod}"] = queue
        life = Life(pod).bind(T + 1).start(T + 1)
        watched.tell(life, life.succeed(T + 11))
    assert {key[1]: value for key, value in samples(watched).items() if key[0] == name} == {"a": 10, OTHER: 20}
