"""The record of a node in the store."""

from collections.abc import Mapping

from poseidon_py.describe.annotations.usage_thresholds import NO_THRESHOLDS
from poseidon_py.kube.objects import Node
from poseidon_py.util.ids import node_id
from protos.gen import flow_pb2


class NodeRecord:
    """One node, described."""

    __slots__ = ("base", "dirty", "id", "key", "message", "name", "newest", "sent", "thresholds", "uid", "used")

    def __init__(self, node: Node) -> None:
        self.name = node.metadata.name
        self.uid = node.metadata.uid
        self.id = node_id(self.name, self.uid)
        self.newest: Node | None = None
        """The newest object; None once it has been described."""
        self.key: tuple[object, object] | None = None
        """Key of `message`: of the node's fields (see describe.node_key), and of its volumes and usage."""
        self.base: flow_pb2.Node | None = None
        """The description without volume limits."""
        self.thresholds = NO_THRESHOLDS
        """Of measured usage, from which on the node takes no pods."""
        self.used: Mapping[str, float] = {}
        """Measured usage of a node with thresholds, in the engine's units, as far as it is known."""
        self.message: flow_pb2.Node | None = None
        self.sent: object = None
        """Key of the description that was last sent to the engine."""
        self.dirty = True
