"""Events about pods, as kubelets and controllers write them: repetitions are counted in one object."""

from __future__ import annotations

import xxhash

from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.store.clock import now_text
from benchmarks.cluster.store.errors import ApiError
from benchmarks.cluster.store.kinds import EVENTS
from benchmarks.cluster.store.store import Record


def record_event(api: Api, pod: Record, reason: str, message: str, component: str, type_: str = "Warning") -> None:
    """Write an event about a pod; none if its namespace is being deleted."""
    now = now_text()
    name = f"{pod.name[:200]}.{xxhash.xxh64_hexdigest(f'{pod.uid} {reason} {message}'.encode())}"
    known = api.store.get(EVENTS, pod.namespace, name)
    if known is not None:
        event = known.parse()
        event["count"] = event.get("count", 1) + 1
        event["lastTimestamp"] = now
        api.store.put(EVENTS, event, known)
        return
    about = {"kind": "Pod", "apiVersion": "v1", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
    event = {
        "metadata": {"name": name},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "type": type_,
        "source": {"component": component},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    try:
        api.create(EVENTS, pod.namespace, event)
    except ApiError:
        return
