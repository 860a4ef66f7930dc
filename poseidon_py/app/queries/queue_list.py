"""The queues in force, as JSON: GET /queues, which `poseidon queues` prints.

{"kind": str | null           as --queues names it; null: queues are off
 "why": str                   which kind is in force, and why
 "how": str                   how to make a queue; empty: there are queues
 "problems": {object: [str]}  of all objects that declare queues
 "queues": [{                 parents before children, by name
    "name": str, "type": str      the kind of its object: ClusterQueue, Cohort, Queue, ...
    "parent": str | null, "depth": int
    "state": str                  one of STATES
    "why": str                    why it takes no pods; empty: it, or the queues below it, take pods
    "running": int, "pending": int, "nominated": int      pods, with those of the queues below it
    "share": float                dominant share of what it borrows, by weight; 1: all of it
    "resources": [{"flavor", "resource", "used", "guarantee", "limit", "fair_share", "borrowed", "requested", "past"}]
                                  quantities; null: without a limit, not divided by shares, past use does not count
    "local_queues": [{            LocalQueues, by name
        "name": str, "running": int, "pending": int
        "past_use": float         by which they are served, the lowest first; null: past use does not count
        "resources": [{"flavor", "resource", "used", "past"}]}]
    "problems": [str]             of its description
    "waiting": [{"pod", "why"}]   if it was asked for: its oldest pending pods
    "more": int                   likewise: how many further ones there are
    "suspended": [{"name", "kind", "queue", "why"}], "more_suspended": int      likewise: workloads to be resumed
}]}
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from poseidon_py.describe.queues.model import LocalQueue, Queue, Stop, Tree
from poseidon_py.kube.quantity import written
from poseidon_py.report.queue_amounts import QueueAmount, QueueAmounts, share_of
from poseidon_py.report.queue_types import type_of
from poseidon_py.state.queues.registry import QueueRegistry
from poseidon_py.state.queues.source import Declared
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from protos.gen import flow_pb2

Json = dict[str, Any]

OPEN, STOPPED, DRAINING, INVALID = "open", "stopped", "draining", "invalid"
STATES = (OPEN, STOPPED, DRAINING, INVALID)
WAITING_SHOWN = 20
_SUGGESTIONS = 3
_HOW = {
    "kueue": "create a ResourceFlavor, a ClusterQueue and, in the namespace of the pods, a LocalQueue",
    "kai": "create a Queue of scheduling.run.ai/v2",
    "volcano": "create a Queue of scheduling.volcano.sh/v1beta1",
    "yunikorn": "create the ConfigMap yunikorn-configs with queues.yaml, or give --yunikorn-queues FILE",
    "elasticquota": "create an ElasticQuota in the namespace of the pods",
    "koordinator": "create an ElasticQuota of scheduling.sigs.k8s.io/v1alpha1",
    "poseidon": "run `kubectl apply -f deploy/chart/definitions/queues.yaml` and create a Queue of poseidon.io/v1",
}
_OFF = "start the scheduler with --queues auto, or with the kind to use"


class UnknownQueue(Exception):
    """There is no such queue; the message has names that are near, or says how to make one."""


def queues_json(registry: QueueRegistry, reply: flow_pb2.QueuesReply, *, name: str = "") -> Json:
    """All queues; `name`: those of that name, with those below them. Raises UnknownQueue if none has the name."""
    summary, tree = registry.summary(), registry.tree
    declared = {each.key: each for each in registry.declared() if each.key}
    listing = _Listing(registry, tree, declared, QueueAmounts(tree, reply))
    queues = [*listing.used(), *listing.unused()]
    how = "" if queues else _HOW.get(str(summary["kind"]), _OFF)
    if name:
        queues = list(_named(queues, name, how))
    return {
        "kind": summary["kind"],
        "why": summary["why"],
        "how": how,
        "problems": summary["problems"],
        "queues": queues,
    }


def _named(queues: list[Json], name: str, how: str) -> Iterable[Json]:
    """The queues of a name, and those below them, in the same order."""
    if not any(each["name"] == name for each in queues):
        near = get_close_matches(name, dict.fromkeys(each["name"] for each in queues), _SUGGESTIONS)
        remedy = f"did you mean {' or '.join(near)}?" if near else "`poseidon queues` lists all"
        raise UnknownQueue(f"queue {name} not found; " + (f"there are none: {how}" if how else remedy))
    top: int | None = None
    for each in queues:
        if top is not None and each["depth"] <= top:
            top = None
        if top is None and each["name"] == name:
            top = each["depth"]
        if top is not None:
            yield each


class _Listing:
    """The queues of a tree as JSON."""

    def __init__(
        self, registry: QueueRegistry, tree: Tree, declared: Mapping[str, Declared], amounts: QueueAmounts
    ) -> None:
        self._registry = registry
        self._tree = tree
        self._declared = declared
        self._amounts = amounts
        self._by_key = {queue.key: queue for queue in tree.queues}
        self._local: dict[str, list[LocalQueue]] = {}
        for local in sorted(tree.local_queues, key=lambda each: each.name):
            self._local.setdefault(local.queue, []).append(local)
        self._children: dict[str, list[Queue]] = {}
        for queue in sorted(tree.queues, key=lambda queue: (queue.name, queue.key), reverse=True):
            self._children.setdefault(queue.parent, []).append(queue)

    def used(self) -> Iterable[Json]:
        """The queues of the tree, parents before children, siblings by name."""
        stack = [(queue, 0) for queue in self._children.get("", ())]
        while stack:
            queue, depth = stack.pop()
            yield self._queue(queue, depth)
            stack.extend((child, depth + 1) for child in self._children.get(queue.key, ()))

    def unused(self) -> Iterable[Json]:
        """Queues that are declared but have no place in the tree."""
        for key, problem in sorted(self._tree.problems.items()):
            yield self._entry(key, key.partition("/")[2], None, 0, INVALID, problem, flow_pb2.QueueState(), ())

    def _queue(self, queue: Queue, depth: int) -> Json:
        state = self._amounts.states.get(queue.id)
        parent = self._by_key.get(queue.parent)
        status, why = self._status(queue, state)
        amounts = self._amounts.of(queue.id)
        return self._entry(queue.key, queue.name, parent, depth, status, why, state or flow_pb2.QueueState(), amounts)

    def _status(self, queue: Queue, state: flow_pb2.QueueState | None) -> tuple[str, str]:
        """One of STATES, and why it takes no pods."""
        if queue.stop is not Stop.NONE:
            if queue.id in self._registry.draining and state is not None and state.running:
                return DRAINING, f"{self._why_stopped(queue)}: {state.running} pods still run, and are evicted"
            return STOPPED, self._why_stopped(queue)
        if state is None:
            return INVALID, self._registry.broken(queue.key) or "the flow service does not know it yet"
        if state.takes_tasks or queue.key in self._children:
            return OPEN, ""
        above = self._by_key.get(queue.parent)
        return INVALID, self._registry.broken(queue.key) or (
            f"queue {above.name} above it takes no pods: see its problem" if above else "see its problem"
        )

    def _why_stopped(self, queue: Queue) -> str:
        at: Queue | None = queue
        while at is not None:
            known = self._declared.get(at.key)
            if known is not None and known.inactive:
                return known.inactive if at is queue else f"queue {at.name} above it is stopped: {known.inactive}"
            at = self._by_key.get(at.parent)
        return "it is stopped"

    def _entry(
        self,
        key: str,
        name: str,
        parent: Queue | None,
        depth: int,
        status: str,
        why: str,
        state: flow_pb2.QueueState,
        amounts: Iterable[QueueAmount],
    ) -> Json:
        known = self._declared.get(key)
        return {
            "name": name,
            "type": type_of(key),
            "parent": parent.name if parent is not None else None,
            "depth": depth,
            "state": status,
            "why": why,
            "running": state.running,
            "pending": state.pending,
            "nominated": state.nominated,
            "share": round(share_of(state), 4),
            "resources": [_amount(each) for each in amounts],
            "local_queues": [self._local_queue(each) for each in self._local.get(key, ())],
            "problems": list(known.problems) if known is not None else [],
        }

    def _local_queue(self, local: LocalQueue) -> Json:
        state = self._amounts.local_states.get(local.id) or flow_pb2.LocalQueueState()
        known = local.id in self._amounts.local_states
        amounts = self._amounts.of_local(local.id) if known else ()
        return {
            "name": local.name,
            "running": state.running,
            "pending": state.pending,
            "past_use": round(state.past_use, 4) if self._amounts.past_us and math.isfinite(state.past_use) else None,
            "resources": [_amount(each, "used", "past") for each in amounts],
        }


_FIELDS = ("used", "guarantee", "limit", "fair_share", "borrowed", "requested", "past")


def _amount(amount: QueueAmount, *fields: str) -> Json:
    """`fields`: those that are shown; none: all."""
    values = {name: getattr(amount, name) for name in fields or _FIELDS}
    if values["past"] is not None:
        values["past"] = round(values["past"])
    return {"flavor": amount.flavor, "resource": amount.resource} | {
        name: None if value is None else written(amount.resource, value) for name, value in values.items()
    }


def waiting_in(store: Store, queues: Sequence[Json]) -> list[PodRecord]:
    """The pending pods that are in the first of some queues of queues_json, or below it; the oldest first."""
    top = queues[0]["depth"]
    below = itertools.takewhile(lambda each: each["depth"] > top, queues[1:])
    names = {(each["type"], each["name"]) for each in (queues[0], *below)}

    def is_in(known: PodRecord) -> bool:
        found = store.queues.resolution_of(known)
        return not found.problem and (type_of(found.key), found.name) in names

    waiting = [known for known in store.waiting() if not known.assumed and is_in(known)]
    return sorted(waiting, key=lambda known: (known.age_us, known.full_name))
