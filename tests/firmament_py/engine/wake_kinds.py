"""Kinds of random clusters for wake_worlds.py: which rules hold in them."""

from collections.abc import Callable
from typing import Any

from firmament_py.model.events import QueuesObserved
from firmament_py.model.options import Migrating, Preempting
from firmament_py.model.queues import Flavor, Fungibility, QueueTree, Reclaim, ReclaimRules, Sharing, Stop, Within
from tests.firmament_py.engine.wake_worlds import Kind, Quotas
from tests.firmament_py.queues.trees import queue, quota, tree


def of_one_kind(*queues: Any, **fields: Any) -> QueuesObserved:
    return QueuesObserved(tree(*queues, flavors=("f",), **fields))


def cpus(nominal: int) -> Any:
    return quota(nominal, on="f/cpu")


def sharing(
    rules: dict[str, Any], *, flavors: bool = False, overlap: bool = False, **fields: Any
) -> Callable[[Quotas], QueueTree]:
    """Queues below one, with so much cpu each; flavors: on nodes of zone x, and 2 more on those of zone y, or if they
    overlap, on all nodes."""

    def described(quotas: Quotas) -> QueueTree:
        queues = [queue("root")]
        for name, own in quotas.items():
            of = [quota(own["nominal"], on="x/cpu"), quota(2, on="y/cpu")] if flavors else [cpus(own["nominal"])]
            stop = Stop.HOLD if own.get("stopped") else Stop.NONE
            queues.append(queue(name, "root", *of, unlimited=True, stop=stop, **fields))
        if flavors:
            return QueueTree(
                tuple(queues), (Flavor("x", {"zone": "x"}), Flavor("y", {} if overlap else {"zone": "y"})), **rules
            )
        one: QueueTree = tree(*queues, flavors=("f",), **rules)
        return one

    return described


STOP = Fungibility(try_next_to_avoid_preemption=False)
RECLAIM: dict[str, Any] = {"within": Within.LOWER_PRIORITY, "reclaim": Reclaim.ANY}
FAIR_SHARES = {"sharing": Sharing.PROPORTIONAL, "reclaim_rules": ReclaimRules.FAIR_SHARE}
KINDS = {
    "no queues": Kind(),
    "priorities": Kind(preempting=Preempting.WITHIN_BUDGETS),
    "fifo": Kind(sharing({}, strict_fifo=True)),
    "best effort": Kind(sharing({})),
    "flavors": Kind(sharing({}, flavors=True), first_counts=True),
    "reclaim": Kind(sharing({}, **RECLAIM), Preempting.WITHIN_BUDGETS),
    "fair shares": Kind(sharing(FAIR_SHARES), Preempting.WITHIN_BUDGETS),
    "moves": Kind(preempting=Preempting.WITHIN_BUDGETS, migrating=Migrating.FOR_WAITING),
    "delays": Kind(delays=True),
    "overlapping flavors": Kind(sharing({}, flavors=True, overlap=True), first_counts=True),
    "kept flavors": Kind(
        sharing({}, flavors=True, overlap=True, fungibility=STOP, **RECLAIM),
        Preempting.WITHIN_BUDGETS,
        first_counts=True,
    ),
}
