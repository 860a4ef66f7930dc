"""Why a pod is pending, in kube-scheduler's words, which users and tools (cluster-autoscaler, dashboards) expect."""

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from poseidon_py.describe.node import UNSCHEDULABLE_TAINT
from poseidon_py.describe.ports_and_disks import is_port
from poseidon_py.describe.reason_keys import (
    ATTACHABLE,
    CLAIM_IN_USE,
    CLAIM_TOKEN,
    DEVICES,
    ENFORCED,
    FEATURES,
    NODE_POOL,
    VOLUME_COUNT,
    VOLUME_NODE,
    VOLUME_NONE,
    VOLUME_SPACE,
    VOLUME_ZONE,
)
from poseidon_py.devices.column_names import PREFIXES
from poseidon_py.kube.quantity import shown
from poseidon_py.state.volumes.claims import ONE_POD_CONFLICT
from protos.gen import flow_pb2

_LIMIT = 1024
_KIND = flow_pb2.Reason.Kind


class GangTerms(NamedTuple):
    """What messages say of the gang in the reasons."""

    minimum: int = 0
    """Members that it needs; 0: unknown."""
    missing: Mapping[str, int] = MappingProxyType({})
    """How many members have yet to be created, by role."""
    topology: str = ""
    """The node label whose values are the domains that it requires; empty: none."""
    absent: bool = False
    """Whether no node has that label."""


NO_TERMS = GangTerms()


_NO_DEVICES = "cannot allocate all claims"
_MAX_COUNT = "node(s) exceed max volume count"
_FURTHER = {
    ENFORCED: "node(s) didn't match scheduler-enforced node affinity",
    FEATURES: "node(s) didn't match Pod's required features",
    NODE_POOL: "node(s) were not in the Pod's node pool (label kai.scheduler/node-pool)",
    VOLUME_NODE: "node(s) didn't match PersistentVolume's node affinity",
    VOLUME_ZONE: "node(s) had no available volume zone",
    VOLUME_NONE: "node(s) didn't find available persistent volumes to bind",
    VOLUME_COUNT: _MAX_COUNT,
    VOLUME_SPACE: "node(s) did not have enough free storage",
    CLAIM_IN_USE: ONE_POD_CONFLICT,
    DEVICES: "resourceclaim not available on the node",
}

_TAINTS = "node(s) had untolerated taint(s)"
_DELAYED = "waits for up to two minutes for a node that costs less by the policy; other nodes have capacity"
_NO_QUEUE = "its queue does not exist, or has queues below it: see `poseidon explain`"
_DEFERRED = "has many pod affinity, anti-affinity and topology spread terms: a later round considers it"

_WORDS = {
    flow_pb2.Reason.TOO_MANY_TASKS: "Too many pods",
    flow_pb2.Reason.SELECTOR_MISMATCH: "node(s) didn't match Pod's node affinity/selector",
    flow_pb2.Reason.AFFINITY: "node(s) didn't match pod affinity rules",
    flow_pb2.Reason.ANTI_AFFINITY: "node(s) didn't match pod anti-affinity rules",
    flow_pb2.Reason.ANTI_AFFINITY_OF_OTHERS: "node(s) didn't satisfy existing pods anti-affinity rules",
    flow_pb2.Reason.SPREAD: "node(s) didn't match pod topology spread constraints",
    flow_pb2.Reason.SPREAD_LABEL_MISSING: (
        "node(s) didn't match pod topology spread constraints (missing required label)"
    ),
}


