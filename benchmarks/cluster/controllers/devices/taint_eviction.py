"""The device taint eviction controller: pods that use a device with a taint NoExecute are deleted.

The taint is in a slice or in a DeviceTaintRule. A toleration with the effect NoExecute in the allocation keeps the pod,
for its tolerationSeconds if it has any; as in Kubernetes 1.36, one without effect does not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.cluster.api.binding import set_condition
from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.device_rules.allocation_rules import results_of
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.controllers.devices.rule_status import RuleEffects, condition_of
from benchmarks.cluster.nodes.affinity import tolerates
from benchmarks.cluster.nodes.claim_names import claims_of, group_of, is_owned_by, is_reserved_for, may_have_claims
from benchmarks.cluster.nodes.devices.inventory import DeviceId, Inventory
from benchmarks.cluster.nodes.pod_events import record_event
from benchmarks.cluster.store.clock import Agenda, parse_rfc3339
from benchmarks.cluster.store.device_kinds import RESOURCE_CLAIMS, RESOURCE_SLICES, TAINT_RULES
from benchmarks.cluster.store.kinds import POD_NODE, POD_PHASE, PODS
from benchmarks.cluster.store.store import Change, Record

Json = dict[str, Any]

_NO_EXECUTE = "NoExecute"
_COMPONENT = "device-taint-eviction"
_REASON = "DeviceTaintManagerEviction"


class _Source(NamedTuple):
    """Where a taint comes from; one that is taken away and put back is another."""

    rule: str
    """The name of a rule; empty: the device's slice."""
    device: str
    key: str
    value: str
    added: str


