"""Compiles what this package compiles, before a round needs it: some ten seconds, once for an installation."""

import numpy as np

from firmament_py.model.queues import Flavor, QueueDefinition, QueueTree, Quota, Sharing
from firmament_py.queues.admission import Jobs, admit
from firmament_py.queues.quota import capacity
from firmament_py.queues.shares import fair_shares
from firmament_py.queues.tree import build


def compile_all() -> None:
    """Divides shares and admits a job in a tree of one queue."""
    quota = Quota("all", "cpu", 1)
    queues = build(QueueTree((QueueDefinition(1, "queue", quotas=(quota,)),), (Flavor("all"),), Sharing.PROPORTIONAL))
    one, amount, always = np.ones(1, np.int64), np.ones((1, 1), np.int64), np.ones((1, 1), np.bool_)
    jobs = Jobs(one - 1, amount, one, one, one, always, always[0])
    admit(queues, capacity(queues), amount - 1, jobs, one, fair_shares(queues, one, amount))
