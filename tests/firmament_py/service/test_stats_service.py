"""Statistics through real clients: stats.PoseidonStats, AddTaskStats and AddNodeStats, ReportUsage."""

import math
import queue
import threading

import grpc
import numpy as np
import pytest

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.usage.usage import Basis, Noted, UsageOptions
from policies.load_spreading import LoadSpreading
from protos.gen import firmament_pb2 as pb
from protos.gen import flow_pb2, stats_pb2, stats_pb2_grpc
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, task_class, tasks
from tests.firmament_py.service.poseidon import MIB, Poseidon, description, generate_uuid, topology

GIB = 2**30
SECOND = 1_000_000


@pytest.fixture
def stats(service):
    return stats_pb2_grpc.PoseidonStatsStub(service.channel)


@pytest.fixture
def known(service):
    """Node n1 of 4 cpu and 8 Gi with tasks 1 to 3, ns/task-1 to ns/task-3."""
    service.resync(
        flow_pb2.Update(
            nodes=[node("n1", cpu=4000, memory=8 * GIB)],
            classes=[task_class(7, cpu=500, memory=GIB)],
            tasks=tasks([1, 2, 3], 7, on="n1"),
        )
    )
    return service


def pod(name="task-1", namespace="ns", **fields):
    return stats_pb2.PodStats(name=name, namespace=namespace, **fields)


def newest(service, uid):
    """METRICS of the newest sample of a task."""
    state = service.engine.state
    row = state.task_row(uid)
    samples = service.engine.usage._tasks.samples(row, int(state.tasks.generation[row]))
    return samples[-1][1] if samples else None


def of_node(service, name):
    """Measured usage of a node: cpu, memory, age in seconds."""
    state = service.engine.state
    nodes = state.present_nodes()
    read = service.engine.usage.read(state, nodes, service.clock()).usage
    if read is None:
        return None
    at = [state.nodes.observed[row].name for row in nodes.tolist()].index(name)
    return [float(getattr(read, metric)[at]) for metric in ("cpu", "memory", "age_seconds")]


# -- PoseidonStats ------------------------------------------------------------------------------------------------


def test_pods_are_identified_by_namespace_and_name(known, stats):
    sent = [
        pod("task-1", cpu_usage=250, mem_working_set=GIB, mem_usage=2 * GIB, net_rx_rate=10.5, net_tx_rate=2.0),
        pod("task-2", "elsewhere", cpu_usage=1),
        pod("ns", "task-1", cpu_usage=1),
        pod("task-3", cpu_usage=100, mem_usage=GIB),
    ]
    answers = list(stats.ReceivePodStats(iter(sent)))
    ok, lost = stats_pb2.POD_STATS_OK, stats_pb2.POD_NOT_FOUND
    assert [a.type for a in answers] == [ok, lost, lost, ok]
    assert [(a.namespace, a.name) for a in answers] == [(p.namespace, p.name) for p in sent]
    assert newest(known, 1) == [250.0, float(GIB), 10.5, 2.0]
    assert newest(known, 2) is None
    assert repr(newest(known, 3)) == repr([100.0, float(GIB), math.nan, math.nan]), "no traffic is no measurement"
    assert known.engine.usage.total == Noted(taken=2, unknown=2)


def test_nodes_are_identified_by_name_and_use_a_share_of_allocatable(known, stats):
    when = (NOW_US - 5 * SECOND) // SECOND
    sent = [
        # amounts beside the shares are in units that senders disagree about
        stats_pb2.NodeStats(hostname="n1", timestamp=when, cpu_utilization=0.5, mem_utilization=0.25, mem_capacity=7),
        stats_pb2.NodeStats(hostname="n2", timestamp=when, cpu_utilization=0.5),
    ]
    answers = list(stats.ReceiveNodeStats(iter(sent)))
    assert [(a.type, a.hostname) for a in answers] == [
        (stats_pb2.NODE_STATS_OK, "n1"),
        (stats_pb2.NODE_NOT_FOUND, "n2"),
    ]
    assert of_node(known, "n1") == [2000.0, 2.0 * GIB, 5.0]


