"""The polls of each source, the samples sent to the flow service, and the effect of a failing source."""

import asyncio
import json
import logging
import math

import msgspec
import pytest

from poseidon_py.describe.annotations.usage_thresholds import ANNOTATION as THRESHOLDS
from poseidon_py.feed.client import EngineError
from poseidon_py.feed.update_rows import node_message
from poseidon_py.kube.objects import Node
from poseidon_py.usage.collector import Collector
from poseidon_py.usage.gathered import SourceError
from poseidon_py.usage.prometheus import Prometheus
from tests.poseidon_py.builders import node_json
from tests.poseidon_py.rig import Rig

CREATED_US = 1_767_225_600_000_000  # 2026-01-01, as the builders say
NOW_US = CREATED_US + 60_000_000


class Source:
    """Gives the same figures every time; then raises `problems`, one per call."""

    def __init__(self, name="metrics.k8s.io", pods=None, nodes=None) -> None:
        self.name = name
        self.pods, self.nodes = pods or {}, nodes or {}
        self.problems: list[Exception] = []
        self.asked = 0

    async def gather(self, into):
        self.asked += 1
        for (namespace, name), row in self.pods.items():
            into.pod(namespace, name)[:] = row
        for name, row in self.nodes.items():
            into.node(name)[:] = row
        if self.problems:
            raise self.problems.pop(0)


def used(cpu, at=NOW_US):
    return [at, cpu, math.nan, math.nan, math.nan]


class World(Rig):
    """A rig with a collector; time moves only by hand."""

    def __init__(self, *sources, interval=30.0) -> None:
        super().__init__(cpu="4")
        self.seconds, self.now_us = 0.0, NOW_US
        self.collector = Collector(
            self.store,
            self.engine,
            self.session,
            sources,
            interval,
            sleep=self._sleep_until_never,
            monotonic=lambda: self.seconds,
            now_us=lambda: self.now_us,
        )

    async def _sleep_until_never(self, seconds):
        await (asyncio.Event().wait() if seconds else asyncio.sleep(0))

    @property
    def sent(self):
        """Pod or node name -> cpu, as reported last."""
        report = self.engine.reports[-1]
        tasks = {task: known.name for known in self.store.pods.values() for task in [known.task]}
        found = dict(zip([tasks[t] for t in report.task_uid], report.tasks.cpu, strict=True))
        names = [self.store.node_with_id(i) for i in report.node_id]
        return found | dict(zip(names, report.nodes.cpu, strict=True))


async def test_pods_and_nodes_are_sent_by_their_ids():
    source = Source(pods={("default", "a"): used(5.0), ("x", "a"): used(6.0)}, nodes={"n": used(7.0), "m": used(8.0)})
    world = World(source)
    world.pod("a")
    async with world:
        await world.collector.poll()
        assert world.sent == {"a": 5.0, "n": 7.0}
        assert world.store.metrics.usage_samples.labels("unknown")._value.get() == 2
        assert world.engine.reports[0].tasks.at_us[0] == NOW_US
        assert math.isnan(world.engine.reports[0].tasks.rx[0])


async def test_a_reading_older_than_a_pod_is_dropped():
    source = Source(pods={("default", "a"): used(5.0, at=CREATED_US - 1), ("default", "b"): used(5.0)})
    world = World(source)
    world.pod("a")
    world.pod("b")
    async with world:
        await world.collector.poll()
        assert world.sent == {"b": 5.0}


async def test_a_source_without_times_counts_as_current():
    world = World(Source(nodes={"n": used(5.0, at=0)}))
    async with world:
        await world.collector.poll()
        assert list(world.engine.reports[0].nodes.at_us) == [NOW_US]


@pytest.mark.parametrize(
    ("interval", "expected", "polls"),
    [
        pytest.param(None, False, False, id="not-needed"),
        pytest.param(None, True, True, id="the-service-asks"),
        pytest.param(5.0, False, True, id="the-user-asks"),
    ],
)
async def test_settings_that_enable_polling(interval, expected, polls):
    source = Source(nodes={"n": used(5.0)})
    world = World(source, interval=interval)
    world.engine.wants_usage = expected
    async with world:
        running = asyncio.create_task(world.collector.run())
        await world.settle()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert source.asked == polls
        assert world.collector.status()["polling"] is polls
        assert len(world.engine.reports) == polls


async def test_an_outage_is_one_warning_and_growing_delays(caplog):
    source, other = Source(nodes={"n": used(5.0)}), Source("prometheus", nodes={"n": used(6.0)})
    world = World(source, other)
    async with world:
        await world.collector.poll()
        source.nodes.clear()
        source.problems = [SourceError("not served")] * 100
        asked = source.asked
        with caplog.at_level(logging.INFO, "poseidon_py.usage.collector"):
            for _ in range(40):
                world.seconds += 30.0
                await world.collector.poll()
            assert caplog.text.count("not served") == 1
            assert 5 <= source.asked - asked <= 15, "every poll at first, then every fifth to tenth"
            assert other.asked == 41, "the other one is asked all the time"
            assert world.collector.status()["problems"] == {"metrics.k8s.io": "not served"}
            source.problems.clear()
            for _ in range(11):
                world.seconds += 30.0
                await world.collector.poll()
            assert caplog.text.count("are back") == 1
        assert world.collector.status()["problems"] == {}


