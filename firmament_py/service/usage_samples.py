"""Usage samples of the original contract (stats.proto, TaskStats, ResourceStats) -> METRICS.

The messages cannot express missing values: Heapster sends zeros for them. So a task with 0 memory counts as not
measured, and traffic counts as not measured if both rate and total are 0. A value of NaN becomes -1, which is
refused later.

A node's usage is a share of its allocatable amounts. It is multiplied by the amounts of the node table, because senders
use different units for the amounts in the message.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.usage.ring_buffers import METRICS
from protos.gen import firmament_pb2, stats_pb2

Sample = tuple[int, list[float]]
"""Microseconds since the epoch, and METRICS."""


def of_pod(message: stats_pb2.PodStats | firmament_pb2.TaskStats) -> list[float]:
    """METRICS of a pod: millicores, bytes of the working set (of all memory if that is 0), bytes per second."""
    memory = message.mem_working_set or message.mem_usage or math.nan
    cpu = message.cpu_usage or (math.nan if math.isnan(memory) else 0.0)
    return [cpu, memory, _rate(message.net_rx_rate, message.net_rx), _rate(message.net_tx_rate, message.net_tx)]


def of_node(message: stats_pb2.NodeStats, offered: Mapping[str, int]) -> list[float]:
    """METRICS of a node with these allocatable amounts."""
    return _of_shares(message.cpu_utilization, message.mem_utilization, offered)


def of_machine(message: firmament_pb2.ResourceStats, offered: Mapping[str, int]) -> list[float]:
    """The same for the message of FirmamentScheduler, which has one entry per processor."""
    weights = [max(cpu.cpu_allocatable, 0) for cpu in message.cpus_stats]
    if not sum(weights):
        weights = [1] * len(weights)
    used = sum(w * cpu.cpu_utilization for w, cpu in zip(weights, message.cpus_stats, strict=True) if w)
    return _of_shares(used / max(sum(weights), 1), message.mem_utilization, offered)


def _of_shares(cpu: float, memory: float, offered: Mapping[str, int]) -> list[float]:
    if not cpu and not memory:
        return [math.nan] * len(METRICS)
    amounts = [
        _number(share) * offered[name] if offered.get(name) else math.nan
        for name, share in (("cpu", cpu), ("memory", memory))
    ]
    return [*amounts, math.nan, math.nan]


def _rate(rate: float, total: int) -> float:
    return _number(rate) if rate or total else math.nan


def _number(value: float) -> float:
    return -1.0 if math.isnan(value) else value


def micros(timestamp: int, now_us: int) -> int:
    """A time in seconds, milli-, micro- or nanoseconds since the epoch (by magnitude) in microseconds; 0: now."""
    if not timestamp:
        return now_us
    for limit, numerator, denominator in ((10**11, 10**6, 1), (10**14, 1000, 1), (10**17, 1, 1)):
        if timestamp < limit:
            return timestamp * numerator // denominator
    return timestamp // 1000


def columns(rows: Iterable[int], samples: Sequence[Sample]) -> tuple[I64, I64, F64]:
    """Rows (K,), times (K,) and values (K, 4) of K samples."""
    count = len(samples)
    values = np.array([values for _, values in samples], np.float64).reshape(count, len(METRICS))
    return np.fromiter(rows, np.int64, count), np.array([at for at, _ in samples], np.int64), values
