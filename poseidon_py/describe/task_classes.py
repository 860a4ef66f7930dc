"""The task classes that pods belong to.

Pods that want the same thing belong to one class. A class is described once; which class a pod belongs to is looked
up by the bytes of the fields that matter, so a pod of a known template costs one dictionary lookup and no decoding.
Bytes that differ for the same meaning only cost another description: the class id is a hash of what the description
says. Nothing about the owner is in it, for admission plug-ins may have changed one pod of a template and not the next.

What cannot be read from the pod alone (where its volumes are, which nodes avoid its owner) extends its class.
"""

from dataclasses import dataclass

from poseidon_py.describe.bandwidth import NOT_COUNTED
from poseidon_py.describe.pod_class import Key, describe_class, key_of, seal
from poseidon_py.describe.selectors import on_node
from poseidon_py.kube.objects import Pod
from poseidon_py.kube.quantity import PODS
from poseidon_py.util.ids import hash64
from protos.gen import firmament_pb2, flow_pb2

NOMINATED_WEIGHT = 100


@dataclass(frozen=True, slots=True)
class Extras:
    """What a pod demands or wishes beside what its own fields say."""

    further: tuple[tuple[str, bytes], ...] = ()
    """Name for reasons, and an encoded NodeSelector, which must hold."""
    requests: tuple[tuple[str, int], ...] = ()
    avoided_as: str = ""
    nominated: str = ""
    """Name of a node that was made free for the pod."""


NO_EXTRAS = Extras()


class Classes:
    """Owns the descriptions, and the way from a pod to its class."""

    def __init__(self, added: firmament_pb2.NodeSelector | None = None) -> None:
        """`added`: node affinity that the administrator demands of every pod."""
        self._added = added
        self.bandwidth = NOT_COUNTED
        """To be set before the first pod is described."""
        self._by_key: dict[Key, int] = {}
        self._by_extras: dict[tuple[int, Extras], int] = {}
        self._described: dict[int, flow_pb2.TaskClass] = {}

    def __len__(self) -> int:
        return len(self._described)

    def of(self, pod: Pod) -> int:
        """The id of the pod's class, described if it was not known. Raises InvalidField."""
        key = key_of(pod, self.bandwidth)
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = self._add(describe_class(pod, self._added, self.bandwidth))
        return found

    def extended(self, class_id: int, extras: Extras) -> int:
        """The class that demands `extras` beside what class `class_id` does."""
        if extras == NO_EXTRAS:
            return class_id
        found = self._by_extras.get((class_id, extras))
        if found is None:
            found = self._by_extras[class_id, extras] = self._add(_extend(self._described[class_id], extras))
        return found

    def unreadable(self, pod: Pod) -> int:
        """The class of a pod that runs, but whose description makes no sense: it holds a slot for pods."""
        message = flow_pb2.TaskClass(requests={PODS: 1}, priority=pod.spec.priority or 0, name="unreadable")
        message.id = hash64(message.SerializeToString(deterministic=True))
        return self._add(message)

    def of_amounts(self, class_id: int) -> int:
        """The class that requests what class `class_id` does and says nothing else; without any amounts if that is
        the same class."""
        message, described = flow_pb2.TaskClass(name="without demands"), self._described.get(class_id)
        if described is not None:
            message.requests.update(described.requests)
            message.tokens.extend(described.tokens)
            message.priority = described.priority
        name, message.name = message.name, ""
        seal(message)
        if message.id == class_id:
            message = flow_pb2.TaskClass(requests={PODS: 1})
            seal(message)
        message.name = name
        return self._add(message)

    def _add(self, message: flow_pb2.TaskClass) -> int:
        self._described.setdefault(message.id, message)
        return message.id

    def get(self, class_id: int) -> flow_pb2.TaskClass | None:
        return self._described.get(class_id)

    def keep(self, in_use: set[int]) -> None:
        """Forgets all other classes."""
        self._described = {i: message for i, message in self._described.items() if i in in_use}
        self._by_key = {key: i for key, i in self._by_key.items() if i in in_use}
        self._by_extras = {key: i for key, i in self._by_extras.items() if i in in_use and key[0] in in_use}


def _extend(base: flow_pb2.TaskClass, extras: Extras) -> flow_pb2.TaskClass:
    message = flow_pb2.TaskClass()
    message.CopyFrom(base)
    message.id, message.name = 0, ""
    for name, encoded in extras.further:
        message.further_affinity.append(firmament_pb2.NodeSelector.FromString(encoded))
        message.further_names.append(name)
    for resource, amount in extras.requests:
        message.requests[resource] += amount
    message.avoided_as = extras.avoided_as
    if extras.nominated:
        message.preferred_nodes.add(weight=NOMINATED_WEIGHT, preference=on_node(extras.nominated))
    seal(message)
    message.name = base.name
    return message
