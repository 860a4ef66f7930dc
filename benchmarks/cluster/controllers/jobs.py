"""Jobs: run pods until enough have succeeded or too many have failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.controllers.workload import Controller, is_active, is_ready, surplus_order
from benchmarks.cluster.store.clock import Agenda, now_text
from benchmarks.cluster.store.kinds import JOBS, POD_PHASE
from benchmarks.cluster.store.store import Change, Record

Json = dict[str, Any]

INDEX = "batch.kubernetes.io/job-completion-index"
_BURST = 200
_MAX_BACKOFF_S = 360.0


@dataclass
class _Tally:
    """The counts of a Job. Pods that ended count once, also if they are deleted later."""

    counted: set[str] = field(default_factory=set)  # UIDs
    succeeded: int = 0
    failed: int = 0
    in_a_row: int = 0  # failures since the last success
    indexes: set[int] = field(default_factory=set)  # completed
    waiting: bool = False  # a retry is set for later
    deadline_set: bool = False
    forgives_disruption: bool = False  # evicted pods do not count against backoffLimit


class Jobs(Controller):
    """The Job controller."""

    kind = JOBS

    def __init__(self, api: Api, agenda: Agenda, backoff_s: float) -> None:
        self._backoff_s = backoff_s
        self._tallies: dict[str, _Tally] = {}
        super().__init__(api, agenda)

    def _own_changed(self, change: Change) -> None:
        super()._own_changed(change)
        if change.type == "DELETED":
            self._tallies.pop(change.record.uid, None)
        elif b'"podFailurePolicy"' in change.record.raw:
            tally = self._tallies.setdefault(change.record.uid, _Tally())
            tally.forgives_disruption = _forgives_disruption(change.record.parse()["spec"])

    def _owned_changed(self, change: Change) -> None:
        # counted at once: a deleted pod's last state is gone when the Job is reconciled
        record = change.record
        for uid in record.owners:
            if uid in self._by_uid:
                self._count(self._tallies.setdefault(uid, _Tally()), change)
        super()._owned_changed(change)

    def _count(self, tally: _Tally, change: Change) -> None:
        record = change.record
        phase = record.fields[POD_PHASE]
        ended = phase in ("Succeeded", "Failed") or record.deleting or change.type == "DELETED"
        if not ended or record.uid in tally.counted:
            return
        tally.counted.add(record.uid)
        if phase == "Succeeded":
            index = record.labels.get(INDEX)
            if index is not None:
                if int(index) in tally.indexes:
                    return
                tally.indexes.add(int(index))
            tally.succeeded += 1
            tally.in_a_row = 0
        elif not (tally.forgives_disruption and b'"DisruptionTarget"' in record.raw):
            tally.failed += 1
            tally.in_a_row += 1

    def reconcile(self, record: Record, obj: Json) -> None:
        """Count pods, check whether the Job is complete or failed, create or delete pods, write the status."""
        spec = obj["spec"]
        status: Json = dict(obj.get("status") or {})
        tally = self._tallies.setdefault(record.uid, _Tally())
        pods = self.owned_by(record.uid)
        active = [pod for pod in pods if is_active(pod)]
        over = _true(status, "Complete") or _true(status, "Failed")
        if record.deleting:
            return
        if not over:
            if spec.get("suspend"):
                active = self._suspend(status, tally, active)
            else:
                self._resume(record, spec, status, tally)
                verdict = _outcome(spec, status, tally, active)
                if verdict is not None:
                    self._end(record, spec, status, verdict, active)
                    active = []
                else:
                    active = self._balance(record, spec, tally, active)
        ready = sum(map(is_ready, active))
        for name, value in (
            ("active", len(active)),
            ("succeeded", tally.succeeded),
            ("failed", tally.failed),
        ):
            if value:
                status[name] = value
            else:
                status.pop(name, None)
        status["ready"] = ready
        status["terminating"] = sum(pod.deleting for pod in pods)
        status["uncountedTerminatedPods"] = {}
        if spec.get("completionMode") == "Indexed" and tally.indexes:
            status["completedIndexes"] = _ranges(tally.indexes)
        self.put_status(record, obj, status)

    def _suspend(self, status: Json, tally: _Tally, active: list[Record]) -> list[Record]:
        self._drop(tally, active)
        _set_condition(status, "Suspended", "True", "JobSuspended", "Job suspended")
        status.pop("startTime", None)
        return []

    def _resume(self, record: Record, spec: Json, status: Json, tally: _Tally) -> None:
        if _true(status, "Suspended"):
            _set_condition(status, "Suspended", "False", "JobResumed", "Job resumed")
        status.setdefault("startTime", now_text())
        limit = spec.get("activeDeadlineSeconds")
        if limit is not None and not tally.deadline_set:
            tally.deadline_set = True
            self.agenda.after(float(limit), lambda: self._too_late(record))

    def _too_late(self, record: Record) -> None:
        current = self.api.store.collection(JOBS).objects.get(record.key)
        if current is None or current.uid != record.uid:
            return
        obj = current.parse()
        status = obj.setdefault("status", {})
        if _true(status, "Complete") or _true(status, "Failed") or obj["spec"].get("suspend"):
            return
        verdict = ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
        active = [pod for pod in self.owned_by(record.uid) if is_active(pod)]
        self._end(current, obj["spec"], status, verdict, active)
        status.pop("active", None)
        self.api.store.put(JOBS, obj, current)

    def _end(
        self, record: Record, spec: Json, status: Json, verdict: tuple[str, str, str], active: list[Record]
    ) -> None:
        type_, reason, message = verdict
        for pod in active:
            self.drop_pod(pod)
        early = "SuccessCriteriaMet" if type_ == "Complete" else "FailureTarget"
        for one in (early, type_):
            _set_condition(status, one, "True", reason, message)
        if type_ == "Complete":
            status["completionTime"] = now_text()
        ttl = spec.get("ttlSecondsAfterFinished")
        if ttl is not None:
            self.agenda.after(float(ttl), lambda: self._clear(record))

    def _clear(self, record: Record) -> None:
        current = self.api.store.collection(JOBS).objects.get(record.key)
        if current is not None and current.uid == record.uid:
            delete(self.api, JOBS, record.namespace, record.name, {"propagationPolicy": "Background"})

    def _balance(self, record: Record, spec: Json, tally: _Tally, active: list[Record]) -> list[Record]:
        """Create or delete pods for as many active ones as parallelism and the remaining completions allow."""
        desired = _desired(spec, tally, len(active))
        if len(active) > desired:
            active.sort(key=surplus_order)
            self._drop(tally, active[: len(active) - desired])
            return active[len(active) - desired :]
        if len(active) == desired or tally.waiting:
            return active
        if tally.in_a_row:
            # Once per failure: the pause starts when the replacement is first due.
            pause = min(self._backoff_s * 2.0 ** (tally.in_a_row - 1), _MAX_BACKOFF_S)
            tally.waiting = True
            self.agenda.after(pause, lambda: self._retry(record, tally))
            return active
        return active + self._create(record, spec, tally, active, desired - len(active))

    def _drop(self, tally: _Tally, pods: list[Record]) -> None:
        """Delete pods that are not wanted. They do not count: the real controller removes their finalizer first."""
        for pod in pods:
            tally.counted.add(pod.uid)
            self.drop_pod(pod)

    def _retry(self, record: Record, tally: _Tally) -> None:
        tally.waiting = False
        current = self.api.store.collection(JOBS).objects.get(record.key)
        if current is None or current.uid != record.uid or current.deleting:
            return
        obj = current.parse()
        spec, status = obj["spec"], obj.get("status") or {}
        if _true(status, "Complete") or _true(status, "Failed") or spec.get("suspend"):
            return
        active = [pod for pod in self.owned_by(record.uid) if is_active(pod)]
        self._create(current, spec, tally, active, _desired(spec, tally, len(active)) - len(active))

    def _create(self, record: Record, spec: Json, tally: _Tally, active: list[Record], count: int) -> list[Record]:
        if count > _BURST:
            self.queue(record.key)
        made: list[Record] = []
        taken = {int(pod.labels[INDEX]) for pod in active if INDEX in pod.labels} | tally.indexes
        index = 0
        for _ in range(min(count, _BURST)):
            changes: Json = {}
            if spec.get("completionMode") == "Indexed":
                while index in taken:
                    index += 1
                taken.add(index)
                changes = {
                    "labels": {INDEX: str(index)},
                    "annotations": {INDEX: str(index)},
                    "generateName": f"{record.name}-{index}-",
                }
            made.append(self.make_pod(record, spec["template"], "", changes))
        return made


def _forgives_disruption(spec: Json) -> bool:
    """Whether the failure policy ignores pods with the DisruptionTarget condition."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        types = {one.get("type") for one in rule.get("onPodConditions") or ()}
        if rule.get("action") == "Ignore" and "DisruptionTarget" in types:
            return True
    return False


