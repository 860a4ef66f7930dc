"""The tree of the kind in force, and what is derived from it."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from poseidon_py.describe.queues.messages import queue_message, queues_message
from poseidon_py.describe.queues.model import Queue, Stop, Tree
from poseidon_py.devices.device_quotas import NO_QUOTAS
from poseidon_py.state.queues.past_use import PastUse
from poseidon_py.state.queues.source import Source
from protos.gen import flow_pb2

_INVALID = (OverflowError, TypeError, ValueError)
"""What a message raises for a value that its field cannot hold."""


class BuiltTree:
    """Made anew when an object changes. `source`: None: no quota is counted. `served`: extended resource by the class
    of devices that serves it."""

    def __init__(self, source: Source | None, past_use: PastUse, served: Mapping[str, str]) -> None:
        tree = past_use.ruled(source.tree() if source is not None else Tree())
        self.device_quotas = source.device_quotas(tree) if source is not None else NO_QUOTAS
        tree = _without(tree, self.device_quotas.replaced(served))
        tree = _stopped(tree, source.refused() if source is not None else set())
        unsendable: Mapping[str, str] = {}
        try:
            self.message: flow_pb2.Queues = queues_message(tree)
        except _INVALID:
            unsendable = _unsendable(tree.queues)
            tree = _stopped(_bare(tree, unsendable), unsendable.keys())
            self.message = queues_message(tree)
        self.tree = tree
        self.draining = {queue.id: queue.name for queue in tree.queues if queue.stop is Stop.HOLD_AND_DRAIN}
        self.taking = {0} | {queue.id for queue in tree.queues if queue.stop is Stop.NONE}
        """Ids of the queues that take pods; 0: none concerns them."""
        self.continuing = {queue.id for queue in tree.queues if queue.stop is not Stop.HOLD_AND_DRAIN}
        """Ids of the queues in which workloads that have started go on."""
        self.without_half_life = {queue.key for queue in tree.queues if queue.by_past_use and not past_use.counts(tree)}
        """Keys of queues that are to be served by past use, which does not count."""
        self._queues = {queue.key: queue for queue in tree.queues}
        self._parents = {queue.parent for queue in tree.queues}
        leaves = [queue for queue in tree.queues if queue.key not in self._parents]
        self.taking_by_name = {queue.name: queue.id for queue in leaves if queue.id in self.taking}
        """Name -> id of the queues that pods can be in."""
        self._closed: Mapping[str, str] = {**(source.closed() if source is not None else {}), **unsendable}

    def __contains__(self, key: str) -> bool:
        return key in self._queues

    def by_key(self, refusals: Iterable[flow_pb2.Refusal]) -> dict[str, str]:
        """Key of a queue -> what of it the engine refused."""
        names = {text: queue.key for queue in self.tree.queues for text in (str(queue.id), queue.name)}
        return {
            names.get(str(refusal.queue)) or names.get(refusal.id, refusal.id): f"{refusal.field}: {refusal.reason}"
            for refusal in refusals
            if refusal.kind == "queue"
        }

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


def _unsendable(queues: Iterable[Queue]) -> dict[str, str]:
    """Key -> what is wrong with it, of the queues that the contract cannot express."""
    found: dict[str, str] = {}
    for queue in queues:
        try:
            queue_message(queue)
        except _INVALID as error:
            found[queue.key] = f"a field is out of range: {error}; correct it"
    return found


def _bare(tree: Tree, unsendable: Mapping[str, str]) -> Tree:
    """The tree in which these queues have nothing but their place."""
    if not unsendable:
        return tree
    queues = (Queue(each.key, each.name, each.parent) if each.key in unsendable else each for each in tree.queues)
    return replace(tree, queues=tuple(queues), problems={**tree.problems, **unsendable})


def _without(tree: Tree, resources: Iterable[str]) -> Tree:
    """The tree without quotas of resources that count as others."""
    exempt = tuple(sorted(resources))
    if not exempt:
        return tree
    queues = (
        replace(queue, quotas=tuple(quota for quota in queue.quotas if quota.resource not in exempt))
        for queue in tree.queues
    )
    return replace(tree, queues=tuple(queues), rules=replace(tree.rules, exempt_resources=exempt))


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
