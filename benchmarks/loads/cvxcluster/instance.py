"""Hosts and requests in the manner of CvxCluster (arXiv 2605.01614): 100,480 hosts of several types, more requests
than fit in the form of the Azure Trace for Packing 2020, anti-affinity, types of GPUs as selectors.

Of the paper only the abstract was at hand, of the trace its description: types of virtual machines request cpu, memory,
SSD and network bandwidth, as fractions of a host, in one of two priorities. So all figures are chosen here
(catalogue.py). A kind requests the same amounts everywhere, which are another fraction of each type of host.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.loads.cvxcluster.catalogue import CPU, GPU, HOST, HOST_TYPES, RACK, RESOURCES, Kind, kinds
from firmament_py.model.arrays import I64, Bools
from firmament_py.model.constraints import (
    NO_DEMAND,
    NO_PEERS,
    NodeDemand,
    Operator,
    PeerDemand,
    PeerSelector,
    PeerTerm,
    Requirement,
)
from firmament_py.model.events import ClassDefined, Event, LabelSetDefined, NodeObserved, TasksObserved

START_US = 1_700_000_000_000_000
RACK_HOSTS = 40
_NAMESPACE, _GPU_TYPE = "machines", "gpu-type"
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Instance:
    """N hosts of K types, C kinds, R resources, T requests. type_of, rack_of (N,); offered (K, R); requests (C, R);
    suitable (C, K): types that a kind selects and fits on; count (C,): its requests; priority (C,)."""

    kinds: tuple[Kind, ...]
    type_of: I64
    rack_of: I64
    offered: I64
    requests: I64
    suitable: Bools
    count: I64
    priority: I64
    seed: int

    @classmethod
    def random(cls, seed: int, hosts: int, demand: float, least_cores: int = 1) -> Instance:
        """So many hosts, and requests without domains for the share `demand` of the cores of hosts without GPUs, and of
        the GPUs of each type."""
        found = kinds(np.random.default_rng([seed, 2605]), least_cores)
        ends = np.rint(np.cumsum([each.share for each in HOST_TYPES]) * hosts)
        offered = np.array([each.amounts for each in HOST_TYPES], np.int64)
        requests = np.array([kind.amounts for kind in found], np.int64)
        selected = np.array([[not kind.gpu or kind.gpu == each.gpu for each in HOST_TYPES] for kind in found])
        made = cls(
            kinds=tuple(found),
            type_of=np.searchsorted(ends, np.arange(hosts), side="right").astype(np.int64),
            rack_of=np.arange(hosts) // RACK_HOSTS,
            offered=offered,
            requests=requests,
            suitable=selected & (requests[:, None] <= offered).all(axis=2),
            count=np.zeros(len(found), np.int64),
            priority=np.array([kind.priority for kind in found], np.int64),
            seed=seed,
        )
        made._draw(demand)
        return made

    def _draw(self, demand: float) -> None:
        hosts = np.bincount(self.type_of, minlength=len(HOST_TYPES))
        share = np.array([kind.share for kind in self.kinds])
        for gpu in ("", *sorted({each.gpu for each in HOST_TYPES} - {""})):
            there = np.array([each.gpu == gpu for each in HOST_TYPES])
            of = np.array([kind.gpu == gpu and not kind.domain for kind in self.kinds])
            unit = GPU if gpu else CPU
            amount = demand * float(hosts[there] @ self.offered[there, unit]) * share[of] / share[of].sum()
            self.count[of] = np.maximum(np.rint(amount / self.requests[of, unit]), 1)
        for c, kind in enumerate(self.kinds):
            if kind.domain:
                self.count[c] = max(round(kind.share * self.domains(c)), 2)

    def domains(self, c: int) -> int:
        """The number of domains with hosts for kind c: the most of its requests that can be placed."""
        hosts = np.flatnonzero(self.suitable[c][self.type_of])
        return len(hosts) if self.kinds[c].domain == HOST else len(np.unique(self.rack_of[hosts]))

    def order(self) -> I64:
        """(T,) the kind of each request, in the order of arrival; its uid is its position plus 1."""
        return np.random.default_rng([self.seed, 1]).permutation(np.repeat(np.arange(len(self.kinds)), self.count))

    def events(self) -> list[Event]:
        """The instance as the engine receives it: all requests wait."""
        events: list[Event] = []
        for n, (k, rack) in enumerate(zip(self.type_of.tolist(), self.rack_of.tolist(), strict=True)):
            labels = {HOST: f"host-{n}", RACK: f"rack-{rack}"}
            if HOST_TYPES[k].gpu:
                labels[_GPU_TYPE] = HOST_TYPES[k].gpu
            events.append(NodeObserved(f"host-{n}", f"host-{n}", _in_bytes(HOST_TYPES[k].amounts), labels))
        for c, kind in enumerate(self.kinds):
            events.append(LabelSetDefined(c + 1, _NAMESPACE, {"kind": kind.name}))
            demand = NodeDemand(selector=(_is(_GPU_TYPE, kind.gpu),)) if kind.gpu else NO_DEMAND
            alike = PeerSelector(frozenset([_NAMESPACE]), None, (_is("kind", kind.name),))
            peers = PeerDemand(anti_affinity=(PeerTerm(alike, kind.domain),)) if kind.domain else NO_PEERS
            requests = {name: amount for name, amount in _in_bytes(kind.amounts).items() if amount and name != "pods"}
            events.append(ClassDefined(c + 1, requests, demand, kind.priority, kind.name, peers))
        of = (self.order() + 1).astype(np.uint64)
        number = np.arange(len(of))
        events.append(
            TasksObserved(
                uid=(number + 1).astype(np.uint64),
                class_id=of,
                job_id=of,
                created_us=np.full(len(of), START_US),
                node=np.zeros(len(of), np.int64),
                names=[f"{_NAMESPACE}/{one}" for one in number.tolist()],
                label_set_id=of,
            )
        )
        return events

    def violations(self, cls: I64, host: I64) -> str:
        """What is wrong with placed requests of kinds cls (P,) on hosts (P,); empty: nothing."""
        used = np.zeros((len(self.type_of), self.requests.shape[1]), np.int64)
        np.add.at(used, host, self.requests[cls])
        if (used > self.offered[self.type_of]).any():
            return "a host is over-committed"
        if not self.suitable[cls, self.type_of[host]].all():
            return "a request is on a host that it does not select"
        if (np.bincount(cls, minlength=len(self.count)) > self.count).any():
            return "a request is placed twice"
        for c, kind in enumerate(self.kinds):
            domain = (host if kind.domain == HOST else self.rack_of[host])[cls == c]
            if kind.domain and len(np.unique(domain)) < len(domain):
                return f"two of {kind.name} share a {kind.domain}"
        return ""


def _is(key: str, value: str) -> Requirement:
    return Requirement(key, Operator.IN, (value,))


def _in_bytes(amounts: tuple[int, ...]) -> dict[str, int]:
    found = dict(zip(RESOURCES, amounts, strict=True))
    return found | {"memory": found["memory"] * _MIB}
