"""Interference: tasks that interfere with each other are kept apart (Firmament's CoCo cost model; Schwarzkopf's
thesis, section 7.3: coordinated co-location).

    place[c, n] = w[n] x sum over kinds x of (tasks of kind x on n) x J[c, x]       J[a, b] = P[a, b] + P[b, a]
    slot[n, k]  = w[n] x k x J[c, c] + 1000 x sum over resources of the share that is used after k tasks
    w[n] = e^(used share of n's cpu) x (mean cpu of a node / cpu of n)

P is the table of colocation.py: the penalty of one task beside another; J counts both sides, so that costs add up to
the sum of all penalties. Penalties weigh more on loaded and on small machines; the used share of the cpu is the larger
of requested and measured. The second term of a slot is CoCo's cost vector: one dimension per resource of the machine.

Costs depend on the other tasks that are placed, which are unknown before the solve. So kinds are placed in stages,
devils first, then rabbits, sheep and turtles: each stage sees the placements of previous ones, and within a kind k x J
is exact. Priority comes first: a higher priority is placed before a lower one of any kind, and within a priority,
classes with a task that has waited for over eight minutes come before all others, so that a stream of one kind does not
starve another. Example: on an idle node with one rabbit (w = 1) a devil costs 1000 + 1000 = 2000, a turtle 60; the
second devil of a solve on an empty node costs 400 more than the first.
"""

import numpy as np

from firmament_py.policy import COST_MAX, F64, I64, Costs, View, waiting_cost
from policies import colocation
from policies.colocation import KINDS

_RESOURCES = ("cpu", "memory", "ephemeral-storage", "bandwidth.ingress", "bandwidth.egress")
_FIT = 1000
_OVERDUE = 8
"""log2 of the seconds, rounded down, that a task can wait before its class comes first: 9 is reached at 8.5 minutes."""
_DOUBLINGS_MAX = 50
_STAGE = [("devil", "rabbit", "sheep", "turtle").index(kind) for kind in KINDS]


class Interference:
    """Tasks that interfere with each other are kept apart, by kind: sheep, rabbits, devils, turtles."""

    name = "interference"
    wants_usage = True

    def __init__(self, penalties: str = "", default: str = "sheep") -> None:
        """penalties: changes to the table, "rabbit-devil=500,devil-devil=0"; default: the kind of tasks that state
        none."""
        table = colocation.penalties(penalties)
        self._joint = table + table.T
        self._default = colocation.kind_number(default, "default")

    def costs(self, view: View) -> Costs:
        kinds = colocation.kinds_of_classes(view, self._default)
        used, mean = colocation.shares(view, _RESOURCES)
        weight = np.exp(_busy(view)) * colocation.relative_size(view)
        place = weight * (self._joint[kinds] @ colocation.neighbours(view, self._default).T)
        k = view.slot_offsets.astype(np.float64)
        amount = np.bincount(kinds, view.waiting, minlength=len(KINDS)) / max(int(view.waiting.sum()), 1)
        among = float(amount @ self._joint @ amount)  # a stage has one kind: its penalty beside itself
        fit = np.minimum(used[:, :, None] + mean[:, :, None] * k, 1.0).sum(axis=1)
        slot = weight[:, None] * k * among + _FIT * fit
        return Costs(
            place=np.rint(np.minimum(place, COST_MAX)).astype(np.int64),
            slot=np.rint(np.minimum(slot, COST_MAX)).astype(np.int64),
            wait=waiting_cost(view),
            stage=_stage(view, kinds),
        )


def _stage(view: View, kinds: I64) -> I64:
    """(C,) the stage of each class: classes with an overdue task first, longest wait first; then by kind."""
    oldest = np.zeros(len(kinds), np.int64)
    np.maximum.at(oldest, view.task_class, view.task_age_us)
    doublings = np.floor(np.log2(oldest // 1_000_000 + 1)).astype(np.int64)
    overdue = np.maximum(doublings - _OVERDUE, 0)
    stage: I64 = len(KINDS) * (_DOUBLINGS_MAX - overdue) + np.array(_STAGE)[kinds]
    return stage


def _busy(view: View) -> F64:
    """(N,) 0 .. 1: the used share of each node's cpu, the larger of View.load and measured."""
    used, _ = colocation.shares(view, ("cpu",))
    share: F64 = used.max(axis=1, initial=0.0)
    if "cpu" not in view.resources:
        return share
    measured = view.usage.cpu / np.maximum(view.allocatable[:, view.resources.index("cpu")], 1)
    return np.clip(np.fmax(share, measured), 0.0, 1.0)