def test_a_sender_that_waits_for_each_reply_gets_it(known, stats):
    outbox: queue.Queue = queue.Queue()
    answers = stats.ReceivePodStats(iter(outbox.get, None))
    for name in ("task-1", "task-9", "task-2"):
        outbox.put(pod(name, cpu_usage=1, mem_usage=1))
        assert next(answers).name == name
    outbox.put(None)
    assert list(answers) == []


def test_a_bad_sample_is_answered_refused_and_counted_alone(known, stats):
    sent = [
        pod("task-1", cpu_usage=-1, mem_usage=1),
        pod("task-1", cpu_usage=1, mem_usage=1, net_rx_rate=math.nan),
        pod("task-1", cpu_usage=10**9, mem_usage=1),
        pod("task-1"),
        pod("task-2", cpu_usage=5, mem_usage=1),
    ]
    assert {a.type for a in stats.ReceivePodStats(iter(sent))} == {stats_pb2.POD_STATS_OK}
    bad = [
        stats_pb2.NodeStats(hostname="n1", cpu_utilization=math.nan),
        stats_pb2.NodeStats(hostname="n1", cpu_utilization=0.1, mem_utilization=-0.1),
        stats_pb2.NodeStats(hostname="n1", cpu_utilization=50.0),
        stats_pb2.NodeStats(hostname="n1", cpu_utilization=math.inf),
        stats_pb2.NodeStats(hostname="n1", cpu_utilization=0.5, timestamp=2**64 - 1),
    ]
    assert {a.type for a in stats.ReceiveNodeStats(iter(bad))} == {stats_pb2.NODE_STATS_OK}
    assert known.engine.usage.total == Noted(taken=1, refused=9)
    assert newest(known, 1) is None
    assert newest(known, 2) is not None


def test_messages_that_arrive_while_the_engine_is_busy_are_batched(known, stats):
    """Samples that arrive while the lock is held by another thread need it only once, not thousands of times."""
    turns = []
    note = known.engine.usage.note_tasks

    def counting(state, rows, *extra):
        turns.append(len(rows))
        return note(state, rows, *extra)

    known.engine.usage.note_tasks = counting
    sent, all_sent = 1500, threading.Event()

    def messages():
        for i in range(sent):
            yield pod(f"task-{1 + i % 3}", cpu_usage=i % 100, mem_usage=1)
        all_sent.set()

    known.engine.lock.acquire()
    try:
        answers = stats.ReceivePodStats(messages())
        assert all_sent.wait(30)
    finally:
        known.engine.lock.release()
    assert len(list(answers)) == sent
    assert sum(turns) == sent
    assert len(turns) < sent / 2


def test_a_stream_that_breaks_off_does_not_affect_others(known, stats):
    outbox: queue.Queue = queue.Queue()
    answers = stats.ReceivePodStats(iter(outbox.get, None))
    outbox.put(pod("task-1", cpu_usage=1, mem_usage=1))
    assert next(answers).type == stats_pb2.POD_STATS_OK
    answers.cancel()
    outbox.put(None)
    [again] = stats.ReceivePodStats(iter([pod("task-2", cpu_usage=1, mem_usage=1)]))
    assert again.type == stats_pb2.POD_STATS_OK


def test_a_pod_created_again_under_its_name_is_a_different_one(known, stats):
    """The old one is terminating when the new one is created, and is removed later."""
    again = tasks([4], 7, on="n1")
    again.name[0] = "ns/task-1"
    known.apply(tasks=again)
    list(stats.ReceivePodStats(iter([pod("task-1", cpu_usage=9, mem_usage=9)])))
    assert newest(known, 4)[0] == 9.0
    known.apply(removed_tasks=[1])
    known.clock.now_us += SECOND
    list(stats.ReceivePodStats(iter([pod("task-1", cpu_usage=8, mem_usage=8)])))
    assert newest(known, 4)[0] == 8.0
    known.apply(removed_tasks=[4])
    [answer] = stats.ReceivePodStats(iter([pod("task-1", cpu_usage=8, mem_usage=8)]))
    assert answer.type == stats_pb2.POD_NOT_FOUND


