"""Task classes: pods with the same scheduling requirements belong to one class, which is described once.

The class of a pod is found by the bytes of the fields that matter, so that a pod of a known template is not decoded.
The pod's owner is not part of the key: admission plug-ins may have changed one pod of a template and not the next.

Requirements that do not come from the pod itself (its volumes, nodes that avoid its owner, default topology spread)
extend its class.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from poseidon_py.describe.bandwidth import NOT_COUNTED
from poseidon_py.describe.pod_affinity import add_default_spread
from poseidon_py.describe.pod_class import Key, describe_class, key_of, seal
from poseidon_py.describe.ports_and_disks import tokens
from poseidon_py.describe.requests import requests
from poseidon_py.describe.selectors import on_node
from poseidon_py.describe.vocabulary import Vocabulary
from poseidon_py.kube.objects import InvalidField, Pod
from poseidon_py.kube.quantity import PODS
from protos.gen import firmament_pb2, flow_pb2


@dataclass(frozen=True, slots=True)
class Extras:
    """Requirements and preferences of a pod that its own fields do not state."""

    further: tuple[tuple[str, bytes], ...] = ()
    """Names for reasons, each with an encoded NodeSelector that the node must match."""
    requests: tuple[tuple[str, int], ...] = ()
    """Resource -> additional amount."""
    tokens: tuple[str, ...] = ()
    """Of claims that pods contend for."""
    avoided_as: str = ""
    """UID of the pod's controller, if some node prefers to avoid its pods."""
    priority: int | None = None
    """That of its queue or pod group; None: its own."""
    never_preempts: bool = False
    """Whether its queue or pod group never preempts."""
    pinned_to: str = ""
    """Name of the only node, where it has to be part of the class."""
    spread_from: bytes = b""
    """Encoded PeerSelector of what the pod is spread from by default; empty: nothing. Without effect on a class with
    topology spread constraints."""
    prefers_capacity: bool = False
    """Whether a volume that others may share is made where the pod runs."""


NO_EXTRAS = Extras()


class Classes(Vocabulary[Key, flow_pb2.TaskClass]):
    """All task classes in use."""

    def __init__(self, added: firmament_pb2.NodeSelector | None = None) -> None:
        """`added`: node affinity that the administrator requires of every pod."""
        super().__init__()
        self._added = added
        self.bandwidth = NOT_COUNTED
        """Must be set before the first pod is described."""

    def of(self, pod: Pod, pin: str = "") -> int:
        """The id of the pod's class, which is described if it is new. pin: the name of the node that the pod is pinned
        to, which is left out. Raises InvalidField."""
        key = key_of(pod, self.bandwidth, pin)
        return self.id_of(key, lambda: describe_class(pod, self._added, self.bandwidth, pin))

    def extended(self, class_id: int, extras: Extras) -> int:
        """The class with the requirements of class `class_id`, and `extras`."""
        if extras.spread_from and (known := self.get(class_id)) is not None and known.spread:
            extras = replace(extras, spread_from=b"")
        if extras == NO_EXTRAS:
            return class_id
        return self.id_of((class_id, extras), lambda: extend(self._descriptions[class_id], extras))

    def spread(self, class_id: int, spread_from: bytes) -> int:
        """The same if default topology spread is all that extends the class; see Extras.spread_from, not empty."""
        return self.id_of((class_id, spread_from), lambda: self._spread(class_id, spread_from))

    def _spread(self, class_id: int, spread_from: bytes) -> flow_pb2.TaskClass:
        base = self._descriptions[class_id]
        return base if base.spread else extend(base, Extras(spread_from=spread_from))

    def unreadable(self, pod: Pod) -> int:
        """The class of a bound pod with an invalid specification: it requests what can be read of its requests and
        tokens, at least one pod slot."""
        message = flow_pb2.TaskClass(requests={PODS: 1}, priority=pod.spec.priority or 0)
        with suppress(InvalidField):
            message.requests.update(requests(pod))
            message.requests.update(self.bandwidth.requested(pod, message.requests))
        with suppress(InvalidField):
            message.tokens.extend(tokens(pod))
        message.name = "unreadable"
        seal(message)
        return self.id_of(("unreadable", message.id), lambda: message)

    def of_amounts(self, class_id: int) -> int:
        """The class that requests what class `class_id` requests and has no other demands; if that is the same class,
        one that occupies one pod slot."""
        return self.id_of(("amounts", class_id), lambda: _amounts_of(class_id, self._descriptions.get(class_id)))


def _pin(terms: RepeatedCompositeFieldContainer[firmament_pb2.NodeSelectorTerm], name: str) -> None:
    """Adds the name of the only node to the terms of a class without it."""
    if not terms:
        terms.add()
    for term in terms:
        term.MergeFrom(on_node(name))


def _amounts_of(class_id: int, described: flow_pb2.TaskClass | None) -> flow_pb2.TaskClass:
    message = flow_pb2.TaskClass()
    if described is not None:
        message.requests.update(described.requests)
        message.tokens.extend(described.tokens)
        message.priority = described.priority
    seal(message)
    if message.id == class_id:
        message = flow_pb2.TaskClass(requests={PODS: 1})
        seal(message)
    message.name = "without demands"
    return message


def extend(base: flow_pb2.TaskClass, extras: Extras) -> flow_pb2.TaskClass:
    """A class with the requirements of another one, and `extras`."""
    message = flow_pb2.TaskClass()
    message.CopyFrom(base)
    message.id, message.name = 0, ""
    for name, encoded in extras.further:
        message.further_affinity.append(firmament_pb2.NodeSelector.FromString(encoded))
        message.further_names.append(name)
    for resource, amount in extras.requests:
        message.requests[resource] += amount
    message.tokens.extend(extras.tokens)
    message.avoided_as = extras.avoided_as
    if extras.priority is not None:
        message.priority = extras.priority
    message.never_preempts |= extras.never_preempts
    message.prefers_capacity = extras.prefers_capacity
    if extras.pinned_to:
        _pin(message.node_affinity.nodeSelectorTerms, extras.pinned_to)
    if extras.spread_from:
        add_default_spread(message, extras.spread_from)
    seal(message)
    message.name = base.name
    return message