class TaintEviction:
    """Watches slices, rules, claims and pods."""

    def __init__(self, api: Api, agenda: Agenda, inventory: Inventory) -> None:
        self._api = api
        self._agenda = agenda
        self._inventory = inventory
        self._tainted: set[str] = set()  # names of slices with a taint NoExecute
        self._rules: dict[str, Json] = {}
        self._queued = False
        self._wake_at = math.inf
        self._since: dict[_Source, float] = {}  # since when, in the agenda's time
        self._pending: dict[str, str] = {}  # key of a pod to its UID: it will be deleted later
        self._evicted: dict[str, int] = {}  # UID of a rule to the pods that have been deleted for it
        api.store.subscribe(RESOURCE_SLICES, self._slice_changed)
        api.store.subscribe(TAINT_RULES, self._rule_changed)
        api.store.subscribe(RESOURCE_CLAIMS, self._claim_changed)
        api.store.subscribe(PODS, self._pod_changed)

    def _slice_changed(self, change: Change) -> None:
        name, was = change.record.name, change.record.name in self._tainted
        if change.type != "DELETED" and b'"NoExecute"' in change.record.raw:
            self._tainted.add(name)
        else:
            self._tainted.discard(name)
        if was or name in self._tainted:
            self._queue()

    def _rule_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            self._rules.pop(change.record.name, None)
        else:
            self._rules[change.record.name] = change.record.parse()
        self._queue()

    def _claim_changed(self, _: Change) -> None:
        if self._tainted or self._rules:
            self._queue()

    def _pod_changed(self, change: Change) -> None:
        if (self._tainted or self._rules) and may_have_claims(change.record):
            self._queue()

    def _queue(self) -> None:
        if not self._queued:
            self._queued = True
            self._agenda.call_soon(self._sync)

    def _wake(self) -> None:
        self._wake_at = math.inf
        self._queue()

    # who is affected

    def _sync(self) -> None:
        self._queued = False
        now = self._agenda.now()
        present: set[_Source] = set()
        ends = self._claims(present)
        self._since = {source: since for source, since in self._since.items() if source in present}
        pending: dict[str, str] = {}
        effects: dict[str, RuleEffects] = {}
        for record in {pod.key: pod for pod in self._pods_with(ends)}.values():
            end, rules = self._end_of(record, ends)
            if end <= now:
                self._evict(record)
                for rule in rules:
                    uid = self._rules[rule]["metadata"]["uid"]
                    self._evicted[uid] = self._evicted.get(uid, 0) + 1
            elif end < math.inf:
                pending[record.key] = record.uid
                for rule in rules:
                    effects.setdefault(rule, RuleEffects()).pods.append((record.namespace, record.name))
                self._wake_by(end)
        for key, uid in self._pending.items():
            pod = self._api.store.collection(PODS).objects.get(key)
            if key not in pending and pod is not None and pod.uid == uid and not pod.deleting:
                record_event(self._api, pod, _REASON, "Cancelling deletion", _COMPONENT, "Normal")
        self._pending = pending
        self._report(effects)

    def _wake_by(self, end: float) -> None:
        if end < self._wake_at:
            self._wake_at = end
            self._agenda.after(end - self._agenda.now(), self._wake)

    def _claims(self, present: set[_Source]) -> dict[str, tuple[float, frozenset[str]]]:
        """Key of each affected claim to when its pods have to go, and the rules that want it. Notes the taints."""
        found: dict[str, tuple[float, frozenset[str]]] = {}
        if not self._tainted and not self._evicting():
            return found
        for record in self._api.store.collection(RESOURCE_CLAIMS).objects.values():
            ends: list[float] = []
            rules: set[str] = set()
            for result in results_of(record.parse()):
                for source, taint in self._taints(DeviceId.of(result)):
                    present.add(source)
                    seconds = _tolerated_seconds(result, taint)
                    if seconds < math.inf:
                        ends.append(self._start_of(source) + seconds)
                        rules.update(filter(None, (source.rule,)))
            if ends:
                found[record.key] = min(ends), frozenset(rules)
        return found

    def _evicting(self) -> list[tuple[str, Json]]:
        return [
            (name, rule) for name, rule in self._rules.items() if rule["spec"]["taint"].get("effect") == _NO_EXECUTE
        ]

    def _taints(self, which: DeviceId) -> Iterator[tuple[_Source, Json]]:
        device = self._inventory.device(which) or {}
        taints = [("", taint) for taint in device.get("taints") or () if taint.get("effect") == _NO_EXECUTE]
        taints += [
            (name, rule["spec"]["taint"])
            for name, rule in self._evicting()
            if selects_device(rule["spec"].get("deviceSelector"), which)
        ]
        for rule, taint in taints:
            added = taint.get("timeAdded") or ""
            yield _Source(rule, str(which), taint["key"], taint.get("value") or "", added), taint

    def _start_of(self, source: _Source) -> float:
        """When a taint was added, in the agenda's time: from its time stamp when it is seen first."""
        if source not in self._since:
            age = max(0.0, time.time() - parse_rfc3339(source.added)) if source.added else 0.0
            self._since[source] = self._agenda.now() - age
        return self._since[source]

    def _pods_with(self, claims: dict[str, tuple[float, frozenset[str]]]) -> Iterator[Record]:
        """The bound pods that the affected claims are reserved for."""
        for key in claims:
            record = self._api.store.collection(RESOURCE_CLAIMS).objects[key]
            for consumer in (record.parse().get("status") or {}).get("reservedFor") or ():
                pod = self._api.store.get(PODS, record.namespace, consumer["name"])
                done = pod is None or pod.deleting or pod.fields[POD_PHASE] in ("Succeeded", "Failed")
                if pod is not None and not done and pod.uid == consumer["uid"] and pod.fields[POD_NODE]:
                    yield pod

    def _end_of(self, pod: Record, claims: dict[str, tuple[float, frozenset[str]]]) -> tuple[float, frozenset[str]]:
        """When a pod has to go, and the rules that want it; claims for extended resources do not count."""
        end, rules = math.inf, frozenset[str]()
        current = self._api.store.collection(PODS).objects.get(pod.key)
        if current is None or current.deleting:
            return end, rules
        obj = current.parse()
        group = group_of(obj)
        for one in claims_of(obj):
            affected = claims.get(f"{pod.namespace}/{one.name}")
            if affected is None:
                continue
            claim = self._api.store.collection(RESOURCE_CLAIMS).objects[f"{pod.namespace}/{one.name}"].parse()
            if is_reserved_for(claim, pod.uid, group) and (not one.template or is_owned_by(claim, pod, group)):
                end, rules = min(end, affected[0]), rules | affected[1]
        return end, rules

    def _evict(self, record: Record) -> None:
        current = self._api.get(PODS, record.namespace, record.name)
        record_event(self._api, current, _REASON, "Marking for deletion", _COMPONENT, "Normal")
        pod = current.parse()
        message = "Device Taint manager: deleting due to NoExecute taint"
        set_condition(pod["status"], "DisruptionTarget", "True", "DeletionByDeviceTaintManager", message)
        self._api.replace(PODS, current, pod, "status")
        delete(self._api, PODS, record.namespace, record.name, {"preconditions": {"uid": record.uid}})

    # what the rules say of it

    def _report(self, effects: dict[str, RuleEffects]) -> None:
        for name, rule in list(self._rules.items()):
            effect = effects.get(name, RuleEffects())
            effect.evicted = self._evicted.get(rule["metadata"]["uid"], 0)
            if rule["spec"]["taint"].get("effect") == "None":
                selector = rule["spec"].get("deviceSelector")
                effect.published = sum(selects_device(selector, which) for which, _ in self._inventory.devices())
            condition = condition_of(rule, effect)
            record = self._api.store.get(TAINT_RULES, "", name)
            if condition is not None and record is not None:
                obj = record.parse()
                obj["status"] = {"conditions": [condition]}
                self._api.replace(TAINT_RULES, record, obj, "status")


def selects_device(selector: Json | None, which: DeviceId) -> bool:
    """Whether the selector of a DeviceTaintRule selects a device; without a selector none is."""
    if selector is None:
        return False
    stated = ((selector.get(name), value) for name, value in zip(("driver", "pool", "device"), which, strict=True))
    return all(asked is None or asked == value for asked, value in stated)


def _tolerated_seconds(result: Json, taint: Json) -> float:
    """Seconds for which an allocated device tolerates a taint; infinite: for ever."""
    matching = [
        toleration.get("tolerationSeconds")
        for toleration in result.get("tolerations") or ()
        if toleration.get("effect") == _NO_EXECUTE and tolerates([toleration], taint) is not None
    ]
    if not matching:
        return 0.0
    return math.inf if None in matching else max(0.0, min(matching))
