"""Why a pod waits, in kube-scheduler's words, so that people and tools (cluster-autoscaler, dashboards) know them."""

from collections.abc import Iterable

from poseidon_py.describe import UNSCHEDULABLE_TAINT
from protos.gen import flow_pb2

_LIMIT = 1024
_KIND = flow_pb2.Reason.Kind


def reason(why: flow_pb2.Reason) -> str:
    """One reason, without its count."""
    match why.kind:
        case flow_pb2.Reason.INSUFFICIENT_RESOURCE:
            return f"Insufficient {why.detail}"
        case flow_pb2.Reason.TOO_MANY_TASKS:
            return "Too many pods"
        case flow_pb2.Reason.UNTOLERATED_TAINT:
            if why.detail == UNSCHEDULABLE_TAINT:
                return "node(s) were unschedulable"
            return f"node(s) had untolerated taint {{{why.detail}: {why.value}}}"
        case flow_pb2.Reason.SELECTOR_MISMATCH:
            return "node(s) didn't match Pod's node affinity/selector"
        case flow_pb2.Reason.TAKEN_THIS_ROUND:
            return "node(s) were just given to other pods"
    return f"node(s) failed for reason {_KIND.Name(why.kind) if why.kind in _KIND.values() else why.kind}"


def unscheduled(nodes: int, reasons: Iterable[flow_pb2.Reason]) -> str:
    """The whole message: how many nodes, and how many of them failed for which reason, sorted as text."""
    if not nodes:
        return "no nodes available to schedule pods"
    counts: dict[str, int] = {}
    for why in reasons:
        text = reason(why)
        counts[text] = counts.get(text, 0) + why.nodes
    parts = sorted(f"{count} {text}" for text, count in counts.items())
    return f"0/{nodes} nodes are available:" + (f" {', '.join(parts)}." if parts else "")


def note(message: str) -> str:
    """A message at most as long as events may be."""
    return (
        message if len(message.encode()) <= _LIMIT else message.encode()[: _LIMIT - 4].decode(errors="ignore") + " ..."
    )
