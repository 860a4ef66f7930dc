"""All legal state transitions of a pod in the bridge, in one table.

No other code decides on transitions. A pair that is absent from the table is rejected and counted, without a change
(`Store.assume`, `Store.release`). This module has neither a clock nor I/O.

    GONE --OBSERVE_WAITING--> WAITING --ASSUME--> ASSUMED --OBSERVE_BOUND--> BOUND
                                 ^                   |
                                 +------RELEASE------+

A pod is GONE (the store has no record of it), WAITING (it has no node; for any scheduler), ASSUMED (the binder carries
out a placement that the watch has not confirmed) or BOUND (observed on a node). Gates and deletion are independent of
these states: see `ObservedPod`.
"""

from enum import IntEnum


class PodState(IntEnum):
    GONE = 0
    WAITING = 1
    ASSUMED = 2
    BOUND = 3


class PodEvent(IntEnum):
    OBSERVE_WAITING = 0  # the watch reports it without a node
    OBSERVE_BOUND = 1  # the watch reports it on a node
    ASSUME = 2  # the binder accepts a placement
    RELEASE = 3  # the placement ended without a bind
    REMOVE = 4  # deleted or terminated


_S, _E = PodState, PodEvent
TRANSITIONS: dict[tuple[PodState, PodEvent], PodState] = {
    (_S.GONE, _E.OBSERVE_WAITING): _S.WAITING,
    (_S.GONE, _E.OBSERVE_BOUND): _S.BOUND,
    (_S.WAITING, _E.OBSERVE_WAITING): _S.WAITING,
    (_S.WAITING, _E.OBSERVE_BOUND): _S.BOUND,  # bound by another scheduler
    (_S.WAITING, _E.ASSUME): _S.ASSUMED,
    (_S.WAITING, _E.REMOVE): _S.GONE,
    (_S.ASSUMED, _E.OBSERVE_WAITING): _S.ASSUMED,  # a version older than the bind
    (_S.ASSUMED, _E.OBSERVE_BOUND): _S.BOUND,
    (_S.ASSUMED, _E.RELEASE): _S.WAITING,
    (_S.ASSUMED, _E.REMOVE): _S.GONE,
    (_S.BOUND, _E.OBSERVE_WAITING): _S.WAITING,  # the API server's data was restored from a time before the bind
    (_S.BOUND, _E.OBSERVE_BOUND): _S.BOUND,
    (_S.BOUND, _E.REMOVE): _S.GONE,
}
