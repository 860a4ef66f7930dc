"""The labels of a trace's jobs and machines as arrays: traffic, interference classes, input data, links, racks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.traces.form import BANDWIDTH, DATA_BYTES, DATA_MACHINES, INTERFERENCE, LINK, Trace, TraceError
from benchmarks.traces.presets import RACK
from firmament_py.model.arrays import I64
from firmament_py.state.input_sets import MAX_BYTES
from policies import colocation

LINK_KBPS = 10_000_000
"""Default capacity of a machine's network link, in each direction."""

_MAX_KBPS = 10**12


class TraceLabels:
    """J jobs, M machines; -1 for an absent label. A machine without a rack is a separate rack. Raises TraceError for
    an invalid number.

    The machines that store a job's input are holder[first[j]] .. holder[first[j] + copies[j] - 1]. Machines that the
    trace does not have are left out.
    """

    def __init__(self, trace: Trace) -> None:
        jobs = trace.jobs
        self.kbps: I64 = _numbers([(f"job {job.name}", job.labels) for job in jobs], BANDWIDTH, -1, _MAX_KBPS)
        self.kind: I64 = np.array([_kind(job.labels.get(INTERFERENCE, "")) for job in jobs], np.int64)
        sizes = _numbers([(f"job {job.name}", job.labels) for job in jobs], DATA_BYTES, -1, MAX_BYTES)
        located = np.array([DATA_MACHINES in job.labels for job in jobs], np.bool_)
        self.bytes: I64 = np.where(located, sizes, -1)  # (J,) that each task of the job reads
        row = {machine.name: i for i, machine in enumerate(trace.machines)}
        holders = [
            sorted({row[name] for name in job.labels.get(DATA_MACHINES, "").split() if name in row}) for job in jobs
        ]
        self.copies: I64 = np.array([len(of) for of in holders], np.int64)  # (J,)
        self.first: I64 = np.cumsum(self.copies) - self.copies  # (J,)
        self.holder: I64 = np.array([machine for of in holders for machine in of], np.int64)
        machines = [(f"machine {machine.name}", machine.labels) for machine in trace.machines]
        self.link_kbps: I64 = _numbers(machines, LINK, LINK_KBPS, _MAX_KBPS)  # (M,)
        racks = [machine.labels.get(RACK, f"/{machine.name}") for machine in trace.machines]
        self.rack: I64 = np.unique(racks, return_inverse=True)[1].astype(np.int64)  # (M,)

    def holders(self, job: int) -> list[int]:
        """The machines that store the input of a job."""
        first = int(self.first[job])
        return [int(machine) for machine in self.holder[first : first + int(self.copies[job])]]


def _kind(name: str) -> int:
    return colocation.KINDS.index(name) if name in colocation.KINDS else -1


def _numbers(labelled: list[tuple[str, Mapping[str, str]]], key: str, default: int, maximum: int) -> I64:
    """(K,) the value of label `key` of each object (name, labels)."""
    found = np.full(len(labelled), default, np.int64)
    for i, (name, labels) in enumerate(labelled):
        if key in labels:
            text = labels[key].strip()
            if not (text.isascii() and text.isdigit()) or int(text) > maximum:
                raise TraceError(f"{name}: label {key} is {labels[key]!r}; give a whole number from 0 to {maximum}")
            found[i] = int(text)
    return found
