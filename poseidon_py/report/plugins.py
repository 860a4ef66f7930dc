"""The names of kube-scheduler's plug-ins for the reasons of the engine, for metrics."""

from collections.abc import Iterable

from poseidon_py.describe.ports_and_disks import is_port
from poseidon_py.describe.reason_keys import DEVICES
from poseidon_py.devices.column_names import PREFIXES
from protos.gen import flow_pb2

INVALID = ("Invalid",)
VOLUMES = ("VolumeBinding",)
DEVICE_CLAIMS = ("DynamicResources",)
GANG = ("GangScheduling",)
_OTHER = "Other"
_QUEUE = "Queue"
_PLUGINS = {
    flow_pb2.Reason.INSUFFICIENT_RESOURCE: "NodeResourcesFit",
    flow_pb2.Reason.TOO_MANY_TASKS: "NodeResourcesFit",
    flow_pb2.Reason.UNTOLERATED_TAINT: "TaintToleration",
    flow_pb2.Reason.SELECTOR_MISMATCH: "NodeAffinity",
    flow_pb2.Reason.AFFINITY: "InterPodAffinity",
    flow_pb2.Reason.ANTI_AFFINITY: "InterPodAffinity",
    flow_pb2.Reason.ANTI_AFFINITY_OF_OTHERS: "InterPodAffinity",
    flow_pb2.Reason.FURTHER_AFFINITY: "NodeAffinity",
    flow_pb2.Reason.SPREAD: "PodTopologySpread",
    flow_pb2.Reason.SPREAD_LABEL_MISSING: "PodTopologySpread",
    flow_pb2.Reason.GANG_DOMAIN: "GangScheduling",
    flow_pb2.Reason.GANG_INCOMPLETE: "GangScheduling",
    flow_pb2.Reason.GANG_DOES_NOT_FIT: "GangScheduling",
    flow_pb2.Reason.GANG_FULL: "GangScheduling",
    flow_pb2.Reason.GANG_CANNOT_START: "GangScheduling",
    flow_pb2.Reason.RESERVED: "Reservation",
    flow_pb2.Reason.DEFERRED: "Delay",
    flow_pb2.Reason.DELAYED: "Delay",
    flow_pb2.Reason.NOT_BY_PREEMPTION: "DefaultPreemption",
    flow_pb2.Reason.BUDGETS: "DefaultPreemption",
    flow_pb2.Reason.OVER_QUOTA: _QUEUE,
    flow_pb2.Reason.QUEUE_UNKNOWN: _QUEUE,
    flow_pb2.Reason.QUEUE_STOPPED: _QUEUE,
    flow_pb2.Reason.NO_FLAVOR: _QUEUE,
    flow_pb2.Reason.QUEUE_BEHIND: _QUEUE,
}


def plugins_of(reasons: Iterable[flow_pb2.Reason]) -> tuple[str, ...]:
    """Those that refuse a pod for these reasons, each once; none: it is not refused."""
    return tuple(sorted({_plugin(why) for why in reasons}))


def _plugin(why: flow_pb2.Reason) -> str:
    if why.kind == flow_pb2.Reason.TOKEN_TAKEN:
        return "NodePorts" if is_port(why.detail) else "VolumeRestrictions"
    if why.detail.startswith(PREFIXES) or (why.kind == flow_pb2.Reason.FURTHER_AFFINITY and why.detail == DEVICES):
        return DEVICE_CLAIMS[0]
    return _PLUGINS.get(why.kind, _OTHER)