def reason(why: flow_pb2.Reason, *, detailed: bool = False) -> str:
    """One reason, without its count. `detailed`: with the taint, which kube-scheduler leaves out since 1.35."""
    if why.kind in _WORDS:
        return _WORDS[why.kind]
    match why.kind:
        case flow_pb2.Reason.INSUFFICIENT_RESOURCE:
            if why.detail.startswith(ATTACHABLE):
                return _MAX_COUNT
            if why.detail.startswith(PREFIXES):
                return _NO_DEVICES
            return f"Insufficient {why.detail}"
        case flow_pb2.Reason.UNTOLERATED_TAINT:
            if why.detail == UNSCHEDULABLE_TAINT:
                return "node(s) were unschedulable"
            return f"node(s) had untolerated taint {{{why.detail}: {why.value}}}" if detailed else _TAINTS
        case flow_pb2.Reason.TOKEN_TAKEN:
            if is_port(why.detail):
                return "node(s) didn't have free ports for the requested pod ports"
            if why.detail.startswith(CLAIM_TOKEN):
                return ONE_POD_CONFLICT
            return "node(s) had no available disk"
        case flow_pb2.Reason.RESERVED:
            return f"node(s) are reserved for {why.detail}"
        case flow_pb2.Reason.GANG_DOMAIN:
            return f"node(s) are outside of the domain of label {why.value} in which gang {why.detail} is"
        case flow_pb2.Reason.FURTHER_AFFINITY if why.detail in _FURTHER:
            return _FURTHER[why.detail]
    return f"node(s) failed for reason {_KIND.Name(why.kind) if why.kind in _KIND.values() else why.kind}"


def unscheduled(
    nodes: int,
    reasons: Iterable[flow_pb2.Reason],
    terms: GangTerms = NO_TERMS,
    *,
    queue_problem: str = "",
    covered: Container[str] | None = None,
    detailed: bool = False,
) -> str:
    """The complete message: the number of nodes, and for each reason how many failed it, sorted as text. Empty: there
    are no reasons, since some node takes the pod by now.

    terms: those of the gang in the reasons. queue_problem: why the queue takes no pods; empty: unknown. covered: see
    `over_quota`. detailed: see
    `reason`.
    """
    counts: dict[str, int] = {}
    gang: list[str] = []
    budgets = ""
    for why in reasons:
        if why.kind == flow_pb2.Reason.GANG_INCOMPLETE:
            return incomplete(why, terms)
        if why.kind == flow_pb2.Reason.GANG_FULL:
            return full(why)
        if why.kind == flow_pb2.Reason.OVER_QUOTA:
            return over_quota(why, covered)
        if why.kind == flow_pb2.Reason.QUEUE_UNKNOWN:
            return queue_problem or _NO_QUEUE
        if why.kind == flow_pb2.Reason.QUEUE_STOPPED:
            return queue_problem or f"queue {why.detail} is stopped: no pods are placed until it is started again"
        if why.kind == flow_pb2.Reason.NO_FLAVOR:
            return (
                f"no node of queue {why.detail} suits the pod: compare the node selector, affinity and tolerations of "
                "the pod with the nodes for which the queue has quota, and with spec.nodeTaints of its flavors"
            )
        if why.kind == flow_pb2.Reason.QUEUE_BEHIND:
            return f"waits behind older pods of queue {why.detail}, which is strictly first in, first out"
        if why.kind == flow_pb2.Reason.DEFERRED:
            return _DEFERRED
        if why.kind == flow_pb2.Reason.DELAYED:
            return _DELAYED
        if why.kind == flow_pb2.Reason.GANG_DOES_NOT_FIT:
            fit, _, needed = why.value.partition("/")
            members = "1 member placed" if needed == "1" else f"{needed} members placed together"
            gang.append(f"gang {why.detail} needs {members}{_within(terms)}, {fit} fit")
            continue
        if why.kind == flow_pb2.Reason.GANG_CANNOT_START:
            gang.append(f"gang {why.detail} cannot start until {cannot_start(_pairs(why.value))}")
            continue
        if why.kind == flow_pb2.Reason.BUDGETS:
            several = "," in why.detail
            which = f"budgets {why.detail} prevent" if several else f"budget {why.detail} prevents"
            budgets = f" Evictions would make room on {why.nodes} of them, which disruption {which}."
            continue
        if why.kind == flow_pb2.Reason.NOT_BY_PREEMPTION:
            fit, _, needed = why.value.partition("/")
            gang.append(f"no evictions or moves help: at most {fit} of {needed} would fit")
            continue
        text = reason(why, detailed=detailed)
        # a node can lack devices of several sets
        counts[text] = max(counts.get(text, 0), why.nodes) if text == _NO_DEVICES else counts.get(text, 0) + why.nodes
    if not nodes:
        return "no nodes available to schedule pods"
    parts = ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))
    if gang:
        return f"0/{nodes} nodes are available: {'; '.join(gang)}{': ' if parts else ''}{parts}."
    return f"0/{nodes} nodes are available: {parts}.{budgets}" if parts else ""


