"""The tree of the kind in force, and what is derived from it."""

from collections.abc import Mapping

from poseidon_py.describe.queues.messages import queues_message
from poseidon_py.describe.queues.model import Stop, Tree
from poseidon_py.state.queues.past_use import PastUse
from poseidon_py.state.queues.source import Source
from protos.gen import flow_pb2


class BuiltTree:
    """Made anew when an object changes. `source`: None: no quota is counted."""

    def __init__(self, source: Source | None, past_use: PastUse) -> None:
        tree = self.tree = past_use.ruled(source.tree() if source is not None else Tree())
        self.message: flow_pb2.Queues = queues_message(tree)
        self.draining = {queue.id: queue.name for queue in tree.queues if queue.stop is Stop.HOLD_AND_DRAIN}
        self.without_half_life = {queue.key for queue in tree.queues if queue.by_past_use and not past_use.counts(tree)}
        """Keys of queues that are to be served by past use, which does not count."""
        self._queues = {queue.key: queue for queue in tree.queues}
        self._parents = {queue.parent for queue in tree.queues}
        self._closed: Mapping[str, str] = source.closed() if source is not None else {}

    def __contains__(self, key: str) -> bool:
        return key in self._queues

    def has_queues_below(self, key: str) -> bool:
        return key in self._parents

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
