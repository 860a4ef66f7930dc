"""The tree of the kind in force, and what is derived from it."""

from collections.abc import Mapping, Set
from dataclasses import replace

from poseidon_py.describe.queues.messages import queues_message
from poseidon_py.describe.queues.model import Stop, Tree
from poseidon_py.state.queues.past_use import PastUse
from poseidon_py.state.queues.source import Source
from protos.gen import flow_pb2


class BuiltTree:
    """Made anew when an object changes. `source`: None: no quota is counted."""

    def __init__(self, source: Source | None, past_use: PastUse) -> None:
        tree = past_use.ruled(source.tree() if source is not None else Tree())
        tree = self.tree = _stopped(tree, source.refused() if source is not None else set())
        self.message: flow_pb2.Queues = queues_message(tree)
        self.draining = {queue.id: queue.name for queue in tree.queues if queue.stop is Stop.HOLD_AND_DRAIN}
        self.taking = {0} | {queue.id for queue in tree.queues if queue.stop is Stop.NONE}
        """Ids of the queues that take pods; 0: none concerns them."""
        self.continuing = {queue.id for queue in tree.queues if queue.stop is not Stop.HOLD_AND_DRAIN}
        """Ids of the queues in which workloads that have started go on."""
        self.without_half_life = {queue.key for queue in tree.queues if queue.by_past_use and not past_use.counts(tree)}
        """Keys of queues that are to be served by past use, which does not count."""
        self._queues = {queue.key: queue for queue in tree.queues}
        self._parents = {queue.parent for queue in tree.queues}
        self._closed: Mapping[str, str] = source.closed() if source is not None else {}

    def __contains__(self, key: str) -> bool:
        return key in self._queues

    def has_queues_below(self, key: str) -> bool:
        return key in self._parents

    def covered(self, key: str) -> Set[str] | None:
        """The resources for which the queue with this key has quota; None: it needs none for others."""
        queue = self._queues.get(key)
        if queue is None or queue.unlimited:
            return None
        return {quota.resource for quota in queue.quotas}.union(*queue.groups)

    def why_closed(self, *keys: str) -> str:
        """The problem that closes one of the queues or local queues with these keys, or a queue above one of them, with
        its name and the remedy; empty: none is closed by a problem."""
        for start in keys:
            key = start
            while key:
                queue = self._queues.get(key)
                name = queue.name if queue is not None else key.partition("/")[2]
                if problem := self._closed.get(key):
                    return f"queue {name} is closed: {problem}"
                key = queue.parent if queue is not None else ""
        return ""


def _stopped(tree: Tree, keys: Set[str]) -> Tree:
    """The tree in which queues with these keys, and those below them, take no pods."""
    if not keys:
        return tree
    parents = {queue.key: queue.parent for queue in tree.queues}

    def is_closed(key: str) -> bool:
        while key and key not in keys:
            key = parents.get(key, "")
        return bool(key)

    queues = (
        replace(queue, stop=max(queue.stop, Stop.HOLD)) if is_closed(queue.key) else queue for queue in tree.queues
    )
    return replace(tree, queues=tuple(queues))
