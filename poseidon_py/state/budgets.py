"""The disruption budgets of the cluster, as the engine should have them."""

from collections.abc import Iterable

from poseidon_py.describe.budgets import describe_budget
from poseidon_py.describe.selectors import is_met
from poseidon_py.kube.budget_objects import DisruptionBudget
from poseidon_py.kube.objects import InvalidField
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.util.work_queue import KeyedQueue
from protos.gen import flow_pb2


class Budgets:
    """`put` and `drop` what the watch reports."""

    def __init__(self, metrics: Metrics) -> None:
        self._ids: dict[tuple[str, str], int] = {}
        self.messages: dict[int, flow_pb2.Budget] = {}
        """By id."""
        self.removed: set[int] = set()
        """Ids of budgets whose removal has not been sent to the engine yet."""
        self.queue: KeyedQueue[int] = KeyedQueue("budgets", metrics=metrics)
        """Ids."""

    def put(self, item: DisruptionBudget) -> None:
        """A budget exists. One with an invalid selector limits nothing, as for kube-scheduler. Raises InvalidField."""
        metadata = item.metadata
        key = metadata.namespace, metadata.name
        try:
            message = describe_budget(item)
        except InvalidField:
            self.drop(key)
            raise
        if self._ids.get(key) != message.id:
            self.drop(key)
        self._ids[key] = message.id
        if self.messages.get(message.id) != message:
            self.messages[message.id] = message
            self.removed.discard(message.id)
            self.queue.add(message.id)

    def of(self, profile: flow_pb2.Profile) -> list[flow_pb2.Budget]:
        """The budgets that count pods with these labels."""
        return [message for message in self.messages.values() if _counts(message.selector, profile)]

    def forbid(self, profiles: Iterable[flow_pb2.Profile | None]) -> str:
        """Why pods with these labels must not all leave now; empty: they may. None: unknown labels."""
        count: dict[int, int] = {}
        for profile in profiles:
            for budget in self.of(profile) if profile is not None else ():
                count[budget.id] = count.get(budget.id, 0) + 1
        for ident, pods in count.items():
            budget = self.messages[ident]
            if pods > budget.allowed:
                return (
                    f"disruption budget {budget.name} permits {budget.allowed} evictions, and {pods} members of its "
                    "gang leave together; change the budget"
                )
        return ""

    def drop(self, key: tuple[str, str]) -> None:
        """A budget is deleted. `key`: its namespace and name."""
        ident = self._ids.pop(key, None)
        if ident is not None:
            del self.messages[ident]
            self.removed.add(ident)
            self.queue.add(ident)


def _counts(selector: flow_pb2.PeerSelector, profile: flow_pb2.Profile) -> bool:
    if selector.no_task or profile.namespace not in selector.namespaces:
        return False
    return all(is_met(each, profile.labels) for each in selector.labels)
