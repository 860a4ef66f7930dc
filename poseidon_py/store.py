"""What the bridge knows of pods and nodes: the only owner of these maps.

Fed by the watches, read by everyone. A pod is known by its UID, so one that was deleted and made again under the
same name is another pod from the first moment. Every change that might matter to the engine puts the pod's or
node's key into its queue; feed.py takes it from there.

    unknown --observe--> waiting --assume--> assumed --observe with node--> bound --removed, terminal--> unknown
                            ^                   |
                            +-----forget--------+

`assumed` is the binder's: a placement that it carries out, and that the watch has not confirmed yet.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator

from poseidon_py.describe import Classes
from poseidon_py.ids import TaskIds, job_id, node_id
from poseidon_py.keyed_queue import KeyedQueue
from poseidon_py.metrics import METRICS
from poseidon_py.objects import TERMINAL, Metadata, Node, Nonsense, Pod, micros
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

_CLASSES = 10_000
"""Classes from which on it is looked whether they are still in use."""


class KnownPod:
    """One pod. Changed by Store, feed.py (what was told) and binder.py (assumed) only."""

    __slots__ = (
        "assumed",
        "class_id",
        "created_us",
        "deleting",
        "dirty",
        "gated",
        "job_id",
        "name",
        "namespace",
        "node",
        "object",
        "ours",
        "problem",
        "seen",
        "task",
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
        except Nonsense:
            self.created_us = 0  # it is only used to tell who waits longest
        self.job_id = 0
        for owner in metadata.owners or ():
            if owner.controller:
                self.job_id = job_id(owner.uid)
        self.object: Pod | None = None
        """The newest state, until it is described."""
        self.class_id = 0
        """Of the description that `object` led to; 0: none yet, or it made no sense."""
        self.problem = ""
        """Why it cannot be described."""
        self.version = ""
        self.node = ""
        """Name of the node that the API server says it is bound to."""
        self.assumed = ""
        """Name of the node that it is being bound to."""
        self.ours = self.gated = self.deleting = False
        self.told: tuple[int, str] | None = None
        """Class id and node id ("": none) that the engine has been told; None: it does not know the pod."""
        self.dirty = True
        """Whether the engine may have to be told something."""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def wanted(self) -> bool:
        """Whether we are to find a node for it."""
        return self.ours and not self.node and not self.gated and not self.deleting


class KnownNode:
    """One node, described."""

    __slots__ = ("dirty", "id", "key", "message", "name", "object", "told", "uid")

    def __init__(self, node: Node) -> None:
        self.name = node.metadata.name
        self.uid = node.metadata.uid
        self.id = node_id(self.name, self.uid)
        self.object: Node | None = None
        self.key: object = None
        """Bytes of the description, see describe.node_key."""
        self.message: flow_pb2.Node | None = None
        self.told: object = None
        """The key of what the engine has been told."""
        self.dirty = True


class Store:
    """See the module."""

    def __init__(self, scheduler_names: Iterable[str], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ours = frozenset(scheduler_names)
        self._monotonic = monotonic
        self.pods: dict[str, KnownPod] = {}
        """By UID."""
        self.nodes: dict[str, KnownNode] = {}
        """By name."""
        self.classes = Classes()
        self.pod_queue: KeyedQueue[str] = KeyedQueue("pods")
        """UIDs."""
        self.node_queue: KeyedQueue[str] = KeyedQueue("nodes")
        """Node names, and of nodes that are gone their ids."""
        self.gone_tasks: dict[str, int] = {}
        """UID -> task of pods that are gone and of which the engine has yet to be told."""
        self.gone_nodes: set[str] = set()
        """Ids of nodes that are gone and of which the engine has yet to be told."""
        self.on_nonsense: Callable[[str, str, str, str], None] = lambda namespace, name, uid, problem: None
        """Called once for each pod that makes no sense."""
        self.on_settled: Callable[[KnownPod], None] = lambda pod: None
        """Called when the watch says that a pod is bound, or gone."""
        self._tasks = TaskIds()
        self._on_node: dict[str, dict[str, None]] = {}
        """Node name -> UIDs of the pods that are bound to it."""
        self._node_name: dict[str, str] = {}
        self._warned: set[str] = set()
        self._prune_at = _CLASSES

    # -- questions --------------------------------------------------------------------------------------------

    def pod_of_task(self, task: int) -> KnownPod | None:
        uid = self._tasks.uid(task)
        return self.pods.get(uid) if uid is not None else None

    def pod_named(self, namespace: str, name: str) -> KnownPod | None:
        """Looks at all pods: for people."""
        found = [p for p in self.pods.values() if p.name == name and p.namespace == namespace]
        return found[-1] if found else None

    def node_with_id(self, ident: str) -> str | None:
        """The name of a node that is there."""
        return self._node_name.get(ident)

    def id_of_node(self, name: str) -> str:
        """The id of the node of that name; of one that was never seen, an id that its name alone gives."""
        node = self.nodes.get(name)
        return node.id if node is not None else node_id(name, "")

    def waiting(self) -> Iterator[KnownPod]:
        return (pod for pod in self.pods.values() if pod.ours and not pod.node and not pod.deleting)

    # -- what the watches say ---------------------------------------------------------------------------------

    def observe_pod(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if pod.status.phase in TERMINAL:  # without the field selector's help
            self.remove_pod(uid)
            return
        known = self.pods.get(uid)
        if known is None:
            if not uid:
                raise ValueError("a pod without UID")
            # one that was gone and is listed again, as after a restore of the server's data, keeps its id
            task = self.gone_tasks.pop(uid, 0) or self._tasks.add(uid)
            known = self.pods[uid] = KnownPod(pod, task, self._monotonic())
        spec = pod.spec
        node = spec.node_name or ""
        if node != known.node:
            self._move(known, node)
        known.ours = spec.scheduler_name in self._ours
        known.gated = bool(spec.gates)
        known.deleting = pod.metadata.deleting is not None
        known.version = pod.metadata.resource_version
        if not (node or known.ours):
            return  # somebody else's that waits
        known.object = pod
        known.dirty = True
        self.pod_queue.add(uid)

    def _move(self, known: KnownPod, node: str) -> None:
        if known.node:
            self._on_node.get(known.node, {}).pop(known.uid, None)
        known.node = node
        if node:
            self._on_node.setdefault(node, {})[known.uid] = None
            self.on_settled(known)
            known.assumed = ""

    def remove_pod(self, uid: str) -> None:
        known = self.pods.pop(uid, None)
        if known is None:
            return
        if known.node:
            self._on_node.get(known.node, {}).pop(uid, None)
        self._warned.discard(uid)
        known.deleting = True
        self.on_settled(known)
        known.assumed = ""
        self.gone_tasks[uid] = known.task
        self.pod_queue.add(uid)

    def told_gone(self, uids: Iterable[str]) -> None:
        """The engine knows that these pods are gone: their task ids are free."""
        for uid in uids:
            task = self.gone_tasks.pop(uid, None)
            if task is not None:
                self._tasks.remove(task)

    def pods_listed(self, uids: set[str]) -> None:
        """Pods that are known and not among `uids` went while nobody looked."""
        for uid in [uid for uid in self.pods if uid not in uids]:
            self.remove_pod(uid)

    def observe_node(self, node: Node) -> None:
        name, uid = node.metadata.name, node.metadata.uid
        known = self.nodes.get(name)
        if known is None or known.uid != uid:
            if known is not None:
                self.remove_node(name)
            known = self.nodes[name] = KnownNode(node)
            self._node_name[known.id] = name
            self.gone_nodes.discard(known.id)
            for pod in self._on_node.get(name, ()):  # they were told to be on a node that nobody knew, or the old one
                self.pods[pod].dirty = True
                self.pod_queue.add(pod)
        known.object = node
        known.dirty = True
        self.node_queue.add(name)

    def remove_node(self, name: str) -> None:
        known = self.nodes.pop(name, None)
        if known is None:
            return
        self._node_name.pop(known.id, None)
        self.gone_nodes.add(known.id)
        self.node_queue.add(known.id)

    def nodes_listed(self, uids: set[str]) -> None:
        """Nodes that are known and not among `uids` went while nobody looked."""
        for name in [node.name for node in self.nodes.values() if node.uid not in uids]:
            self.remove_node(name)

    def prune_classes(self) -> None:
        """Forgets classes that no pod is of, when there may be many."""
        if len(self.classes) >= self._prune_at:
            self.classes.keep({pod.class_id for pod in self.pods.values()})
            self._prune_at = max(_CLASSES, 2 * len(self.classes))

    # -- trouble ----------------------------------------------------------------------------------------------

    def warn(self, kind: str, uid: str, name: str, problem: str) -> bool:
        """Logs and counts that an object makes no sense, once for each object. Returns whether this was it."""
        if uid in self._warned:
            return False
        self._warned.add(uid)
        log.warning("skipping %s %s: %s", kind, name, problem)
        METRICS.nonsense.labels(kind).inc()
        return True

    def warn_pod(self, namespace: str, name: str, uid: str, problem: str) -> None:
        """The same of a pod, with an event for its owner to see."""
        if self.warn("pod", uid, f"{namespace}/{name}", problem):
            self.on_nonsense(namespace, name, uid, problem)


class PodFollower:
    """Tells a Store what the watch of pods says."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unreadable: set[str] = set()

    def observe(self, item: Pod) -> None:
        try:
            self._store.observe_pod(item)
        except ValueError as error:
            self.nonsense(item.metadata, str(error))

    def removed(self, item: Pod) -> None:
        self._store.remove_pod(item.metadata.uid)

    def listed(self, uids: set[str]) -> None:
        self._store.pods_listed(uids | self._unreadable)
        self._unreadable.clear()

    def nonsense(self, who: Metadata, what: str) -> None:
        self._unreadable.add(who.uid)  # it exists: what was known of it before is better than nothing
        self._store.warn_pod(who.namespace, who.name, who.uid, what)


class NodeFollower:
    """Tells a Store what the watch of nodes says."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unreadable: set[str] = set()

    def observe(self, item: Node) -> None:
        self._store.observe_node(item)

    def removed(self, item: Node) -> None:
        known = self._store.nodes.get(item.metadata.name)
        if known is not None and known.uid == item.metadata.uid:
            self._store.remove_node(item.metadata.name)

    def listed(self, uids: set[str]) -> None:
        self._store.nodes_listed(uids | self._unreadable)
        self._unreadable.clear()

    def nonsense(self, who: Metadata, what: str) -> None:
        self._unreadable.add(who.uid)
        self._store.warn("node", who.uid or who.name, who.name, what)
