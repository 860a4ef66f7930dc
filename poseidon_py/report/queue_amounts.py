"""What the engine reports of queues, with the quotas of their descriptions. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poseidon_py.describe.queues.model import UNBOUNDED, Queue, Quota, Sharing, Tree
from poseidon_py.kube.quantity import PODS
from poseidon_py.report.queue_use import QueueUse
from protos.gen import flow_pb2

_NO_LIMIT = 2**60
"""A fair share that means no limit, in the contract."""
_THOUSANDTHS = 1000.0


@dataclass(frozen=True, slots=True)
class QueueAmount:
    """One resource of a queue with all queues below it, on the nodes of one flavor; in the engine's units. None: no
    limit."""

    flavor: str
    resource: str
    used: int
    guarantee: int | None
    """Its own; of a queue without one, the sum of those below it."""
    limit: int | None
    fair_share: int | None
    """None also where capacity is not divided by shares."""
    borrowed: int
    requested: int
    """Of waiting tasks."""
    past: float | None = None
    """Decayed mean of what was used; None: past use does not count."""


class QueueAmounts:
    """The amounts in a reply, by queue. `tree`: the one that the reply is about."""

    def __init__(self, tree: Tree, reply: flow_pb2.QueuesReply) -> None:
        self.states = {state.id: state for state in reply.queues}
        self.local_states = {state.id: state for state in reply.local_queues}
        self.past_us = reply.past_use.at_us
        """Until when past use is counted, microseconds since the epoch; 0: it does not count."""
        self._shares = tree.rules.sharing is Sharing.PROPORTIONAL
        self._counts_pods = any(
            quota.resource == PODS and not quota.implied for queue in tree.queues for quota in queue.quotas
        )
        self._quotas = {
            queue.id: {(quota.flavor, quota.resource): quota for quota in queue.quotas} for queue in tree.queues
        }
        self._queues = {queue.id: queue for queue in tree.queues}
        self._below: dict[int, dict[tuple[str, str], int]] = {}
        self._of: dict[int, tuple[QueueAmount, ...]] = {}
        for state in reversed(reply.queues):  # children before parents
            self._add_to_parent(state)

    def _add_to_parent(self, state: flow_pb2.QueueState) -> None:
        if not state.parent:
            return
        sums = self._below.setdefault(state.parent, {})
        for amount in state.amounts:
            key = amount.flavor, amount.resource
            own = amount.nominal or self._below.get(state.id, {}).get(key, 0)
            sums[key] = sums.get(key, 0) + own

    def of(self, ident: int) -> tuple[QueueAmount, ...]:
        """The amounts of the queue with an id, by flavor and resource; pods only where users limit their number."""
        found = self._of.get(ident)
        if found is None:
            found = self._of[ident] = tuple(self._amounts(ident))
        return found

    def _amounts(self, ident: int) -> Iterator[QueueAmount]:
        state = self.states.get(ident)
        queue = self._queues.get(ident)
        if state is None or queue is None:
            return
        below, quotas = self._below.get(ident, {}), self._quotas[ident]
        for amount in sorted(state.amounts, key=lambda each: (each.flavor, each.resource)):
            if amount.resource == PODS and not self._counts_pods:
                continue
            key = amount.flavor, amount.resource
            guarantee = amount.nominal or below.get(key, 0)
            yield QueueAmount(
                *key,
                used=amount.used,
                guarantee=guarantee if guarantee < UNBOUNDED else None,
                limit=_limit(queue, quotas.get(key)),
                fair_share=amount.fair if self._shares and amount.fair < _NO_LIMIT else None,
                borrowed=amount.borrowed,
                requested=amount.demand,
                past=amount.past if self.past_us else None,
            )

    def of_local(self, ident: int) -> tuple[QueueAmount, ...]:
        """What the pods of a local queue use; pods only where users limit their number."""
        return tuple(
            QueueAmount(
                *(each.flavor, each.resource, each.used, None, None, None, 0, 0),
                past=each.past if self.past_us else None,
            )
            for each in sorted(self.local_states[ident].amounts, key=lambda each: (each.flavor, each.resource))
            if each.resource != PODS or self._counts_pods
        )


def _limit(queue: Queue, quota: Quota | None) -> int | None:
    if quota is None or quota.implied:
        return None
    if not queue.parent and not queue.unlimited:
        return quota.nominal  # there is no queue from which it could borrow
    borrowing = None if quota.borrowing_limit is None else quota.nominal + quota.borrowing_limit
    limits = [limit for limit in (quota.limit, borrowing) if limit is not None]
    return min(limits, default=None)


def share_of(state: flow_pb2.QueueState) -> float:
    """The dominant share of what a queue borrows, by weight; 1: all that its parent can lend."""
    return state.share / _THOUSANDTHS


def uses_of(amounts: QueueAmounts) -> dict[int, QueueUse]:
    """What statuses of queues show, by id of the queue."""
    local = {
        ident: QueueUse(
            used={(each.flavor, each.resource): each.used for each in amounts.of_local(ident)},
            pending=state.pending,
            running=state.running,
        )
        for ident, state in amounts.local_states.items()
    }
    return local | {ident: _use(state, amounts.of(ident)) for ident, state in amounts.states.items()}


def past_of(amounts: Sequence[QueueAmount]) -> dict[str, float]:
    """The past use of all flavors together, by resource."""
    sums: dict[str, float] = {}
    for each in amounts:
        sums[each.resource] = sums.get(each.resource, 0.0) + (each.past or 0.0)
    return sums


def _use(state: flow_pb2.QueueState, amounts: Sequence[QueueAmount]) -> QueueUse:
    fair: dict[str, int | None] = {}
    requested: dict[str, int] = {}
    for each in amounts:
        name = each.resource
        requested[name] = requested.get(name, 0) + each.used + each.requested
        before = fair.get(name, 0)
        fair[name] = before + each.fair_share if before is not None and each.fair_share is not None else None
    return QueueUse(
        used={(each.flavor, each.resource): each.used for each in amounts},
        borrowed={(each.flavor, each.resource): each.borrowed for each in amounts},
        pending=state.pending,
        running=state.running,
        share=share_of(state),
        fair_share={name: amount for name, amount in fair.items() if amount is not None},
        requested=requested,
    )