def with_nomination(message: str, node: str) -> str:
    """The message of a pod that has preempted others."""
    where = f"Nominated to {node}: it is bound once its victims have left."
    return f"{message.removesuffix('.')}. {where}" if message else where


def cannot_use(problem: str) -> str:
    """The message of an invalid pod."""
    return f"cannot use {problem}"


def more_members(count: int, of_roles: Mapping[str, int]) -> str:
    """ "2 more members are", with the roles that lack some: role -> number."""
    named = {role: lacking for role, lacking in of_roles.items() if role}
    roles = " and ".join(f"{lacking} of role {role}" for role, lacking in sorted(named.items()))
    if len(named) == 1 and sum(named.values()) == count:
        roles = f"of role {next(iter(named))}"
    return f"{count} more {'member' if count == 1 else 'members'}{f' ({roles})' if roles else ''} " + (
        "is" if count == 1 else "are"
    )


def _within(terms: GangTerms) -> str:
    """Where the members have to be together."""
    if not terms.topology:
        return ""
    absent = ", which no node has" if terms.absent else ""
    return f" on nodes with one value of label {terms.topology}{absent}"


def incomplete(why: flow_pb2.Reason, terms: GangTerms = NO_TERMS) -> str:
    """The message of a gang that has too few members."""
    missing, minimum = int(why.value) if why.value.isdigit() else 0, terms.minimum
    there = f" ({minimum - missing}/{minimum})" if 0 <= missing <= minimum else ""
    return f"pod group {why.detail}: {more_members(missing, terms.missing)} needed before it can be scheduled{there}"


def full(why: flow_pb2.Reason) -> str:
    """The message of a member beyond the maximum of its gang."""
    placed, _, maximum = why.value.partition("/")
    return f"pod group {why.detail}: {placed} of its members are placed, and it has {maximum} at most"


def over_quota(why: flow_pb2.Reason, covered: Container[str] | None = None) -> str:
    """The message of a pod for which its queue has no quota left. `covered`: the resources for which the queue has any;
    None: it needs none for others."""
    lacking = _pairs(why.value)
    absent = [name for name in lacking if name not in covered] if covered is not None else []
    if absent:
        none = f"has none for {', '.join(absent)}"
        return f"waits for quota of queue {why.detail}, which {none}: give it some, or remove the request"
    amounts = _amounts(lacking)
    return f"waits for quota of queue {why.detail}" + (f": lacks {amounts}" if amounts else "")


def cannot_start(lacking: Mapping[str, int]) -> str:
    """What must happen before a gang can start: resource -> amount in the engine's units."""
    is_or_are = "is" if len(lacking) == 1 else "are"
    return f"{_amounts(lacking)} more {is_or_are} free in the cluster"


def _pairs(text: str) -> dict[str, int]:
    """Resources and amounts in a text like "cpu: 100, memory: 5"; -1: none is stated."""
    found = {}
    for pair in filter(None, text.split(", ")):
        resource, _, amount = pair.rpartition(": ")
        found[resource or amount] = int(amount) if resource and amount.isdigit() else -1
    return found


def _amounts(lacking: Mapping[str, int]) -> str:
    return ", ".join(name if amount < 0 else f"{shown(name, amount)} {name}" for name, amount in lacking.items())


def blocked(nodes: int, why: str, anywhere: bool = True) -> str:
    """The message of a pod that its volumes block. `anywhere`: on every node, so that none was examined."""
    if not nodes:
        return "no nodes available to schedule pods"
    return f"0/{nodes} nodes are available: {why}." if anywhere else f"0/{nodes} nodes are available: {nodes} {why}."


def note(message: str) -> str:
    """The message, cut to the length that events may have."""
    return (
        message if len(message.encode()) <= _LIMIT else message.encode()[: _LIMIT - 4].decode(errors="ignore") + " ..."
    )
