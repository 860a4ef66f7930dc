"""Reasons for waiting: kind, the number of nodes concerned, details; and the tasks that wait for them."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from firmament_py.model.arrays import I64


class ReasonKind(IntEnum):
    """Numbers as in the contract's Reason.Kind."""

    INSUFFICIENT_RESOURCE = 1  # detail: the resource
    TOO_MANY_TASKS = 2
    UNTOLERATED_TAINT = 3  # detail, value: key and value of the taint
    SELECTOR_MISMATCH = 4
    AFFINITY = 5
    ANTI_AFFINITY = 6
    ANTI_AFFINITY_OF_OTHERS = 7
    SPREAD = 8
    SPREAD_LABEL_MISSING = 9
    TOKEN_TAKEN = 10  # detail: the token
    GANG_INCOMPLETE = 11  # detail: the gang, value: members that must be created before it can be tried
    GANG_DOES_NOT_FIT = 12  # detail: the gang, value: "fitting/needed" members
    FURTHER_AFFINITY = 13  # detail: its name
    RESERVED = 14  # detail: the gang or single task that the capacity of these nodes is reserved for
    GANG_FULL = 15  # detail: the gang, value: "placed/maximum" members
    DEFERRED = 16  # a later round considers it: it has many inter-task terms, and so have others
    DELAYED = 17  # fits, but waits for a node that costs less
    NOT_BY_PREEMPTION = 18  # detail: the gang, value: "fitting/needed" members with all evictions and moves at best
    OVER_QUOTA = 19  # detail: the queue whose quota does not suffice, value: "resource: lacking amount"
    QUEUE_UNKNOWN = 20  # the queue of the task does not exist, or is no leaf
    QUEUE_STOPPED = 21  # detail: the queue that is stopped
    NO_FLAVOR = 22  # detail: the queue; it has no quota on any node that suits the task
    QUEUE_BEHIND = 23  # detail: the queue, which goes strictly by age, and in which an older task waits
    GANG_CANNOT_START = 24  # detail: the gang, value: "resource: lacking amount, ..." of what it needs to start
    BUDGETS = 25  # detail: names of disruption budgets that prevent evictions by which it would fit on these nodes
    GANG_DOMAIN = 26  # outside of the domain that the gang requires; detail: the gang, value: the label


@dataclass(frozen=True, slots=True)
class Reason:
    kind: ReasonKind
    nodes: int
    detail: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Tasks of one class that wait. unreported: (K,) rows of those whose reasons have not been reported yet."""

    cls: int
    count: int
    reasons: tuple[Reason, ...]
    unreported: I64


def signature_of(reasons: tuple[Reason, ...], nodes: int = 0) -> np.uint64:
    """A hash of reasons, never 0."""
    return np.uint64(hash((reasons, nodes)) & (2**63 - 1) | 1)
