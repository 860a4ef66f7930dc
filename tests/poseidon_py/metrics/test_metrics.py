"""Metrics of each bridge, and of the process."""

import os
import platform

import pytest

from poseidon_py import __version__
from poseidon_py.app.bridge import Bridge
from poseidon_py.app.startup import usage_sources
from poseidon_py.config.settings import Settings
from poseidon_py.kube import credentials
from poseidon_py.kube.client import Kube
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.usage.collector import Collector
from tests.poseidon_py.rig import Rig


def value(metrics, sample, **labels):
    return metrics.registry.get_sample_value(sample, labels)


async def test_two_bridges_in_a_process_have_separate_gauges():
    first, second = Rig(), Rig()
    first.pod("a")
    assert value(first.store.metrics, "poseidon_workqueue_depth", name="pods") == 1
    assert value(second.store.metrics, "poseidon_workqueue_depth", name="pods") == 0
    assert value(first.store.metrics, "poseidon_workqueue_adds_total", name="pods") == 1


async def test_all_parts_of_a_bridge_count_into_the_same_metrics(monkeypatch):
    made: list[Metrics] = []
    build = Metrics.__init__

    def note(self):
        made.append(self)
        build(self)

    monkeypatch.setattr(Metrics, "__init__", note)
    bridge = Bridge(Settings(usage_interval=5.0))
    kube = Kube(credentials.at("http://127.0.0.1:9"))
    runtime = bridge._build(kube)
    sources = await usage_sources(bridge.settings, kube)
    Collector(bridge.store, bridge.engine, runtime.session, sources.all, sources.interval)
    assert made == [bridge.metrics]
    assert runtime.binder._metrics is bridge.metrics


@pytest.mark.parametrize("leads", [False, True])
async def test_the_leader_gauge_is_computed_on_request(leads):
    bridge = Bridge(Settings())
    bridge.refresh()
    assert value(bridge.metrics, "leader_election_master_status", name="poseidon") == 0  # it has not started
    bridge.runtime = bridge._build(Kube(credentials.at("http://127.0.0.1:9")))
    bridge.election = type("Election", (), {"leading": leads})()
    bridge.refresh()
    assert value(bridge.metrics, "leader_election_master_status", name="poseidon") == leads


@pytest.mark.parametrize(
    "name", ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "python_info{"]
)
def test_the_process_is_measured_too(name):
    assert f"\n{name}" in Metrics().exposition().decode()


def test_garbage_collections_are_counted_by_generation():
    metrics = Metrics()
    for generation in "012":
        assert value(metrics, "python_gc_collections_total", generation=generation) is not None


def test_the_version_and_the_process_of_a_child_are_among_the_metrics():
    metrics = Metrics()
    metrics.follow_child(os.getpid)
    metrics.queue_adds.labels("pods").inc()
    lines = metrics.exposition().decode().splitlines()
    assert f'poseidon_build_info{{python_version="{platform.python_version()}",version="{__version__}"}} 1.0' in lines
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(values["poseidon_firmament_process_resident_memory_bytes"]) > 0
    assert float(values["process_resident_memory_bytes"]) > 0
    assert not [name for name in values if "_created" in name]