def _desired(spec: Json, tally: _Tally, active: int) -> int:
    parallelism = int(spec.get("parallelism", 1))
    completions = spec.get("completions")
    if completions is None:
        return active if tally.succeeded else parallelism
    return min(parallelism, max(0, int(completions) - tally.succeeded))


def _outcome(spec: Json, status: Json, tally: _Tally, active: list[Record]) -> tuple[str, str, str] | None:
    """(condition, reason, message) if the Job is over."""
    completions = spec.get("completions")
    if completions is None:
        if tally.succeeded and not active:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    elif tally.succeeded >= completions:
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    if tally.failed > spec.get("backoffLimit", 6):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    return None


def _true(status: Json, type_: str) -> bool:
    return any(one["type"] == type_ and one["status"] == "True" for one in status.get("conditions") or ())


def _set_condition(status: Json, type_: str, value: str, reason: str, message: str) -> None:
    conditions = [one for one in status.get("conditions") or () if one["type"] != type_]
    now = now_text()
    known = next((one for one in status.get("conditions") or () if one["type"] == type_), None)
    if known is not None and known["status"] == value:
        return
    conditions.append(
        {
            "type": type_,
            "status": value,
            "lastProbeTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
    )
    status["conditions"] = conditions


def _ranges(indexes: set[int]) -> str:
    """{1, 3, 4, 5} as "1,3-5"."""
    parts: list[str] = []
    ordered = sorted(indexes)
    start = previous = ordered[0]
    for index in [*ordered[1:], -1]:
        if index == previous + 1:
            previous = index
            continue
        parts.append(
            str(start)
            if start == previous
            else f"{start}-{previous}"
            if previous > start + 1
            else f"{start},{previous}"
        )
        start = previous = index
    return ",".join(parts)