async def test_a_partial_answer_is_sent():
    source = Source(nodes={"n": used(5.0)})
    source.problems = [SourceError("pods: 503")]
    world = World(source)
    async with world:
        await world.collector.poll()
        assert world.sent == {"n": 5.0}


async def test_a_source_that_never_answers_delays_no_other(monkeypatch):
    class Silent(Source):
        async def gather(self, into):
            await asyncio.Event().wait()

    monkeypatch.setattr("poseidon_py.usage.collector._LONGEST_POLL", 0.01)
    world = World(Silent(), Source("prometheus", nodes={"n": used(6.0)}))
    async with world:
        await world.collector.poll()
        assert world.sent == {"n": 6.0}
        assert "no answer" in world.collector.status()["problems"]["metrics.k8s.io"]


async def test_a_restarted_service_gets_usage_after_its_resync():
    source = Source(nodes={"n": used(5.0)})
    world = World(source)
    async with world:
        world.engine.restart()
        world.seconds = 7.0
        await world.collector.poll()
        assert world.engine.reports == [], "it does not know this epoch"
        await world.settle()
        world.seconds = 37.0
        await world.collector.poll()
        assert world.sent == {"n": 5.0}
        world.seconds = 47.0
        assert world.collector.age == 10.0


async def test_an_unreachable_service_causes_one_warning(caplog):
    world = World(Source(nodes={"n": used(5.0)}))
    async with world:
        world.engine.fail["report_usage"] = [EngineError("ReportUsage", "INTERNAL", "boom")]
        await world.collector.poll()
        assert "cannot send usage to the flow service" in caplog.text
        await world.collector.poll()
        assert world.sent == {"n": 5.0}


async def test_many_pods_are_sent_in_several_calls(monkeypatch):
    monkeypatch.setattr("poseidon_py.usage.collector._CHUNK", 2)
    world = World(Source(pods={("default", f"p{i}"): used(float(i)) for i in range(5)}, nodes={"n": used(7.0)}))
    for i in range(5):
        world.pod(f"p{i}")
    async with world:
        await world.collector.poll()
        assert [len(report.task_uid) for report in world.engine.reports] == [2, 2, 1]
        assert [len(report.node_id) for report in world.engine.reports] == [1, 0, 0]


async def test_an_unexpected_error_of_a_source_does_not_stop_polling(caplog):
    caplog.set_level(logging.WARNING)
    odd, other = Source("prometheus"), Source(nodes={"n": used(5.0)})
    odd.problems = [RecursionError("maximum recursion depth exceeded")]
    async with World(odd, other) as world:
        await world.collector.poll()
        assert world.sent == {"n": 5.0}
    assert "its answer cannot be used: RecursionError" in caplog.text


async def test_a_time_that_is_no_time_of_seconds_is_refused():
    class Nanoseconds:
        async def page(self, path, parameters):
            series = {"metric": {"namespace": "default", "pod": "a", "node": "n"}, "value": [1.7e18, "1"]}
            return json.dumps({"data": {"resultType": "vector", "result": [series]}}).encode()

    class Access:
        url, headers = "http://x", {}

    world = World(Prometheus(Nanoseconds(), Access(), {}))  # type: ignore[arg-type]
    world.pod("a")
    async with world:
        await world.collector.poll()
        assert world.engine.reports == []


async def test_a_node_with_thresholds_is_polled_and_takes_no_pods_while_it_is_busy_or_unknown():
    """Nothing else wants usage. 65% of 4 cpus are 2.6."""
    source = Source(nodes={"n": used(2700.0)})
    world = World(source, interval=None)
    async with world:
        assert not world.collector.active
        node = node_json("n", cpu="4")
        node["metadata"]["annotations"] = {THRESHOLDS: '{"usageThresholds": {"cpu": 65}}'}
        world.store.observe_node(msgspec.json.decode(json.dumps(node), type=Node))

        def taints():
            message = node_message(world.store, world.store.nodes["n"])
            assert message is not None
            return [each.value for each in message.taints]

        assert taints() == ["cpu usage unknown"]
        assert world.collector.active
        await world.collector.poll()
        assert taints() == ["cpu usage at 65% or more"]
        source.nodes = {"n": used(2000.0)}
        await world.collector.poll()
        assert taints() == []
        source.nodes = {}  # the sample counts for 300 s
        world.now_us = NOW_US + 300_000_000
        await world.collector.poll()
        assert taints() == []
        world.now_us += 1
        await world.collector.poll()
        assert taints() == ["cpu usage unknown"]
