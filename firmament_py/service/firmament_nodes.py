"""Machines of the original contract, which are trees of resources -> nodes; and their processing units."""

from collections.abc import Iterator

from firmament_py.model.events import NodeObserved
from firmament_py.model.resources import TASK_SLOTS
from firmament_py.service import firmament_affinity, messages
from firmament_py.service.calls.invalid_field import InvalidField
from firmament_py.service.firmament_amounts import amounts
from firmament_py.service.firmament_amounts import links as links_of
from protos.gen import firmament_pb2 as pb


class ProcessingUnits:
    """The processing units of each machine, by UUID: a placement names the first one, as in the original."""

    def __init__(self) -> None:
        self._of_machine: dict[str, list[str]] = {}  # in the order of its tree
        self._all: set[str] = set()

    def __contains__(self, uuid: str) -> bool:
        return uuid in self._all

    def first(self, machine: str) -> str:
        """The first unit of a machine; the machine itself if it has none."""
        return (self._of_machine.get(machine) or [machine])[0]

    def set(self, request: pb.ResourceTopologyNodeDescriptor) -> None:
        """Sets the units of a machine from its tree; an update may omit them."""
        machine = request.resource_desc.uuid
        units = [part.uuid for part in tree(request) if part.type == pb.ResourceDescriptor.RESOURCE_PU]
        if units or machine not in self._of_machine:
            self.remove(machine)
            self._of_machine[machine] = units
            self._all.update(units)

    def remove(self, machine: str) -> None:
        self._all.difference_update(self._of_machine.pop(machine, ()))


def tree(node: pb.ResourceTopologyNodeDescriptor) -> Iterator[pb.ResourceDescriptor]:
    """A machine and all its parts, from the root."""
    yield node.resource_desc
    for child in node.children:
        yield from tree(child)


def node_event(request: pb.ResourceTopologyNodeDescriptor, *, links: bool = False) -> NodeObserved:
    """The event for a machine; links: whether its bandwidth counts. Raises InvalidField if it has no UUID."""
    machine = request.resource_desc
    if not machine.uuid:
        raise InvalidField("resource_desc.uuid", "is empty; give the machine's UUID")
    name = machine.friendly_name or machine.uuid
    available = machine.available_resources if machine.HasField("available_resources") else machine.resource_capacity
    return NodeObserved(
        id=machine.uuid,
        name=name,
        allocatable={
            **amounts(available, round_up=False),
            **(links_of(available) if links else {}),
            TASK_SLOTS: machine.max_pods,
        },
        labels={firmament_affinity.HOST: name, **{label.key: label.value for label in machine.labels}},
        taints=messages.taints(machine.taints),
        avoids=frozenset(item.uid for item in machine.avoids if item.uid),
    )
