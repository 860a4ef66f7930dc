"""A pod and a node as the store knows them."""

from typing import NamedTuple

from poseidon_py.kube.objects import InvalidField, Node, Pod, micros
from poseidon_py.state.claim_use import ClaimUse
from poseidon_py.util.ids import job_id, node_id
from protos.gen import flow_pb2


class SentState(NamedTuple):
    """What the engine has been told of a pod."""

    class_id: int
    node: str
    """Id of a node; "": none."""
    profile: int = 0
    leaving: bool = False
    gang: int = 0
    role: int = 0
    inputs: int = 0
    started_us: int = 0
    lasting: bool = False


class PodRecord:
    """One pod. Changed by Store, feed/workers.py (what was told) and bind/binder.py (assumed) only."""

    __slots__ = (
        "assumed",
        "blocked",
        "blocked_anywhere",
        "claims",
        "class_id",
        "created_us",
        "deleting",
        "dirty",
        "gang",
        "gated",
        "held",
        "ignored",
        "inputs",
        "job_id",
        "lasting",
        "name",
        "namespace",
        "node",
        "nominated",
        "object",
        "ours",
        "owner",
        "problem",
        "profile",
        "role",
        "running",
        "said",
        "seen",
        "started_us",
        "task",
        "template",
        "told",
        "uid",
        "version",
    )

    def __init__(self, pod: Pod, task: int, seen: float) -> None:
        metadata = pod.metadata
        self.uid = metadata.uid
        self.namespace = metadata.namespace
        self.name = metadata.name
        self.task = task
        """Its id in the engine."""
        self.seen = seen
        """Monotonic seconds."""
        try:
            self.created_us = micros(metadata.created)
        except InvalidField:
            self.created_us = 0  # it is only used to tell who waits longest
        self.job_id = 0
        self.owner = ""
        """UID of its controller."""
        for owner in metadata.owners or ():
            if owner.controller:
                self.owner = owner.uid
                self.job_id = job_id(owner.uid)
        self.object: Pod | None = None
        """The newest state, until it is described."""
        self.class_id = 0
        """Of the description that `object` led to; 0: none yet, or it made no sense."""
        self.template = 0
        """Id of the class before what is not said by the pod itself extends it."""
        self.profile = 0
        """Id of its labels."""
        self.inputs = 0
        """Id of the data that it reads; 0: none, or nobody knows where it is."""
        self.claims: tuple[ClaimUse, ...] = ()
        self.blocked = ""
        """Why no node will do as its volumes are."""
        self.blocked_anywhere = True
        """Whether that has nothing to do with nodes."""
        self.nominated = ""
        """Name of a node that was made free for it."""
        self.gang = self.role = 0
        """Ids of its gang, 0: none, and of its role in that."""
        self.running = False
        """Whether its containers run; only kept for members of gangs."""
        self.started_us = 0
        """When it began to run; only kept for those that say how long they expect to."""
        self.lasting = False
        """Whether nothing that we know of will make it give back its room, once it is bound."""
        self.held = ""
        """Why its gang cannot be told to the engine."""
        self.ignored = ""
        """What is wrong with something that it says and that can be done without."""
        self.problem = ""
        """Why it cannot be described."""
        self.version = ""
        self.said = 0
        """Of what state/store.py tells news by."""
        self.node = ""
        """Name of the node that the API server says it is bound to."""
        self.assumed = ""
        """Name of the node that it is being bound to."""
        self.ours = self.gated = self.deleting = False
        self.told: SentState | None = None
        """What the engine has been told; None: it does not know the pod."""
        self.dirty = True
        """Whether the engine may have to be told something."""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def wanted(self) -> bool:
        """Whether we are to find a node for it."""
        return self.ours and not self.node and not self.gated and not self.deleting


class NodeRecord:
    """One node, described."""

    __slots__ = ("base", "dirty", "id", "key", "message", "name", "object", "told", "uid")

    def __init__(self, node: Node) -> None:
        self.name = node.metadata.name
        self.uid = node.metadata.uid
        self.id = node_id(self.name, self.uid)
        self.object: Node | None = None
        self.key: tuple[object, object] | None = None
        """What `message` is made of: of the node, see describe.node_key, and of its volumes."""
        self.base: flow_pb2.Node | None = None
        """The description before the volumes that it can hold are added."""
        self.message: flow_pb2.Node | None = None
        self.told: object = None
        """The key of what the engine has been told."""
        self.dirty = True