def test_tasks_of_the_original_contract_and_pods_of_other_schedulers(service, stats):
    poseidon = Poseidon.of(service.channel)
    poseidon.add_node(topology("n1", cpu=4000, memory=1024 * MIB))
    poseidon.submit(description(1))
    poseidon.schedule()
    poseidon.foreign("dns", "n1", cpu=100, memory=MIB)
    sent = [
        pod("pod-1", "default", cpu_usage=50, mem_usage=MIB),
        pod("dns", "default", cpu_usage=7, mem_usage=MIB),
        pod("default", "dns", cpu_usage=7, mem_usage=MIB),
    ]
    ok, lost = stats_pb2.POD_STATS_OK, stats_pb2.POD_NOT_FOUND
    assert [a.type for a in stats.ReceivePodStats(iter(sent))] == [ok, ok, lost]
    [answer] = stats.ReceiveNodeStats(iter([stats_pb2.NodeStats(hostname="n1", cpu_utilization=0.1)]))
    assert answer.type == stats_pb2.NODE_STATS_OK
    assert newest(service, 1)[0] == 50.0
    poseidon.remove(1)
    assert [a.type for a in stats.ReceivePodStats(iter(sent[:1]))] == [lost]


# -- what the Go Poseidon makes of it -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "timestamp",
    [
        pytest.param(0, id="none"),
        pytest.param(NOW_US // SECOND, id="seconds"),
        pytest.param(NOW_US // 1000, id="milliseconds"),
        pytest.param(NOW_US, id="microseconds"),
        pytest.param(NOW_US * 1000, id="nanoseconds"),
    ],
)
def test_statistics_of_the_scheduler_contract_are_kept(service, timestamp):
    poseidon = Poseidon.of(service.channel)
    poseidon.add_node(topology("n1", cpu=4000, memory=1024 * MIB))
    poseidon.submit(description(1))
    poseidon.schedule()
    task = pb.TaskStats(task_id=1, timestamp=timestamp, cpu_usage=50, mem_usage=MIB, net_rx=5)
    assert poseidon.stub.AddTaskStats(task).type == pb.TASK_COMPLETED_OK
    assert repr(newest(service, 1)) == repr([50.0, float(MIB), 0.0, math.nan])
    cpus = [pb.CpuStats(cpu_allocatable=3000, cpu_utilization=0.2), pb.CpuStats(cpu_allocatable=1000)]
    machine = pb.ResourceStats(
        resource_id=generate_uuid("n1"), timestamp=timestamp, cpus_stats=cpus, mem_utilization=0.5
    )
    assert poseidon.stub.AddNodeStats(machine).type == pb.NODE_ADDED_OK
    assert of_node(service, "n1") == [pytest.approx(600.0), 512.0 * MIB, 0.0]  # 3/4 x 0.2 of 4000


# -- ReportUsage --------------------------------------------------------------------------------------------------


def columns(at=(), **fields):
    return flow_pb2.UsageColumns(at_us=list(at), **fields)


def test_reports_come_in_columns(known):
    reply = known.flow.ReportUsage(
        flow_pb2.UsageReport(
            epoch=known.engine.epoch,
            task_uid=[1, 99, 2, 3],
            tasks=columns([NOW_US] * 4, cpu=[1.5, 1, -1, math.nan], rx=[math.nan, 1, 1, math.nan]),
            node_id=["id-n1", "id-n9"],
            nodes=columns([NOW_US] * 2, memory=[GIB, GIB]),
        )
    )
    assert (reply.status, reply.taken, reply.unknown, reply.refused, reply.old) == (flow_pb2.CALL_OK, 2, 2, 2, 0)
    assert repr(newest(known, 1)) == repr([1.5, math.nan, math.nan, math.nan])
    assert repr(of_node(known, "n1")) == repr([math.nan, float(GIB), 0.0])
    again = flow_pb2.UsageReport(epoch=known.engine.epoch, task_uid=[1], tasks=columns([NOW_US], cpu=[7]))
    assert known.flow.ReportUsage(again).old == 1


def test_a_report_of_another_epoch_does_nothing(known):
    report = flow_pb2.UsageReport(epoch=1, task_uid=[1], tasks=columns([NOW_US], cpu=[1]))
    assert known.flow.ReportUsage(report).status == flow_pb2.STALE_EPOCH
    assert newest(known, 1) is None


@pytest.mark.parametrize(
    ("report", "says"),
    [
        ({"task_uid": [1], "tasks": columns([NOW_US], cpu=[1, 2])}, "tasks.cpu has 2 rows, but there are 1 ids"),
        ({"task_uid": [1], "tasks": columns(cpu=[1])}, "tasks.at_us has 0 rows"),
        ({"nodes": columns([NOW_US])}, "nodes.at_us has 1 rows, but there are 0 ids"),
    ],
)
def test_columns_of_different_lengths_are_refused(known, report, says):
    with pytest.raises(grpc.RpcError) as caught:
        known.flow.ReportUsage(flow_pb2.UsageReport(epoch=known.engine.epoch, **report))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert says in (caught.value.details() or "")


def test_status_describes_the_samples(known):
    assert not known.flow.Hello(flow_pb2.HelloRequest()).wants_usage
    report = flow_pb2.UsageReport(
        epoch=known.engine.epoch,
        task_uid=[1, 2],
        tasks=columns([NOW_US - 301 * SECOND, NOW_US], cpu=[1, 1]),
        node_id=["id-n1"],
        nodes=columns([NOW_US - 2 * SECOND], cpu=[1]),
    )
    known.flow.ReportUsage(report)
    usage = known.flow.GetStatus(flow_pb2.StatusRequest()).usage
    assert (usage.basis, usage.wants_usage, usage.samples) == ("requests", False, 10)
    assert (usage.half_life_seconds, usage.stale_seconds) == (60.0, 300.0)
    assert (usage.taken, usage.tasks_measured, usage.tasks_stale, usage.nodes_measured) == (3, 1, 1, 1)
    assert usage.newest_age_seconds == 0.0
    assert usage.memory_bytes > 0


class Looking(LoadSpreading):
    """A policy that uses View.usage."""

    wants_usage = True


@pytest.mark.parametrize(
    ("policy", "basis", "expected"),
    [
        pytest.param(LoadSpreading(), Basis.REQUESTS, False, id="nobody"),
        pytest.param(Looking(), Basis.REQUESTS, True, id="the-policy"),
        pytest.param(LoadSpreading(), Basis.USED, True, id="used"),
        pytest.param(LoadSpreading(), Basis.LARGER, True, id="larger"),
    ],
)
def test_when_usage_is_wanted(policy, basis, expected):
    assert Engine(policy, OrToolsSolver(), usage=UsageOptions(basis)).wants_usage is expected


def test_samples_survive_a_resync(known):
    report = flow_pb2.UsageReport(epoch=known.engine.epoch, task_uid=[3], tasks=columns([NOW_US], cpu=[7]))
    known.flow.ReportUsage(report)
    known.resync(
        flow_pb2.Update(
            nodes=[node("n1", cpu=4000, memory=8 * GIB)],
            classes=[task_class(7, cpu=500, memory=GIB)],
            tasks=tasks([8, 3], 7, on="n1"),
        )
    )
    np.testing.assert_equal(newest(known, 3), [7.0, math.nan, math.nan, math.nan])
    assert newest(known, 8) is None
