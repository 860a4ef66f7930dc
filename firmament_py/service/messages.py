"""Messages of the contract -> events of the engine.

An invalid message raises InvalidField; the caller refuses that message and continues.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from google.protobuf.message import Message

from firmament_py.model.arrays import F64, I64, NO_ROWS
from firmament_py.model.constraints import (
    NodeDemand,
    Operator,
    PeerDemand,
    PeerSelector,
    PeerTerm,
    PreferenceSet,
    Requirement,
    Spread,
    Taint,
    Term,
    Toleration,
)
from firmament_py.model.events import (
    Block,
    BudgetObserved,
    ClassDefined,
    GangObserved,
    InputsDefined,
    NodeObserved,
    TasksObserved,
)
from firmament_py.service.calls.invalid_field import InvalidField
from firmament_py.state.gangs import MAX_ROLES
from firmament_py.usage.ring_buffers import METRICS
from protos.gen import firmament_pb2, flow_pb2


def requirement(
    message: firmament_pb2.NodeSelectorRequirement
    | firmament_pb2.LabelSelectorRequirement
    | firmament_pb2.LabelSelectorRequirementAntiAff,
) -> Requirement:
    try:
        operator = Operator(message.operator)
    except ValueError:
        known = ", ".join(Operator)
        raise InvalidField(f"operator of {message.key!r}", f"is {message.operator!r}; give one of {known}") from None
    return Requirement(message.key, operator, tuple(message.values))


def affinity(message: firmament_pb2.NodeSelector) -> tuple[Term, ...]:
    return tuple(term(item) for item in message.nodeSelectorTerms)


def term(message: firmament_pb2.NodeSelectorTerm) -> Term:
    return Term(
        tuple(requirement(r) for r in message.matchExpressions), tuple(requirement(r) for r in message.matchFields)
    )


def tolerations(messages: Iterable[firmament_pb2.Toleration]) -> tuple[Toleration, ...]:
    return tuple(Toleration(t.key, t.operator or "Equal", t.value, t.effect) for t in messages)


def taints(messages: Iterable[firmament_pb2.Taint]) -> tuple[Taint, ...]:
    return tuple(Taint(t.key, t.value, t.effect) for t in messages)


def class_defined(message: flow_pb2.TaskClass) -> ClassDefined:
    names = _further_names(message)
    demand = NodeDemand(
        selector=tuple(requirement(r) for r in message.node_selector),
        affinity=tuple(affinity(a) for a in _affinities(message)),
        tolerations=tolerations(message.tolerations),
        further=tuple((n, affinity(a)) for n, a in zip(names, message.further_affinity, strict=True) if n),
    )
    peers = PeerDemand(
        affinity=tuple(peer_term(item) for item in message.affinity),
        anti_affinity=tuple(peer_term(item) for item in message.anti_affinity),
        spread=tuple(spread(item) for item in message.spread if not item.preferred),
    )
    preferences = PreferenceSet(
        nodes=tuple((p.weight, term(p.preference)) for p in message.preferred_nodes),
        peers=tuple((p.weight, peer_term(p.term)) for p in message.preferred_peers if p.weight),
        spread=tuple(spread(item) for item in message.spread if item.preferred),
        images=tuple(message.images),
        avoided_as=message.avoided_as,
        capacity=message.prefers_capacity,
    )
    return ClassDefined(
        message.id,
        dict(message.requests),
        demand,
        message.priority,
        message.name,
        peers,
        preferences,
        tuple(message.tokens),
        dict(message.traits),
        message.expected_seconds * 1_000_000,
        message.never_preempts,
    )


def _affinities(message: flow_pb2.TaskClass) -> list[firmament_pb2.NodeSelector]:
    own = [message.node_affinity] if message.HasField("node_affinity") else []
    named = zip(_further_names(message), message.further_affinity, strict=True)
    return [*own, *(further for name, further in named if not name)]


def _further_names(message: flow_pb2.TaskClass) -> list[str]:
    if not message.further_names:
        return [""] * len(message.further_affinity)
    if len(message.further_names) != len(message.further_affinity):
        raise InvalidField(
            "further_names",
            f"has {len(message.further_names)} entries, but further_affinity has {len(message.further_affinity)}; "
            "give one name for each, or no names",
        )
    return list(message.further_names)


def peer_selector(message: flow_pb2.PeerSelector) -> PeerSelector:
    namespaces = None
    if message.every_namespace or message.namespace_selector:
        namespaces = tuple(requirement(r) for r in message.namespace_selector)
    return PeerSelector(
        frozenset(message.namespaces),
        namespaces,
        None if message.no_task else tuple(requirement(r) for r in message.labels),
    )


def peer_term(message: flow_pb2.PeerTerm) -> PeerTerm:
    if not message.topology_key:
        raise InvalidField("topology_key", "is empty; give the node label whose values are the domains")
    return PeerTerm(peer_selector(message.selector), message.topology_key)


def spread(message: flow_pb2.Spread) -> Spread:
    if not message.topology_key:
        raise InvalidField("spread.topology_key", "is empty; give the node label whose values are the domains")
    return Spread(
        peer_selector(message.selector),
        message.topology_key,
        message.max_skew,
        message.min_domains or 1,
        not message.ignore_affinity,
        message.honor_taints,
    )


def node_observed(message: flow_pb2.Node) -> NodeObserved:
    return NodeObserved(
        message.id,
        message.name,
        dict(message.allocatable),
        dict(message.labels),
        taints(message.taints),
        dict(message.images),
        frozenset(message.avoids),
    )


def inputs_defined(message: flow_pb2.Inputs) -> InputsDefined:
    return InputsDefined(message.id, tuple(Block(b.bytes, tuple(b.nodes), tuple(b.racks)) for b in message.blocks))


def tasks_observed(message: flow_pb2.Tasks) -> TasksObserved:
    """Raises InvalidField if columns differ in length, or a node or role is out of range."""
    count = len(message.uid)
    columns = {field.name: column for field, column in message.ListFields()}  # those that are not empty
    nodes = tuple(columns.pop("nodes", ()))
    for name in (*_COLUMNS, *columns):
        have = len(columns.get(name, ()))
        if have != count:
            raise InvalidField(f"tasks.{name}", f"has {have} rows, but uid has {count}; columns must be equally long")

    def optional(name: str, dtype: type) -> Any:
        return np.fromiter(columns[name], dtype, count) if name in columns else None

    node, nominated, role = (optional(name, np.int64) for name in ("node", "nominated", "role"))
    for name, at in (("node", node), ("nominated", nominated)):
        if at is not None and at.max() > len(nodes):
            raise InvalidField(
                f"tasks.{name}",
                f"is {at.max()}, but nodes has {len(nodes)} entries; give a position from 1, or 0 for none",
            )
    if role is not None and role.max() >= MAX_ROLES:
        raise InvalidField("tasks.role", f"is {role.max()}; give numbers below {MAX_ROLES}")
    return TasksObserved(
        uid=np.fromiter(message.uid, np.uint64, count),
        class_id=np.fromiter(message.class_id, np.uint64, count),
        job_id=np.fromiter(message.job_id, np.uint64, count),
        created_us=np.fromiter(message.created_us, np.int64, count),
        node=NO_ROWS if node is None else node,
        names=list(message.name),
        nodes=nodes,
        label_set_id=optional("profile_id", np.uint64),
        leaving=optional("leaving", np.bool_),
        gang_id=optional("gang_id", np.uint64),
        role=role,
        inputs_id=optional("inputs_id", np.uint64),
        started_us=optional("started_us", np.int64),
        lasting=optional("lasting", np.bool_),
        nominated=nominated,
        unevictable=optional("unevictable", np.bool_),
        checkpoint_us=optional("checkpoint_us", np.int64),
        movable=optional("movable", np.bool_),
        daemon=optional("daemon", np.bool_),
        queue_id=optional("queue_id", np.uint64),
        local_queue_id=optional("local_queue_id", np.uint64),
        least_preemptor=optional("least_preemptor", np.int64),
        exempt_until_us=optional("exempt_until_us", np.int64),
        required_node=list(columns["required_node"]) if "required_node" in columns else None,
    )


_COLUMNS = ("class_id", "job_id", "created_us", "node", "name")
"""Those of `Tasks` that must have a row for each task."""


def budget_observed(message: flow_pb2.Budget) -> BudgetObserved:
    if message.id == 0:
        raise InvalidField("id", "must not be 0")
    return BudgetObserved(message.id, peer_selector(message.selector), message.allowed, message.name)


def gang_observed(message: flow_pb2.Gang) -> GangObserved:
    return GangObserved(
        message.id,
        message.minimum,
        message.created_us,
        tuple((role.name, role.minimum) for role in message.roles),
        message.topology_key,
        message.topology_required,
        message.name,
        message.maximum,
        message.disrupted_whole,
        tuple(message.narrower_keys),
        tuple(sorted(message.start_amounts.items())),
        tuple(sorted(message.keeps.items())),
        message.queue,
        message.keeps_on,
        tuple(message.outer_keys),
        message.staged,
    )


def usage_samples(count: int, message: flow_pb2.UsageColumns, what: str) -> tuple[I64, F64]:
    """Times (count,) in microseconds since the epoch, and METRICS (count, 4) with NaN for missing values.

    Raises InvalidField if the columns differ in length.
    """
    values = np.full((count, len(METRICS)), np.nan)
    for column in ("at_us", *METRICS):
        values_given = getattr(message, column)
        if len(values_given) != count and (values_given or column == "at_us"):
            raise InvalidField(
                f"{what}.{column}",
                f"has {len(values_given)} rows, but there are {count} ids; columns must be equally long",
            )
        if values_given and column != "at_us":
            values[:, METRICS.index(column)] = values_given
    return np.fromiter(message.at_us, np.int64, count), values


def require(message: Message, *fields: str) -> None:
    """Raises InvalidField for the first sub-message among `fields` that is not set."""
    for field in fields:
        if not message.HasField(field):
            raise InvalidField(field, "is missing; set it")
