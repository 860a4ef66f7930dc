"""The columns of pods and of the workloads that own them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from benchmarks.cluster.store.clock import parse_rfc3339
from benchmarks.cluster.views.columns import AGE, NAME, Column, Json, age, duration


def _ready(pod: Json) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    ready = sum(1 for status in statuses if status.get("ready"))
    return f"{ready}/{len(pod['spec'].get('containers') or ())}"


def pod_status(pod: Json) -> str:
    """The STATUS column of a pod: its phase, or a more specific reason."""
    status: Json = pod.get("status") or {}
    word = str(status.get("reason") or status.get("phase") or "Unknown")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            word = "SchedulingGated"
    if pod["spec"].get("schedulingGates") and word == "Pending":
        word = "SchedulingGated"
    running = False
    for container in reversed(status.get("containerStatuses") or ()):
        state = container.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            word = state["waiting"]["reason"]
        elif "terminated" in state and not status.get("reason"):
            ended = state["terminated"]
            word = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
        elif container.get("ready") and "running" in state:
            running = True
    if word == "Completed" and running:
        word = "Running"
    if "deletionTimestamp" in pod["metadata"]:
        word = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    elif status.get("phase") == "Pending" and pod["spec"].get("nodeName") and word == "Pending":
        word = "ContainerCreating"
    return word


def _restarts(pod: Json) -> str:
    count, last = 0, ""
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        count += container.get("restartCount", 0)
        ended = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        last = max(last, ended or "")
    return f"{count} ({age(last)} ago)" if count and last else str(count)


def _gates(pod: Json) -> str:
    gates = pod["spec"].get("readinessGates") or ()
    if not gates:
        return "<none>"
    conditions = (pod.get("status") or {}).get("conditions") or ()
    true = {one["type"] for one in conditions if one.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}"


POD: Sequence[Column] = (
    NAME,
    Column("Ready", _ready),
    Column("Status", pod_status),
    Column("Restarts", _restarts),
    AGE,
    Column("IP", lambda pod: (pod.get("status") or {}).get("podIP") or "<none>", priority=1),
    Column("Node", lambda pod: pod["spec"].get("nodeName") or "<none>", priority=1),
    Column("Nominated Node", lambda pod: (pod.get("status") or {}).get("nominatedNodeName") or "<none>", priority=1),
    Column("Readiness Gates", _gates, priority=1),
)


def _containers(field: str) -> Any:
    def cell(obj: Json) -> str:
        template = (obj["spec"].get("template") or {}).get("spec") or {}
        return ",".join(str(one.get(field, "")) for one in template.get("containers") or ())

    return cell


def selector_text(selector: Json | None) -> str:
    """A LabelSelector as kubectl shows it."""
    if not selector:
        return "<none>"
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for one in selector.get("matchExpressions") or ():
        values = ",".join(one.get("values") or ())
        match one["operator"]:
            case "In" | "NotIn" as operator:
                parts.append(f"{one['key']} {operator.lower()} ({values})")
            case "Exists":
                parts.append(one["key"])
            case _:
                parts.append(f"!{one['key']}")
    return ",".join(parts) or "<none>"


def _selector(obj: Json) -> str:
    return selector_text(obj["spec"].get("selector"))


_WIDE = (
    Column("Containers", _containers("name"), priority=1),
    Column("Images", _containers("image"), priority=1),
)
_SELECTOR = Column("Selector", _selector, priority=1)


def _status(name: str) -> Any:
    return lambda obj: (obj.get("status") or {}).get(name) or 0


def _desired(obj: Json) -> int:
    replicas = obj["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def _ready_of(obj: Json) -> str:
    return f"{_status('readyReplicas')(obj)}/{_desired(obj)}"


REPLICA_SET: Sequence[Column] = (
    NAME,
    Column("Desired", _desired, "integer"),
    Column("Current", _status("replicas"), "integer"),
    Column("Ready", _status("readyReplicas"), "integer"),
    AGE,
    *_WIDE,
    _SELECTOR,
)
DEPLOYMENT: Sequence[Column] = (
    NAME,
    Column("Ready", _ready_of),
    Column("Up-to-date", lambda obj: str(_status("updatedReplicas")(obj))),
    Column("Available", lambda obj: str(_status("availableReplicas")(obj))),
    AGE,
    *_WIDE,
    _SELECTOR,
)
STATEFUL_SET: Sequence[Column] = (NAME, Column("Ready", _ready_of), AGE, *_WIDE)


def job_state(job: Json) -> str:
    """Complete, Failed, Suspended, Terminating, FailureTarget, SuccessCriteriaMet or Running."""
    true = {one["type"] for one in (job.get("status") or {}).get("conditions") or () if one["status"] == "True"}
    for state, shown in (("Complete", "Complete"), ("Failed", "Failed")):
        if state in true:
            return shown
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    for state in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if state in true:
            return state
    return "Running"


def _completions(job: Json) -> str:
    succeeded = (job.get("status") or {}).get("succeeded") or 0
    completions, parallelism = job["spec"].get("completions"), job["spec"].get("parallelism") or 1
    if completions is not None:
        return f"{succeeded}/{completions}"
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_time(job: Json) -> str:
    status = job.get("status") or {}
    started = status.get("startTime")
    if not started:
        return ""
    ended = status.get("completionTime")
    return duration((parse_rfc3339(ended) if ended else time.time()) - parse_rfc3339(started))


JOB: Sequence[Column] = (
    NAME,
    Column("Status", job_state),
    Column("Completions", _completions),
    Column("Duration", _job_time),
    AGE,
    *_WIDE,
    _SELECTOR,
)
