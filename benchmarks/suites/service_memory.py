"""Measures a `firmament serve` process: its memory, and the time of each call."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import grpc
import numpy as np

from benchmarks.harness.results import Check, Sample
from benchmarks.harness.runner import Options
from benchmarks.harness.specs import Case
from benchmarks.live.processes import child, cpu_seconds, peak_mib, resident_mib, wait_for_file
from benchmarks.loads import wire
from benchmarks.loads.engine import START_US, EngineLoad, LoadSpec
from protos.gen import flow_pb2, flow_pb2_grpc

_LIMITS = [("grpc.max_receive_message_length", 256 * 2**20), ("grpc.max_send_message_length", 256 * 2**20)]
_BATCH = 5_000


def measure(case: Case, options: Options) -> Sample:
    """Starts the service, drives it through one scenario, and stops it."""
    load = EngineLoad(LoadSpec(**case.sizes, seed=options.seed).scaled(options))
    with tempfile.TemporaryDirectory(prefix="poseidon-bench-") as folder:
        port_file, log = Path(folder, "port"), Path(folder, "log")
        arguments = ["firmament_py", "serve", "--address", "127.0.0.1:0", "--port-file", str(port_file)]
        with child([*arguments, "--exit-with-parent", "--log-level", "warning"], log) as process:
            port = wait_for_file(process, port_file, log, 30.0)
            with grpc.insecure_channel(f"127.0.0.1:{port}", options=_LIMITS) as channel:
                return _drive(load, _stub(channel), process.pid)


def _stub(channel: grpc.Channel) -> flow_pb2_grpc.FlowSchedulerStub:
    return flow_pb2_grpc.FlowSchedulerStub(channel)  # type: ignore[no-untyped-call]  # generated


def _drive(load: EngineLoad, service: flow_pb2_grpc.FlowSchedulerStub, pid: int) -> Sample:
    service.Hello(flow_pb2.HelloRequest())
    empty_mib = resident_mib(pid)
    updates = list(wire.everything(load))  # ahead: building the messages is not measured
    metrics: dict[str, float] = {}

    began = time.perf_counter()
    reply = service.Resync(iter(updates))
    metrics["resync_s"] = time.perf_counter() - began
    epoch, refused = reply.epoch, len(reply.refused) + len(reply.unknown_classes)

    began = time.perf_counter()
    first = service.Round(flow_pb2.RoundRequest(epoch=epoch, now_us=START_US + 1_000_000))
    metrics["round_s"] = time.perf_counter() - began
    placed = first.placed
    uids = np.array(placed.task_uid, np.uint64)
    nodes = [placed.nodes[i] for i in placed.node]
    wrong = load.violations(uids, nodes)

    batches = [
        flow_pb2.Update(epoch=epoch, tasks=wire.confirmation(load, placed, start, _BATCH))
        for start in range(0, len(uids), _BATCH)
    ]
    began = time.perf_counter()
    refused += sum(len(service.Apply(batch).refused) for batch in batches)
    metrics["confirm_s"] = time.perf_counter() - began

    leaving = uids[:: max(1, len(uids) // max(1, len(uids) // 100))].tolist()
    fresh = flow_pb2.Tasks()
    for uid in leaving:
        task = wire.tasks(load.tasks(slice(uid - 1, uid)))
        task.uid[0] = uid + 2**32
        task.node[0] = 0
        fresh.MergeFrom(task)
    del fresh.nodes[:]
    began = time.perf_counter()
    refused += len(service.Apply(flow_pb2.Update(epoch=epoch, removed_tasks=leaving, tasks=fresh)).refused)
    metrics["churn_s"] = time.perf_counter() - began

    began = time.perf_counter()
    second = service.Round(flow_pb2.RoundRequest(epoch=epoch, acknowledged=first.round, now_us=START_US + 2_000_000))
    metrics["churn_round_s"] = time.perf_counter() - began
    metrics["peak_mib"] = peak_mib(pid)
    replaced = len(second.placed.task_uid)
    return Sample(
        metrics,
        facts={
            "placed": len(uids),
            "replaced": replaced,
            "empty_mib": round(empty_mib, 1),
            "cpu_s": round(cpu_seconds(pid), 2),
            "solves": first.stats.solves,
            "arcs": first.stats.arcs,
            "inside_first_round_s": round(first.stats.seconds, 4),
            "inside_second_round_s": round(second.stats.seconds, 4),
        },
        checks=[
            Check("the service refused nothing", refused == 0, f"{refused} refusals"),
            Check("no node is over-committed, every taint is tolerated", not wrong, "; ".join(wrong)),
            Check("replaced tasks are placed again", replaced >= len(leaving), f"{replaced} of {len(leaving)}"),
        ],
    )
