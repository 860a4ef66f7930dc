"""From what the store knows to what the engine is told: rows of an Update. Shared by feed.py and session.py."""

from dataclasses import dataclass, field

from poseidon_py.describe import describe_node, node_key
from poseidon_py.metrics import METRICS
from poseidon_py.objects import Nonsense
from poseidon_py.store import KnownNode, KnownPod, Store
from protos.gen import flow_pb2

Told = tuple[int, str]


def describe_pod(store: Store, known: KnownPod) -> None:
    """Brings the pod's class up to date with its newest state; one that makes no sense gets none, and a warning."""
    pod = known.object
    if pod is None:
        return
    known.object = None
    try:
        known.class_id = store.classes.of(pod)
        known.problem = ""
    except Nonsense as problem:
        known.problem = str(problem)
        known.class_id = store.classes.unreadable(pod) if known.node else 0
        store.warn_pod(known.namespace, known.name, known.uid, known.problem)


def node_message(store: Store, known: KnownNode) -> flow_pb2.Node | None:
    """The node as it is to be told; None if it makes no sense, and what was told before stands."""
    node = known.object
    if node is not None:
        known.object = None
        key = node_key(node)
        if key != known.key:
            try:
                known.message, known.key = describe_node(node, known.id), key
            except Nonsense as problem:
                store.warn("node", known.uid, known.name, str(problem))
                return known.message
            if not known.message.allocatable:
                METRICS.no_allocatable.inc()
                store.warn(
                    "node", known.uid, known.name, "status.allocatable: is missing; nothing fits until it is set"
                )
    return known.message


def target(store: Store, known: KnownPod, *, fresh: bool = False) -> Told | None:
    """What the engine should know of a pod; None: nothing.

    `fresh` is for an engine that knows nothing: to it a placement in progress is as good as done.
    """
    if not known.class_id:
        return None
    if known.node:
        return known.class_id, store.id_of_node(known.node)
    if known.assumed:
        if fresh:
            return known.class_id, store.id_of_node(known.assumed)
        if known.told is not None:
            return known.class_id, known.told[1]
    return (known.class_id, "") if known.wanted else None


@dataclass(slots=True)
class Rows:
    """An Update in the making, and which pods it speaks of."""

    update: flow_pb2.Update = field(default_factory=flow_pb2.Update)
    pods: list[tuple[KnownPod, Told]] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    _node: dict[str, int] = field(default_factory=dict)
    _uid: list[int] = field(default_factory=list)
    _class: list[int] = field(default_factory=list)
    _job: list[int] = field(default_factory=list)
    _created: list[int] = field(default_factory=list)
    _at: list[int] = field(default_factory=list)
    _name: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._uid)

    def add(self, known: KnownPod, told: Told) -> None:
        """A row for the pod."""
        class_id, node = told
        self.pods.append((known, told))
        self._uid.append(known.task)
        self._class.append(class_id)
        self._job.append(known.job_id)
        self._created.append(known.created_us)
        self._at.append(self._node.setdefault(node, len(self._node) + 1) if node else 0)
        self._name.append(known.full_name)

    def finish(self, store: Store, known_classes: set[int]) -> flow_pb2.Update:
        """The Update, with the classes that it names and that are not among `known_classes`."""
        tasks = self.update.tasks
        tasks.uid.extend(self._uid)
        tasks.class_id.extend(self._class)
        tasks.job_id.extend(self._job)
        tasks.created_us.extend(self._created)
        tasks.node.extend(self._at)
        tasks.name.extend(self._name)
        tasks.nodes.extend(self._node)
        for class_id in set(self._class) - known_classes:
            message = store.classes.get(class_id)
            if message is not None:
                self.update.classes.append(message)
                self.classes.append(class_id)
        return self.update
