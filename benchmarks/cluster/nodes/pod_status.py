"""The status that a kubelet writes in each phase of a pod."""

from __future__ import annotations

from typing import Any

from benchmarks.cluster.api.binding import set_condition
from benchmarks.cluster.store.clock import now_text

Json = dict[str, Any]


def _containers(pod: Json, state: Json, *, ready: bool, restarts: int) -> list[Json]:
    return [
        {
            "name": container["name"],
            "state": state,
            "lastState": {},
            "ready": ready,
            "restartCount": restarts,
            "image": container["image"],
            "imageID": "",
            "started": ready,
        }
        for container in pod["spec"]["containers"]
    ]


def run(pod: Json, address: str, host: str) -> None:
    """All containers run and are ready."""
    now = now_text()
    status = pod["status"]
    status["phase"] = "Running"
    conditions = [one for one in status.get("conditions") or () if one["type"] not in _RUNNING]
    for type_ in _RUNNING:
        conditions.append({"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": now})
    status["conditions"] = conditions
    status["hostIP"] = host
    status["hostIPs"] = [{"ip": host}]
    status["podIP"] = address
    status["podIPs"] = [{"ip": address}]
    status["startTime"] = now
    status["containerStatuses"] = _containers(pod, {"running": {"startedAt": now}}, ready=True, restarts=0)


_RUNNING = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def restart(pod: Json, code: int) -> None:
    """All containers have exited and been restarted."""
    now = now_text()
    for container in pod["status"]["containerStatuses"]:
        began = (container["state"].get("running") or {}).get("startedAt", now)
        container["lastState"] = {"terminated": _terminated(code, began, now)}
        container["state"] = {"running": {"startedAt": now}}
        container["restartCount"] += 1


def finish(pod: Json, code: int) -> None:
    """All containers have exited and are not restarted."""
    now = now_text()
    status = pod["status"]
    status["phase"] = "Failed" if code else "Succeeded"
    reason = "PodFailed" if code else "PodCompleted"
    for type_ in ("Ready", "ContainersReady"):
        set_condition(status, type_, "False", reason)
    if not code:
        set_condition(status, "Initialized", "True", reason)
    statuses = status.get("containerStatuses") or _containers(pod, {}, ready=False, restarts=0)
    for container in statuses:
        began = (container["state"].get("running") or {}).get("startedAt", now)
        container["state"] = {"terminated": _terminated(code, began, now)}
        container["ready"] = container["started"] = False
    status["containerStatuses"] = statuses


def _terminated(code: int, began: str, ended: str) -> Json:
    return {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": began,
        "finishedAt": ended,
    }


def reject(pod: Json, reason: str, message: str) -> None:
    """The kubelet has rejected the pod."""
    status = pod["status"]
    status["phase"] = "Failed"
    status["reason"] = reason
    status["message"] = message
    status["startTime"] = now_text()
